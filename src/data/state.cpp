#include "data/state.hpp"

#include <algorithm>
#include <cstring>

#include <tandem/strings.hpp>

#include "base/text.hpp"
#include "data/elements.hpp"
#include "data/errors.hpp"

namespace tandem::data {

void Reader::damaged(std::string_view what) {
  user_error("restore: the state is damaged: ", what, "\n  hint: it must be the whole text that save() gave");
}

void Writer::put(int64_t x) {
  char raw[sizeof x];
  std::memcpy(raw, &x, sizeof x);
  bytes_.append(raw, sizeof x);
}

void Writer::put(std::string_view text) {
  put(static_cast<int64_t>(text.size()));
  bytes_.append(text);
}

void Writer::put(const Element& element) {
  put(static_cast<int64_t>(element.size()));
  for (const Tensor& t : element) {
    if (is_string(t)) {
      put(static_cast<int64_t>(kString));
      put(static_cast<int64_t>(t.rank()));
      for (const int64_t extent : t.shape()) put(extent);
      for (const std::string& s : strings_of(t)) put(s);
      continue;
    }
    const Tensor dense = on_host(t).contiguous();
    const Shape shape = dense.shape();
    put(static_cast<int64_t>(dense.dtype()));
    put(static_cast<int64_t>(shape.rank()));
    for (const int64_t extent : shape) put(extent);
    bytes_.append(static_cast<const char*>(dense.raw_data()), byte_size(shape, dense.dtype()));
  }
}

void Writer::put(const std::exception_ptr& error) {
  const Described e = describe(error);
  put(static_cast<int64_t>(e.kind));
  put(e.is_located);
  put(e.text);
}

std::string_view Reader::take(uint64_t count) {
  if (count > bytes_.size()) damaged(cat("it ends ", count - bytes_.size(), " bytes early"));
  const std::string_view part = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return part;
}

int64_t Reader::integer() {
  int64_t x;
  std::memcpy(&x, take(sizeof x).data(), sizeof x);
  return x;
}

int64_t Reader::integer(int64_t low, int64_t high) {
  const int64_t x = integer();
  if (x < low || x > high) damaged(cat(x, " is outside ", low, " to ", high));
  return x;
}

std::string_view Reader::text() { return take(static_cast<uint64_t>(integer(0, INT64_MAX))); }

namespace {

// A shape without elements has no bytes that hold it to what was written; what it may become elsewhere, in a padded batch, is held here.
uint64_t bytes_of_state(const Shape& shape, DType dtype) {
  constexpr int64_t kMostOfEmpty = int64_t{1} << 24;
  uint64_t bytes = 0;
  try {
    bytes = byte_size(shape, dtype);
  } catch (const UserError& e) {
    Reader::damaged(e.what());
  }
  if (bytes == 0)
    for (const int64_t extent : shape)
      if (extent > kMostOfEmpty)
        Reader::damaged(cat("a tensor of shape ", shape.str(), " has no elements and an extent above ", kMostOfEmpty));
  return bytes;
}

// Each takes the bytes of its length at the least.
int64_t string_count(const Shape& shape, size_t bytes_left) {
  const uint64_t count = bytes_of_state(shape, DType::U8);
  if (count > bytes_left / sizeof(int64_t)) Reader::damaged(cat(count, " strings in ", bytes_left, " bytes"));
  return static_cast<int64_t>(count);
}

}  // namespace

Element Reader::element() {
  Element element;
  const int64_t count = integer(0, INT64_MAX);
  for (int64_t i = 0; i < count; ++i) {
    const auto dtype = static_cast<DType>(integer(0, static_cast<int64_t>(kString)));
    const int64_t rank = integer(0, kMaxRank);
    Shape shape;
    for (int64_t axis = 0; axis < rank; ++axis) shape.push_back(integer(0, INT64_MAX));
    if (dtype == kString) {
      std::vector<std::string> all;
      const int64_t strings = string_count(shape, bytes_.size());
      for (int64_t s = 0; s < strings; ++s) all.emplace_back(text());
      element.push_back(from_strings(std::move(all), shape));
      continue;
    }
    const std::string_view raw = take(bytes_of_state(shape, dtype));
    if (dtype == DType::Bool && std::ranges::any_of(raw, [](char c) { return c != 0 && c != 1; })) damaged("a bool is neither 0 nor 1");
    element.push_back(make_tensor(dtype, shape, raw.data()));
  }
  return element;
}

Element Reader::element(const std::optional<Specs>& declared) {
  Element read = element();
  try {
    if (declared) check_element(*declared, read);
  } catch (const UserError& e) {
    damaged(e.what());
  }
  return read;
}

std::exception_ptr Reader::error() {
  Described e;
  e.kind = static_cast<ErrorKind>(integer(0, static_cast<int64_t>(ErrorKind::Last)));
  e.is_located = boolean();
  e.text = text();
  e.code = e.kind == ErrorKind::User       ? ErrorCode::InvalidArgument
           : e.kind == ErrorKind::Resource ? ErrorCode::Unavailable
                                           : ErrorCode::Internal;
  return make_error(e);
}

void Reader::tag(std::string_view stage) {
  const std::string_view found = text();
  if (found != stage) user_error("restore: the state has ", found, " where this pipeline has ", stage);
}

}  // namespace tandem::data
