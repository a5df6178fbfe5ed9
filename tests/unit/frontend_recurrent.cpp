// LSTM and GRU give what Keras's layers give, from the same weights and data, and so do their gradients: its numbers (3.15, on JAX) are
// stored here. Keras's sequences are [batch, time, features], ours begin with time.
#include <cmath>

#include "frontend_support.hpp"

namespace tandem {
namespace {

constexpr int64_t kTime = 4, kBatch = 2, kFeatures = 2, kUnits = 3;

Tensor wave(const Shape& shape, float phase, float scale = 1) {
  F values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i) + phase)));
  return Tensor::from(values, shape);
}
Tensor time_first(const Tensor& x) { return x.transpose({1, 0, 2}); }

struct Layer {
  Tensor kernel, recurrent, bias, h = wave({kBatch, kUnits}, 0.5f), c = wave({kBatch, kUnits}, 0.6f);
  explicit Layer(int64_t gates, int64_t biases)
      : kernel(wave({kFeatures, gates * kUnits}, 0.2f, 0.8f)),
        recurrent(wave({kUnits, gates * kUnits}, 0.3f, 0.9f)),
        bias(wave({biases, gates * kUnits}, 0.4f, 0.5f)) {}
  Tensor inputs() const { return matmul(time_first(wave({kBatch, kTime, kFeatures}, 0.1f)), kernel) + bias[0]; }
  Tensor recurrent_bias() const { return bias.shape()[0] > 1 ? bias[1] : Tensor::zeros({bias.shape()[1]}); }
};
std::vector<Tensor> run_lstm(const Layer& l) { return lstm(l.inputs(), l.recurrent, l.h, l.c); }
std::vector<Tensor> run_gru(const Layer& l, bool reset_after = true) {
  return gru(l.inputs(), l.recurrent, l.h, l.recurrent_bias(), {}, reset_after);
}
Tensor mask() { return Tensor::of({true, true, false, true, true, true, true, false}).reshape({kBatch, kTime}).transpose(); }

void expect_results(const std::vector<Tensor>& got, const std::vector<F>& keras) {
  ASSERT_EQ(got.size(), keras.size());
  expect_near(time_first(got[0]), keras[0], 2e-6f);
  for (size_t i = 1; i < got.size(); ++i) expect_near(got[i], keras[i], 2e-6f);
}

// A number that every result has a part in.
Tensor loss(const std::vector<Tensor>& results) {
  Tensor total = sum(time_first(results[0]) * wave({kBatch, kTime, kUnits}, 0.9f));
  for (size_t i = 1; i < results.size(); ++i) total = total + sum(results[i] * wave({kBatch, kUnits}, 1.1f));
  return total;
}

TEST(Recurrent, LstmIsKerass) {
  const Layer l(4, 1);
  expect_results(run_lstm(l), {{0.1189042f,  0.2655753f,  0.2461127f,  -0.2726415f, -0.120309f,  0.1932776f,  -0.1794853f,  -0.2341472f,
                                -0.1606825f, -0.100344f,  -0.19029f,   -0.233373f,  -0.2151024f, -0.2908677f, -0.01314686f, -0.3538247f,
                                -0.2678404f, 0.08172528f, -0.3359115f, -0.3733053f, -0.1573756f, -0.1896193f, -0.3021624f,  -0.3134553f},
                               {-0.100344f, -0.19029f, -0.233373f, -0.1896193f, -0.3021624f, -0.3134553f},
                               {-0.2823065f, -0.4596047f, -0.4524517f, -0.5891034f, -0.729307f, -0.5559225f}});
  expect_results(lstm(l.inputs(), l.recurrent, l.h, l.c, mask()),
                 {{0.1189042f,  0.2655753f,   0.2461127f,   -0.2726415f, -0.120309f,  0.1932776f,  -0.2726415f,  -0.120309f,
                   0.1932776f,  -0.04786318f, -0.06931268f, -0.0462608f, -0.2151024f, -0.2908677f, -0.01314686f, -0.3538247f,
                   -0.2678404f, 0.08172528f,  -0.3359115f,  -0.3733053f, -0.1573756f, -0.3359115f, -0.3733053f,  -0.1573756f},
                  {-0.04786318f, -0.06931268f, -0.0462608f, -0.3359115f, -0.3733053f, -0.1573756f},
                  {-0.1587657f, -0.1947847f, -0.09516019f, -0.7379166f, -0.6478388f, -0.2293721f}});
}

