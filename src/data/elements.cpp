#include "data/elements.hpp"

#include <cstring>

#include "base/text.hpp"
#include "data/page_guard.hpp"
#include "frontend/memory.hpp"
#include "frontend/strings.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem::data {
namespace {

const engine::TensorRef& ref_of(const Tensor& t) { return frontend::numbers_of(t, "data"); }

Shape without_first(const Shape& s) { return Shape(std::span<const int64_t>(s).subspan(1)); }

Shape with_first(int64_t first, const Shape& rest) {
  Shape s{first};
  for (const int64_t extent : rest) s.push_back(extent);
  return s;
}

Tensor rows_view(const Tensor& t, int64_t first, int64_t count) {
  if (is_string(t)) return frontend::string_rows(t, first, count);
  const engine::TensorRef& r = ref_of(t);
  engine::TensorRef view = r;
  view.layout.shape[0] = count;
  view.offset += static_cast<size_t>(first * r.layout.strides[0] * static_cast<int64_t>(size_of(r.layout.dtype)));
  return frontend::concrete(std::move(view));
}

Tensor row_view(const Tensor& t, int64_t index) {
  if (is_string(t)) return frontend::string_row(t, index);
  const engine::TensorRef& r = ref_of(t);
  const codegen::Layout& o = r.layout;
  engine::TensorRef view{r.buffer, {o.dtype, without_first(o.shape), Strides(std::span<const int64_t>(o.strides).subspan(1))}, r.offset};
  view.offset += static_cast<size_t>(index * o.strides[0] * static_cast<int64_t>(size_of(o.dtype)));
  return frontend::concrete(std::move(view));
}

// Of one component of an element of a batch: like that of the first.
void require_same(std::span<const Tensor> tensors, size_t e, size_t c, size_t components) {
  const Tensor& from = tensors[e * components + c];
  if (from.dtype() != tensors[c].dtype() || !(from.shape() == tensors[c].shape()))
    user_error("component ", c, " is ", from.type_str(), " in element ", e, " of the batch and ", tensors[c].type_str(),
               " in the first\n  hint: padded_batch() pads to one shape");
}

// Component c of all elements, side by side.
Tensor stacked_strings(std::span<const Tensor> tensors, size_t c, size_t components) {
  std::vector<std::string> all;
  const size_t count = tensors.size() / components;
  for (size_t e = 0; e < count; ++e) {
    require_same(tensors, e, c, components);
    const std::span<const std::string> one = strings_of(tensors[e * components + c]);
    all.insert(all.end(), one.begin(), one.end());
  }
  return from_strings(std::move(all), with_first(static_cast<int64_t>(count), tensors[c].shape()));
}

}  // namespace

Tensor from_text(std::string_view text) { return make_tensor(DType::U8, {static_cast<int64_t>(text.size())}, text.data()); }

std::string to_text(const Tensor& bytes) {
  if (bytes.dtype() != DType::U8 || bytes.rank() != 1) user_error("to_text: ", bytes.type_str(), " is no text, which is uint8[n]");
  std::string text(static_cast<size_t>(bytes.size()), '\0');
  copy_bytes(bytes, text.data());
  return text;
}

NewTensor new_tensor(DType dtype, const Shape& shape) {
  engine::TensorRef ref = frontend::allocate_on_host(dtype, shape);
  char* bytes = static_cast<char*>(ref.data());
  return {frontend::concrete(std::move(ref)), bytes};
}

Tensor make_tensor(DType dtype, const Shape& shape, const void* bytes) {
  const frontend::HostScope on_host;
  return frontend::concrete(frontend::upload(bytes, dtype, shape));
}

Tensor on_host(const Tensor& t) {
  const engine::TensorRef* ref = frontend::concrete_ref(t);
  if (!ref || ref->buffer->home().info().host_memory) return t;
  const engine::Engine& engine = engine::default_engine();
  return frontend::concrete(engine.at(*ref, engine.devices().host));
}

size_t bytes_of(const Tensor& t) {
  if (is_string(t)) {
    size_t bytes = 0;
    for (const std::string& s : strings_of(t)) bytes += sizeof s + s.size();
    return bytes;
  }
  const codegen::Layout& o = ref_of(t).layout;
  return byte_size(o.shape, o.dtype);
}

size_t bytes_of(const Element& element) {
  size_t bytes = 0;
  for (const Tensor& t : element) bytes += bytes_of(t);
  return bytes;
}

