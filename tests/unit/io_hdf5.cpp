// HDF5 files: what was written comes back, and libhdf5 reads it too.
#include "io/hdf5.hpp"

#include <hdf5.h>

#include <cstring>

#include "base/half.hpp"
#include "base/text.hpp"
#include "io/binary.hpp"
#include "io_support.hpp"

namespace tandem::io {
namespace {

Bytes image_of(const Hdf5Group& root) {
  Bytes all;
  const Hdf5Image image(root);
  for (const ByteView piece : image.pieces()) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), byte_size(a.shape(), a.dtype())) == 0;
}

void expect_same(const Hdf5Group& a, const Hdf5Group& b) {
  EXPECT_EQ(a.attributes, b.attributes);
  ASSERT_EQ(a.datasets.size(), b.datasets.size());
  for (const auto& [name, tensor] : a.datasets) EXPECT_TRUE(same_bits(tensor, b.datasets.at(name))) << name;
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (const auto& [name, group] : a.groups) expect_same(group, b.groups.at(name));
}

Tensor counted(DType dtype, const Shape& shape) {
  Bytes bytes(byte_size(shape, dtype));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = dtype == DType::Bool ? std::byte(i % 2) : std::byte(i * 7 % 120);
  return Tensor::from_bytes(bytes.data(), dtype, shape);
}

Hdf5Group sample() {
  Hdf5Group root;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    root.at("types").datasets[std::string(name(dtype))] = counted(dtype, {2, 3});
  }
  root.at("layers/dense/vars").attributes["name"] = "größe";
  root.at("layers/dense/vars").datasets = {{"0", counted(DType::F32, {3, 5})}, {"1", counted(DType::F32, {5})}};
  root.at("layers/empty/vars").attributes["name"] = "";
  root.at("shapes").datasets = {
      {"scalar", Tensor::scalar(7)}, {"none", Tensor::zeros({3, 0, 2})}, {"many", counted(DType::U8, {1, 2, 1, 3, 1, 2})}};
  return root;
}

TEST(Hdf5, GivesBackWhatWasPut) { expect_same(sample(), read_hdf5(image_of(sample()), "x.h5")); }

TEST(Hdf5, TheSameBytesEachTime) { EXPECT_EQ(image_of(sample()), image_of(sample())); }

TEST(Hdf5, ManyNamesAndTexts) {
  Hdf5Group root;  // more than one level of the tree holds, more texts than one heap
  for (int i = 0; i < 10000; ++i) {
    root.datasets[std::to_string(i)] = Tensor::scalar(i);
    root.at("layers/l" + std::to_string(i)).attributes["name"] = "layer " + std::to_string(i);
  }
  root.attributes["long"] = std::string(10000, 'x');
  expect_same(root, read_hdf5(image_of(root), "x.h5"));
}

TEST(Hdf5, TensorsThatAreNotDense) {
  Hdf5Group root;
  const Tensor matrix = counted(DType::F32, {3, 4});
  root.datasets["t"] = matrix.transpose();
  EXPECT_TRUE(same_bits(read_hdf5(image_of(root), "x.h5").datasets.at("t"), matrix.transpose().contiguous()));
}

TEST(Hdf5, NamesThatCannotBe) {
  for (const std::string name : {"", ".", "..", "a/b"}) {
    Hdf5Group root;
    root.datasets[name] = Tensor::scalar(1);
    EXPECT_EQ(error_of([&] { image_of(root); }), "HDF5: '" + name + "' cannot be the name of a group or dataset");
  }
  Hdf5Group root;
  root.at("a");
  root.datasets["a"] = Tensor::scalar(1);
  EXPECT_EQ(error_of([&] { image_of(root); }), "HDF5: 'a' is both a group and a dataset");
}

// --- libhdf5 as the judge ---------------------------------------------------------------------------------------------------------

class Judge : public testing::Test {
 protected:
  Judge() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }
  TemporaryFolder folder_;
  std::string path_ = (folder_ / "x.h5").string();
};

