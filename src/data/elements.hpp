// Elements as bytes: making tensors of memory, rows of tensors, putting rows side by side. Everything here is on the host.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tandem/data.hpp>

namespace tandem::data {

using Specs = std::vector<Spec>;

Tensor on_host(const Tensor& t);                                         // itself, or a copy in memory that the host reaches
Tensor make_tensor(DType dtype, const Shape& shape, const void* bytes);  // a copy
// Memory to be written before anybody else sees the tensor; dense.
struct NewTensor {
  Tensor tensor;
  char* bytes;
};
NewTensor new_tensor(DType dtype, const Shape& shape);
size_t bytes_of(const Element& element);
size_t bytes_of(const Tensor& tensor);
void copy_bytes(const Tensor& from, void* to);  // row-major, whatever the strides

// A tensor whose rows are components. `type` is set where the rows are bytes that lie at no multiple of the elements' size, as in archives:
// they become tensors of that type when they are copied, and are always copied.
struct RowTensor {
  struct Type {
    DType dtype;
    Shape row;
  };
  Tensor tensor;
  std::optional<Type> type = {};
};

// Looks after the file that rows are in.
class FileHealth;
class RowWatch {
 public:
  enum class Order : uint8_t { Together, Anywhere };
  explicit RowWatch(std::shared_ptr<const FileHealth> health) : health(std::move(health)) {}
  virtual ~RowWatch() = default;
  virtual void before(int64_t count, Order order) const = 0;  // so many rows are touched, which lie together or anywhere
  const std::shared_ptr<const FileHealth> health;
};

// Tensors that are read row by row along their first axis.
class Rows {
 public:
  Rows(std::vector<RowTensor> tensors, std::string_view what);  // UserError unless each has an axis and all have as many rows
  Rows(const std::vector<Tensor>& tensors, std::string_view what);
  int64_t count() const { return count_; }
  Specs specs() const;
  std::vector<Tensor> tensors() const;
  void row(int64_t index, Element& element) const;                        // views
  void range(int64_t first, int64_t count, Element& element) const;       // views of consecutive rows
  void gather(std::span<const int64_t> indices, Element& element) const;  // one copy
  std::shared_ptr<const RowWatch> watch;                                  // of rows in a mapped file

 private:
  std::vector<RowTensor> tensors_;
  int64_t count_ = 0;

  void require(int64_t first, int64_t count) const;  // UserError when there are no such rows: indices may come from a saved state
  void before(int64_t count, RowWatch::Order order) const;
  enum class Gave : uint8_t { Views, Copies };
  void after(Gave gave) const;  // ResourceError when something of what was copied was gone
};

// Components of several elements side by side, one copy. UserError names the component and both shapes when they differ.
// `tensors` are the elements' components one behind the other.
void stack(std::span<const Tensor> tensors, size_t components, Element& batch);

// Each distinct symbol or expression becomes a symbol named after the first component and axis that has it.
Specs renamed(const Specs& specs);
Specs distinct(const Specs& specs, std::string_view prefix);  // so that symbols of two inputs do not meet
std::string str(const Specs& specs);                          // "(float32[3], int32[])"
Specs with_leading(const Specs& specs, const Dim& extent);
// Like both: symbols where they differ. Nothing when types or ranks differ.
std::optional<Specs> common(const Specs& a, const Specs& b);
void check_element(const Specs& specs, const Element& element);  // UserError: component, its type and the declared one

}  // namespace tandem::data
