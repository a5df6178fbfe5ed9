#include <tandem/nn/logs.hpp>

#include <algorithm>

#include "base/text.hpp"

namespace tandem::nn {
namespace {

template <class Entries> std::string names_in(const Entries& entries) {
  std::string names;
  for (const auto& [name, value] : entries) names += (names.empty() ? "" : ", ") + name;
  return names;
}

[[noreturn]] void absent(const char* what, const std::string& name, const std::string& names) {
  user_error(what, ": there is no '", name, "', ", names.empty() ? "it is empty" : "there are " + names);
}

}  // namespace

const double* Logs::find(const std::string& name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::first);
  return found == entries_.end() ? nullptr : &found->second;
}

double Logs::operator[](const std::string& name) const {
  const double* value = find(name);
  if (!value) absent("logs", name, names());
  return *value;
}

void Logs::set(const std::string& name, double value) {
  const auto found = std::ranges::find(entries_, name, &Entry::first);
  if (found == entries_.end())
    entries_.emplace_back(name, value);
  else
    found->second = value;
}

std::string Logs::names() const { return names_in(entries_); }

Logs Logs::sorted() const {
  Logs logs = *this;
  std::ranges::stable_sort(logs.entries_, {}, &Entry::first);
  return logs;
}

const std::vector<double>& History::operator[](const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) absent("history", name, names_in(values));
  return found->second;
}

}  // namespace tandem::nn
