// Decoding by libjpeg-turbo and libpng, and resizing.
#include <tandem/data/images.hpp>

#include <cstdio>  // jpeglib.h names FILE

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/border.hpp"
#include "base/checked.hpp"
#include "data/elements.hpp"
#include "data/file_reader.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

// A header may claim anything. What is plausible: an image that anybody has (16384 x 16384), and of a small file what fits in some
// megabytes or what a plain surface is compressed to.
constexpr int64_t kMostPixels = int64_t{1} << 28, kAlwaysAllowedPixels = int64_t{1} << 24, kMostPixelsOfAByte = 2048;

void check_bytes(const Tensor& bytes, std::string_view what) {
  if (bytes.dtype() != DType::U8 || bytes.rank() != 1) user_error(what, ": ", bytes.type_str(), " is no file, which is uint8[n]");
}

void check_size(int64_t height, int64_t width, size_t bytes, std::string_view what) {
  const int64_t plausible = checked_multiply(static_cast<int64_t>(bytes), kMostPixelsOfAByte).value_or(kMostPixels);
  const int64_t most = std::min(kMostPixels, std::max(kAlwaysAllowedPixels, plausible));
  const auto pixels = checked_multiply(height, width);
  if (height <= 0 || width <= 0 || !pixels || *pixels > most)
    resource_error(ErrorCode::ResourceExhausted, what, ": an image of ", height, " x ", width, " pixels in ", bytes,
                   " bytes, of which at most ", most, " pixels are read");
}

// libjpeg reports errors by a call that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  jpeg_progress_mgr progress;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

void on_jpeg_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

// Half an image is an error and not a grey area.
void on_jpeg_warning(j_common_ptr info, int level) {
  if (level < 0) on_jpeg_error(info);
}

// A progressive image may be refined in as many rounds over all of its pixels as its bytes can name.
void on_jpeg_progress(j_common_ptr info) {
  constexpr int kMostScans = 100;  // encoders make ten or so
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  std::snprintf(errors->text, sizeof errors->text, "more than %d scans of one image", kMostScans);
  std::longjmp(errors->back, 1);
}

// Between setjmp and a possible longjmp nothing may have a destructor, so each half is a function of its own.
bool read_jpeg_head(jpeg_decompress_struct& info, JpegErrors& errors, const unsigned char* bytes, size_t count, int64_t channels) {
  if (setjmp(errors.back)) return false;
  jpeg_mem_src(&info, bytes, count);
  jpeg_read_header(&info, TRUE);
  const bool is_grey = channels == 1 || (channels == 0 && info.num_components == 1);
  info.out_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_calc_output_dimensions(&info);
  return true;
}

