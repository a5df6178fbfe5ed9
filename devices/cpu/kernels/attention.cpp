#include "attention.hpp"

#include <cmath>
#include <cstring>

#include "cpu_program.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kCollidingStep = 256;  // floats: rows at a multiple of it share few sets of the L1 cache
constexpr int64_t kPackFromUses = 16;    // of rows that collide

// Few targets fill few lanes of a panel, and their scores are smaller than the keys: products with a few vectors are faster then. Where the
// number is a symbol the kernels take any.
constexpr int64_t kFewTargets = 7;
bool is_worth_keeping(const ir::OpCall& call) {
  const Dim& targets = call.in[0].dims[1];
  return call.in[0].dtype == DType::F32 && !(targets.is_const() && targets.value() <= kFewTargets);
}

Broadcast broadcast_strides(const codegen::Layout& o, size_t input) {
  Broadcast b{.input = static_cast<int>(input)};
  // Three axes are [batch, targets, sources]; others are aligned at the end.
  std::array<size_t, 4> to{0, 1, 2, 3};
  const size_t rank = o.shape.size();
  for (size_t i = 0; i < rank; ++i) to[i] = rank == 3 ? (i == 0 ? 0 : i + 1) : 4 - rank + i;
  for (size_t i = 0; i < rank; ++i)
    if (o.shape[i] != 1) b.strides[to[i]] = o.strides[i];
  return b;
}

// to[source, target] = convert(from[target * target_stride + source * source_stride])
template <class T, class F>
void turn_elements(const T* from, int64_t target_stride, int64_t source_stride, int64_t targets, int64_t sources, float* to, int64_t width,
                   const F& convert) {
  if (target_stride == 0) {
    for (int64_t i = 0; i < sources; ++i) std::fill_n(to + i * width, width, convert(from[i * source_stride]));
    return;
  }
  for (int64_t j = 0; j < targets; ++j)
    for (int64_t i = 0; i < sources; ++i) to[i * width + j] = convert(from[j * target_stride + i * source_stride]);
  for (int64_t i = 0; i < sources; ++i) std::fill(to + i * width + targets, to + (i + 1) * width, 0.0f);
}

}  // namespace

HeadStrides head_strides(const codegen::Layout& o) { return {o.strides[0], o.strides[1], o.strides[2], o.strides[3]}; }

AttentionCall::AttentionCall(const codegen::Kernel& kernel, size_t seen_at) {
  const Shape &q = kernel.in[0].shape, &k = kernel.in[1].shape, &v = kernel.in[2].shape;
  batch = q[0];
  targets = q[1];
  heads = q[2];
  depth = q[3];
  sources = k[1];
  key_heads = k[2];
  value_depth = v[3];
  query = head_strides(kernel.in[0]);
  key = head_strides(kernel.in[1]);
  value = head_strides(kernel.in[2]);
  const bool has_scale = kernel.attrs.has("scale");
  const double usual = depth == 0 ? 1 : 1 / std::sqrt(static_cast<double>(depth));
  scale = static_cast<float>(has_scale ? kernel.attrs.get<double>("scale") : usual);
  is_causal = kernel.attrs.get<bool>("is_causal");
  if (kernel.in.size() > seen_at) bias = broadcast_strides(kernel.in[seen_at], seen_at);
  if (kernel.in.size() > seen_at + 1) mask = broadcast_strides(kernel.in[seen_at + 1], seen_at + 1);
}

RowReader::RowReader(const HeadStrides& strides, int64_t most_rows, int64_t depth, int64_t uses)
    : strides_(strides), most_rows_(most_rows), depth_(depth), packed_step_(round_up(depth, 16) + 16) {
  const bool collides = strides.row % kCollidingStep == 0 && strides.row != 0;
  packs_ = (strides.depth != 1 && depth > 1) || (collides && uses >= kPackFromUses);
}

const float* RowReader::read(const float* from, int64_t b, int64_t first, int64_t rows, int64_t h, float* scratch) const {
  const float* start = from + strides_.at(b, first, h);
  if (!packs_) return start;
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = start + i * strides_.row;
    float* to = scratch + i * packed_step_;
    if (strides_.depth == 1)
      std::memcpy(to, row, static_cast<size_t>(depth_) * sizeof(float));
    else
      for (int64_t k = 0; k < depth_; ++k) to[k] = row[k * strides_.depth];
  }
  return scratch;
}

void AttentionTiles::cover(Stored stored, int64_t rows, int64_t columns, const Tile& t) const {
  if (stored == Stored::ByRows)
    by_rows_.cover(t, rows, columns, t.a_step, 1, kPanelVectors);
  else
    by_columns_.cover(t, rows, columns, 1, 1, kPanelVectors);
}

void AttentionTiles::transpose(const float* rows, int64_t step, int64_t count, int64_t depth, float* panel) const {
  set().transpose(rows, step, count, depth, panel, width());
}

int64_t SeenReader::scratch_floats() const {
  const int64_t each = kBlockSources * width_;
  return (call_.bias.is_there() && !call_.bias.is_number() ? each : 0) + (call_.mask.is_there() ? each : 0);
}

ScorePanel SeenReader::panel(void* const* pointers, int64_t b, int64_t h, int64_t target, int64_t targets, int64_t source, int64_t sources,
                             const AttentionTiles& tiles, float* scores, int64_t step, float* scratch) const {
  ScorePanel p{.scores = scores,
               .step = step,
               .beside_step = width_,
               .sources = sources,
               .vectors = static_cast<int>(parts(targets, tiles.set().lanes)),
               .scale = call_.scale,
               .shift = 0,
               .bias = nullptr,
               .seen = nullptr,
               .ahead = kSeesAll};
  // Far from the diagonal all or nothing is seen, by whatever number says so.
  if (call_.is_causal && target < source + sources) p.ahead = std::max(target - source, -kSeesAll);
  const auto start = [&](const Broadcast& x) {
    return b * x.strides[0] + h * x.strides[1] + target * x.strides[2] + source * x.strides[3];
  };
  if (const Broadcast& x = call_.bias; x.is_there()) {
    const float* from = static_cast<const float*>(pointers[x.input]) + start(x);
    if (x.is_number()) {
      p.shift = *from;
    } else {
      if (x.strides[3] == 1 && x.strides[2] != 0)
        tiles.transpose(from, x.strides[2], targets, sources, scratch);
      else
        turn_elements(from, x.strides[2], x.strides[3], targets, sources, scratch, width_, [](float v) { return v; });
      p.bias = scratch;
      scratch += kBlockSources * width_;
    }
  }
  if (const Broadcast& x = call_.mask; x.is_there()) {
    const auto* from = static_cast<const uint8_t*>(pointers[x.input]) + start(x);
    turn_elements(from, x.strides[2], x.strides[3], targets, sources, scratch, width_, [](uint8_t v) { return v ? 1.0f : 0.0f; });
    p.seen = scratch;
  }
  return p;
}

bool keeps_attention_parts(const ir::OpCall& call) { return call.op.name == "attention_parts" && is_worth_keeping(call); }
bool keeps_attention_gradient(const ir::OpCall& call) { return call.op.name == "attention_gradient" && is_worth_keeping(call); }

}  // namespace tandem::cpu