TEST_F(Judge, ReadsWhatWeWrite) {
  Hdf5Group root = sample();
  for (int i = 0; i < 3000; ++i) root.at("many").datasets[std::to_string(i)] = Tensor::scalar(static_cast<float>(i));
  write_file(path_, image_of(root));
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  for (int i = 0; i < 3000; ++i) {
    const hid_t dataset = H5Dopen2(file, ("many/" + std::to_string(i)).c_str(), H5P_DEFAULT);
    float value = -1;
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), 0);
    EXPECT_EQ(value, static_cast<float>(i));
    H5Dclose(dataset);
  }
  H5G_info_t info;
  ASSERT_GE(H5Gget_info_by_name(file, "many", &info, H5P_DEFAULT), 0);
  EXPECT_EQ(info.nlinks, 3000u);
  for (const auto& [name, tensor] : root.at("types").datasets) {  // as they lie, in the type that the file names
    const hid_t dataset = H5Dopen2(file, ("types/" + name).c_str(), H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset);
    EXPECT_EQ(H5Tget_size(type), size_of(tensor.dtype())) << name;
    std::vector<std::byte> bytes(byte_size(tensor.shape(), tensor.dtype()));
    EXPECT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0) << name;
    EXPECT_EQ(std::memcmp(bytes.data(), tensor.raw_data(), bytes.size()), 0) << name;
    H5Tclose(type);
    H5Dclose(dataset);
  }
  const hid_t native[] = {H5T_NATIVE_INT16, H5T_NATIVE_UINT64, H5T_NATIVE_DOUBLE};
  const char* const names[] = {"types/int16", "types/uint64", "types/float64"};
  for (int i = 0; i < 3; ++i) {
    const hid_t dataset = H5Dopen2(file, names[i], H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset);
    EXPECT_GT(H5Tequal(type, native[i]), 0) << names[i];
    H5Tclose(type);
    H5Dclose(dataset);
  }
  const hid_t attribute = H5Aopen_by_name(file, "layers/dense/vars", "name", H5P_DEFAULT, H5P_DEFAULT);
  const hid_t text_type = H5Aget_type(attribute);
  char* text = nullptr;
  ASSERT_GE(H5Aread(attribute, text_type, &text), 0);
  EXPECT_STREQ(text, "größe");
  H5free_memory(text);
  H5Tclose(text_type);
  H5Aclose(attribute);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(Judge, WhatItWritesWeRead) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t dims[] = {2, 3};
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const float values[] = {1, 2, 3, 4, 5, 6};
  for (int i = 0; i < 500; ++i) {
    const hid_t group = H5Gcreate2(file, cat("g", i).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(group, "0", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Gclose(group);
  }
  H5Fclose(file);
  const Hdf5Group root = read_hdf5(read_file(path_), "x.h5");
  ASSERT_EQ(root.groups.size(), 500u);
  EXPECT_TRUE(same_bits(root.groups.at("g499").datasets.at("0"), Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}})));

  const auto refused = [&](auto change) {
    const hid_t changed = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    change(changed);
    H5Fclose(changed);
    return error_of([&] { read_hdf5(read_file(path_), "x.h5"); });
  };
  EXPECT_EQ(refused([&](hid_t f) { H5Lcreate_soft("/elsewhere", f, "a", H5P_DEFAULT, H5P_DEFAULT); }),
            "x.h5: a: a link by name, which is refused");
  EXPECT_NE(refused([&](hid_t f) { H5Lcreate_external("other.h5", "/", f, "a", H5P_DEFAULT, H5P_DEFAULT); }), "no error");
  EXPECT_EQ(refused([&](hid_t f) {
              H5Gclose(H5Gcreate2(f, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
              H5Lcreate_hard(f, "/", f, "a/up", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "x.h5: a/up: damaged HDF5 file: a second way to the object header at 96; links that share or circle are refused");
  EXPECT_EQ(refused([&](hid_t f) {
              const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
              H5Pset_chunk(made, 2, dims);
              H5Pset_deflate(made, 1);
              H5Dclose(H5Dcreate2(f, "a", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
              H5Pclose(made);
            }),
            "x.h5: a: its data is in chunks or compressed; only contiguous data, as Keras writes it, can be read");
  EXPECT_EQ(refused([&](hid_t f) {
              const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
              H5Pset_external(made, "/etc/passwd", 0, 24);
              H5Dclose(H5Dcreate2(f, "a", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
              H5Pclose(made);
            }),
            "x.h5: a: its data is in other files, which is refused");
  EXPECT_EQ(refused([&](hid_t f) {  // never written: a huge shape costs the file nothing
              const hsize_t huge[] = {1u << 31, 2};
              const hid_t wide = H5Screate_simple(2, huge, nullptr);
              H5Dclose(H5Dcreate2(f, "a", H5T_IEEE_F32LE, wide, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
              H5Sclose(wide);
            }),
            "x.h5: a: an extent of 2147483648 in a file of 1400 bytes");
  EXPECT_EQ(refused([&](hid_t f) { H5Dclose(H5Dcreate2(f, "a", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }),
            "x.h5: a: needs 24 bytes; the file, of 1400, gives it 24 and no place");
  EXPECT_EQ(refused([&](hid_t f) { H5Dclose(H5Dcreate2(f, "a", H5T_IEEE_F32BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }),
            "x.h5: a: its element type is none that a tensor has (little-endian numbers and bool)");
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Fclose(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
  H5Pclose(access);
  EXPECT_EQ(error_of([&] { read_hdf5(read_file(path_), "x.h5"); }),
            "x.h5: HDF5 superblock of version 3; only 0, which h5py writes by default, can be read\n  hint: write the file without libver");
  H5Sclose(space);
}

// --- hostile files ----------------------------------------------------------------------------------------------------------------

TEST(Hdf5, TruncatedAnywhere) {
  const Bytes whole = image_of(sample());
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 97) {
    const std::string message = error_of([&] { read_hdf5(ByteView(whole).first(size), "x.h5"); });
    if (size < 96)
      EXPECT_EQ(message, "x.h5: not an HDF5 file: its " + std::to_string(size) + " bytes do not begin with the signature");
    else
      EXPECT_EQ(message, "x.h5: truncated HDF5 file: " + std::to_string(size) + " of " + std::to_string(whole.size()) + " bytes");
  }
}

TEST(Hdf5, DamagedAnywhere) {
  const Bytes whole = image_of(sample());
  int read = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const Bytes bytes = damaged(whole, seed);
    try {
      read_hdf5(bytes, "x.h5");
      ++read;
    } catch (const UserError& e) {
      ++refused;
      EXPECT_TRUE(std::string(e.what()).starts_with("x.h5: ")) << e.what();
    }
  }
  EXPECT_GT(read, 1000);  // damage to data and padding cannot be seen
  EXPECT_GT(refused, 1000);
}

// Attributes that all name one long text: together they are longer than the file.
TEST(Hdf5, TextsThatOverlap) {
  constexpr uint32_t kLong = 3000, kCount = 100;
  Hdf5Group root;
  root.at("g").attributes["a"] = std::string(kLong, 'x');
  for (uint32_t i = 0; i < kCount; ++i) root.at("g").attributes[cat("b", i)] = std::string(200 + i, 'y');
  Bytes file = image_of(root);
  EXPECT_EQ(read_hdf5(file, "x.h5").at("g").attributes.size(), kCount + 1);
  // A reference to a text: its length, the heap's address, its number.
  const auto reference = [&](uint32_t length) {
    for (size_t at = 0; at + 16 <= file.size(); ++at) {
      uint32_t size = 0, index = 0;
      uint64_t address = 0;
      std::memcpy(&size, &file[at], 4);
      std::memcpy(&address, &file[at + 4], 8);
      std::memcpy(&index, &file[at + 12], 4);
      if (size == length && address > 0 && address + 4 < file.size() && text_of(ByteView(file).subspan(address, 4)) == "GCOL") return at;
    }
    ADD_FAILURE() << "no text of " << length;
    return size_t{0};
  };
  const size_t first = reference(kLong);
  for (uint32_t i = 0; i < kCount; ++i)
    std::memcpy(&file[reference(200 + i)], Bytes(file.begin() + first, file.begin() + first + 16).data(), 16);
  const std::string message = error_of([&] { read_hdf5(file, "x.h5"); });
  EXPECT_NE(message.find("damaged HDF5 file: texts that overlap"), std::string::npos) << message;
}

TEST(Hdf5, DatasetsThatOverlap) {
  Hdf5Group root;
  for (int i = 0; i < 20; ++i) root.datasets[std::to_string(i)] = counted(DType::U8, {1000});
  Bytes bytes = image_of(root);
  // Each layout message (version 3, contiguous, address, 1000) leads to the first data.
  const std::string size = BinaryWriter().put(uint64_t{1000}).text();
  const std::string text(text_of(bytes));
  std::vector<size_t> places;
  for (size_t at = text.find("\3\1"); at != std::string::npos; at = text.find("\3\1", at + 1))
    if (text.compare(at + 10, 8, size) == 0) places.push_back(at + 2);
  ASSERT_EQ(places.size(), 20u);
  for (const size_t at : places) std::copy_n(bytes.begin() + static_cast<long>(places[0]), 8, bytes.begin() + static_cast<long>(at));
  EXPECT_EQ(read_hdf5(bytes, "x.h5").datasets.size(), 20u);  // within what the file could hold: harmless
  bytes.resize(bytes.size() - 15000);
  const std::string end = BinaryWriter().put(uint64_t{bytes.size()}).text();
  std::copy_n(bytes_of(end).begin(), 8, bytes.begin() + 40);
  const std::string message = error_of([&] { read_hdf5(bytes, "x.h5"); });
  EXPECT_NE(message.find("datasets that overlap"), std::string::npos) << message;
}

}  // namespace
}  // namespace tandem::io
