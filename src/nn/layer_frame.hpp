// LayerFrame: while a layer is built or called, which layers this thread is inside, and whose lines count. Errors that come out name both.
#pragma once
#include <source_location>
#include <string>

#include <tandem/nn/layer.hpp>

#include "frontend/thread_state.hpp"

namespace tandem::nn {

// How deep layers may lie in layers: files come from anywhere, and each level takes a piece of the stack.
constexpr int kDeepestNesting = 64;

class LayerFrame {
 public:
  LayerFrame(LayerBody& body, const std::source_location& where);  // UserError when layers are nested too deep
  ~LayerFrame();
  LayerFrame(const LayerFrame&) = delete;
  LayerFrame& operator=(const LayerFrame&) = delete;

  // Only inside a handler. Throws the current exception again with the path of layers in front, "layer 'd' (Dense) of model 'm': …", and
  // the user's line; as it is when it has both.
  [[noreturn]] void rethrow() const;

  static LayerBody* around(const LayerBody& body);  // the layer that this one is called in; null when there is none

 private:
  std::string placed(const std::string& text) const;

  LayerBody& body_;
  const LayerFrame* const outer_;
  const int depth_;
  const Location line_;  // the user's that the layer is called for
  const frontend::LibraryScope in_library_;
};

template <class F> auto in_layer(LayerBody& body, const std::source_location& where, F f) {
  const LayerFrame frame(body, where);
  try {
    return f();
  } catch (const Error&) {
    frame.rethrow();
  }
}

void expect_one_output(LayerBody& body, size_t count, const std::source_location& where);

}  // namespace tandem::nn
