// Logs and History: what was measured, by name. logs["val_loss"], history["loss"].back()
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem::nn {

// In the order in which the numbers were added, which is Keras's: loss, accuracy, val_loss, …
class Logs {
 public:
  using Entry = std::pair<std::string, double>;
  Logs() = default;
  Logs(std::initializer_list<Entry> entries) : entries_(entries) {}

  double operator[](const std::string& name) const;   // UserError that lists the names when it is not there
  double operator[](size_t) const = delete;           // 0 would be taken for the name of a null pointer
  const double* find(const std::string& name) const;  // null when it is not there; valid until the logs change
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  void set(const std::string& name, double value);  // in its place, or at the end
  std::string names() const;                        // "loss, accuracy"
  Logs sorted() const;                              // by name, as Keras shows them

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Logs&) const = default;

 private:
  std::vector<Entry> entries_;
};

struct History {
  std::vector<int64_t> epochs;
  std::map<std::string, std::vector<double>> values;  // "loss", "val_accuracy", …: one number an epoch

  const std::vector<double>& operator[](const std::string& name) const;  // UserError that lists the names when it is not there
  const std::vector<double>& operator[](size_t) const = delete;
  bool contains(const std::string& name) const { return values.contains(name); }
};

}  // namespace tandem::nn
