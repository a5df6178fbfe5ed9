// Tensors as text, in NumPy's form: common width, the fewest digits that tell the numbers apart, ... in the middle of long axes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "frontend/memory.hpp"
#include "frontend/strings.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem {

using namespace frontend;

namespace {

constexpr int64_t kMostElements = 1000;  // beyond this an axis shows its ends only
constexpr int64_t kEdge = 3;
constexpr int kPrecision = 8;  // digits behind the point
constexpr size_t kLineWidth = 75;

// --- one number ----------------------------------------------------------------------------------------------------------------

// The shortest digits that give the number back, not more than kPrecision behind the point. Single precision has fewer digits to show.
template <class T> std::string positional(T x) {
  char buffer[512];
  const auto shortest = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::fixed);
  std::string text(buffer, shortest.ptr);
  const size_t point = text.find('.');
  if (point == std::string::npos) return text + ".";
  if (text.size() - point - 1 > kPrecision) {
    const auto rounded = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::fixed, kPrecision);
    text.assign(buffer, rounded.ptr);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text;
}

template <class T> std::string scientific(T x, int digits) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific, digits);
  std::string text(buffer, end.ptr);
  if (digits == 0) text.insert(text.find('e'), 1, '.');
  return text;
}

// How many digits behind the point the shortest scientific form has.
template <class T> int scientific_digits(T x) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific);
  const std::string text(buffer, end.ptr);
  const size_t point = text.find('.');
  return point == std::string::npos ? 0 : std::min(kPrecision, static_cast<int>(text.find('e') - point - 1));
}

std::string special(double x) { return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf"; }

template <class T> std::vector<std::string> floats(const std::vector<T>& values) {
  double largest = 0, smallest = INFINITY;
  int digits = 0;
  for (const T x : values) {
    if (!std::isfinite(x)) continue;
    digits = std::max(digits, scientific_digits(x));
    if (x == 0) continue;
    largest = std::max(largest, std::abs(static_cast<double>(x)));
    smallest = std::min(smallest, std::abs(static_cast<double>(x)));
  }
  const bool is_scientific = largest > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
  std::vector<std::string> texts;
  size_t fraction = 0;
  for (const T x : values) {
    texts.push_back(!std::isfinite(x) ? special(static_cast<double>(x)) : is_scientific ? scientific(x, digits) : positional(x));
    if (std::isfinite(x) && !is_scientific) fraction = std::max(fraction, texts.back().size() - texts.back().find('.') - 1);
  }
  // Points under points.
  if (!is_scientific)
    for (size_t i = 0; i < texts.size(); ++i)
      if (std::isfinite(values[i])) texts[i].append(fraction - (texts[i].size() - texts[i].find('.') - 1), ' ');
  return texts;
}

// --- the whole -----------------------------------------------------------------------------------------------------------------

class Printer {
 public:
  explicit Printer(const engine::TensorRef& t) : shape_(t.layout.shape), is_short_(element_count(shape_) <= kMostElements) {
    collect(t);
    for (const std::string& s : texts_) width_ = std::max(width_, s.size());
  }

  std::string text() {
    if (shape_.rank() == 0) return texts_[0].back() == '.' ? texts_[0] + "0" : texts_[0];
    if (element_count(shape_) == 0) return shape_.rank() == 1 ? "[]" : cat("[], shape=", shape_);
    return axis(0);
  }

 private:
  // Which positions of an axis are shown; -1 stands for the dots.
  std::vector<int64_t> shown(size_t a) const {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < shape_[a]; ++i) {
      if (!is_short_ && shape_[a] > 2 * kEdge && i == kEdge) {
        positions.push_back(-1);
        i = shape_[a] - kEdge;
      }
      positions.push_back(i);
    }
    return positions;
  }

  // Only the elements that are shown are read: a tensor may be large.
  void collect(const engine::TensorRef& t) {
    if (element_count(shape_) == 0) return;
    engine::TensorRef one = t;
    one.layout.shape = {};
    one.layout.strides = {};
    std::vector<int64_t> offsets;
    gather_offsets(t.layout.strides, 0, 0, offsets);
    const DType dtype = t.layout.dtype;
    const auto each = [&]<class T>(T, DType as) {
      std::vector<T> values(offsets.size());
      for (size_t i = 0; i < offsets.size(); ++i) {
        one.offset = t.offset + static_cast<size_t>(offsets[i] * static_cast<int64_t>(size_of(dtype)));
        read(one, as, &values[i]);
      }
      return values;
    };
    if (dtype == DType::F64) {
      texts_ = floats(each(double{}, DType::F64));
    } else if (is_float(dtype)) {
      texts_ = floats(each(float{}, DType::F32));
    } else if (dtype == DType::Bool) {
      for (const uint8_t x : each(uint8_t{}, DType::U8)) texts_.push_back(x ? "True" : "False");
    } else if (dtype == DType::U64) {
      for (const uint64_t x : each(uint64_t{}, DType::U64)) texts_.push_back(std::to_string(x));
    } else {
      for (const int64_t x : each(int64_t{}, DType::I64)) texts_.push_back(std::to_string(x));
    }
  }

  void gather_offsets(const Strides& strides, size_t a, int64_t offset, std::vector<int64_t>& out) const {
    if (a == shape_.size()) {
      out.push_back(offset);
      return;
    }
    for (const int64_t i : shown(a))
      if (i >= 0) gather_offsets(strides, a + 1, offset + i * strides[a], out);
  }

  std::string next() {
    const std::string& s = texts_[next_++];
    return std::string(width_ - s.size(), ' ') + s;
  }

  std::string axis(size_t a) {
    const bool is_last = a + 1 == shape_.size();
    std::string text = "[", line;
    const std::string indent(a + 1, ' ');
    bool is_first = true;
    for (const int64_t i : shown(a)) {
      if (is_last) {
        const std::string word = i < 0 ? "..." : next();
        if (!is_first && indent.size() + line.size() + word.size() + 1 > kLineWidth) {
          text.append(line).append("\n").append(indent);
          line = word;
        } else {
          line += (is_first ? "" : " ") + word;
        }
      } else {
        if (!is_first) text += std::string(shape_.size() - a - 1, '\n') + indent;
        text += i < 0 ? "..." : axis(a + 1);
      }
      is_first = false;
    }
    return text + line + "]";
  }

  const Shape shape_;
  const bool is_short_;
  std::vector<std::string> texts_;
  size_t width_ = 0, next_ = 0;
};

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "Tensor(undefined)";
  const engine::TensorRef* ref = concrete_ref(*this);
  if (strings(*this)) return printed_strings(*this);
  return ref ? Printer(*ref).text() : cat("Tensor(", type_of(*this), ", traced)");
}

}  // namespace tandem
