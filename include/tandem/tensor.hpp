// Tensor: an immutable value of one element type and a shape. A handle, so copying one copies no data. Outside a Function it holds
// numbers; inside one, while it is traced, it stands for a value that will exist when the compiled function runs.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tandem/dim.hpp>
#include <tandem/dtype.hpp>
#include <tandem/error.hpp>
#include <tandem/index.hpp>
#include <tandem/operand.hpp>
#include <tandem/shape.hpp>

namespace tandem {

namespace frontend {
class TensorImpl;  // a concrete tensor or a traced value: see src/frontend/tensor_impl.hpp
void retain(TensorImpl* impl) noexcept;
void release(TensorImpl* impl) noexcept;
}  // namespace frontend

class Tensor {
 public:
  using Where = std::source_location;

  Tensor() = default;  // holds nothing; see defined()
  Tensor(const Tensor& o) noexcept : impl_(o.impl_) {
    if (impl_) frontend::retain(impl_);
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_) frontend::release(impl_);
  }

  // --- made from numbers: these copy ---------------------------------------------------------------------------------------
  static Tensor from_bytes(const void* data, DType dtype, const Shape& shape);  // row-major
  template <class T> static Tensor from(std::span<const T> values, const Shape& shape) {
    check_count(values.size(), shape);
    return from_bytes(values.data(), DTypeOf<T>::value, shape);
  }
  template <class T> static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  static Tensor from(const std::vector<bool>& values, const Shape& shape);
  template <class T> static Tensor from(const std::vector<T>& values) { return from(values, {static_cast<int64_t>(values.size())}); }
  // Tensor::of({1.f, 2.f}), Tensor::of({{1, 2}, {3, 4}}); the element type is that of the numbers.
  template <class T> static Tensor of(std::initializer_list<T> row) {
    return from_bytes(std::data(row), DTypeOf<T>::value, {static_cast<int64_t>(row.size())});
  }
  template <class T> static Tensor of(std::initializer_list<std::initializer_list<T>> rows);
  template <class T> static Tensor of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes);
  template <Number T> static Tensor scalar(T value) { return from_bytes(&value, DTypeOf<T>::value, {}); }
  // Without a dtype: float32, int32 or bool, by the kind of the number.
  static Tensor full(const DimList& shape, const Operand& value, std::optional<DType> dtype = {});
  static Tensor zeros(const DimList& shape, DType dtype = DType::F32, Where where = Where::current());
  static Tensor ones(const DimList& shape, DType dtype = DType::F32, Where where = Where::current());
  template <Number T> static Tensor arange(T start, T stop, T step = T(1), std::optional<DType> dtype = {}) {
    return arange_of(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step),
                     dtype.value_or(std::is_floating_point_v<T> ? DType::F32 : DType::I32));
  }
  template <Number T> static Tensor arange(T stop) { return arange(T(0), stop); }

  // The caller's memory, not copied. It must stay as it is until `release` is called, which happens when nothing uses it any more.
  // Strides are in elements, may be negative or 0, and are row-major when left out. Elements must lie at multiples of their size.
  static Tensor view(const void* data, DType dtype, const Shape& shape, const std::optional<Strides>& strides = {},
                     std::function<void()> release = {});

  // --- what it is ------------------------------------------------------------------------------------------------------------
  bool defined() const { return impl_ != nullptr; }  // false: made by Tensor(), such as the gradient of something unconnected
  bool is_traced() const;
  DType dtype() const;
  int rank() const;
  Dims dims() const;                                   // extents; symbols where they are not known yet
  Shape shape(Where where = Where::current()) const;   // UserError when one of them is a symbol
  int64_t size(Where where = Where::current()) const;  // number of elements; UserError likewise
  Strides strides() const;                             // in elements
  bool is_contiguous() const;
  std::string type_str() const;  // "float32[b,3]"
  std::string device() const;    // whose memory it belongs to, such as "cpu" or "gpu:0" (<tandem/device.hpp>); empty while it is traced
  // Itself, or a copy that belongs to that device. Traced: a value that is computed there.
  Tensor to(std::string_view device, Where where = Where::current()) const;

  // --- reading the numbers; a UserError for a traced tensor ---------------------------------------------------------------------
  template <Number T> T item(Where where = Where::current()) const {
    T value;
    read_one(DTypeOf<T>::value, &value, where);
    return value;
  }
  template <Number T> std::vector<T> to_vector(Where where = Where::current()) const {  // row-major, converted
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> bytes = to_vector<uint8_t>(where);
      return {bytes.begin(), bytes.end()};
    } else {
      std::vector<T> values(static_cast<size_t>(readable_size(where)));
      read_all(DTypeOf<T>::value, values.data());
      return values;
    }
  }
  template <class T> const T* data(Where where = Where::current()) const {  // contiguous tensors only
    return static_cast<const T*>(data(DTypeOf<T>::value, where));
  }
  const void* raw_data() const;  // the first element, whatever the strides
  Tensor contiguous() const;     // itself, or a row-major copy
  std::string str() const;       // as NumPy prints it

  // --- indexing, as in NumPy: x[3], x[-1], x[Slice(1, 5)], x(Slice(), 3, ellipsis, newaxis), x[indices] -------------------------
  Tensor operator[](const Index& index) const { return (*this)(index); }
  Tensor operator()(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {}, const Index& e = {}, const Index& f = {},
                    const Index& g = {}, const Index& h = {}) const;

  Tensor& operator+=(const Operand& y);
  Tensor& operator-=(const Operand& y);
  Tensor& operator*=(const Operand& y);
  Tensor& operator/=(const Operand& y);

  // --- the most used ops as members; all ops are functions in <tandem/ops.hpp> ----------------------------------------------------
  Tensor cast(DType to, Where where = Where::current()) const;
  Tensor reshape(const DimList& to, Where where = Where::current()) const;  // one entry may be -1
  Tensor flatten(Where where = Where::current()) const;
  Tensor transpose(const IntList& perm = {}, Where where = Where::current()) const;
  Tensor squeeze(const IntList& axis = {}, Where where = Where::current()) const;
  Tensor expand_dims(const IntList& axis, Where where = Where::current()) const;
  Tensor sum(const IntList& axis = {}, bool keepdims = false, Where where = Where::current()) const;
  Tensor mean(const IntList& axis = {}, bool keepdims = false, Where where = Where::current()) const;
  Tensor max(const IntList& axis = {}, bool keepdims = false, Where where = Where::current()) const;
  Tensor min(const IntList& axis = {}, bool keepdims = false, Where where = Where::current()) const;
  Tensor argmax(std::optional<int64_t> axis = {}, Where where = Where::current()) const;

  frontend::TensorImpl* impl() const { return impl_; }
  static Tensor of_impl(frontend::TensorImpl* impl) noexcept {
    frontend::retain(impl);
    Tensor t;
    t.impl_ = impl;
    return t;
  }

 private:
  static void check_count(size_t count, const Shape& shape);
  static Tensor arange_of(double start, double stop, double step, DType dtype);
  const void* data(DType wanted, const Where& where) const;
  int64_t readable_size(const Where& where) const;
  void read_one(DType as, void* to, const Where& where) const;
  void read_all(DType as, void* to) const;

  frontend::TensorImpl* impl_ = nullptr;
};

