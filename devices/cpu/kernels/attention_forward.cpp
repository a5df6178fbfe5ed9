// Attention of float32: a panel of targets at a time meets the sources block by block, with an online softmax (Milakov and Gimelshein,
// 2018).
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention.hpp"
#include "cpu_program.hpp"
#include "scratch.hpp"

namespace tandem::cpu {
namespace {

constexpr double kChunkWork = 400e3;  // multiplications a chunk should have at the least: about 10 us

class AttentionForward final : public CpuProgram {
 public:
  AttentionForward(const codegen::Kernel& kernel, Toolbox& tools)
      : call_(kernel, 3),
        inputs_(kernel.in.size()),
        tiles_(tools.target.wide),
        width_(tiles_.width()),
        queries_(call_.query, width_, call_.depth),
        keys_(call_.key, kBlockSources, call_.depth),
        values_(call_.value, kBlockSources, call_.value_depth),
        seen_(call_, width_) {
    ScratchPlaces places;
    query_at_ = places.add(queries_.scratch_floats());
    turned_at_ = places.add(call_.depth * width_);
    scores_at_ = places.add(kBlockSources * width_);
    sum_at_ = places.add(width_ * call_.value_depth);
    key_at_ = places.add(keys_.scratch_floats());
    value_at_ = places.add(values_.scratch_floats());
    seen_at_ = places.add(seen_.scratch_floats());
    scratch_ = WorkerScratch(places.bytes(), tools.threads);
    panels_ = parts(call_.targets, width_);
    const double work =
        static_cast<double>(width_) * static_cast<double>(call_.sources) * static_cast<double>(call_.depth + call_.value_depth);
    panels_per_chunk_ = std::max<int64_t>(1, static_cast<int64_t>(kChunkWork / std::max(work, 1.0)));
  }
  std::string_view kernel_name() const override { return "attention/tiles"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t all = call_.batch * call_.heads * panels_;
    pool.run(parts(all, panels_per_chunk_), [&](int64_t chunk) {
      const int64_t end = std::min(all, (chunk + 1) * panels_per_chunk_);
      for (int64_t i = chunk * panels_per_chunk_; i < end; ++i)
        panel(args, i / panels_ / call_.heads, i / panels_ % call_.heads, i % panels_ * width_);
    });
  }

 private:
  static constexpr int64_t kMostWidth = kPanelVectors * 16;

  void panel(const device::LaunchArgs& args, int64_t b, int64_t h, int64_t target) const {
    auto* scratch = static_cast<float*>(scratch_.mine(args.scratch));
    const auto* key = static_cast<const float*>(args.pointers[1]);
    const auto* value = static_cast<const float*>(args.pointers[2]);
    const int64_t targets = std::min(width_, call_.targets - target), key_head = h / call_.group();
    float *turned = scratch + turned_at_, *scores = scratch + scores_at_, *sum = scratch + sum_at_;
    const float* rows = queries_.read(static_cast<const float*>(args.pointers[0]), b, target, targets, h, scratch + query_at_);
    tiles_.turn(rows, queries_.step(), targets, call_.depth, turned);

    alignas(64) float peak[kMostWidth], total[kMostWidth], factor[kMostWidth];
    std::fill_n(peak, kMostWidth, -std::numeric_limits<float>::infinity());
    std::fill_n(total, kMostWidth, 0.0f);
    std::fill_n(sum, width_ * call_.value_depth, 0.0f);
    for (int64_t source = 0; source < call_.sources; source += kBlockSources) {
      if (call_.is_causal && source >= target + targets && std::all_of(peak, peak + targets, [](float p) { return p > kSeesSomething; }))
        break;
      const int64_t sources = std::min(kBlockSources, call_.sources - source);
      const float* k = keys_.read(key, b, source, sources, key_head, scratch + key_at_);
      tiles_.cover(Rows::Apart, sources, targets,
                   {.a = k, .b = turned, .a_step = keys_.step(), .b_step = width_, .length = call_.depth, .c = scores, .c_step = width_});
      const ScorePanel p = seen_.panel(args.pointers, b, h, target, targets, source, sources, tiles_, scores, scratch + seen_at_);
      tiles_.vectors.softmax(p, peak, total, factor);
      if (source > 0) tiles_.vectors.scale_rows(sum, call_.value_depth, targets, call_.value_depth, factor, sum, call_.value_depth);
      const float* v = values_.read(value, b, source, sources, key_head, scratch + value_at_);
      tiles_.cover(Rows::Together, targets, call_.value_depth,
                   {.a = scores,
                    .b = v,
                    .a_step = width_,
                    .b_step = values_.step(),
                    .length = sources,
                    .c = sum,
                    .c_step = call_.value_depth,
                    .accumulate = source > 0});
    }
    finish(args, b, h, target, targets, sum, peak, total);
  }

  void finish(const device::LaunchArgs& args, int64_t b, int64_t h, int64_t target, int64_t targets, const float* sum, const float* peak,
              const float* total) const {
    auto* out = static_cast<float*>(args.pointers[inputs_]);
    auto* peaks = static_cast<float*>(args.pointers[inputs_ + 1]);
    auto* totals = static_cast<float*>(args.pointers[inputs_ + 2]);
    const int64_t row = (b * call_.heads + h) * call_.targets + target;
    alignas(64) float factor[kMostWidth];
    for (int64_t j = 0; j < targets; ++j) {
      // Nothing but -infinity has no softmax; no source at all gives 0.
      const bool is_nothing = call_.sources > 0 && peak[j] == -std::numeric_limits<float>::infinity();
      const float t = is_nothing ? std::numeric_limits<float>::quiet_NaN() : total[j];
      factor[j] = call_.sources > 0 ? 1 / t : 0;
      peaks[row + j] = peak[j];
      totals[row + j] = t;
    }
    const int64_t step = call_.heads * call_.value_depth;
    tiles_.vectors.scale_rows(sum, call_.value_depth, targets, call_.value_depth, factor,
                              out + (b * call_.targets + target) * step + h * call_.value_depth, step);
  }

  AttentionCall call_;
  size_t inputs_;
  AttentionTiles tiles_;
  int64_t width_;
  RowReader queries_, keys_, values_;
  SeenReader seen_;
  int64_t query_at_ = 0, turned_at_ = 0, scores_at_ = 0, sum_at_ = 0, key_at_ = 0, value_at_ = 0, seen_at_ = 0;  // floats
  int64_t panels_ = 0, panels_per_chunk_ = 1;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_attention_parts(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "attention_parts") return nullptr;
  if (kernel.in[0].dtype != DType::F32) {
    refusal = cat("it is ", name(kernel.in[0].dtype), ", not float32");
    return nullptr;
  }
  return std::make_shared<AttentionForward>(kernel, tools);
}

}  // namespace tandem::cpu
