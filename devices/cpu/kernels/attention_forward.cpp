// Attention of float32: a block of targets at a time meets the sources block by block, with an online softmax (Milakov and Gimelshein,
// 2018).
#include <algorithm>
#include <limits>

#include "attention.hpp"
#include "base/text.hpp"
#include "cpu_program.hpp"
#include "scratch.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

class AttentionForward final : public CpuProgram {
 public:
  AttentionForward(const codegen::Kernel& kernel, Toolbox& tools)
      : call_(kernel, 3),
        inputs_(kernel.in.size()),
        tiles_(tools.target.wide),
        width_(tiles_.width()),
        block_(std::clamp<int64_t>(call_.batch * call_.heads * parts(call_.targets, width_) / kWantedChunks, 1, kBlockTargets / width_) *
               width_),
        queries_(call_.query, width_, call_.depth, call_.sources),
        keys_(call_.key, kBlockSources, call_.depth, std::min(block_, call_.targets)),
        values_(call_.value, kBlockSources, call_.value_depth, std::min(block_, call_.targets)),
        seen_(call_, width_) {
    ScratchPlaces places;
    query_at_ = places.add(queries_.scratch_floats());
    key_at_ = places.add(keys_.scratch_floats());
    value_at_ = places.add(values_.scratch_floats());
    transposed_at_ = places.add(call_.depth * block_);
    scores_at_ = places.add(kBlockSources * width_);
    sum_at_ = places.add(call_.value_depth * block_);
    seen_at_ = places.add(seen_.scratch_floats());
    scratch_ = WorkerScratch(places.bytes(), tools.threads);
    blocks_ = parts(call_.targets, block_);
    const double work = static_cast<double>(std::min(block_, call_.targets)) * static_cast<double>(call_.sources) *
                        static_cast<double>(call_.depth + call_.value_depth);
    blocks_per_chunk_ = std::max<int64_t>(1, static_cast<int64_t>(kChunkWork / std::max(work, 1.0)));
  }
  std::string_view kernel_name() const override { return "attention/tiles"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  // How targets are cut into blocks and chunks does not matter to any of them.
  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t all = call_.batch * call_.heads * blocks_;
    pool.run(parts(all, blocks_per_chunk_), [&](int64_t chunk) {
      const int64_t end = std::min(all, (chunk + 1) * blocks_per_chunk_);
      for (int64_t i = chunk * blocks_per_chunk_; i < end; ++i)
        block(args, {i / blocks_ / call_.heads, i / blocks_ % call_.heads, i % blocks_ * block_});
    });
  }

 private:
  struct Place {
    int64_t b, h, target;
  };
  struct Sums {
    float peak[kBlockTargets], total[kBlockTargets];
  };

  void block(const device::LaunchArgs& args, const Place& at) const {
    auto* scratch = static_cast<float*>(scratch_.mine(args.scratch));
    const auto* query = static_cast<const float*>(args.pointers[0]);
    const auto* key = static_cast<const float*>(args.pointers[1]);
    const auto* value = static_cast<const float*>(args.pointers[2]);
    const int64_t targets = std::min(block_, call_.targets - at.target), key_head = at.h / call_.group();
    for (int64_t j = 0; j < targets; j += width_) {
      const int64_t columns = std::min(width_, targets - j);
      const float* rows = queries_.read(query, at.b, at.target + j, columns, at.h, scratch + query_at_);
      tiles_.transpose(rows, queries_.step(), columns, call_.depth, scratch + transposed_at_ + j * call_.depth);
    }
    Sums sums;
    std::fill_n(sums.peak, kBlockTargets, -std::numeric_limits<float>::infinity());
    std::fill_n(sums.total, kBlockTargets, 0.0f);
    if (call_.sources == 0) std::fill_n(scratch + sum_at_, targets * call_.value_depth, 0.0f);
    for (int64_t source = 0; source < call_.sources; source += kBlockSources) {
      if (call_.is_causal && source >= at.target + targets &&
          std::all_of(sums.peak, sums.peak + targets, [](float p) { return p > kSeesSomething; }))
        break;
      const int64_t sources = std::min(kBlockSources, call_.sources - source);
      const float* k = keys_.read(key, at.b, source, sources, key_head, scratch + key_at_);
      const float* v = values_.read(value, at.b, source, sources, key_head, scratch + value_at_);
      for (int64_t j = 0; j < targets; j += width_)
        accumulate_tile(args, {at.b, at.h, at.target + j}, j, std::min(width_, targets - j), source, sources, k, v, sums);
    }
    finish(args, at, targets, scratch + sum_at_, sums);
  }