bool read_jpeg_rows(jpeg_decompress_struct& info, JpegErrors& errors, unsigned char* to) {
  if (setjmp(errors.back)) return false;
  jpeg_start_decompress(&info);
  const size_t row_bytes = size_t{info.output_width} * static_cast<size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = to + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

Tensor read_file(const std::string& path) {
  return at_border("read_file", [&] {
    FileReader file(path, {.files = Files::Regular});
    std::string_view all;
    for (size_t wanted = 1 << 16; (all = file.peek(wanted)).size() == wanted;) wanted *= 2;
    return from_text(all);
  });
}

Tensor decode_jpeg(const Tensor& bytes, int64_t channels) {
  check_bytes(bytes, "decode_jpeg");
  if (channels != 0 && channels != 1 && channels != 3) user_error("decode_jpeg: channels is ", channels, ", it must be 0, 1 or 3");
  const Tensor dense = on_host(bytes).contiguous();
  JpegErrors errors{};
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = on_jpeg_error;
  errors.manager.emit_message = on_jpeg_warning;
  jpeg_create_decompress(&info);
  errors.progress.progress_monitor = on_jpeg_progress;
  info.progress = &errors.progress;
  const std::unique_ptr<jpeg_decompress_struct, void (*)(jpeg_decompress_struct*)> ends(
      &info, [](jpeg_decompress_struct* i) { jpeg_destroy_decompress(i); });
  const auto* data = static_cast<const unsigned char*>(dense.raw_data());
  if (!read_jpeg_head(info, errors, data, bytes_of(dense), channels))
    resource_error(ErrorCode::InvalidArgument, "decode_jpeg: ", errors.text);
  check_size(info.output_height, info.output_width, bytes_of(dense), "decode_jpeg");
  NewTensor image = new_tensor(DType::U8, {info.output_height, info.output_width, info.out_color_space == JCS_GRAYSCALE ? 1 : 3});
  if (!read_jpeg_rows(info, errors, reinterpret_cast<unsigned char*>(image.bytes)))
    resource_error(ErrorCode::InvalidArgument, "decode_jpeg: ", errors.text);
  return std::move(image.tensor);
}

Tensor decode_png(const Tensor& bytes, int64_t channels) {
  check_bytes(bytes, "decode_png");
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
    user_error("decode_png: channels is ", channels, ", it must be 0, 1, 3 or 4");
  const Tensor dense = on_host(bytes).contiguous();
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> ends(&image, png_image_free);
  if (!png_image_begin_read_from_memory(&image, dense.raw_data(), bytes_of(dense)))
    resource_error(ErrorCode::InvalidArgument, "decode_png: ", image.message);
  if (channels == 0) channels = !(image.format & PNG_FORMAT_FLAG_COLOR) ? 1 : image.format & PNG_FORMAT_FLAG_ALPHA ? 4 : 3;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  check_size(image.height, image.width, bytes_of(dense), "decode_png");
  NewTensor t = new_tensor(DType::U8, {image.height, image.width, channels});
  // What is transparent shows black where the result has no transparency.
  const png_color background{0, 0, 0};
  if (!png_image_finish_read(&image, &background, t.bytes, 0, nullptr) || PNG_IMAGE_FAILED(image))
    resource_error(ErrorCode::InvalidArgument, "decode_png: ", image.message);
  return std::move(t.tensor);
}

Tensor decode_image(const Tensor& bytes, int64_t channels) {
  check_bytes(bytes, "decode_image");
  const Tensor dense = on_host(bytes).contiguous();
  const std::string_view head(static_cast<const char*>(dense.raw_data()), std::min<size_t>(bytes_of(dense), 8));
  if (head.starts_with("\xff\xd8")) return decode_jpeg(dense, channels);
  if (head.starts_with("\x89PNG")) return decode_png(dense, channels);
  resource_error(ErrorCode::InvalidArgument, "decode_image: the bytes are neither a JPEG nor a PNG image");
}

namespace {

// Where one row or column of the result comes from: two of the source and the weight of the second.
struct Tap {
  int64_t low, high;
  float weight;
};

std::vector<Tap> taps(int64_t from, int64_t to) {
  std::vector<Tap> all;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i) {
    const float centre = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float low = std::floor(centre);
    all.push_back({std::clamp<int64_t>(static_cast<int64_t>(low), 0, from - 1),
                   std::clamp<int64_t>(static_cast<int64_t>(low) + 1, 0, from - 1), centre - low});
  }
  return all;
}

template <class T>
void resize(const T* from, int64_t from_width, int64_t channels, const std::vector<Tap>& ys, const std::vector<Tap>& xs, T* to) {
  for (const Tap& y : ys) {
    const T *top = from + y.low * from_width * channels, *bottom = from + y.high * from_width * channels;
    for (const Tap& x : xs)
      for (int64_t c = 0; c < channels; ++c) {
        const float tl = static_cast<float>(top[x.low * channels + c]), tr = static_cast<float>(top[x.high * channels + c]);
        const float bl = static_cast<float>(bottom[x.low * channels + c]), br = static_cast<float>(bottom[x.high * channels + c]);
        const float upper = tl + (tr - tl) * x.weight, lower = bl + (br - bl) * x.weight;
        const float value = upper + (lower - upper) * y.weight;
        *to++ = std::is_same_v<T, float> ? static_cast<T>(value) : static_cast<T>(value + 0.5f);
      }
  }
}

}  // namespace

Tensor resize_image(const Tensor& image, int64_t height, int64_t width) {
  if (image.rank() != 3 || (image.dtype() != DType::U8 && image.dtype() != DType::F32))
    user_error("resize_image: ", image.type_str(), " is no image, which is uint8[h,w,c] or float32[h,w,c]");
  positive(height, "resize_image: the height");
  positive(width, "resize_image: the width");
  const Tensor dense = on_host(image).contiguous();
  const Shape s = dense.shape();
  if (s[0] == 0 || s[1] == 0) user_error("resize_image: ", image.type_str(), " has no pixels");
  if (s[0] == height && s[1] == width) return dense;
  NewTensor t = new_tensor(image.dtype(), {height, width, s[2]});
  const auto [ys, xs] = at_border("resize_image", [&] { return std::pair(taps(s[0], height), taps(s[1], width)); });
  if (image.dtype() == DType::U8)
    resize(dense.data<uint8_t>(), s[1], s[2], ys, xs, reinterpret_cast<uint8_t*>(t.bytes));
  else
    resize(dense.data<float>(), s[1], s[2], ys, xs, reinterpret_cast<float*>(t.bytes));
  return std::move(t.tensor);
}

}  // namespace tandem::data
