// What tests of passes share: graphs from text, special values, and running a graph as it is, whatever the pipeline would make of it.
#pragma once
#include <bit>
#include <functional>
#include <random>

#include "../rows/support.hpp"
#include "ir/parse.hpp"
#include "ir/print.hpp"
#include "ir/verify.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {

using ir::Graph;
using ir::Literal;

inline const ir::OpTable& table() { return ops::table(); }

// The text is that of ir::print. Types behind a node may be left out of tests only where parse allows it, so they never are.
inline Graph graph(std::string_view text) { return ir::parse(table(), text); }

inline size_t count_of(const Graph& g, std::string_view op) {
  size_t count = 0;
  for (const ir::Node& n : g.nodes) count += n.op->name == op;
  return count;
}

// The forms of the fused nodes, in order.
inline std::string form(const Graph& g) {
  std::string forms;
  for (const ir::Node& n : g.nodes)
    if (n.op->name == "fused") forms += cat(forms.empty() ? "" : " ", n.attrs.get<std::string>("form"));
  return forms;
}

// A graph of expressions over inputs of the given types.
inline Graph built(const std::vector<ir::TensorType>& types,
                   const std::function<std::vector<ir::Expr>(ir::Builder&, std::vector<ir::Expr>)>& f) {
  ir::Builder b(table());
  std::vector<ir::Expr> in;
  for (const ir::TensorType& t : types) in.emplace_back(b, b.input(t));
  const std::vector<ir::Value> out = ir::values(f(b, in));
  return b.finish(out);
}
inline ir::GraphRef part(const std::vector<ir::TensorType>& types,
                         const std::function<std::vector<ir::Expr>(ir::Builder&, std::vector<ir::Expr>)>& f) {
  return std::make_shared<const Graph>(built(types, f));
}

// NaNs with and without a sign and a payload, infinities, zeros, subnormals, the largest and the smallest, and usual numbers.
inline Literal special_values(const ir::TensorType& type, uint64_t seed) {
  const Shape shape = tandem::bind(type.dims, {{"b", 3}, {"n", 5}});
  const size_t width = size_of(type.dtype);
  std::vector<std::byte> bytes(byte_size(shape, type.dtype));
  std::mt19937_64 random(seed);
  static constexpr double kNumbers[] = {0.0,   -0.0,  1.0,     -1.0,  0.5,   3.0,  -7.25,  1e-40,    -1e-41,    6e4, -6e-8, 1e-30,   3.3e38,
                                        -1e38, 1e308, -1e-310, 100.0, 255.0, 1e10, -129.0, INFINITY, -INFINITY, NAN, -NAN,  123.456, 2.0};
  for (size_t i = 0; i < bytes.size(); i += width) {
    if (type.dtype == DType::Bool) {
      bytes[i] = std::byte(random() & 1);
      continue;
    }
    if (!is_float(type.dtype)) {  // any bits are a number
      const uint64_t bits = random() >> (random() % 64);
      std::memcpy(&bytes[i], &bits, width);
      continue;
    }
    ir::store_number(type.dtype, &bytes[i], kNumbers[random() % std::size(kNumbers)]);
    if (std::isnan(ir::load_number(type.dtype, &bytes[i])) && random() % 2) bytes[i] |= std::byte(1 + random() % 7);  // a payload
  }
  return Literal::of(type.dtype, shape, bytes.data());
}

inline std::vector<Literal> special_inputs(const Graph& g, uint64_t seed) {
  std::vector<Literal> in;
  for (const ir::TensorType& t : g.input_types()) in.push_back(special_values(t, ++seed));
  return in;
}

// Usual numbers, for graphs whose inputs are float32 and have no symbols.
inline std::vector<Literal> random_inputs(const Graph& g) {
  std::vector<Literal> in;
  std::mt19937_64 random(3);
  for (const ir::TensorType& t : g.input_types()) {
    const Shape shape = tandem::bind(t.dims, {});
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
    in.push_back(Literal::of(t.dtype, shape, values.data()));
  }
  return in;
}

// A pass that does not run while this lives.
class Without {
 public:
  explicit Without(const char* pass) { setenv("TANDEM_DISABLE_PASS", pass, 1); }
  ~Without() { unsetenv("TANDEM_DISABLE_PASS"); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;
};

// The graph's results on a device, with no pass but those already made.
inline std::vector<Literal> results(const Graph& g, std::string_view device, const std::vector<Literal>& in) {
  engine::Engine& e = testing::engine_on(device);
  engine::Executable x(g, e.devices(), {});
  return testing::run_graph(x, e, in);
}

// Both graphs are good, and give the same bytes for special values on the cpu and in the interpreter.
inline void expect_same_bytes(const Graph& before, const Graph& after, const std::string& what, uint64_t seed = 1) {
  ir::verify(table(), after, ir::Stage::Expanded);
  EXPECT_EQ(before.input_types(), after.input_types()) << what;
  EXPECT_EQ(before.output_types(), after.output_types()) << what;
  const std::vector<Literal> in = special_inputs(before, seed);
  for (const char* device : {"cpu", "ref"})
    testing::expect_same_bits(results(before, device, in), results(after, device, in), cat(what, " on ", device, "\n", ir::print(after)));
}

}  // namespace tandem::passes
