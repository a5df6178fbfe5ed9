// keras_file IN.keras DATA.h5 OUT.keras OUT.h5: loads a model, keeps what it gives for DATA's inputs, saves it (also its weights, as
// OUT.weights.h5) and trains it on. tools/keras/files.py compares all that with Keras.
#include <iostream>

#include <tandem/nn/model.hpp>

#include "io/hdf5.hpp"

namespace {

using namespace tandem;

std::vector<Tensor> tensors(const io::Hdf5Group& file, const std::string& group) {
  std::vector<Tensor> list;
  if (const io::Hdf5Group* found = file.find(group))
    for (size_t i = 0; i < found->datasets.size(); ++i) list.push_back(found->datasets.at(std::to_string(i)));
  return list;
}

void run(const std::string& in, const std::string& data_file, const std::string& out, const std::string& results_file) {
  const io::Hdf5Group data = io::read_hdf5(io::read_file(data_file), data_file);
  const std::vector<Tensor> x = tensors(data, "x"), y = tensors(data, "y");
  const nn::Model model = nn::Model::load(in);
  io::Hdf5Group results;
  const std::vector<Tensor> outputs = model.predict_on_batch(x);
  for (size_t i = 0; i < outputs.size(); ++i) results.at("outputs").datasets[std::to_string(i)] = outputs[i].cast(DType::F32);
  model.save(out);
  model.save_weights(out.substr(0, out.rfind('.')) + ".weights.h5");
  std::vector<float> losses;
  for (int64_t i = 0; i < tensors(data, "losses").front().size(); ++i)
    losses.push_back(static_cast<float>(model.train_on_batch(x, y)["loss"]));
  results.at("losses").datasets["0"] = Tensor::from(losses);
  AtomicFile file(results_file);
  const io::Hdf5Image image(results);
  for (const io::ByteView piece : image.pieces()) file.write(io::text_of(piece));
  file.commit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: keras_file IN.keras DATA.h5 OUT.keras OUT.h5\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
