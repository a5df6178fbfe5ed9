// Every row, from its own samples: generated code against the interpreter for each type, eager against compiled bit for bit, strided
// operands against dense ones, gradients (and theirs) against finite differences.
#include <numeric>

#include "support.hpp"
#include "transform/grad.hpp"

namespace tandem::testing {
namespace {

using ir::Literal;

class Row : public ::testing::TestWithParam<std::string> {
 protected:
  const ir::OpDef& op() const { return ops::table().at(GetParam()); }
};

TEST_P(Row, HasSamplesAndDoc) {
  EXPECT_FALSE(op().doc.empty());
  // Rows that take sub-graphs or functions cannot be called from text; tests of their own call them.
  bool takes_code = false;
  for (const auto& a : op().signature.attributes) takes_code |= a.kind == ir::AttrKind::Graphs || a.kind == ir::AttrKind::Function;
  EXPECT_TRUE(takes_code || !op().samples.empty());
}

TEST_P(Row, GeneratedCodeAgreesWithInterpreter) {
  for_each_sample(op(), [&](const ir::Sample& s, const std::vector<DType>&, const std::vector<Literal>& in, const std::string& what) {
    expect_close(run_eager(engine_on("cpu"), op(), s.attrs, in), run_eager(engine_on("ref"), op(), s.attrs, in), op(), what);
  });
}

// Every other device that computes and whose memory is not the host's: `late` always, GPUs where there are any. What one leaves to the CPU
// is a planned step with planned copies.
TEST_P(Row, DevicesWithMemoryOfTheirOwnAgreeWithInterpreter) {
  for (const std::string& name : device::names()) {
    if (name != "late" && !name.starts_with("gpu:0") && !name.starts_with("opencl:")) continue;
    engine::Engine& other = engine_on(name);
    for_each_sample(op(),
                    [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<Literal>& in, const std::string& what) {
                      // One type a sample, for drivers take their time to compile; the others meet the device in the kernels of its own
                      // suite.
                      const auto all = ir::sample_types(op(), s);
                      const auto single = std::ranges::find_if(all, [](const auto& t) { return !t.empty() && t[0] == DType::F32; });
                      if (types != (single == all.end() ? all.front() : *single)) return;
                      const std::vector<Literal> got = run_eager(other, op(), s.attrs, in);
                      expect_close(got, run_eager(engine_on("ref"), op(), s.attrs, in), op(), cat(name, ": ", what));
                      // Random numbers are the same ones on each device, down to the last bit where no function of a driver takes part.
                      static constexpr std::string_view kSameBits[] = {"random_bits", "random_unit", "random_uniform", "random_int"};
                      if (std::ranges::find(kSameBits, op().name) != std::end(kSameBits))
                        expect_same_bits(got, run_eager(engine_on("cpu"), op(), s.attrs, in), cat(name, ": ", what));
                    });
  }
}

TEST_P(Row, EagerIsCompiledBitForBit) {
  for_each_sample(op(), [&](const ir::Sample& s, const std::vector<DType>&, const std::vector<Literal>& in, const std::string& what) {
    // Beside another use of its operands, so that it is not the one-node graph again.
    ir::Builder b(ops::table());
    std::vector<ir::Value> v, out;
    for (const auto& l : in) v.push_back(b.input(l.type()));
    std::vector<ir::Value> copies;
    for (ir::Value x : v) copies.push_back(b.op("identity", {x}));
    out = b.node(op(), copies, s.attrs);
    const size_t results = out.size();
    out.insert(out.end(), copies.begin(), copies.end());
    auto compiled = engine_on("cpu").compile(b.finish(out));
    auto got = run_graph(*compiled, engine_on("cpu"), in);
    got.resize(results);
    expect_same_bits(run_eager(engine_on("cpu"), op(), s.attrs, in), got, what);
  });
}

// The same values lying backwards and with gaps.
engine::TensorRef spread(engine::Engine& e, const Literal& l) {
  engine::TensorRef t;
  t.layout = codegen::Layout::dense(l.dtype, l.shape);
  const size_t size = size_of(l.dtype), n = count(l);
  const Strides dense = t.layout.strides;
  for (size_t j = 0; j < t.layout.strides.size(); ++j) t.layout.strides[j] = dense[j] * 2 * (j % 2 == 0 ? -1 : 1);
  int64_t lowest = 0;
  for (size_t j = 0; j < dense.size(); ++j)
    if (t.layout.strides[j] < 0 && l.shape[j] > 0) lowest += (l.shape[j] - 1) * t.layout.strides[j];
  t.buffer = e.device().allocate((2 * n + 1) * size);
  std::memset(t.buffer->data(), 0x5a, t.buffer->bytes());
  t.offset = static_cast<size_t>(-lowest) * size;
  for (size_t i = 0; i < n; ++i) {
    size_t rest = i;
    int64_t offset = 0;
    for (size_t j = 0; j < dense.size(); ++j) {
      offset += static_cast<int64_t>(rest / static_cast<size_t>(dense[j])) * t.layout.strides[j];
      rest %= static_cast<size_t>(dense[j]);
    }
    std::memcpy(static_cast<char*>(t.data()) + offset * static_cast<int64_t>(size), l.bytes->data() + i * size, size);
  }
  return t;
}

TEST_P(Row, StridedOperandsGiveTheSame) {
  for_each_sample(op(), [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<Literal>& in, const std::string& what) {
    if (!types.empty() && types[0] != DType::F32 && types[0] != DType::I32) return;
    engine::Engine& e = engine_on("cpu");
    std::vector<engine::TensorRef> strided, out;
    for (const auto& l : in) strided.push_back(spread(e, l));
    e.eager(op(), s.attrs, addresses(strided), out);
    expect_close(downloads(out), run_eager(e, op(), s.attrs, in), op(), what);
  });
}

// ---- gradients ----

// f(inputs) = sum over results of sum(result * weights), and its gradient by the floating inputs; order 2: the gradient of sum(gradient *
// weights).
struct Differentiated {
  ir::Graph value, gradient;
  std::vector<size_t> wrt;  // which inputs
};

class GradientTest {
 public:
  GradientTest(const ir::OpDef& op, const ir::Sample& s, const std::vector<Literal>& in) : op_(op), sample_(s), in_(in) {}

