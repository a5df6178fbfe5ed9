// HDF5 files as trees of groups and tensors: the part of the format that h5py writes when it is not told otherwise, which is what Keras's
// files are made of. docs/adr/0019-keras-files.md says why this is not libhdf5.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <tandem/tensor.hpp>

#include "io/file.hpp"

namespace tandem::io {

struct Hdf5Group {
  std::map<std::string, std::string> attributes;  // texts; others are passed over
  std::map<std::string, Hdf5Group> groups;
  std::map<std::string, Tensor> datasets;

  Hdf5Group& at(const std::string& path);                // "layers/dense/vars"; made when it is not there
  const Hdf5Group* find(const std::string& path) const;  // none: nullptr
};

// `label` begins every message: the file, or the archive and the entry. A file that is truncated or damaged, shares or circles, leads to
// other files or claims more data than it holds is a UserError. No more memory is taken than the file has bytes.
Hdf5Group read_hdf5(ByteView file, const std::string& label);

// A file in pieces, of which the data are the tensors' own memory: saving needs no second copy of it.
class Hdf5Image {
 public:
  explicit Hdf5Image(const Hdf5Group& root);
  Hdf5Image(const Hdf5Image&) = delete;  // pieces refer to members
  Hdf5Image& operator=(const Hdf5Image&) = delete;
  const std::vector<ByteView>& pieces() const { return pieces_; }

 private:
  std::string structure_;
  std::vector<Tensor> data_;
  std::vector<ByteView> pieces_;
};

}  // namespace tandem::io
