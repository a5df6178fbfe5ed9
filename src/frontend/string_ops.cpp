#include "frontend/string_ops.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/regex.hpp"
#include "base/regex_parse.hpp"
#include "base/string_hash.hpp"
#include "base/text.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::string_ops {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

template <class F> Tensor each(const Tensor& x, F f) {
  std::vector<std::string> out;
  for (const std::string& s : strings_of(x)) out.push_back(f(s));
  return from_strings(std::move(out), x.shape());
}

template <class T, class F> Tensor each_number(const Tensor& x, F f) {
  std::vector<T> out;
  for (const std::string& s : strings_of(x)) out.push_back(f(s));
  return Tensor::from(out, x.shape());
}

bool is_continued(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The byte at which character n begins, from `at` on; the size when there are not so many.
size_t after_characters(const std::string& s, size_t at, int64_t n) {
  while (n > 0 && at < s.size()) {
    ++at;
    while (at < s.size() && is_continued(s[at])) ++at;
    --n;
  }
  return at;
}

int64_t characters(const std::string& s) {
  return std::ranges::count_if(s, [](char c) { return !is_continued(c); });
}

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
char raised(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

std::string_view stripped(std::string_view s) {
  const size_t from = s.find_first_not_of(kSpace);
  return from == std::string_view::npos ? std::string_view() : s.substr(from, s.find_last_not_of(kSpace) - from + 1);
}

template <class T> T parsed(const std::string& text) {
  std::string_view s = stripped(text);
  if (s.starts_with('+')) s.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if constexpr (std::is_floating_point_v<T>)
    if (error == std::errc::result_out_of_range) {  // infinity, or 0: as the C library says
      value = std::is_same_v<T, float> ? std::strtof(std::string(s).c_str(), nullptr)
                                       : static_cast<T>(std::strtod(std::string(s).c_str(), nullptr));
      error = std::errc();
    }
  if (s.empty() || error != std::errc() || end != s.data() + s.size())
    user_error("StringToNumberOp could not correctly convert string: ", text);
  return value;
}

template <class F> Parts parts(const Tensor& x, F split_one) {
  std::vector<std::string> values;
  std::vector<int64_t> counts;
  for (const std::string& s : strings_of(x)) {
    const size_t before = values.size();
    split_one(s, values);
    counts.push_back(static_cast<int64_t>(values.size() - before));
  }
  const auto count = static_cast<int64_t>(values.size());
  return {from_strings(std::move(values), {count}), Tensor::from(counts, x.shape())};
}

void require_buckets(int64_t buckets) {
  if (buckets < 1) user_error("to_hash_bucket: ", buckets, " buckets, there must be at least 1");
}

}  // namespace

Tensor lower(const Tensor& x) {
  return each(x, [](std::string s) {
    std::ranges::transform(s, s.begin(), lowered);
    return s;
  });
}
Tensor upper(const Tensor& x) {
  return each(x, [](std::string s) {
    std::ranges::transform(s, s.begin(), raised);
    return s;
  });
}
Tensor strip(const Tensor& x) {
  return each(x, [](const std::string& s) { return std::string(stripped(s)); });
}

Tensor length(const Tensor& x, Unit unit) {
  return each_number<int32_t>(
      x, [&](const std::string& s) { return static_cast<int32_t>(unit == Unit::Byte ? static_cast<int64_t>(s.size()) : characters(s)); });
}

Tensor substr(const Tensor& x, const Tensor& position, const Tensor& count, Unit unit) {
  const std::vector<int64_t> positions = position.to_vector<int64_t>(), counts = count.to_vector<int64_t>();
  const std::span<const std::string> all = strings_of(x);
  // One string with many positions is cut at each of them.
  const Tensor& shaped = x.rank() == 0 && position.rank() > 0 ? position : x;
  const auto results = static_cast<size_t>(shaped.size());
  for (const size_t n : {positions.size(), counts.size(), all.size()})
    if (n != 1 && n != results) user_error("substr: ", n, " positions or lengths for ", results, " strings");
  std::vector<std::string> out;
  for (size_t i = 0; i < results; ++i) {
    const std::string& s = all[all.size() == 1 ? 0 : i];
    int64_t from = positions[positions.size() == 1 ? 0 : i];
    const int64_t n = counts[counts.size() == 1 ? 0 : i];
    const int64_t size = unit == Unit::Byte ? static_cast<int64_t>(s.size()) : characters(s);
    if (from < -size || from > size) user_error("pos ", from, " out of range for string ", s.empty() ? "''" : s);
    if (from < 0) from += size;
    const int64_t most = std::max<int64_t>(0, std::min(n, size - from));
    if (unit == Unit::Byte) {
      out.push_back(s.substr(static_cast<size_t>(from), static_cast<size_t>(most)));
    } else {
      const size_t begin = after_characters(s, 0, from);
      out.push_back(s.substr(begin, after_characters(s, begin, most) - begin));
    }
  }
  return from_strings(std::move(out), shaped.shape());
}

Tensor join(const std::vector<Tensor>& xs, const std::string& separator) {
  if (xs.empty()) user_error("strings.join: no inputs");
  const Tensor* shaped = &xs[0];
  for (const Tensor& x : xs)
    if (shaped->rank() == 0) shaped = &x;
  const auto count = static_cast<size_t>(shaped->size());
  std::vector<std::string> out(count);
  for (size_t k = 0; k < xs.size(); ++k) {
    if (xs[k].rank() != 0 && !(xs[k].shape() == shaped->shape()))
      user_error("strings.join: input ", k, " has the shape ", xs[k].shape(), ", another one has ", shaped->shape());
    const std::span<const std::string> all = strings_of(xs[k]);
    for (size_t i = 0; i < count; ++i) {
      if (k) out[i] += separator;
      out[i] += all[xs[k].rank() == 0 ? 0 : i];
    }
  }
  return from_strings(std::move(out), shaped->shape());
}

Tensor to_number(const Tensor& x, DType dtype) {
  switch (dtype) {
    case DType::F32: return each_number<float>(x, parsed<float>);
    case DType::F64: return each_number<double>(x, parsed<double>);
    case DType::I32: return each_number<int32_t>(x, parsed<int32_t>);
    case DType::I64: return each_number<int64_t>(x, parsed<int64_t>);
    case DType::U32: return each_number<uint32_t>(x, parsed<uint32_t>);
    case DType::U64: return each_number<uint64_t>(x, parsed<uint64_t>);
    default: user_error("to_number: ", name(dtype), " is none of float32, float64, int32, int64, uint32 and uint64");
  }
}

Tensor fingerprint(const Tensor& x) {
  return each_number<int64_t>(x, [](const std::string& s) { return static_cast<int64_t>(fingerprint64(s)); });
}

Tensor to_hash_bucket(const Tensor& x, int64_t buckets) {
  require_buckets(buckets);
  return each_number<int64_t>(
      x, [&](const std::string& s) { return static_cast<int64_t>(fingerprint64(s) % static_cast<uint64_t>(buckets)); });
}

Tensor to_plain_hash_bucket(const Tensor& x, int64_t buckets) {
  require_buckets(buckets);
  return each_number<int64_t>(x, [&](const std::string& s) { return static_cast<int64_t>(hash64(s) % static_cast<uint64_t>(buckets)); });
}

Tensor to_keyed_hash_bucket(const Tensor& x, int64_t buckets, uint64_t key0, uint64_t key1) {
  require_buckets(buckets);
  return each_number<int64_t>(
      x, [&](const std::string& s) { return static_cast<int64_t>(keyed_hash64(s, key0, key1) % static_cast<uint64_t>(buckets)); });
}

Tensor regex_replace(const Tensor& x, const std::string& pattern, const std::string& rewrite, bool all) {
  const Regex regex(pattern);
  return each(x, [&](const std::string& s) { return regex.replace(s, rewrite, all); });
}

Tensor regex_full_match(const Tensor& x, const std::string& pattern) {
  const Regex regex(pattern);
  return each_number<uint8_t>(x, [&](const std::string& s) { return static_cast<uint8_t>(regex.full_match(s)); }).cast(DType::Bool);
}

Tensor join_rows(const Tensor& x, const std::string& separator) {
  if (x.rank() == 0) user_error("strings.join_rows: a scalar has no rows");
  const std::span<const std::string> all = strings_of(x);
  const Shape& whole = x.shape();
  const auto width = static_cast<size_t>(whole.back());
  const Shape shape(std::span<const int64_t>(whole.begin(), whole.size() - 1));
  size_t rows = 1;
  for (const int64_t extent : shape) rows *= static_cast<size_t>(extent);
  std::vector<std::string> out(rows);
  for (size_t row = 0; row < out.size(); ++row)
    for (size_t i = 0; i < width; ++i) {
      if (i) out[row] += separator;
      out[row] += all[row * width + i];
    }
  return from_strings(std::move(out), shape);
}

Parts ngrams(const Tensor& values, const Tensor& counts, const Ngrams& wanted) {
  const std::span<const std::string> all = strings_of(values);
  std::vector<std::string> out;
  std::vector<int64_t> out_counts;
  size_t begin = 0;
  for (const int64_t count : counts.to_vector<int64_t>()) {
    if (count < 0 || begin + static_cast<size_t>(count) > all.size())
      user_error("ngrams: rows of ", count, " strings, ", all.size() - begin, " are left");
    const size_t before = out.size();
    for (const int64_t width : wanted.widths) {
      const int64_t pads = std::min(wanted.padding, width - 1);
      for (int64_t i = -pads; i + width <= count + pads; ++i) {
        std::string& gram = out.emplace_back();
        for (int64_t k = i; k < i + width; ++k) {
          if (k > i) gram += wanted.separator;
          gram += k < 0 ? wanted.left : k >= count ? wanted.right : all[begin + static_cast<size_t>(k)];
        }
      }
    }
    if (out.size() == before && wanted.keeps_short && count > 0) {
      std::string& whole = out.emplace_back();
      for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
        if (k) whole += wanted.separator;
        whole += all[begin + k];
      }
    }
    out_counts.push_back(static_cast<int64_t>(out.size() - before));
    begin += static_cast<size_t>(count);
  }
  const auto total = static_cast<int64_t>(out.size());
  return {from_strings(std::move(out), {total}), Tensor::from(out_counts, counts.shape())};
}

