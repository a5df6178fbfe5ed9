// Everything but the data comes first, so that its size is known; then the data, each piece at a multiple of 8.
#include <algorithm>

#include "base/text.hpp"
#include "io/binary.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_format.hpp"

namespace tandem::io {
namespace {

using namespace hdf5;

constexpr uint16_t kLeafK = 4, kInternalK = 16;  // half of what a symbol node and a tree node hold at most
constexpr uint64_t kNodeBytes = 24 + (2 * kInternalK + 1) * 8 + 2 * kInternalK * 8;
constexpr uint64_t kLeafBytes = 8 + 2 * kLeafK * kEntryBytes;
constexpr uint64_t kCollectionBytes = 4096;  // the least that a global heap may have

uint64_t padded(uint64_t size) { return (size + 7) / 8 * 8; }

// Where an object is, and for a group also where its names are: what an entry of a symbol table says.
struct Object {
  uint64_t header = 0;
  bool is_group = false;
  uint64_t tree = 0, heap = 0;
};

void put_message(BinaryWriter& to, Message type, const std::string& data) {
  to.put(static_cast<uint16_t>(type)).put(static_cast<uint16_t>(padded(data.size()))).put(uint32_t{0}).put_text(data).align(8);
}

std::string scalar_dataspace() { return BinaryWriter().put(uint8_t{1}).fill(7).text(); }

class Structure {
 public:
  explicit Structure(uint64_t data_start) : data_end_(data_start) { out_.fill(kSuperblockBytes); }
  std::string write(const Hdf5Group& root);
  const std::vector<Tensor>& data() const { return data_; }

 private:
  struct Name {
    uint64_t offset;  // in the local heap
    Object object;
  };
  struct Child {  // of a tree node
    uint64_t address;
    uint64_t last_name;
  };
  struct Text {
    uint64_t collection;
    uint32_t index, size;
  };

  void collect(const Hdf5Group& group);
  void put_texts();
  std::string attribute(const std::string& name);
  uint64_t header(const std::vector<std::pair<Message, std::string>>& messages);
  Object dataset(const Tensor& tensor);
  Object group(const Hdf5Group& group);
  uint64_t tree(const std::vector<Name>& names);
  std::vector<Child> leaves(const std::vector<Name>& names);
  std::vector<Child> level(const std::vector<Child>& children, uint8_t height);
  static void put_entry(BinaryWriter& to, uint64_t name, const Object& object);

