// Tape: records what is computed from watched tensors, and gives gradients. Works alike outside and inside a Function.
#pragma once
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <vector>

#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem {

struct TapeOptions {
  bool persistent = false;      // gradients may be asked for more than once, also of gradients
  bool watch_variables = true;  // trainable variables are watched when they are read
};

// What a gradient is when the target does not depend on the source.
enum class Unconnected : uint8_t { None, Zero };  // an undefined Tensor; zeros

// What can be differentiated by.
class Source {
 public:
  Source(Tensor t) : tensor_(std::move(t)) {}      // NOLINT
  Source(Variable v) : variable_(std::move(v)) {}  // NOLINT
  bool is_variable() const { return variable_.defined(); }
  const Tensor& tensor() const { return tensor_; }
  const Variable& variable() const { return variable_; }

 private:
  Tensor tensor_;
  Variable variable_;
};

// {w, b}, or a vector of variables or of tensors.
class Sources {
 public:
  Sources(std::initializer_list<Source> list) : list_(list) {}
  Sources(std::vector<Source> list) : list_(std::move(list)) {}                    // NOLINT
  Sources(const std::vector<Variable>& list) : list_(list.begin(), list.end()) {}  // NOLINT
  Sources(const std::vector<Tensor>& list) : list_(list.begin(), list.end()) {}    // NOLINT
  const std::vector<Source>& list() const { return list_; }

 private:
  std::vector<Source> list_;
};

struct GradientOptions {
  std::vector<Tensor> output_gradients = {};  // one a target, of its shape; default: ones
  Unconnected unconnected = Unconnected::None;
};

namespace frontend {
class TapeImpl;
}

// Records from its construction until its first gradient (a persistent tape: until its destruction), on the thread that made it.
class Tape {
 public:
  using Where = std::source_location;
  explicit Tape(const TapeOptions& options = {});
  ~Tape();
  Tape(Tape&&) noexcept;
  Tape& operator=(Tape&&) noexcept;

  void watch(const Tensor& t, Where where = Where::current());
  void watch(const Variable& v, Where where = Where::current());

  // d(sum of target) / d(source).
  Tensor gradient(const Tensor& target, const Source& source, const GradientOptions& options = {}, Where where = Where::current());
  // d(sum of all targets) / d(source), for each source.
  std::vector<Tensor> gradients(const std::vector<Tensor>& targets, const Sources& sources, const GradientOptions& options = {},
                                Where where = Where::current());
  std::vector<Tensor> gradients(const Tensor& target, const Sources& sources, const GradientOptions& options = {},
                                Where where = Where::current()) {
    return gradients(std::vector<Tensor>{target}, sources, options, where);
  }

  // For each of the gradients of the target that are stacked along a first axis, [n, target…]: the gradients, [n, source…], undefined where
  // nothing is connected. All at once where that can be vectorised, else one after the other.
  std::vector<Tensor> stacked_gradients(const Tensor& target, const Sources& sources, const Tensor& output_gradients,
                                        Where where = Where::current());
  // d(target) / d(source), [target…, source…]; undefined when nothing is connected.
  Tensor jacobian(const Tensor& target, const Source& source, Where where = Where::current());
  // The same for each element of a batch, which do not depend on each other: [b, target…] by [b, source…] gives [b, target…, source…].
  Tensor batch_jacobian(const Tensor& target, const Source& source, Where where = Where::current());

  // Stops recording; what was recorded stays, and ops cost nothing extra from now on. `resume` goes on, on the thread that made the tape.
  void stop();
  void resume();
  void reset();                                     // forgets what was recorded
  std::vector<Variable> watched_variables() const;  // in the order in which they were first read

  // While this lives, the tape records nothing: for what must not be differentiated, or need not be.
  class Pause {
   public:
    explicit Pause(const Tape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<frontend::TapeImpl> impl_;
  };

 private:
  std::shared_ptr<frontend::TapeImpl> impl_;
};

}  // namespace tandem
