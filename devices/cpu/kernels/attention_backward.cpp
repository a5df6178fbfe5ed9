// The gradient of attention of float32: weights are made again, a block of targets by a block of sources at a time. A chunk is a range of
// sources of one key head, whose gradients it sums over all targets in order; the queries' gradients of several ranges are added at the
// end.
#include <algorithm>
#include <cstring>
#include <vector>

#include "attention.hpp"
#include "cpu_program.hpp"
#include "scratch.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kAddFloats = 1 << 15;  // a chunk of the last additions
// Between the scores of two sources: a line more than a block of targets has, so that rows do not meet in one set of the cache.
constexpr int64_t kScoreStep = kBlockTargets + 16;

class AttentionBackward final : public CpuProgram {
 public:
  AttentionBackward(const codegen::Kernel& kernel, Toolbox& tools)
      : call_(kernel, 7),
        gradient_(head_strides(kernel.in[3])),
        row_strides_{kernel.in[4].strides, kernel.in[5].strides, kernel.in[6].strides},
        inputs_(kernel.in.size()),
        has_bias_gradient_(kernel.out.size() > 3),
        tiles_(tools.target.wide),
        width_(tiles_.width()),
        queries_(call_.query, kBlockTargets, call_.depth, call_.sources),
        gradients_(gradient_, kBlockTargets, call_.value_depth, call_.sources),
        keys_(call_.key, kBlockSources, call_.depth, call_.targets),
        values_(call_.value, kBlockSources, call_.value_depth, call_.targets),
        seen_(call_, width_) {
    ScratchPlaces places;
    query_at_ = places.add(queries_.scratch_floats());
    gradient_at_ = places.add(gradients_.scratch_floats());
    key_at_ = places.add(keys_.scratch_floats());
    value_at_ = places.add(values_.scratch_floats());
    transposed_query_at_ = places.add(call_.depth * kBlockTargets);
    transposed_gradient_at_ = places.add(call_.value_depth * kBlockTargets);
    weights_at_ = places.add(kBlockSources * kScoreStep);
    by_scores_at_ = places.add(kBlockSources * kScoreStep);
    by_logits_at_ = places.add(has_bias_gradient_ ? kBlockSources * width_ : 0);
    seen_at_ = places.add(seen_.scratch_floats());
    worker_ = WorkerScratch(places.bytes(), tools.threads);

    // Ranges follow from the extents alone, for they decide in which order the queries' gradients are added.
    const int64_t heads = call_.batch * call_.key_heads, blocks = parts(call_.sources, kBlockSources);
    const int64_t wanted = std::clamp<int64_t>(parts(kMostSumParts, std::max<int64_t>(heads, 1)), 1, std::max<int64_t>(blocks, 1));
    range_ = parts(std::max<int64_t>(blocks, 1), wanted) * kBlockSources;
    ranges_ = std::max<int64_t>(1, parts(call_.sources, range_));
    query_floats_ = call_.batch * call_.targets * call_.heads * call_.depth;
    const double work = static_cast<double>(call_.targets * call_.group()) * static_cast<double>(std::min(range_, call_.sources)) *
                        static_cast<double>(3 * call_.depth + 2 * call_.value_depth);
    heads_per_chunk_ = ranges_ > 1 ? 1 : std::max<int64_t>(1, static_cast<int64_t>(kChunkWork / std::max(work, 1.0)));
  }
  std::string_view kernel_name() const override { return "attention_gradient/tiles"; }
  // What the workers need, then the queries' gradients of all ranges but the first.
  size_t scratch_bytes() const override { return worker_.bytes() + static_cast<size_t>((ranges_ - 1) * query_floats_) * sizeof(float); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t heads = call_.batch * call_.key_heads;
    pool.run(parts(heads, heads_per_chunk_) * ranges_, [&](int64_t chunk) {
      const int64_t begin = chunk / ranges_ * heads_per_chunk_, end = std::min(heads, begin + heads_per_chunk_);
      for (int64_t i = begin; i < end; ++i) range(args, i / call_.key_heads, i % call_.key_heads, chunk % ranges_);
    });
    if (ranges_ == 1) return;
    pool.run(parts(query_floats_, kAddFloats), [&](int64_t chunk) {
      const int64_t begin = chunk * kAddFloats, count = std::min(kAddFloats, query_floats_ - begin);
      for (int64_t r = 1; r < ranges_; ++r) tiles_.vectors.add(by_query(args, r) + begin, count, by_query(args, 0) + begin);
    });
  }

 private:
  // A block of targets of one head, ready to meet sources.
  struct Targets {
    int64_t b, h, first, count;
    const float *query, *gradient;
    float peak[kBlockTargets], factor[kBlockTargets], mean[kBlockTargets];
    bool all_see_something, adds_to_keys;
    float* by_query;
  };

