#include "nn/layer_frame.hpp"

#include "base/text.hpp"
#include "nn/network.hpp"

namespace tandem::nn {
namespace {

// Innermost of this thread.
constinit thread_local const LayerFrame* innermost = nullptr;

// An error whose text has the layers and the line already, so that the layers around do not add themselves again.
template <class E> class Placed final : public E {
 public:
  using E::E;
};

std::string described(const LayerBody& body) { return cat("layer '", body.name(), "' (", body.class_name(), ")"); }

}  // namespace

LayerFrame::LayerFrame(LayerBody& body, const std::source_location& where)
    : body_(body),
      outer_(innermost),
      depth_(!innermost                   ? 0
             : &innermost->body_ == &body ? innermost->depth_
                                          : innermost->depth_ + 1),
      line_(frontend::named_line(Location::of(where))),
      in_library_(where) {
  if (depth_ > kDeepestNesting) user_error("layers are nested more than ", kDeepestNesting, " deep");
  innermost = this;
}

LayerFrame::~LayerFrame() { innermost = outer_; }

LayerBody* LayerFrame::around(const LayerBody& body) {
  for (const LayerFrame* f = innermost; f; f = f->outer_)
    if (&f->body_ != &body) return &f->body_;
  return nullptr;
}

std::string LayerFrame::placed(const std::string& text) const {
  std::string path = described(body_);
  const LayerBody* last = &body_;
  for (const LayerFrame* f = outer_; f; f = f->outer_) {
    if (&f->body_ == last) continue;
    last = &f->body_;
    path += cat(" of ", dynamic_cast<const NetworkBody*>(last) ? cat("model '", last->name(), "'") : described(*last));
  }
  std::string all = cat(path, ": ", text);
  if (line_ && all.find("\n  at ") == std::string::npos) all.insert(std::min(all.find("\n  hint:"), all.size()), cat("\n  at ", line_));
  return all;
}

void LayerFrame::rethrow() const {
  try {
    throw;
  } catch (const Placed<UserError>&) {
    throw;
  } catch (const Placed<ResourceError>&) {
    throw;
  } catch (const UserError& e) {
    throw Placed<UserError>(placed(e.what()));
  } catch (const ResourceError& e) {
    throw Placed<ResourceError>(placed(e.what()));
  }
}

void expect_one_output(LayerBody& body, size_t count, const std::source_location& where) {
  in_layer(body, where, [&] {
    if (count != 1) user_error("it gives ", count, " outputs\n  hint: call it with a list of inputs");
  });
}

}  // namespace tandem::nn
