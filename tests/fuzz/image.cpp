// JPEG and PNG images.
#include <tandem/data/images.hpp>

#include <tandem/error.hpp>

#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

void run(const std::string& input, const std::filesystem::path&) {
  const Tensor bytes = data::from_text(input);
  for (const int64_t channels : {0, 1, 3}) {
    try {
      const Tensor image = data::decode_image(bytes, channels);
      if (image.size() < 100'000) data::resize_image(image, 5, 7);
    } catch (const Error&) {
      if (channels == 3) throw;
    }
  }
}

}  // namespace

Format image_format() {
  const auto stored = data_folder() / "pipelines";
  Format format{.name = "image", .run = run};
  for (const char* name : {"colour.jpg", "grey.jpg", "colour.png", "grey.png", "alpha.png"})
    format.seeds.push_back(read_bytes(stored / name));
  return format;
}

}  // namespace tandem::fuzz
