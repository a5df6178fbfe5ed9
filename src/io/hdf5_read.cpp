// Every address and size comes from the file and is trusted in nothing: BinaryReader keeps each read inside the file, and each structure
// is visited once, so that time and memory grow with the file and not with what it says.
#include <algorithm>
#include <optional>
#include <set>

#include "base/checked.hpp"
#include "io/binary.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_format.hpp"

namespace tandem::io {
namespace {

using namespace hdf5;

constexpr int kMostDepth = 64;
constexpr size_t kMostNameBytes = 4096;

struct Messages {  // of one object header, those that matter here
  ByteView dataspace, datatype, layout, symbol_table;
  std::vector<ByteView> attributes;
  bool has_filters = false, has_external_files = false, has_new_links = false;
};

class Reader {
 public:
  Reader(ByteView file, const std::string& label) : file_(file), label_(label) {}
  Hdf5Group read();

 private:
  template <class... T> [[noreturn]] void fail(const T&... what) const {
    user_error(label_, ": ", path_.empty() ? "" : path_ + ": ", what...);
  }
  BinaryReader at(uint64_t address, const char* what);
  BinaryReader tagged(uint64_t address, std::string_view tag, const char* what);
  void visit_once(uint64_t address, const char* what);
  void spend(uint64_t bytes);
  void check_superblock();

  Messages header(uint64_t address);
  Hdf5Group group(const Messages& messages, int depth);
  void tree(uint64_t address, ByteView names, int depth, int height, Hdf5Group& to);
  void leaf(uint64_t address, ByteView names, int depth, Hdf5Group& to);
  void object(std::string_view name, uint64_t address, int depth, Hdf5Group& to);
  Tensor dataset(const Messages& messages);
  Shape shape(ByteView dataspace);
  DType dtype(const Messages& messages);
  ByteView contiguous_data(const Messages& messages, uint64_t bytes);
  std::map<std::string, std::string> attributes(const Messages& messages);
  std::optional<std::string> text(ByteView datatype, BinaryReader data);
  const std::map<uint32_t, ByteView>& texts_at(uint64_t address);