void copy_bytes(const Tensor& from, void* to) {
  const engine::TensorRef& r = ref_of(from);
  if (r.layout.is_dense() && r.buffer->device().info().host_memory)
    std::memcpy(to, r.data(), byte_size(r.layout.shape, r.layout.dtype));
  else
    frontend::read(r, r.layout.dtype, to);
}

// --- rows ------------------------------------------------------------------------------------------------------------------------

Rows::Rows(std::vector<RowTensor> tensors, std::string_view what) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) user_error(what, ": no tensors");
  for (RowTensor& t : tensors_) t.tensor = on_host(t.tensor);  // rows are views, and copied by the host
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = tensors_[i].tensor;
    if (!is_string(t)) frontend::numbers_of(t, what);
    const Shape shape = t.shape();
    if (shape.empty()) user_error(what, ": component ", i, " is ", t.type_str(), ", which has no rows");
    if (i == 0) count_ = shape[0];
    if (shape[0] != count_)
      user_error(what, ": component ", i, " has ", shape[0], " rows, component 0 has ", count_, " (", shape[0], " != ", count_, ")");
  }
}

namespace {
std::vector<RowTensor> row_tensors(const std::vector<Tensor>& tensors) {
  std::vector<RowTensor> all;
  for (const Tensor& t : tensors) all.push_back({t});
  return all;
}
}  // namespace

Rows::Rows(const std::vector<Tensor>& tensors, std::string_view what) : Rows(row_tensors(tensors), what) {}

std::vector<Tensor> Rows::tensors() const {
  std::vector<Tensor> all;
  for (const RowTensor& t : tensors_) all.push_back(t.tensor);
  return all;
}

Specs Rows::specs() const {
  Specs specs;
  for (const RowTensor& t : tensors_) {
    if (t.type)
      specs.push_back({t.type->dtype, to_dims(t.type->row)});
    else
      specs.push_back({t.tensor.dtype(), to_dims(without_first(t.tensor.shape()))});
  }
  return specs;
}

void Rows::before(int64_t count, RowWatch::Order order) const {
  if (watch) watch->before(count, order);
}

void Rows::after(Gave gave) const {
  if (!watch) return;
  if (gave == Gave::Views) watch->health->gave_view();
  watch->health->require_whole();
}

void Rows::require(int64_t first, int64_t count) const {
  if (first < 0 || first >= count_ || count > count_ - first)
    user_error("row ", first, count == 1 ? "" : cat(" and ", count - 1, " more"), " of ", count_,
               "\n  hint: a state that was restored is damaged, or was saved with other data");
}

void Rows::row(int64_t index, Element& element) const {
  require(index, 1);
  before(1, RowWatch::Order::Together);
  element.clear();
  Gave gave = Gave::Copies;
  for (const RowTensor& t : tensors_) {
    const Tensor view = row_view(t.tensor, index);
    element.push_back(t.type ? make_tensor(t.type->dtype, t.type->row, view.raw_data()) : view);
    if (!t.type) gave = Gave::Views;
  }
  after(gave);
}

void Rows::range(int64_t first, int64_t count, Element& element) const {
  require(first, count);
  before(count, RowWatch::Order::Together);
  element.clear();
  Gave gave = Gave::Copies;
  for (const RowTensor& t : tensors_) {
    const Tensor view = rows_view(t.tensor, first, count);
    element.push_back(t.type ? make_tensor(t.type->dtype, with_first(count, t.type->row), view.raw_data()) : view);
    if (!t.type) gave = Gave::Views;
  }
  after(gave);
}

void Rows::gather(std::span<const int64_t> indices, Element& element) const {
  for (const int64_t index : indices) require(index, 1);
  before(static_cast<int64_t>(indices.size()), RowWatch::Order::Anywhere);
  element.clear();
  for (const RowTensor& t : tensors_) {
    if (is_string(t.tensor)) {
      std::vector<Tensor> rows;
      for (const int64_t index : indices) rows.push_back(row_view(t.tensor, index));
      element.push_back(stacked_strings(rows, 0, 1));
      continue;
    }
    const engine::TensorRef& r = ref_of(t.tensor);
    const codegen::Layout& o = r.layout;
    const Shape row_shape = without_first(o.shape);
    const auto count = static_cast<int64_t>(indices.size());
    NewTensor batch =
        t.type ? new_tensor(t.type->dtype, with_first(count, t.type->row)) : new_tensor(o.dtype, with_first(count, row_shape));
    const size_t row_bytes = byte_size(row_shape, o.dtype);
    const bool is_dense = is_contiguous(row_shape, Strides(std::span<const int64_t>(o.strides).subspan(1)));
    const char* first = static_cast<const char*>(r.data());
    const int64_t stride = o.strides[0] * static_cast<int64_t>(size_of(o.dtype));
    char* to = batch.bytes;
    constexpr size_t kAhead = 8;  // rows are anywhere in memory: they are asked for before they are copied
    for (size_t i = 0; i < indices.size(); ++i, to += row_bytes) {
      if (!is_dense) {
        copy_bytes(row_view(t.tensor, indices[i]), to);
        continue;
      }
      if (i + kAhead < indices.size()) {
        const char* later = first + indices[i + kAhead] * stride;
        for (size_t line = 0; line < row_bytes && line < 512; line += 64) __builtin_prefetch(later + line);
      }
      std::memcpy(to, first + indices[i] * stride, row_bytes);
    }
    element.push_back(std::move(batch.tensor));
  }
  after(Gave::Copies);
}

