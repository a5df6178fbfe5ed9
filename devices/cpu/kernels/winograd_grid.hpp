// How windows of 4x4 pixels, for 2x2 outputs each, cover the images of a convolution.
//
// Usually an image has a grid of its own, and where its outputs are odd, the last windows give outputs that nobody needs. But where an
// image has as many zeros around it as the kernel can reach (the gradient by the input of an unpadded convolution), two neighbours may
// share them: four such images lie on one canvas, two by two, whose outputs are even.
#pragma once
#include <string>
#include <vector>

#include "conv_geometry.hpp"
#include "winograd.hpp"

namespace tandem::cpu {

inline constexpr int64_t kFewestWindows = 28;  // that are worth a product each: two tiles' rows
inline constexpr int64_t kPointShift = 16;     // floats: points are a line of the cache further apart, so not all fall into one set

class WinogradGrid {
 public:
  explicit WinogradGrid(const Conv& conv);

  int64_t rows() const { return axes_[0].windows; }  // of windows on a canvas
  int64_t columns() const { return axes_[1].windows; }
  int64_t images() const { return axes_[0].images * axes_[1].images; }  // on a canvas
  int64_t canvases() const { return (batch_ + images() - 1) / images(); }
  int64_t windows() const { return canvases() * rows() * columns(); }

  struct Window {
    int64_t canvas, row, column;
  };
  Window window(int64_t index) const { return {index / columns() / rows(), index / columns() % rows(), index % columns()}; }
  void advance(Window& w) const {
    if (++w.column < columns()) return;
    w.column = 0;
    if (++w.row < rows()) return;
    w.row = 0;
    ++w.canvas;
  }
  // The first output pixel, counted through all images, of a row of windows, counted through all canvases. Pixels from one row's to another
  // row's are what the windows between give, if both begin a canvas or canvases have one image.
  int64_t first_pixel(int64_t row) const;

 private:
  template <int64_t> friend class WindowPixels;
  struct Axis {
    int64_t in, out, low, images, windows;  // on a canvas, an image begins where the outputs of the one before end
  };
  int64_t batch_;
  std::array<Axis, 2> axes_{};  // down, across
};

// Where the pixels of windows lie in a tensor: kWindow of its inputs or kOutputs of its outputs along each axis.
template <int64_t Size> class WindowPixels {
 public:
  WindowPixels(const WinogradGrid& grid, const ImageSteps& steps);

  // at[i]: the address of each pixel, or `outside` where an image has none. `tensor` is the first image's start.
  template <class T> void find(T* tensor, const WinogradGrid::Window& w, T* outside, T** at) const {
    T* canvas = tensor + w.canvas * canvas_step_;
    const int64_t images = batch_ - w.canvas * canvas_images_;
    const Line *down = down_.data() + kOutputs * w.row, *across = across_.data() + kOutputs * w.column;
    if (down->whole && across->whole && down->image + across->image < images) {  // most are
      T* first = canvas + down->offset + across->offset;
      for (int64_t i = 0; i < Size; ++i)
        for (int64_t j = 0; j < Size; ++j) at[i * Size + j] = first + i * down_step_ + j * across_step_;
      return;
    }
    for (int64_t i = 0; i < Size; ++i)
      for (int64_t j = 0; j < Size; ++j)
        at[i * Size + j] = down[i].image + across[j].image < images ? canvas + down[i].offset + across[j].offset : outside;
  }

 private:
  struct Line {
    int64_t image, offset;  // which image of the canvas, and where from its start; kNone: in none
    bool whole = false;     // a window that begins here lies in this image
  };
  static constexpr int64_t kNone = INT64_MAX / 4;
  static std::vector<Line> lines(const WinogradGrid::Axis& axis, int64_t step, int64_t image_step, int64_t images);

  int64_t batch_, canvas_images_, canvas_step_, down_step_, across_step_;
  std::vector<Line> down_, across_;
};
using WindowInputs = WindowPixels<kWindow>;
using WindowOutputs = WindowPixels<kOutputs>;

// Whether this way of computing is for a convolution, or its gradient by the kernel; else the reason why not.
bool winograd_takes(const Conv& conv, DType operands, DType result, std::string& refusal);

}  // namespace tandem::cpu