  ByteView file_;
  const std::string& label_;
  std::string path_;                                                // of the object that is being read
  std::set<uint64_t> seen_;                                         // addresses of structures
  std::map<uint64_t, std::map<uint32_t, ByteView>> text_heaps_;     // by address
  uint64_t structure_bytes_ = 0, data_bytes_ = 0, text_bytes_ = 0;  // read so far
};

BinaryReader Reader::at(uint64_t address, const char* what) {
  if (address > file_.size()) fail("damaged HDF5 file: ", what, " at ", address, ", but the file has ", file_.size(), " bytes");
  return BinaryReader(file_.subspan(address));
}

BinaryReader Reader::tagged(uint64_t address, std::string_view tag, const char* what) {
  BinaryReader reader = at(address, what);
  if (reader.take_text(tag.size()) != tag) fail("damaged HDF5 file: no ", what, " at ", address);
  return reader;
}

void Reader::visit_once(uint64_t address, const char* what) {
  if (!seen_.insert(address).second)
    fail("damaged HDF5 file: a second way to the ", what, " at ", address, "; links that share or circle are refused");
}

// Each byte belongs to one structure, so all of them together are no longer than the file.
void Reader::spend(uint64_t bytes) {
  structure_bytes_ += bytes;
  if (structure_bytes_ > file_.size()) fail("damaged HDF5 file: its structures overlap");
}

void Reader::check_superblock() {
  if (file_.size() < kSuperblockBytes || text_of(file_.first(8)) != std::string_view(kSignature, 8))
    fail("not an HDF5 file: its ", file_.size(), " bytes do not begin with the signature");
  BinaryReader reader(file_.subspan(8));
  if (const auto version = reader.get<uint8_t>())
    fail("HDF5 superblock of version ", unsigned(version),
         "; only 0, which h5py writes by default, can be read\n  hint: write the file without libver");
  reader.skip(4);
  const auto offset_bytes = reader.get<uint8_t>(), length_bytes = reader.get<uint8_t>();
  if (offset_bytes != 8 || length_bytes != 8)
    fail("damaged HDF5 file: offsets of ", unsigned(offset_bytes), " and lengths of ", unsigned(length_bytes), " bytes, 8 are expected");
  reader.skip(1 + 2 + 2 + 4);
  if (const auto base = reader.get<uint64_t>()) fail("HDF5 file with base address ", base, "; 0 is expected");
  reader.skip(8);
  if (const auto end = reader.get<uint64_t>(); end > file_.size()) fail("truncated HDF5 file: ", file_.size(), " of ", end, " bytes");
}

Hdf5Group Reader::read() {
  try {
    check_superblock();
    BinaryReader root(file_.subspan(kSuperblockBytes - kEntryBytes + 8));
    return group(header(root.get<uint64_t>()), 0);
  } catch (const EndOfBytes&) {
    fail("damaged HDF5 file: a structure ends behind the end, ", file_.size(), " bytes");
  }
}

Messages Reader::header(uint64_t address) {
  visit_once(address, "object header");
  BinaryReader prefix = at(address, "an object header");
  if (const auto version = prefix.get<uint8_t>(); version != 1)
    fail("damaged HDF5 file: object header of version ", unsigned(version), " at ", address, ", 1 is expected");
  prefix.skip(1);
  const auto count = prefix.get<uint16_t>();
  prefix.skip(4);
  const auto size = prefix.get<uint32_t>();
  prefix.skip(4);
  Messages messages;
  std::vector<ByteView> blocks = {prefix.take(size)};
  size_t read = 0;
  for (size_t i = 0; i < blocks.size(); ++i)
    for (BinaryReader block(blocks[i]); block.left() >= kMessageBytes && read < count; ++read) {
      const auto type = block.get<uint16_t>(), bytes = block.get<uint16_t>();
      const auto flags = block.get<uint8_t>();
      block.skip(3);
      BinaryReader data(block.take(bytes));
      spend(kMessageBytes + bytes);
      constexpr uint8_t kShared = 2;
      if ((flags & kShared) && type != kNil) fail("its description is shared with another object, which is not supported");
      switch (type) {
        case kDataspace: messages.dataspace = data.rest(); break;
        case kDatatype: messages.datatype = data.rest(); break;
        case kLayout: messages.layout = data.rest(); break;
        case kSymbolTable: messages.symbol_table = data.rest(); break;
        case kAttribute: messages.attributes.push_back(data.rest()); break;
        case kFilters: messages.has_filters = true; break;
        case kExternalFiles: messages.has_external_files = true; break;
        case kLinkInfo: messages.has_new_links = true; break;
        case kContinuation: {
          const auto where = data.get<uint64_t>(), length = data.get<uint64_t>();
          visit_once(where, "continued object header");
          blocks.push_back(at(where, "a continued object header").take(length));
          break;
        }
        default: break;  // times, fill values, comments: nothing that a tensor is made of
      }
    }
  return messages;
}

Hdf5Group Reader::group(const Messages& messages, int depth) {
  if (depth > kMostDepth) fail("groups more than ", kMostDepth, " deep");
  if (messages.symbol_table.empty()) {
    if (messages.has_new_links)
      fail("a group of a newer kind than h5py writes by default\n  hint: write the file without libver and track_order");
    fail("damaged HDF5 file: a group without a table of names");
  }
  Hdf5Group result;
  result.attributes = attributes(messages);
  BinaryReader table(messages.symbol_table);
  const auto tree_address = table.get<uint64_t>(), heap_address = table.get<uint64_t>();
  BinaryReader heap = tagged(heap_address, "HEAP", "heap of names");
  heap.skip(4);
  const auto size = heap.get<uint64_t>();
  heap.skip(8);
  const ByteView names = at(heap.get<uint64_t>(), "names").take(size);
  tree(tree_address, names, depth, -1, result);
  return result;
}

// `height`: what it has to be; -1 for the top, which may have any.
void Reader::tree(uint64_t address, ByteView names, int depth, int height, Hdf5Group& to) {
  visit_once(address, "tree of names");
  BinaryReader node = tagged(address, "TREE", "tree of names");
  const auto type = node.get<uint8_t>(), level = node.get<uint8_t>();
  if (type != 0 || (height >= 0 && level != height)) fail("damaged HDF5 file: the tree at ", address, " is not of names");
  const auto used = node.get<uint16_t>();
  node.skip(16);
  spend(16 * uint64_t{used});
  for (unsigned i = 0; i < used; ++i) {
    node.skip(8);
    const auto child = node.get<uint64_t>();
    if (level > 0)
      tree(child, names, depth, level - 1, to);
    else
      leaf(child, names, depth, to);
  }
}

void Reader::leaf(uint64_t address, ByteView names, int depth, Hdf5Group& to) {
  visit_once(address, "list of names");
  BinaryReader node = tagged(address, "SNOD", "list of names");
  node.skip(2);
  const auto count = node.get<uint16_t>();
  spend(kEntryBytes * count);
  for (unsigned i = 0; i < count; ++i) {
    BinaryReader entry(node.take(kEntryBytes));
    const auto name_at = entry.get<uint64_t>(), header_at = entry.get<uint64_t>();
    constexpr uint32_t kSymbolicLink = 2;
    const auto kind = entry.get<uint32_t>();
    if (name_at > names.size()) fail("damaged HDF5 file: a name at ", name_at, " of ", names.size(), " bytes of names");
    const std::string_view from = text_of(names.subspan(name_at)).substr(0, kMostNameBytes);
    const std::string_view name = from.substr(0, from.find('\0'));
    if (name.empty() || name.size() == from.size() || name.find('/') != std::string_view::npos)
      fail("damaged HDF5 file: a name without an end, or none, at ", name_at);
    if (kind == kSymbolicLink) fail(name, ": a link by name, which is refused");
    object(name, header_at, depth, to);
  }
}

void Reader::object(std::string_view name, uint64_t address, int depth, Hdf5Group& to) {
  const size_t parent = path_.size();
  path_.append(parent ? "/" : "").append(name);
  const std::string key(name);
  if (to.groups.count(key) || to.datasets.count(key)) fail("damaged HDF5 file: the name is there twice");
  const Messages messages = header(address);
  if (messages.layout.empty())
    to.groups.emplace(key, group(messages, depth + 1));
  else
    to.datasets.emplace(key, dataset(messages));
  path_.resize(parent);
}

Shape Reader::shape(ByteView dataspace) {
  BinaryReader reader(dataspace);
  const auto version = reader.get<uint8_t>(), rank = reader.get<uint8_t>();
  if (version != 1) fail("a shape of version ", unsigned(version), ", 1 is expected");
  if (rank > kMaxRank) fail("a dataset of rank ", unsigned(rank), "; at most ", kMaxRank, " can be read");
  reader.skip(6);
  Shape shape;
  for (unsigned i = 0; i < rank; ++i) {
    const auto extent = reader.get<uint64_t>();
    if (extent > file_.size()) fail("an extent of ", extent, " in a file of ", file_.size(), " bytes");
    shape.push_back(static_cast<int64_t>(extent));
  }
  return shape;
}

DType Reader::dtype(const Messages& messages) {
  const std::string_view given = text_of(messages.datatype);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto candidate = static_cast<DType>(i);
    if (!given.starts_with(datatype(candidate))) continue;
    if (candidate != DType::BF16) return candidate;
    const auto texts = attributes(messages);
    if (const auto named = texts.find("dtype"); named != texts.end() && named->second == "bfloat16") return candidate;
  }
  fail("its element type is none that a tensor has (little-endian numbers and bool)");
}

ByteView Reader::contiguous_data(const Messages& messages, uint64_t bytes) {
  if (messages.has_external_files) fail("its data is in other files, which is refused");
  BinaryReader layout(messages.layout);
  const auto version = layout.get<uint8_t>(), kind = layout.get<uint8_t>();
  constexpr uint8_t kContiguous = 1;
  if (version != 3 || kind != kContiguous || messages.has_filters)
    fail("its data is in chunks or compressed; only contiguous data, as Keras writes it, can be read");
  const auto address = layout.get<uint64_t>(), size = layout.get<uint64_t>();
  if (bytes == 0) return {};
  if (size != bytes || address > file_.size() || bytes > file_.size() - address)
    fail("needs ", bytes, " bytes; the file, of ", file_.size(), ", gives it ", size,
         address == kUndefined ? " and no place" : cat(" at ", address));
  data_bytes_ += bytes;
  if (data_bytes_ > file_.size()) fail("damaged HDF5 file: datasets that overlap, ", data_bytes_, " bytes in a file of ", file_.size());
  return file_.subspan(address, bytes);
}

Tensor Reader::dataset(const Messages& messages) {
  if (messages.dataspace.empty() || messages.datatype.empty()) fail("damaged HDF5 file: a dataset without a shape or a type");
  const Shape extents = shape(messages.dataspace);
  const DType element = dtype(messages);
  uint64_t bytes = size_of(element);
  for (const int64_t extent : extents) {
    const auto more = checked_multiply(bytes, static_cast<uint64_t>(extent));
    if (!more) fail("a shape of ", extents, " in a file of ", file_.size(), " bytes");
    bytes = *more;
  }
  const ByteView data = contiguous_data(messages, bytes);
  if (element == DType::Bool && std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; }))
    fail("a bool that is neither 0 nor 1");
  return Tensor::from_bytes(data.data(), element, extents);
}