  BinaryWriter out_;
  std::vector<std::string> values_;  // of attributes, in the order in which they are written
  std::vector<Text> texts_;
  size_t next_text_ = 0;
  std::vector<Tensor> data_;
  uint64_t data_end_;
};

void Structure::collect(const Hdf5Group& group) {
  for (const auto& [name, value] : group.attributes) values_.push_back(value);
  for (const auto& [name, tensor] : group.datasets)
    if (tensor.dtype() == DType::BF16) values_.push_back("bfloat16");
  for (const auto& [name, child] : group.groups) collect(child);
}

// Texts live in global heaps, a few to one.
void Structure::put_texts() {
  for (size_t next = 0; next < values_.size();) {
    const uint64_t address = out_.size();
    BinaryWriter objects;
    for (uint16_t index = 1; next < values_.size() && index < 0xffff; ++index, ++next) {
      const std::string& value = values_[next];
      if (index > 1 && kObjectBytes + objects.size() + kObjectBytes + padded(value.size()) > kCollectionBytes) break;
      objects.put(index).put(uint16_t{0}).put(uint32_t{0}).put(uint64_t{value.size()}).put_text(value).align(8);
      texts_.push_back({address, index, static_cast<uint32_t>(value.size())});
    }
    const uint64_t size = std::max(kCollectionBytes, kObjectBytes + objects.size());
    out_.put_text("GCOL").put(uint32_t{1}).put(size).put_text(objects.text());
    const uint64_t rest = size - kObjectBytes - objects.size();
    if (rest >= kObjectBytes)  // object 0 is what is free
      out_.put(uint64_t{0}).put(rest).fill(rest - kObjectBytes);
    else
      out_.fill(rest);
  }
}

std::string Structure::attribute(const std::string& name) {
  const Text text = texts_.at(next_text_++);
  const std::string type = text_datatype(), space = scalar_dataspace();
  BinaryWriter message;
  message.put(uint16_t{1}).put(static_cast<uint16_t>(name.size() + 1)).put(static_cast<uint16_t>(type.size()));
  message.put(static_cast<uint16_t>(space.size())).put_text(name).put(uint8_t{0}).align(8).put_text(type).align(8).put_text(space);
  return message.put(text.size).put(text.collection).put(text.index).text();
}

uint64_t Structure::header(const std::vector<std::pair<Message, std::string>>& messages) {
  BinaryWriter body;
  for (const auto& [type, data] : messages) put_message(body, type, data);
  const uint64_t address = out_.size();
  out_.put(uint16_t{1}).put(static_cast<uint16_t>(messages.size())).put(uint32_t{1}).put(static_cast<uint32_t>(body.size())).fill(4);
  out_.put_text(body.text());
  return address;
}

Object Structure::dataset(const Tensor& tensor) {
  const Tensor dense = tensor.to("cpu").contiguous();
  const Shape shape = dense.shape();
  const uint64_t bytes = byte_size(shape, dense.dtype());
  BinaryWriter space, layout;
  space.put(uint8_t{1}).put(static_cast<uint8_t>(shape.rank())).fill(6);
  for (const int64_t extent : shape) space.put(static_cast<uint64_t>(extent));
  layout.put(uint8_t{3}).put(uint8_t{1}).put(bytes ? data_end_ : kUndefined).put(bytes);
  const std::string no_fill("\x02\x02\x02\x00", 4);  // space is taken when data is written; nothing is filled in
  std::vector<std::pair<Message, std::string>> messages = {
      {kDataspace, space.text()}, {kDatatype, datatype(dense.dtype())}, {kFillValue, no_fill}, {kLayout, layout.text()}};
  if (dense.dtype() == DType::BF16) messages.emplace_back(kAttribute, attribute("dtype"));
  if (bytes > 0) data_.push_back(dense);
  data_end_ += padded(bytes);
  return {header(messages), false};
}

void Structure::put_entry(BinaryWriter& to, uint64_t name, const Object& object) {
  to.put(name).put(object.header).put(uint32_t{object.is_group}).put(uint32_t{0});
  to.put(object.tree).put(object.heap);
}

std::vector<Structure::Child> Structure::leaves(const std::vector<Name>& names) {
  std::vector<Child> children;
  for (size_t start = 0; start < names.size(); start += 2 * kLeafK) {
    const size_t count = std::min<size_t>(2 * kLeafK, names.size() - start);
    BinaryWriter leaf;
    leaf.put_text("SNOD").put(uint16_t{1}).put(static_cast<uint16_t>(count));
    for (size_t i = start; i < start + count; ++i) put_entry(leaf, names[i].offset, names[i].object);
    leaf.fill(kLeafBytes - leaf.size());
    children.push_back({out_.size(), names[start + count - 1].offset});
    out_.put_text(leaf.text());
  }
  return children;
}

// The nodes above `children`, one after the other. Between two children is the last name of the left one.
std::vector<Structure::Child> Structure::level(const std::vector<Child>& children, uint8_t height) {
  constexpr size_t kMost = 2 * kInternalK;
  std::vector<Child> nodes;
  const size_t count = std::max<size_t>((children.size() + kMost - 1) / kMost, 1);
  const uint64_t first = out_.size();
  uint64_t key = 0;  // the empty name
  for (size_t i = 0; i < count; ++i) {
    const size_t start = i * kMost, used = std::min(kMost, children.size() - start);
    BinaryWriter node;
    node.put_text("TREE").put(uint8_t{0}).put(height).put(static_cast<uint16_t>(used));
    node.put(i > 0 ? first + (i - 1) * kNodeBytes : kUndefined).put(i + 1 < count ? first + (i + 1) * kNodeBytes : kUndefined);
    node.put(key);
    for (size_t k = start; k < start + used; ++k) node.put(children[k].address).put(key = children[k].last_name);
    node.fill(kNodeBytes - node.size());
    nodes.push_back({out_.size(), key});
    out_.put_text(node.text());
  }
  return nodes;
}

uint64_t Structure::tree(const std::vector<Name>& names) {
  std::vector<Child> nodes = level(leaves(names), 0);
  for (uint8_t height = 1; nodes.size() > 1; ++height) nodes = level(nodes, height);
  return nodes.front().address;
}

Object Structure::group(const Hdf5Group& group) {
  std::vector<std::pair<Message, std::string>> attributes;
  for (const auto& [name, value] : group.attributes) attributes.emplace_back(kAttribute, attribute(name));
  std::map<std::string, Object> objects;  // a tree is in the order of names
  for (const auto& [name, tensor] : group.datasets) objects[name] = dataset(tensor);
  for (const auto& [name, child] : group.groups)
    if (!objects.emplace(name, this->group(child)).second) user_error("HDF5: '", name, "' is both a group and a dataset");
  BinaryWriter heap;
  heap.fill(8);
  std::vector<Name> names;
  for (const auto& [name, object] : objects) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
      user_error("HDF5: '", name, "' cannot be the name of a group or dataset");
    names.push_back({heap.size(), object});
    heap.put_text(name).put(uint8_t{0}).align(8);
  }
  Object result{0, true, tree(names), out_.size()};
  constexpr uint64_t kNothingFree = 1;
  constexpr uint64_t kHeapHeaderBytes = 32;
  out_.put_text("HEAP").put(uint32_t{0}).put(heap.size()).put(kNothingFree).put(result.heap + kHeapHeaderBytes).put_text(heap.text());
  attributes.emplace(attributes.begin(), kSymbolTable, BinaryWriter().put(result.tree).put(result.heap).text());
  result.header = header(attributes);
  return result;
}

std::string Structure::write(const Hdf5Group& root) {
  collect(root);
  put_texts();
  const Object top = group(root);
  BinaryWriter superblock;
  superblock.put_text(std::string_view(kSignature, 8)).fill(5).put(uint8_t{8}).put(uint8_t{8}).fill(1);
  superblock.put(kLeafK).put(kInternalK).put(uint32_t{0});
  superblock.put(uint64_t{0}).put(kUndefined).put(data_end_).put(kUndefined);
  put_entry(superblock, 0, top);
  std::string all = out_.text();
  all.replace(0, superblock.size(), superblock.text());
  return all;
}

}  // namespace

Hdf5Group& Hdf5Group::at(const std::string& path) {
  if (path.empty()) return *this;
  const size_t slash = path.find('/');
  Hdf5Group& child = groups[path.substr(0, slash)];
  return slash == std::string::npos ? child : child.at(path.substr(slash + 1));
}

Hdf5Image::Hdf5Image(const Hdf5Group& root) {
  const uint64_t size = Structure(0).write(root).size();  // does not depend on where the data are
  Structure structure(size);
  structure_ = structure.write(root);
  data_ = structure.data();
  pieces_.push_back(bytes_of(structure_));
  static constexpr std::byte kPadding[8] = {};
  for (const Tensor& tensor : data_) {
    const uint64_t bytes = byte_size(tensor.shape(), tensor.dtype());
    pieces_.emplace_back(static_cast<const std::byte*>(tensor.raw_data()), bytes);
    pieces_.push_back(ByteView(kPadding).first(padded(bytes) - bytes));
  }
}

}  // namespace tandem::io