TEST(Recurrent, GruIsKerass) {
  const Layer l(3, 2);
  expect_results(run_gru(l), {{0.1384981f,  0.8588522f,  0.9128979f,  -0.1165509f, 0.8046706f,  0.8870876f,  -0.3730355f, 0.6111111f,
                               0.7814429f,  -0.1399017f, 0.537457f,   0.60962f,    0.1766997f,  -0.1516352f, -0.4235312f, -0.2349414f,
                               -0.2760109f, -0.4503516f, -0.4683799f, -0.4262107f, -0.4432486f, 0.1370463f,  0.4036868f,  0.3076676f},
                              {-0.1399017f, 0.537457f, 0.60962f, 0.1370463f, 0.4036868f, 0.3076676f}});
  expect_results(gru(l.inputs(), l.recurrent, l.h, l.recurrent_bias(), mask()),
                 {{0.1384981f,  0.8588522f,  0.9128979f,  -0.1165509f, 0.8046706f,  0.8870876f,  -0.1165509f, 0.8046706f,
                   0.8870876f,  -0.1471099f, 0.6446429f,  0.7248676f,  0.1766997f,  -0.1516352f, -0.4235312f, -0.2349414f,
                   -0.2760109f, -0.4503516f, -0.4683799f, -0.4262107f, -0.4432486f, -0.4683799f, -0.4262107f, -0.4432486f},
                  {-0.1471099f, 0.6446429f, 0.7248676f, -0.4683799f, -0.4262107f, -0.4432486f}});
}

TEST(Recurrent, GruThatResetsBeforeTheProductIsKerass) {
  const Layer l(3, 1);
  expect_results(run_gru(l, false),
                 {{0.09117305f, 0.8212535f,  0.8861226f,  -0.1964368f, 0.7332003f,  0.8391847f,   -0.351166f,  0.4756726f,
                   0.6564348f,  0.06118596f, 0.5299839f,  0.5084399f,  0.2787642f,  -0.02697853f, -0.2886351f, -0.1989879f,
                   -0.1941826f, -0.3414706f, -0.4499096f, -0.3857384f, -0.3546533f, 0.2725493f,   0.5286318f,  0.353486f},
                  {0.06118596f, 0.5299839f, 0.5084399f, 0.2725493f, 0.5286318f, 0.353486f}});
  expect_results(gru(l.inputs(), l.recurrent, l.h, l.recurrent_bias(), mask(), false),
                 {{0.09117304f, 0.8212535f,  0.8861226f,  -0.1964368f, 0.7332003f,  0.8391847f,   -0.1964368f, 0.7332003f,
                   0.8391847f,  0.05817633f, 0.623592f,   0.6199443f,  0.2787642f,  -0.02697853f, -0.2886351f, -0.1989879f,
                   -0.1941826f, -0.3414706f, -0.4499096f, -0.3857384f, -0.3546533f, -0.4499096f,  -0.3857384f, -0.3546533f},
                  {0.05817633f, 0.623592f, 0.6199443f, -0.4499096f, -0.3857384f, -0.3546533f}});
}

template <class Run> std::vector<Tensor> gradients_of(const Layer& l, const std::vector<Tensor>& sources, const Run& run) {
  Tape tape;
  for (const Tensor& s : sources) tape.watch(s);
  return tape.gradients(loss(run(l)), sources);
}