std::map<std::string, std::string> Reader::attributes(const Messages& messages) {
  std::map<std::string, std::string> texts;
  for (const ByteView message : messages.attributes) {
    BinaryReader reader(message);
    if (reader.get<uint8_t>() != 1) continue;  // a kind that h5py does not write by default
    reader.skip(1);
    const auto name_bytes = reader.get<uint16_t>(), type_bytes = reader.get<uint16_t>(), space_bytes = reader.get<uint16_t>();
    const auto padded = [&](uint64_t bytes) { return reader.take((bytes + 7) / 8 * 8).first(bytes); };
    const std::string_view name = text_of(padded(name_bytes));
    const ByteView type = padded(type_bytes), space = padded(space_bytes);
    if (space.size() < 2 || space[1] != std::byte{0}) continue;  // not a scalar
    if (auto value = text(type, reader)) texts[std::string(name.substr(0, name.find('\0')))] = *std::move(value);
  }
  return texts;
}

// The one kind of text that Keras writes: of variable length, in a global heap.
std::optional<std::string> Reader::text(ByteView datatype, BinaryReader data) {
  if (text_of(datatype) != text_datatype()) return {};
  const auto size = data.get<uint32_t>();
  const auto address = data.get<uint64_t>();
  const auto wanted = data.get<uint32_t>();
  if (size == 0) return "";
  const auto& texts = texts_at(address);
  const auto found = texts.find(wanted);
  if (found == texts.end() || found->second.size() < size)
    fail("damaged HDF5 file: no text ", wanted, " of ", size, " bytes in the heap at ", address);
  text_bytes_ += size;
  if (text_bytes_ > file_.size()) fail("damaged HDF5 file: texts that overlap, ", text_bytes_, " bytes in a file of ", file_.size());
  return std::string(text_of(found->second.first(size)));
}

