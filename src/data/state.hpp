// The position of an iterator as bytes: what stages write and read back. Versioned; a reader never trusts a length.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/data.hpp>

namespace tandem::data {

class Writer {
 public:
  Writer() = default;
  ~Writer() {
    for (size_t i = afterwards_.size(); i-- > 0;) afterwards_[i]();  // inputs first: a stage that goes on may end its inputs
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void put(int64_t x);
  void put(uint64_t x) { put(static_cast<int64_t>(x)); }
  void put(bool x) { put(static_cast<int64_t>(x)); }
  void put(std::string_view text);
  void put(const Element& element);
  void put(const std::exception_ptr& error);  // may be null
  void tag(std::string_view stage) { put(stage); }
  const std::string& bytes() const { return bytes_; }
  // Threads that stand still while a whole pipeline is saved go on at this one's end.
  void afterwards(std::function<void()> f) { afterwards_.push_back(std::move(f)); }

 private:
  std::vector<std::function<void()>> afterwards_;
  std::string bytes_;
};

// UserErrors say that the state is truncated or damaged, or was saved by another pipeline.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  int64_t integer();
  int64_t integer(int64_t low, int64_t high);            // both included
  int64_t count() { return integer(0, INT64_MAX / 2); }  // of what happened: counting on does not leave the type
  uint64_t bits() { return static_cast<uint64_t>(integer()); }
  bool boolean() { return integer(0, 1) != 0; }
  std::string_view text();
  Element element();
  // One that goes on to other stages or to functions of the user, which count on what was declared; nothing: that is not known.
  Element element(const std::optional<std::vector<Spec>>& declared);
  std::exception_ptr error();
  void tag(std::string_view stage);
  bool at_end() const { return bytes_.empty(); }
  [[noreturn]] static void damaged(std::string_view what);

 private:
  std::string_view take(uint64_t count);
  std::string_view bytes_;
};

}  // namespace tandem::data
