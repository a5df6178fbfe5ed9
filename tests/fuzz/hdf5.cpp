// HDF5 files, as weights are kept in.
#include "io/hdf5.hpp"
#include "format.hpp"

namespace tandem::fuzz {

Format hdf5_format() {
  io::Hdf5Group root;
  root.at("layers/dense/vars").attributes["name"] = "dense";
  root.at("layers/dense/vars").datasets = {{"0", Tensor::ones({3, 2})}, {"1", Tensor::zeros({2})}};
  root.at("types").datasets = {
      {"a", Tensor::zeros({2, 1}, DType::Bool)}, {"b", Tensor::zeros({}, DType::BF16)}, {"c", Tensor::zeros({0, 3}, DType::I64)}};
  std::string bytes;
  const io::Hdf5Image image(root);
  for (const io::ByteView piece : image.pieces()) bytes += io::text_of(piece);
  return {.name = "hdf5", .seeds = {bytes}, .run = [](const std::string& input, const std::filesystem::path&) {
            io::read_hdf5(io::bytes_of(input), "input");
          }};
}

}  // namespace tandem::fuzz
