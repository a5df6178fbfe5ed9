// What the tests of pipelines share.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tandem/data.hpp>

#include "error_of.hpp"
#include "temporary_folder.hpp"

namespace tandem::data {

inline std::vector<Element> all_of(Iterator& it) {
  std::vector<Element> elements;
  for (Element e; it.next(e);) elements.push_back(e);
  return elements;
}
inline std::vector<Element> all_of(const Dataset& dataset) {
  Iterator it = dataset.iterate();
  return all_of(it);
}

// One component of all elements, flat.
template <class T> std::vector<T> values(const std::vector<Element>& elements, size_t component = 0) {
  std::vector<T> all;
  for (const Element& e : elements)
    for (const T& x : e.at(component).template to_vector<T>()) all.push_back(x);
  return all;
}
template <class T = int64_t> std::vector<T> values(const Dataset& dataset, size_t component = 0) {
  return values<T>(all_of(dataset), component);
}
inline std::vector<std::string> shapes(const Dataset& dataset, size_t component = 0) {
  std::vector<std::string> all;
  for (const Element& e : all_of(dataset)) all.push_back(e.at(component).type_str());
  return all;
}
inline std::vector<std::string> texts(const Dataset& dataset, size_t component = 0) {
  std::vector<std::string> all;
  for (const Element& e : all_of(dataset)) all.push_back(to_text(e.at(component)));
  return all;
}

// [rows, columns] float32: 0, 1, 2, …
inline Tensor counting(int64_t rows, int64_t columns) {
  return Tensor::arange(0.f, static_cast<float>(rows * columns)).reshape({rows, columns});
}

// Names of files as texts, and files with bytes in them.
class Folder : public TemporaryFolder {
 public:
  std::string operator/(const std::string& name) const { return (path() / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::filesystem::remove(path() / name);  // writing over a file can wait for the disk
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return *this / name;
  }
};

}  // namespace tandem::data