TEST(Recurrent, GradientsAreKerass) {
  const std::vector<F> lstm_keras{
      {0.02801328f,  0.009602983f, 0.04241318f, 0.01684003f,  0.380567f,    -0.05705924f, -0.5479861f,  0.1045451f,
       -0.01959416f, 0.07868953f,  0.1362119f,  -0.05809783f, 0.01349615f,  0.1910449f,   -0.03112573f, 0.09814328f,
       0.5061547f,   -0.0324953f,  -0.5815916f, -0.343842f,   -0.02700757f, 0.05730378f,  0.2886835f,   -0.02845336f},
      {0.0008155815f, 0.04724879f, -0.06446242f, 0.07395788f, 0.1161035f,   0.04394603f,  -0.1293925f, 0.151143f,    -0.1182103f,
       0.02179893f,   0.08666764f, 0.01169956f,  0.06014767f, -0.02184262f, -0.04475097f, 0.02585794f, 0.2075598f,   -0.002087837f,
       -0.307378f,    1.03606f,    0.2290542f,   0.08437019f, 0.09903789f,  0.03889867f,  0.07334511f, -0.05610386f, 0.01168849f,
       -0.04775282f,  0.2325113f,  -0.03429222f, -0.2977276f, 1.246993f,    0.4712234f,   0.1082519f,  0.09070319f,  0.06270453f},
      {-0.1067335f, 0.0109251f, 0.03821907f, -0.2160805f, 0.5906711f, 0.2315492f, 0.6690427f, 0.5014373f, -0.3837829f, -0.02859717f,
       0.2367093f, 0.09899536f},
      {-0.1221649f, 0.2233784f, -0.1098308f, 0.5460049f, -1.043929f, 0.5381961f},
      {-0.0503953f, 0.4189547f, 0.09539571f, 0.2821082f, -0.3681818f, -0.1856407f}};
  const std::vector<F> gru_keras{
      {0.3561049f, -0.03879718f, -0.2540253f, 0.2291889f, 0.2130613f, 0.08901159f, -0.4141735f, -0.1760246f, 0.3756723f, 0.4259462f,
       -0.2424469f, -0.4165234f, 0.2198005f, 0.2463213f, 0.1230662f, -0.5603982f, -0.1196991f, 0.7192307f},
      {0.1413311f,  -0.1755481f,  -0.193181f,    0.07669751f, 0.09772111f,  0.05237428f,   -0.1520017f, -0.0325704f, 0.2642089f,
       -0.1437992f, -0.05767948f, -0.01914345f,  -0.1432002f, -0.08962566f, -0.003806052f, 0.1375826f,  0.2239102f,  0.4078016f,
       -0.2492028f, -0.08874415f, -0.003292495f, -0.1842967f, -0.1230024f,  -0.01320207f,  0.1376445f,  0.2560226f,  0.4295531f},
      {0.07042214f, 0.6584067f, 0.5005225f, -0.2010422f, -0.2410953f, -0.1198219f, 1.023247f, 0.3815187f, -0.2736088f, 0.07042211f,
       0.6584067f, 0.5005225f, -0.2010422f, -0.2410954f, -0.1198219f, 0.5629682f, 0.1798697f, -0.4463149f},
      {0.5799781f, 0.7433246f, 0.3177394f, 0.07056327f, -0.03653042f, -0.02171906f}};
  const Layer a(4, 1), b(3, 2);
  const auto lstm_grads = gradients_of(a, {a.kernel, a.recurrent, a.bias, a.h, a.c}, run_lstm);
  const auto gru_grads = gradients_of(b, {b.kernel, b.recurrent, b.bias, b.h}, [](const Layer& l) { return run_gru(l); });
  for (size_t i = 0; i < lstm_keras.size(); ++i) expect_near(lstm_grads[i], lstm_keras[i], 3e-6f);
  for (size_t i = 0; i < gru_keras.size(); ++i) expect_near(gru_grads[i], gru_keras[i], 3e-6f);
}

// Two ways to the same gradient: the row's own rule, and, where a mask is given, the rule of the loop that it stands for.
TEST(Recurrent, AMaskThatHidesNothingChangesNothing) {
  const Layer l(4, 1);
  const std::vector<Tensor> sources{l.kernel, l.recurrent, l.bias, l.h, l.c};
  const Tensor seen = Tensor::ones({kTime, kBatch}, DType::Bool);
  const auto with = gradients_of(l, sources, [&](const Layer& x) { return lstm(x.inputs(), x.recurrent, x.h, x.c, seen); });
  const auto without = gradients_of(l, sources, run_lstm);
  for (size_t i = 0; i < sources.size(); ++i) expect_near(with[i], floats(without[i]), 3e-6f);
}

}  // namespace
}  // namespace tandem