  float* by_query(const device::LaunchArgs& args, int64_t range) const {
    if (range == 0) return static_cast<float*>(args.pointers[inputs_]);
    return reinterpret_cast<float*>(static_cast<char*>(args.scratch) + worker_.bytes()) + (range - 1) * query_floats_;
  }
  // Of a dense result [batch, length, key heads, depth].
  float* key_rows(const device::LaunchArgs& args, size_t result, int64_t b, int64_t source, int64_t head, int64_t depth) const {
    return static_cast<float*>(args.pointers[inputs_ + result]) + ((b * call_.sources + source) * call_.key_heads + head) * depth;
  }
  static void clear_rows(float* rows, int64_t count, int64_t step, int64_t columns) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(rows + i * step, columns, 0.0f);
  }

  void range(const device::LaunchArgs& args, int64_t b, int64_t key_head, int64_t r) const {
    const int64_t begin = r * range_, end = std::min(call_.sources, begin + range_);
    // The first targets that meet a source write its gradients, the others add to them. Causal ones may pass it by.
    const bool clears = call_.is_causal || call_.targets == 0;
    if (clears) {
      clear_rows(key_rows(args, 1, b, begin, key_head, call_.depth), end - begin, call_.key_heads * call_.depth, call_.depth);
      clear_rows(key_rows(args, 2, b, begin, key_head, call_.value_depth), end - begin, call_.key_heads * call_.value_depth,
                 call_.value_depth);
    }
    Targets t;
    t.adds_to_keys = clears;
    for (int64_t h = key_head * call_.group(); h < (key_head + 1) * call_.group(); ++h)
      for (int64_t first = 0; first < call_.targets; first += kBlockTargets) {
        prepare(args, b, h, first, std::min(kBlockTargets, call_.targets - first), r, t);
        // If the first block of sources is passed by, so are the others.
        if (begin >= end || passes_by(t, begin)) clear_rows(t.by_query, t.count, call_.heads * call_.depth, call_.depth);
        for (int64_t source = begin; source < end; source += kBlockSources)
          accumulate_tile(args, t, source, std::min(kBlockSources, end - source), source > begin);
        t.adds_to_keys = true;
      }
  }

  void prepare(const device::LaunchArgs& args, int64_t b, int64_t h, int64_t first, int64_t count, int64_t r, Targets& t) const {
    auto* scratch = static_cast<float*>(worker_.mine(args.scratch));
    t.b = b;
    t.h = h;
    t.first = first;
    t.count = count;
    t.query = queries_.read(static_cast<const float*>(args.pointers[0]), b, first, count, h, scratch + query_at_);
    t.gradient = gradients_.read(static_cast<const float*>(args.pointers[3]), b, first, count, h, scratch + gradient_at_);
    for (int64_t j = 0; j < count; j += width_) {
      const int64_t columns = std::min(width_, count - j);
      tiles_.transpose(t.query + j * queries_.step(), queries_.step(), columns, call_.depth,
                       scratch + transposed_query_at_ + j * call_.depth);
      tiles_.transpose(t.gradient + j * gradients_.step(), gradients_.step(), columns, call_.value_depth,
                       scratch + transposed_gradient_at_ + j * call_.value_depth);
    }
    const auto of_row = [&](size_t i, int64_t j) {
      const Strides& s = row_strides_[i];
      return static_cast<const float*>(args.pointers[4 + i])[b * s[0] + h * s[1] + (first + j) * s[2]];
    };
    t.all_see_something = true;
    for (int64_t j = 0; j < round_up(count, width_); ++j) {
      const bool is_there = j < count;
      t.peak[j] = is_there ? of_row(0, j) : 0;
      t.factor[j] = is_there ? 1 / of_row(1, j) : 0;
      t.mean[j] = is_there ? of_row(2, j) : 0;
      t.all_see_something = t.all_see_something && t.peak[j] > kSeesSomething;
    }
    t.by_query = by_query(args, r) + ((b * call_.targets + first) * call_.heads + h) * call_.depth;
  }

  // Whether sources from here on have a weight of exactly 0.
  bool passes_by(const Targets& t, int64_t source) const { return call_.is_causal && source >= t.first + t.count && t.all_see_something; }

  void accumulate_tile(const device::LaunchArgs& args, const Targets& t, int64_t source, int64_t sources, bool adds_to_queries) const {
    if (passes_by(t, source)) {
      if (has_bias_gradient_) write_by_logits(args, t, 0, t.count, source, sources, nullptr);
      return;
    }
    auto* scratch = static_cast<float*>(worker_.mine(args.scratch));
    const int64_t key_head = t.h / call_.group();
    const float* k = keys_.read(static_cast<const float*>(args.pointers[1]), t.b, source, sources, key_head, scratch + key_at_);
    const float* v = values_.read(static_cast<const float*>(args.pointers[2]), t.b, source, sources, key_head, scratch + value_at_);
    const int64_t query_step = call_.heads * call_.depth;
    float* by_logits = has_bias_gradient_ ? scratch + by_logits_at_ : nullptr;
    for (int64_t j = 0; j < t.count; j += width_) {
      const int64_t columns = std::min(width_, t.count - j);
      float *weights = scratch + weights_at_ + j, *by_scores = scratch + by_scores_at_ + j;
      tiles_.cover(Stored::ByRows, sources, columns,
                   {.a = k,
                    .b = scratch + transposed_query_at_ + j * call_.depth,
                    .a_step = keys_.step(),
                    .b_step = width_,
                    .length = call_.depth,
                    .c = weights,
                    .c_step = kScoreStep});
      tiles_.cover(Stored::ByRows, sources, columns,
                   {.a = v,
                    .b = scratch + transposed_gradient_at_ + j * call_.value_depth,
                    .a_step = values_.step(),
                    .b_step = width_,
                    .length = call_.value_depth,
                    .c = by_scores,
                    .c_step = kScoreStep});
      const ScorePanel p = seen_.panel(args.pointers.data(), t.b, t.h, t.first + j, columns, source, sources, tiles_, weights, kScoreStep,
                                       scratch + seen_at_);
      tiles_.vectors.weights(p, t.peak + j, t.factor + j, t.mean + j, by_scores, by_logits);
      if (by_logits) write_by_logits(args, t, j, columns, source, sources, by_logits);
      tiles_.cover(Stored::ByColumns, columns, call_.depth,
                   {.a = by_scores,
                    .b = k,
                    .a_step = kScoreStep,
                    .b_step = keys_.step(),
                    .length = sources,
                    .c = t.by_query + j * query_step,
                    .c_step = query_step,
                    .accumulate = adds_to_queries});
    }
    sum_over_targets(t.adds_to_keys, scratch + by_scores_at_, t.query, queries_.step(), t.count, sources,
                     key_rows(args, 1, t.b, source, key_head, call_.depth), call_.depth);
    sum_over_targets(t.adds_to_keys, scratch + weights_at_, t.gradient, gradients_.step(), t.count, sources,
                     key_rows(args, 2, t.b, source, key_head, call_.value_depth), call_.value_depth);
  }

  // to[source, :] = (to[source, :] +) sum over targets of scores[source, target] * rows[target, :]
  void sum_over_targets(bool adds, const float* scores, const float* rows, int64_t step, int64_t targets, int64_t sources, float* to,
                        int64_t columns) const {
    tiles_.cover(Stored::ByRows, sources, columns,
                 {.a = scores,
                  .b = rows,
                  .a_step = kScoreStep,
                  .b_step = step,
                  .length = targets,
                  .c = to,
                  .c_step = call_.key_heads * columns,
                  .accumulate = adds});
  }

  // A panel into the result [batch, heads, targets, sources]; zeros where there is none.
  void write_by_logits(const device::LaunchArgs& args, const Targets& t, int64_t column, int64_t columns, int64_t source, int64_t sources,
                       const float* panel) const {
    auto* out = static_cast<float*>(args.pointers[inputs_ + 3]);
    for (int64_t j = 0; j < columns; ++j) {
      float* row = out + ((t.b * call_.heads + t.h) * call_.targets + t.first + column + j) * call_.sources + source;
      for (int64_t i = 0; i < sources; ++i) row[i] = panel ? panel[i * width_ + j] : 0;
    }
  }

  AttentionCall call_;
  HeadStrides gradient_;
  std::array<Strides, 3> row_strides_;  // of peak, total and mean
  size_t inputs_;
  bool has_bias_gradient_;
  AttentionTiles tiles_;
  int64_t width_;
  RowReader queries_, gradients_, keys_, values_;
  SeenReader seen_;
  int64_t query_at_ = 0, gradient_at_ = 0, key_at_ = 0, value_at_ = 0, transposed_query_at_ = 0, transposed_gradient_at_ = 0,
          weights_at_ = 0, by_scores_at_ = 0, by_logits_at_ = 0, seen_at_ = 0;  // floats
  int64_t range_ = 0, ranges_ = 1, query_floats_ = 0, heads_per_chunk_ = 1;
  WorkerScratch worker_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_attention_gradient(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "attention_gradient") return nullptr;
  if (kernel.in[0].dtype != DType::F32) {
    refusal = cat("it is ", name(kernel.in[0].dtype), ", not float32");
    return nullptr;
  }
  return std::make_shared<AttentionBackward>(kernel, tools);
}

}  // namespace tandem::cpu