void stack(std::span<const Tensor> tensors, size_t components, Element& batch) {
  batch.clear();
  if (components == 0) user_error("an element without components cannot be batched");
  const size_t count = tensors.size() / components;
  for (size_t c = 0; c < components; ++c) {
    if (is_string(tensors[c])) {
      batch.push_back(stacked_strings(tensors, c, components));
      continue;
    }
    const codegen::Layout& o = ref_of(tensors[c]).layout;
    NewTensor t = new_tensor(o.dtype, with_first(static_cast<int64_t>(count), o.shape));
    const size_t row_bytes = byte_size(o.shape, o.dtype);
    for (size_t e = 0; e < count; ++e) {
      const Tensor& from = tensors[e * components + c];
      require_same(tensors, e, c, components);
      copy_bytes(from, t.bytes + e * row_bytes);
    }
    batch.push_back(std::move(t.tensor));
  }
}

// --- specs -------------------------------------------------------------------------------------------------------------------------

Specs renamed(const Specs& specs) {
  Specs result = specs;
  std::vector<std::pair<Dim, Dim>> names;
  for (size_t c = 0; c < result.size(); ++c)
    for (size_t axis = 0; axis < result[c].dims.size(); ++axis) {
      Dim& d = result[c].dims[axis];
      if (d.is_const()) continue;
      bool known = false;
      for (const auto& [old, name] : names)
        if (old == d) {
          d = name;
          known = true;
          break;
        }
      if (known) continue;
      const Dim name = Dim::symbol(cat("c", c, "_", axis));
      names.emplace_back(d, name);
      d = name;
    }
  return result;
}

Specs distinct(const Specs& specs, std::string_view prefix) {
  Specs result = renamed(specs);
  for (Spec& s : result)
    for (Dim& d : s.dims)
      if (!d.is_const()) d = Dim::symbol(cat(prefix, d.str()));
  return result;
}

std::string str(const Specs& specs) {
  std::string text = "(";
  for (size_t i = 0; i < specs.size(); ++i) text += (i ? ", " : "") + specs[i].str();
  return text + ")";
}

Specs with_leading(const Specs& specs, const Dim& extent) {
  Specs result = distinct(specs, "e");
  for (Spec& s : result) s.dims.insert(s.dims.begin(), extent);
  return renamed(result);
}

std::optional<Specs> common(const Specs& a, const Specs& b) {
  if (a.size() != b.size()) return {};
  Specs result = a;
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c].dtype != b[c].dtype || a[c].dims.size() != b[c].dims.size()) return {};
    for (size_t axis = 0; axis < a[c].dims.size(); ++axis) {
      const Dim &x = a[c].dims[axis], &y = b[c].dims[axis];
      if (!(x.is_const() && y.is_const() && x == y)) result[c].dims[axis] = Dim::symbol(cat("j", c, "_", axis));
    }
  }
  return renamed(result);
}

void check_element(const Specs& specs, const Element& element) {
  if (element.size() != specs.size())
    user_error("the element has ", element.size(), " components, declared are ", specs.size(), " ", str(specs));
  Bindings bindings;
  for (size_t c = 0; c < specs.size(); ++c) {
    const Tensor& t = element[c];
    if (!t.defined()) user_error("component ", c, " holds nothing");
    if (t.dtype() != specs[c].dtype || t.rank() != static_cast<int>(specs[c].dims.size()))
      user_error("component ", c, " is ", t.type_str(), ", declared is ", specs[c].str());
    unify(specs[c].dims, t.shape(), bindings, cat("component ", c));
  }
}

}  // namespace tandem::data