  // A panel of targets, from column j of the block on, and a block of sources.
  void accumulate_tile(const device::LaunchArgs& args, const Place& at, int64_t j, int64_t targets, int64_t source, int64_t sources,
                       const float* k, const float* v, Sums& sums) const {
    auto* scratch = static_cast<float*>(scratch_.mine(args.scratch));
    float *scores = scratch + scores_at_, *sum = scratch + sum_at_ + j * call_.value_depth;
    float factor[kPanelVectors * 16];
    tiles_.cover(Stored::ByRows, sources, targets,
                 {.a = k,
                  .b = scratch + transposed_at_ + j * call_.depth,
                  .a_step = keys_.step(),
                  .b_step = width_,
                  .length = call_.depth,
                  .c = scores,
                  .c_step = width_});
    const ScorePanel p =
        seen_.panel(args.pointers.data(), at.b, at.h, at.target, targets, source, sources, tiles_, scores, width_, scratch + seen_at_);
    tiles_.vectors.softmax(p, sums.peak + j, sums.total + j, factor);
    if (source > 0) tiles_.vectors.scale_rows(sum, call_.value_depth, targets, call_.value_depth, factor, sum, call_.value_depth);
    tiles_.cover(Stored::ByColumns, targets, call_.value_depth,
                 {.a = scores,
                  .b = v,
                  .a_step = width_,
                  .b_step = values_.step(),
                  .length = sources,
                  .c = sum,
                  .c_step = call_.value_depth,
                  .accumulate = source > 0});
  }

  void finish(const device::LaunchArgs& args, const Place& at, int64_t targets, const float* sum, const Sums& sums) const {
    auto* out = static_cast<float*>(args.pointers[inputs_]);
    auto* peaks = static_cast<float*>(args.pointers[inputs_ + 1]);
    auto* totals = static_cast<float*>(args.pointers[inputs_ + 2]);
    const int64_t row = (at.b * call_.heads + at.h) * call_.targets + at.target;
    float factor[kBlockTargets];
    for (int64_t j = 0; j < targets; ++j) {
      // Nothing but -infinity has no softmax; no source at all gives 0.
      const bool is_nothing = call_.sources > 0 && sums.peak[j] == -std::numeric_limits<float>::infinity();
      const float total = is_nothing ? std::numeric_limits<float>::quiet_NaN() : sums.total[j];
      factor[j] = call_.sources > 0 ? 1 / total : 0;
      peaks[row + j] = sums.peak[j];
      totals[row + j] = total;
    }
    const int64_t step = call_.heads * call_.value_depth;
    tiles_.vectors.scale_rows(sum, call_.value_depth, targets, call_.value_depth, factor,
                              out + (at.b * call_.targets + at.target) * step + at.h * call_.value_depth, step);
  }

  AttentionCall call_;
  size_t inputs_;
  AttentionTiles tiles_;
  int64_t width_, block_;  // targets of a panel and of a block
  RowReader queries_, keys_, values_;
  SeenReader seen_;
  int64_t query_at_ = 0, key_at_ = 0, value_at_ = 0, transposed_at_ = 0, scores_at_ = 0, sum_at_ = 0, seen_at_ = 0;  // floats
  int64_t blocks_ = 0, blocks_per_chunk_ = 1;
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
