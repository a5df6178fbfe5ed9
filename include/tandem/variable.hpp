// Variable: named state that a program changes. Copies are handles of the same state.
#pragma once
#include <memory>
#include <optional>
#include <source_location>
#include <string>

#include <tandem/tensor.hpp>

namespace tandem {

struct VariableOptions {
  std::string name = {};
  bool trainable = true;            // tapes watch it without being told
  std::optional<DType> dtype = {};  // default: that of the initial value; float32, int32 or bool for a bare number
};

namespace frontend {
class VariableImpl;
}

// In a Function that is being traced, reading gives a state that comes in and assigning makes one that goes out: the compiled function
// updates the variable in place. Elsewhere assigning exchanges the value. A Tensor got from value() never changes.
class Variable {
 public:
  using Where = std::source_location;
  Variable() = default;  // holds nothing
  explicit Variable(const Operand& initial, const VariableOptions& options = {});

  bool defined() const { return impl_ != nullptr; }
  const std::string& name() const;
  DType dtype() const;
  const Shape& shape() const;
  bool trainable() const;
  void set_trainable(bool trainable);

  Tensor value(Where where = Where::current()) const;
  // The shape must be the variable's own; the element type is converted.
  void assign(const Operand& value) const;
  void assign_add(const Operand& delta) const;
  void assign_sub(const Operand& delta) const;

  const std::shared_ptr<frontend::VariableImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<frontend::VariableImpl> impl_;
};

}  // namespace tandem
