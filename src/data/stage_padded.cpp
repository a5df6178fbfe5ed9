// padded_batch and bucket_by_sequence_length: elements of different extents in one batch.
#include <algorithm>
#include <cstring>

#include <tandem/strings.hpp>

#include "base/text.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

// Copies a dense block of `from` extents into the corner of one of `to` extents, both row-major.
void copy_corner(const char* from, const Shape& from_shape, char* to, const Shape& to_shape, size_t element_bytes, size_t axis = 0) {
  const size_t rank = from_shape.size();
  if (rank == 0 || axis + 1 == rank) {
    std::memcpy(to, from, (rank == 0 ? 1 : static_cast<size_t>(from_shape[axis])) * element_bytes);
    return;
  }
  size_t from_step = element_bytes, to_step = element_bytes;
  for (size_t i = axis + 1; i < rank; ++i) {
    from_step *= static_cast<size_t>(from_shape[i]);
    to_step *= static_cast<size_t>(to_shape[i]);
  }
  for (int64_t i = 0; i < from_shape[axis]; ++i, from += from_step, to += to_step)
    copy_corner(from, from_shape, to, to_shape, element_bytes, axis + 1);
}

// The same for strings.
void copy_corner(std::span<const std::string> from, const Shape& from_shape, std::string* to, const Shape& to_shape) {
  std::vector<int64_t> at(from_shape.size(), 0);
  for (const std::string& s : from) {
    int64_t place = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) place = place * to_shape[axis] + at[axis];
    to[place] = s;
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == from_shape[axis];) at[axis] = 0;
  }
}

// How components are padded: extents to fill up to (-1: the longest), and with what.
class Padding {
 public:
  Padding(const PaddedOptions& o, const std::optional<Specs>& in, std::string_view what) : options_(o) {
    if (!in) return;
    const size_t n = in->size();
    if (!o.shapes.empty() && o.shapes.size() != n) user_error(what, ": ", o.shapes.size(), " padded shapes for ", n, " components");
    if (!o.values.empty() && o.values.size() != n) user_error(what, ": ", o.values.size(), " padding values for ", n, " components");
    for (size_t c = 0; c < n; ++c) {
      if (!o.shapes.empty() && o.shapes[c].size() != (*in)[c].dims.size())
        user_error(what, ": component ", c, " is ", (*in)[c].str(), ", its padded shape has ", o.shapes[c].size(), " axes");
      if (!o.values.empty() && o.values[c].dtype() != (*in)[c].dtype)
        user_error(what, ": component ", c, " is ", (*in)[c].str(), ", its padding value is ", o.values[c].type_str());
    }
  }

  Specs specs(const Specs& in, const Dim& batch) const {
    Specs out = in;
    for (size_t c = 0; c < out.size(); ++c)
      for (size_t axis = 0; axis < out[c].dims.size(); ++axis) {
        const Dim wanted = options_.shapes.empty() ? Dim(-1) : options_.shapes[c][axis];
        if (!wanted.is(-1))
          out[c].dims[axis] = wanted;
        else if (!out[c].dims[axis].is_const())
          out[c].dims[axis] = Dim::symbol(cat("p", c, "_", axis));
      }
    return with_leading(out, batch);
  }

  // `least`: every -1 is filled up to this at the least; 0 for none.
  void stack(const std::vector<Element>& elements, int64_t least, Element& batch) const {
    batch.clear();
    for (size_t c = 0; c < elements[0].size(); ++c) {
      const DType dtype = elements[0][c].dtype();
      Shape to = elements[0][c].shape();
      for (const Element& e : elements) {
        if (e.size() != elements[0].size()) user_error("elements have ", e.size(), " and ", elements[0].size(), " components");
        const Shape shape = e[c].shape();
        if (e[c].dtype() != dtype || shape.rank() != to.rank())
          user_error("component ", c, " is ", e[c].type_str(), " in one element and ", elements[0][c].type_str(), " in another");
        for (size_t axis = 0; axis < to.size(); ++axis) to[axis] = std::max(to[axis], shape[axis]);
      }
      for (size_t axis = 0; axis < to.size(); ++axis) {
        const Dim wanted = options_.shapes.empty() ? Dim(-1) : options_.shapes.at(c).at(axis);
        if (wanted.is(-1)) {
          to[axis] = std::max(to[axis], least);
        } else if (to[axis] > wanted.value()) {
          user_error("component ", c, " has ", to[axis], " along axis ", axis, ", its padded shape only ", wanted.value());
        } else {
          to[axis] = wanted.value();
        }
      }
      batch.push_back(padded(elements, c, dtype, to));
    }
  }

 private:
  Tensor padded(const std::vector<Element>& elements, size_t c, DType dtype, const Shape& to) const {
    Shape shape{static_cast<int64_t>(elements.size())};
    for (const int64_t extent : to) shape.push_back(extent);
    if (dtype == kString) {
      const std::string fill = options_.values.empty() ? "" : strings_of(options_.values.at(c))[0];
      std::vector<std::string> all(static_cast<size_t>(element_count(shape)), fill);
      for (size_t e = 0; e < elements.size(); ++e)
        copy_corner(strings_of(elements[e][c]), elements[e][c].shape(), all.data() + e * static_cast<size_t>(element_count(to)), to);
      return from_strings(std::move(all), shape);
    }
    NewTensor t = new_tensor(dtype, shape);
    const size_t size = size_of(dtype), bytes = byte_size(shape, dtype), row_bytes = byte_size(to, dtype);
    if (options_.values.empty()) {
      std::memset(t.bytes, 0, bytes);
    } else {
      const Tensor value = on_host(options_.values.at(c)).contiguous();
      for (size_t at = 0; at < bytes; at += size) std::memcpy(t.bytes + at, value.raw_data(), size);
    }
    for (size_t e = 0; e < elements.size(); ++e) {
      const Tensor dense = on_host(elements[e][c]).contiguous();
      if (bytes_of(dense) == 0) continue;
      copy_corner(static_cast<const char*>(dense.raw_data()), dense.shape(), t.bytes + e * row_bytes, to, size);
    }
    return std::move(t.tensor);
  }