std::ostream& operator<<(std::ostream& os, const Tensor& t);

// NumPy's meaning: broadcasting, promotion, comparisons element by element. % has the sign of the divisor. / of integers is floating.
Tensor operator+(const Operand& x, const Operand& y);
Tensor operator-(const Operand& x, const Operand& y);
Tensor operator*(const Operand& x, const Operand& y);
Tensor operator/(const Operand& x, const Operand& y);
Tensor operator%(const Operand& x, const Operand& y);
Tensor operator==(const Operand& x, const Operand& y);
Tensor operator!=(const Operand& x, const Operand& y);
Tensor operator<(const Operand& x, const Operand& y);
Tensor operator<=(const Operand& x, const Operand& y);
Tensor operator>(const Operand& x, const Operand& y);
Tensor operator>=(const Operand& x, const Operand& y);
Tensor operator&(const Operand& x, const Operand& y);
Tensor operator|(const Operand& x, const Operand& y);
Tensor operator^(const Operand& x, const Operand& y);
Tensor operator-(const Operand& x);
Tensor operator!(const Operand& x);
Tensor operator~(const Operand& x);

// --- templates -----------------------------------------------------------------------------------------------------------------

template <class T> Tensor Tensor::of(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  const size_t columns = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != columns)
      throw UserError("Tensor::of: rows have different lengths, " + std::to_string(columns) + " and " + std::to_string(row.size()));
    values.insert(values.end(), row.begin(), row.end());
  }
  return from(values, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)});
}

template <class T> Tensor Tensor::of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes) {
  std::vector<T> values;
  const size_t rows = planes.size() ? planes.begin()->size() : 0;
  const size_t columns = rows ? planes.begin()->begin()->size() : 0;
  for (const auto& plane : planes) {
    if (plane.size() != rows)
      throw UserError("Tensor::of: planes have different numbers of rows, " + std::to_string(rows) + " and " +
                      std::to_string(plane.size()));
    for (const auto& row : plane) {
      if (row.size() != columns)
        throw UserError("Tensor::of: rows have different lengths, " + std::to_string(columns) + " and " + std::to_string(row.size()));
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  return from(values, {static_cast<int64_t>(planes.size()), static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
}

}  // namespace tandem
