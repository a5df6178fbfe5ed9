// image_folder: a subfolder a class, decoded and resized by as many threads as help.
#include <algorithm>
#include <filesystem>

#include <tandem/data/images.hpp>

#include "base/border.hpp"
#include "base/text.hpp"
#include "data/file_source.hpp"
#include "data/sources.hpp"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

struct Labelled {
  std::string path;
  int32_t label;
};

bool is_image(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  if (error) resource_error("image_folder: ", folder.string(), ": ", error.message());
  std::ranges::sort(entries);
  return entries;
}

std::vector<Labelled> images_below(const std::string& folder) {
  std::vector<Labelled> images;
  int32_t label = 0;
  for (const fs::path& subfolder : sorted_entries(folder)) {
    if (!fs::is_directory(subfolder) || subfolder.filename().string().starts_with('.')) continue;
    for (const fs::path& file : sorted_entries(subfolder))
      if (is_image(file)) images.push_back({file.string(), label});
    ++label;
  }
  if (images.empty()) resource_error("image_folder: ", folder, " has no subfolder with .jpg, .jpeg or .png files");
  return images;
}

}  // namespace

Dataset Dataset::image_folder(const std::string& folder, ImageOptions o) {
  if ((o.height > 0) != (o.width > 0) || o.height < 0) user_error("image_folder: a size of ", o.height, " x ", o.width);
  if (o.channels != 1 && o.channels != 3 && o.channels != 4) user_error("image_folder: channels is ", o.channels, ", it must be 1, 3 or 4");
  const auto images = std::make_shared<const std::vector<Labelled>>(at_border("image_folder", [&] { return images_below(folder); }));
  const auto count = static_cast<int64_t>(images->size());
  Dataset files(numbered_source("image_folder", folder, Specs{bytes_spec()[0], {DType::I32, {}}}, count, [images](int64_t i, Element& e) {
    const Labelled& image = (*images)[static_cast<size_t>(i)];
    e = {from_text(image.path), Tensor::scalar<int32_t>(image.label)};
  }));
  if (o.shuffle) files = files.shuffle(count, {.seed = o.seed});
  const Dim height = o.height ? Dim(o.height) : Dim::symbol("height"), width = o.width ? Dim(o.width) : Dim::symbol("width");
  const auto decode = [o](const std::vector<Tensor>& in) {
    const std::string path = to_text(in[0]);
    try {
      Tensor image = decode_image(read_file(path), o.channels);
      if (o.height) image = resize_image(image, o.height, o.width);
      return std::vector<Tensor>{image, in[1]};
    } catch (const ResourceError& e) {
      const std::string text = e.what();
      throw ResourceError(text.starts_with(path) ? text : cat(path, ": ", text), e.code());
    }
  };
  return files.map_callback(
      FlatFunction(decode),
      {.parallel_calls = o.parallel_calls, .specs = {{DType::U8, {height, width, o.channels}}, {DType::I32, {}}}, .name = "decode_image"});
}

}  // namespace tandem::data
