#include "data/examples.hpp"

#include <cstring>
#include <optional>
#include <unordered_map>

#include <tandem/strings.hpp>

#include "base/text.hpp"

namespace tandem::data {
namespace {

[[noreturn]] void damaged(size_t message) {
  user_error("Could not parse example input, value: message ", message, " is no tf.train.Example");
}

// Fields of one message: (number << 3 | kind), then the value. https://protobuf.dev/programming-guides/encoding
class Fields {
 public:
  Fields(std::string_view bytes, size_t message) : bytes_(bytes), message_(message) {}
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t key = varint();
    number_ = key >> 3, kind_ = key & 7;
    switch (kind_) {
      case 0: value_ = varint(); return true;
      case 1: part_ = take(8); return true;
      case 2: part_ = take(varint()); return true;
      case 5: part_ = take(4); return true;
      default: damaged(message_);
    }
  }
  uint64_t number() const { return number_; }
  uint64_t kind() const { return kind_; }
  uint64_t value() const { return value_; }
  std::string_view part() const {
    if (kind_ == 0) damaged(message_);
    return part_;
  }
  uint64_t varint() {
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) damaged(message_);
      const auto byte = static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      x |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return x;
    }
    damaged(message_);
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) damaged(message_);
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  std::string_view bytes_, part_;
  size_t message_;
  uint64_t number_ = 0, kind_ = 0, value_ = 0;
};

class Feature {
 public:
  explicit Feature(const WantedFeature& w) : wanted_(w) {}

  void begin() {
    counts_.push_back(0);
    start_ = size();
  }
  void add(std::string_view feature, size_t message) {
    if (counts_.back() > 0) {  // the last one of a key counts
      counts_.back() = 0;
      strings_.resize(std::min(strings_.size(), start_));
      floats_.resize(std::min(floats_.size(), start_));
      integers_.resize(std::min(integers_.size(), start_));
    }
    for (Fields lists(feature, message); lists.next();) {
      const DType found = lists.number() == 1 ? kString : lists.number() == 2 ? DType::F32 : DType::I64;
      if (lists.number() < 1 || lists.number() > 3) continue;
      if (found != wanted_.dtype)
        user_error("Key: ", wanted_.key, ".  Data types don't match. Expected type: ", name(wanted_.dtype), ", the message has ",
                   name(found));
      const size_t before = size();
      for (Fields values(lists.part(), message); values.next();)
        if (values.number() == 1) add_values(values, message);
      counts_.back() += static_cast<int64_t>(size() - before);
    }
  }
  FoundFeature finish() {
    const auto count = static_cast<int64_t>(size());
    Tensor values = wanted_.dtype == kString      ? from_strings(std::move(strings_), {count})
                    : wanted_.dtype == DType::F32 ? Tensor::from(floats_)
                                                  : Tensor::from(integers_);
    return {std::move(values), Tensor::from(counts_)};
  }

 private:
  size_t size() const { return strings_.size() + floats_.size() + integers_.size(); }
  void add_values(Fields& field, size_t message) {
    if (wanted_.dtype == kString) {
      strings_.emplace_back(field.part());
    } else if (wanted_.dtype == DType::F32) {
      const std::string_view raw = field.part();  // one, or packed
      if (raw.size() % sizeof(float) != 0) damaged(message);
      const size_t before = floats_.size();
      floats_.resize(before + raw.size() / sizeof(float));
      if (!raw.empty()) std::memcpy(floats_.data() + before, raw.data(), raw.size());
    } else if (field.kind() == 0) {
      integers_.push_back(static_cast<int64_t>(field.value()));
    } else {
      for (Fields packed(field.part(), message); !packed.at_end();) integers_.push_back(static_cast<int64_t>(packed.varint()));
    }
  }

  const WantedFeature& wanted_;
  std::vector<std::string> strings_;
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
  std::vector<int64_t> counts_;
  size_t start_ = 0;  // where the values of this message begin
};

}  // namespace

std::vector<FoundFeature> parse_examples(std::span<const std::string> messages, const std::vector<WantedFeature>& wanted) {
  std::vector<Feature> features;
  std::unordered_map<std::string_view, size_t> places;
  for (const WantedFeature& w : wanted) {
    if (w.dtype != kString && w.dtype != DType::F32 && w.dtype != DType::I64)
      user_error("parse_example: feature '", w.key, "' is asked for as ", name(w.dtype), "; messages hold float32, int64 and strings");
    places.emplace(w.key, features.size());
    features.emplace_back(w);
  }
  for (size_t m = 0; m < messages.size(); ++m) {
    for (Feature& f : features) f.begin();
    for (Fields example(messages[m], m); example.next();) {
      if (example.number() != 1) continue;
      for (Fields entries(example.part(), m); entries.next();) {
        if (entries.number() != 1) continue;
        std::string_view key, value;
        for (Fields entry(entries.part(), m); entry.next();) (entry.number() == 1 ? key : value) = entry.part();
        if (const auto at = places.find(key); at != places.end()) features[at->second].add(value, m);
      }
    }
  }
  std::vector<FoundFeature> found;
  for (Feature& f : features) found.push_back(f.finish());
  return found;
}

}  // namespace tandem::data