Parts split(const Tensor& x, const std::string& separator, int64_t most) {
  return parts(x, [&](std::string_view s, std::vector<std::string>& out) {
    int64_t splits = 0;
    if (separator.empty()) {
      for (;;) {
        const size_t from = s.find_first_not_of(kSpace);
        if (from == std::string_view::npos) return;
        s.remove_prefix(from);
        const size_t to = splits++ == most ? std::string_view::npos : s.find_first_of(kSpace);
        out.emplace_back(to == std::string_view::npos && splits > most && most >= 0 ? s : s.substr(0, to));
        if (to == std::string_view::npos) return;
        s.remove_prefix(to);
      }
    }
    for (;;) {
      const size_t to = splits++ == most ? std::string_view::npos : s.find(separator);
      out.emplace_back(s.substr(0, to));
      if (to == std::string_view::npos) return;
      s.remove_prefix(to + separator.size());
    }
  });
}

Parts split_bytes(const Tensor& x) {
  return parts(x, [](const std::string& s, std::vector<std::string>& out) {
    for (const char c : s) out.emplace_back(1, c);
  });
}

Parts split_characters(const Tensor& x) {
  return parts(x, [](const std::string& s, std::vector<std::string>& out) {
    for (size_t at = 0; at < s.size();) {
      const size_t end = after_characters(s, at, 1);
      out.push_back(s.substr(at, end - at));
      at = end;
    }
  });
}

bool is_utf8(const Tensor& x) {
  for (const std::string& s : strings_of(x))
    for (size_t at = 0; at < s.size();) {
      const Utf8Character c = utf8_character(s, at);
      if (c.code > kLastCharacter) return false;
      at += c.size;
    }
  return true;
}

Parts code_points(const Tensor& x) {
  std::vector<int32_t> values;
  std::vector<int64_t> counts;
  for (const std::string& s : strings_of(x)) {
    const size_t before = values.size();
    for (size_t at = 0; at < s.size();) {
      const Utf8Character c = utf8_character(s, at);
      if (c.code > kLastCharacter)
        user_error("code_points: byte ", static_cast<int64_t>(at), " of a string of ", static_cast<int64_t>(s.size()), " is no UTF-8");
      values.push_back(static_cast<int32_t>(c.code));
      at += c.size;
    }
    counts.push_back(static_cast<int64_t>(values.size() - before));
  }
  return {Tensor::from(values), Tensor::from(counts, x.shape())};
}

}  // namespace tandem::string_ops