  // Nothing when no floating result depends on a floating operand.
  bool build(int order, Differentiated& d) {
    ir::Builder value(ops::table()), gradient(ops::table());
    const ir::Value v = scalar(value, inputs(value), order, d.wrt, nullptr);
    if (!v) return false;
    d.value = value.finish({v});
    std::vector<ir::Value> grads;
    d.wrt.clear();
    scalar(gradient, inputs(gradient), order, d.wrt, &grads);
    d.gradient = gradient.finish(grads);
    return true;
  }

 private:
  std::vector<ir::Value> inputs(ir::Builder& b) {
    std::vector<ir::Value> v;
    for (const auto& l : in_) v.push_back(b.input(l.type()));
    return v;
  }
  // Weights differ from element to element, so that a mistake in one place cannot hide in the sum.
  ir::Expr weighted(ir::Builder& b, ir::Value v, double phase) {
    const ir::Expr x(b, v);
    ir::Expr n = ir::call(b, "iota", std::initializer_list<ir::Expr>{}, {{"shape", Dims{product(x.dims())}}, {"dtype", DType::F64}})[0];
    const ir::Expr w = (n * 0.7 + phase).op("sin").reshape(x.dims());
    ir::Ints all(static_cast<size_t>(x.rank()));
    std::iota(all.begin(), all.end(), 0);
    return (x * w).sum(all);
  }
  ir::Value scalar(ir::Builder& b, const std::vector<ir::Value>& in, int order, std::vector<size_t>& wrt, std::vector<ir::Value>* grads) {
    std::vector<ir::Value> sources;
    wrt.clear();
    for (size_t i = 0; i < in.size(); ++i)
      if (is_float(b.type(in[i]).dtype)) {
        sources.push_back(in[i]);
        wrt.push_back(i);
      }
    ir::Expr total;
    for (ir::Value v : b.node(op_, in, sample_.attrs))
      if (b.type(v).dtype == DType::F64) {  // a difference of narrower results has no digits left
        const ir::Expr w = weighted(b, v, 0.3);
        total = total ? total + w : w;
      }
    if (!total || sources.empty()) return {};
    for (int o = 1; o < order; ++o) {
      const ir::Value target = total.value();
      const auto g = transform::gradients(b, {&target, 1}, {}, sources);
      total = {};
      for (ir::Value v : g)
        if (v) {
          const ir::Expr w = weighted(b, v, 0.9);
          total = total ? total + w : w;
        }
      if (!total) return {};
    }
    if (grads) {
      const ir::Value target = total.value();
      *grads = transform::gradients(b, {&target, 1}, {}, sources);
      for (size_t i = 0; i < grads->size(); ++i)
        if (!(*grads)[i]) (*grads)[i] = ir::Expr(b, sources[i]).like(0).value();
    }
    return total.value();
  }