const std::map<uint32_t, ByteView>& Reader::texts_at(uint64_t address) {
  const auto [at, is_new] = text_heaps_.try_emplace(address);
  if (!is_new) return at->second;
  BinaryReader heap = tagged(address, "GCOL", "heap of texts");
  heap.skip(4);
  const auto bytes = heap.get<uint64_t>();
  if (bytes < kObjectBytes) fail("damaged HDF5 file: a heap of ", bytes, " bytes at ", address);
  BinaryReader objects(heap.take(bytes - kObjectBytes));
  spend(bytes);
  while (objects.left() >= kObjectBytes) {
    const auto index = objects.get<uint16_t>();
    objects.skip(6);
    const auto size = objects.get<uint64_t>();
    if (index == 0) break;  // the rest is free
    const ByteView content = objects.take(size);
    objects.skip(std::min<uint64_t>((8 - size % 8) % 8, objects.left()));
    at->second.emplace(index, content);
  }
  return at->second;
}

}  // namespace

const Hdf5Group* Hdf5Group::find(const std::string& path) const {
  if (path.empty()) return this;
  const size_t slash = path.find('/');
  const auto child = groups.find(path.substr(0, slash));
  if (child == groups.end()) return nullptr;
  return slash == std::string::npos ? &child->second : child->second.find(path.substr(slash + 1));
}

Hdf5Group read_hdf5(ByteView file, const std::string& label) { return Reader(file, label).read(); }

}  // namespace tandem::io
