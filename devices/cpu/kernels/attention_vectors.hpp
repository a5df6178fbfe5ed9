// What attention does element by element, in the code of one instruction set.
#pragma once
#include <cstdint>

namespace tandem::cpu {

// What a hidden logit is: vanishes in a softmax with any other, and is a number among its like. The same as in the row's decomposition.
inline constexpr float kHiddenLogit = -2e38f;
// A row whose largest logit is above this gives hidden ones a weight of exactly 0.
inline constexpr float kSeesSomething = -1e38f;

// A panel of products of keys and queries: row i is a source, the columns are `vectors` vectors of targets.
struct ScorePanel {
  float* scores;  // rows at steps of `step`
  int64_t step;
  int64_t beside_step;  // likewise of bias, seen and by_logits
  int64_t sources;
  int vectors;
  float scale, shift;  // logit = score * scale + shift, then bias and what is hidden
  const float* bias;   // or none
  const float* seen;   // 0 where the source is hidden; or none
  int64_t ahead;       // target j sees source i when j + ahead >= i, in whole numbers below 2^23
};
inline constexpr int64_t kSeesAll = 1 << 22;  // for `ahead`

struct AttentionSet {
  // One step of an online softmax: scores become exp(logit - peak), with the peak of all panels so far; `total` has their sum so far, and
  // `factor` is what the earlier ones have to be multiplied by. One number a column each.
  void (*softmax)(const ScorePanel& p, float* peak, float* total, float* factor);
  // Scores become weights, exp(logit - peak) * factor; by_weights become by_scores = scale * weight * (by_weight - mean), 0 where hidden.
  // by_logits, if given, gets the same without the scale. by_weights lie as the scores do.
  void (*weights)(const ScorePanel& p, const float* peak, const float* factor, const float* mean, float* by_weights, float* by_logits);
  // to[i, j] = from[i, j] * factor[i]
  void (*scale_rows)(const float* from, int64_t from_step, int64_t rows, int64_t columns, const float* factor, float* to, int64_t to_step);
  void (*add)(const float* from, int64_t count, float* to);  // to += from
  void (*exp)(const float* from, int64_t count, float* to);  // of its own, for tests of what the others use
};
extern const AttentionSet kAttentionAvx2, kAttentionAvx512;
inline const AttentionSet& attention_set(bool wide) { return wide ? kAttentionAvx512 : kAttentionAvx2; }

}  // namespace tandem::cpu