  const ir::OpDef& op_;
  const ir::Sample& sample_;
  const std::vector<Literal>& in_;
};

void check_gradient(const ir::OpDef& op, const ir::Sample& s, const std::vector<Literal>& in, int order, const std::string& what) {
  Differentiated d;
  if (!GradientTest(op, s, in).build(order, d)) return;
  engine::Engine& e = engine_on("cpu");
  auto value = e.compile(d.value), gradient = e.compile(d.gradient);
  const auto grads = run_graph(*gradient, e, in);
  constexpr size_t kMostElements = 16;
  const double step = order == 1 ? 1e-6 : 1e-5;
  const double slack = std::max(order == 1 ? 2e-5 : 2e-4, op.tolerance.rel);
  for (size_t k = 0; k < d.wrt.size(); ++k) {
    const Literal& x = in[d.wrt[k]];
    const size_t n = count(x), stride = std::max<size_t>(1, n / kMostElements);
    for (size_t i = 0; i < n; i += stride) {
      auto shifted = [&](double h) {
        std::vector<Literal> moved = in;
        auto bytes = std::make_shared<std::vector<std::byte>>(*x.bytes);
        double v;
        std::memcpy(&v, bytes->data() + i * sizeof v, sizeof v);
        v += h;
        std::memcpy(bytes->data() + i * sizeof v, &v, sizeof v);
        moved[d.wrt[k]].bytes = bytes;
        return at(run_graph(*value, e, moved)[0], 0);
      };
      const double h = step * std::max(1.0, std::abs(at(x, i)));
      const double numeric = (shifted(h) - shifted(-h)) / (2 * h), exact = at(grads[k], i);
      ASSERT_TRUE(near(exact, numeric, {slack, slack}))
          << what << ": gradient of order " << order << " by operand " << d.wrt[k] << ", element " << i;
    }
  }
}

// Samples that name float32 are differentiated in float64: it is the formula that is tested here.
bool in_double(std::vector<DType>& types) {
  bool any = false;
  for (DType& t : types) {
    if (t == DType::F32) t = DType::F64;
    if (is_float(t) && t != DType::F64) return false;
    any |= t == DType::F64;
  }
  return any;
}
bool may_be_differentiated(const ir::Sample& s, const std::vector<DType>& types) {
  if (!s.gradient) return false;
  bool named = true;
  for (size_t k = 0; k < types.size(); ++k) {
    if (s.operands[k].fill == ir::SampleOperand::Fill::Special) return false;
    named &= types[k] != DType::F32 || s.operands[k].has_dtype;
  }
  return named;
}

TEST_P(Row, GradientAgreesWithFiniteDifferences) {
  if (op().has(ir::kNotDifferentiable)) GTEST_SKIP() << "has no gradient";
  for (int order : {1, 2})
    for_each_sample(op(), [&](const ir::Sample& s, std::vector<DType> types, const std::vector<Literal>&, const std::string& what) {
      if (may_be_differentiated(s, types) && in_double(types)) check_gradient(op(), s, ir::sample_values(op(), s, types), order, what);
    });
}

// The gradient of the first sample that has one, computed elsewhere. The name has it run with the test of the samples.
TEST_P(Row, GradientsOnDevicesWithMemoryOfTheirOwnAgree) {
  if (op().has(ir::kNotDifferentiable)) GTEST_SKIP() << "has no gradient";
  bool is_done = false;
  for_each_sample(op(), [&](const ir::Sample& s, std::vector<DType> types, const std::vector<Literal>&, const std::string& what) {
    if (is_done || !may_be_differentiated(s, types) || !in_double(types)) return;
    const std::vector<Literal> in = ir::sample_values(op(), s, types);
    Differentiated d;
    if (!GradientTest(op(), s, in).build(1, d)) return;
    is_done = true;
    const auto run_on = [&](const std::string& name) { return run_graph(*engine_on(name).compile(d.gradient), engine_on(name), in); };
    const auto expected = run_on("ref");
    const double slack = std::max(1e-9, op().tolerance.rel);
    for (const std::string& name : device::names()) {
      if (name != "cpu" && name != "late" && !name.starts_with("gpu:0") && !name.starts_with("opencl:")) continue;
      const auto got = run_on(name);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t k = 0; k < got.size(); ++k)
        for (size_t i = 0; i < count(got[k]); ++i)
          ASSERT_TRUE(near(at(got[k], i), at(expected[k], i), {slack, slack}))
              << name << ": " << what << ": gradient " << k << ", element " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Table, Row, ::testing::ValuesIn(row_names()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace tandem::testing