  const PaddedOptions options_;
};

struct Bucket {
  int64_t batch_size = 0;
  int64_t least = 0;  // see Padding::stack
};

// Both stages: padded_batch has one bucket.
class BucketNode final : public Node {
 public:
  BucketNode(std::string name, std::string arguments, NodeRef input, std::function<size_t(const Element&)> choose,
             std::vector<Bucket> buckets, const PaddedOptions& o)
      : Node(std::move(name), {std::move(input)}),
        choose(std::move(choose)),
        buckets(std::move(buckets)),
        drop_remainder(o.drop_remainder),
        padding(o, this->input().specs(), this->name()),
        arguments_(std::move(arguments)) {}
  std::string arguments() const override { return arguments_; }
  std::optional<Specs> specs() const override {
    const auto in = input().specs();
    if (!in) return {};
    const bool is_fixed = drop_remainder && buckets.size() == 1;
    return padding.specs(*in, is_fixed ? Dim(buckets[0].batch_size) : Dim::symbol("batch"));
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality(), size = buckets[0].batch_size;
    if (n <= 0) return n;
    return buckets.size() > 1 ? kUnknown : drop_remainder ? n / size : (n + size - 1) / size;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const std::function<size_t(const Element&)> choose;
  const std::vector<Bucket> buckets;
  const bool drop_remainder;
  const Padding padding;

 private:
  const std::string arguments_;
};

class BucketWalk final : public InputWalk {
 public:
  BucketWalk(const BucketNode& node, const Scope& scope) : InputWalk(node, scope), node_(node), filled_(node.buckets.size()) {}

 protected:
  bool next(Element& element) override {
    while (!ended_) {
      Element one;
      if (!input().pull(one)) {
        ended_ = true;
        break;
      }
      const size_t b = node_.choose(one);
      filled_[b].push_back(std::move(one));
      if (static_cast<int64_t>(filled_[b].size()) == node_.buckets[b].batch_size) return give(b, element);
    }
    if (node_.drop_remainder) return false;
    for (size_t b = 0; b < filled_.size(); ++b)
      if (!filled_[b].empty()) return give(b, element);
    return false;
  }
  void save(Writer& w) override {
    w.put(ended_);
    for (const auto& bucket : filled_) {
      w.put(static_cast<int64_t>(bucket.size()));
      for (const Element& e : bucket) w.put(e);
    }
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    ended_ = r.boolean();
    const auto declared = node_.input().specs();
    for (size_t b = 0; b < filled_.size(); ++b) {
      const int64_t count = r.integer(0, node_.buckets[b].batch_size);
      for (int64_t i = 0; i < count; ++i) filled_[b].push_back(r.element(declared));
    }
    InputWalk::restore(r);
  }

 private:
  bool give(size_t b, Element& element) {
    const std::vector<Element> full = std::exchange(filled_[b], {});
    node_.padding.stack(full, node_.buckets[b].least, element);
    return true;
  }

  const BucketNode& node_;
  std::vector<std::vector<Element>> filled_;
  bool ended_ = false;
};

std::unique_ptr<Walk> BucketNode::walk(const Scope& scope) const { return std::make_unique<BucketWalk>(*this, scope); }

}  // namespace

Dataset Dataset::padded_batch(int64_t size, PaddedOptions options) const {
  positive(size, "padded_batch: the size");
  std::string arguments = cat(size, options.drop_remainder ? ", drop_remainder" : "");
  return Dataset(std::make_shared<BucketNode>(
      "padded_batch", std::move(arguments), node_of(*this), [](const Element&) { return 0; }, std::vector<Bucket>{{size, 0}}, options));
}

Dataset Dataset::bucket_by_sequence_length(std::function<int64_t(const Element&)> length, std::vector<int64_t> boundaries,
                                           std::vector<int64_t> batch_sizes, PaddedOptions options) const {
  const std::string what = "bucket_by_sequence_length";
  if (!length) user_error(what, ": no function");
  if (batch_sizes.size() != boundaries.size() + 1)
    user_error(what, ": ", batch_sizes.size(), " batch sizes for ", boundaries.size(), " boundaries, which make ", boundaries.size() + 1,
               " buckets");
  if (!std::ranges::is_sorted(boundaries)) user_error(what, ": the boundaries must grow");
  std::vector<Bucket> buckets;
  std::string arguments;
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    positive(batch_sizes[i], what + ": a batch size");
    const bool is_last = i == boundaries.size();
    buckets.push_back({batch_sizes[i], options.pad_to_bucket_boundary && !is_last ? boundaries[i] - 1 : 0});
    arguments += is_last ? cat("rest: ", batch_sizes[i]) : cat("<", boundaries[i], ": ", batch_sizes[i], ", ");
  }
  auto choose = [length = std::move(length), boundaries, to_boundary = options.pad_to_bucket_boundary](const Element& e) {
    const int64_t n = length(e);
    const auto bucket = static_cast<size_t>(std::ranges::upper_bound(boundaries, n) - boundaries.begin());
    if (to_boundary && bucket == boundaries.size())
      user_error("a length of ", n, " is beyond the last boundary, to which elements are to be padded");
    return bucket;
  };
  return Dataset(std::make_shared<BucketNode>(what, std::move(arguments), node_of(*this), std::move(choose), std::move(buckets), options));
}

}  // namespace tandem::data
