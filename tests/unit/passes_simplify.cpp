// Every rule by itself: it is used, and not a byte changes, with NaNs, infinities and -0 among the values.
#include <algorithm>

#include "passes_support.hpp"

namespace tandem::passes {
namespace {

// A body over inputs %0 and %1 of one type, whose value %9 is the result; `T` stands for the type, `E` for the element type.
struct Case {
  std::string rule;
  std::string text;
  std::vector<std::string> types = {"float32", "float64", "float16", "bfloat16", "int32", "uint8", "int64"};
};

const std::vector<std::string> kInts = {"int8", "uint16", "int32", "uint64"};
const std::vector<std::string> kFloats = {"float32", "float64", "float16", "bfloat16"};
const std::vector<std::string> kBools = {"bool"};
const std::vector<std::string> kBoolean = {"bool", "int32", "uint8"};

std::string constant(const std::string& value) { return "  %2 = constant(; value=E[]{" + value + "}) : E[]\n"; }

std::vector<Case> arithmetic_cases() {
  const std::string t = "E[4,67]";
  return {
      {"multiply-one", constant("1") + "  %9 = multiply(%0, %2) : " + t},
      {"multiply-one", constant("true") + "  %9 = multiply(%2, %0) : " + t, kBools},
      {"multiply-zero", constant("0") + "  %9 = multiply(%0, %2) : " + t, kInts},
      {"add-zero", constant("-0") + "  %9 = add(%2, %0) : " + t, kFloats},
      {"add-zero", constant("0") + "  %9 = add(%0, %2) : " + t, kInts},
      {"subtract-zero", constant("0") + "  %9 = subtract(%0, %2) : " + t},
      {"subtract-itself", "  %9 = subtract(%0, %0) : " + t, kInts},
      {"negative-negative", "  %2 = negative(%0) : " + t + "\n  %9 = negative(%2) : " + t},
      {"absolute-absolute", "  %2 = absolute(%0) : " + t + "\n  %9 = absolute(%2) : " + t},
      {"absolute-negative",
       "  %2 = negative(%0) : " + t + "\n  %9 = absolute(%2) : " + t,
       {"float32", "float64", "float16", "bfloat16", "int8", "int64"}},
      {"divide-one", constant("1") + "  %9 = divide(%0, %2) : " + t, kFloats},
      {"divide-power-of-two", constant("8") + "  %9 = divide(%0, %2) : " + t, kFloats},
      {"divide-power-of-two", constant("-0.0625") + "  %9 = divide(%0, %2) : " + t, kFloats},
      {"maximum-itself", "  %9 = maximum(%0, %0) : " + t},
      {"minimum-itself", "  %9 = minimum(%0, %0) : " + t},
      {"integer-power-one", constant("1") + "  %9 = power(%0, %2) : " + t, kInts},
      {"integer-power-two", constant("2") + "  %9 = power(%0, %2) : " + t, kInts},
      {"where-same", "  %2 = equal(%0, %1) : bool[4,67]\n  %9 = where(%2, %0, %0) : " + t},
      {"where-true", "  %2 = constant(; value=bool[]{true}) : bool[]\n  %9 = where(%2, %0, %1) : " + t},
      {"where-false", "  %2 = constant(; value=bool[]{false}) : bool[]\n  %9 = where(%2, %0, %1) : " + t},
      {"where-not", "  %2 = less(%0, %1) : bool[4,67]\n  %3 = logical_not(%2) : bool[4,67]\n  %9 = where(%3, %0, %1) : " + t},
      {"identity", "  %2 = identity(%0) : " + t + "\n  %9 = add(%2, %1) : " + t},
      {"stop-gradient", "  %2 = stop_gradient(%0) : " + t + "\n  %9 = add(%2, %1) : " + t},
      {"logical_not-twice", "  %2 = logical_not(%0) : " + t + "\n  %9 = logical_not(%2) : " + t, kBools},
      {"bitwise_not-twice", "  %2 = bitwise_not(%0) : " + t + "\n  %9 = bitwise_not(%2) : " + t, kBoolean},
      {"logical_and-itself", "  %9 = logical_and(%0, %0) : " + t, kBools},
      {"logical_or-itself", "  %9 = logical_or(%0, %0) : " + t, kBools},
      {"logical_xor-itself", "  %9 = logical_xor(%0, %0) : " + t, kBools},
      {"bitwise_and-itself", "  %9 = bitwise_and(%0, %0) : " + t, kBoolean},
      {"bitwise_or-itself", "  %9 = bitwise_or(%0, %0) : " + t, kBoolean},
      {"bitwise_xor-itself", "  %9 = bitwise_xor(%0, %0) : " + t, kBoolean},
      {"logical_and-true", constant("true") + "  %9 = logical_and(%0, %2) : " + t, kBools},
      {"logical_and-false", constant("false") + "  %9 = logical_and(%0, %2) : " + t, kBools},
      {"logical_or-true", constant("true") + "  %9 = logical_or(%2, %0) : " + t, kBools},
      {"logical_or-false", constant("false") + "  %9 = logical_or(%0, %2) : " + t, kBools},
  };
}

std::vector<Case> movement_cases() {
  const std::string t = "E[4,67]";
  return {
      {"cast-same", "  %2 = cast(%0; dtype=E) : " + t + "\n  %9 = negative(%2) : " + t},
      {"cast-cast", "  %2 = cast(%0; dtype=float64) : float64[4,67]\n  %9 = cast(%2; dtype=E) : " + t, {"float32", "float16", "bfloat16"}},
      {"cast-cast", "  %2 = cast(%0; dtype=float32) : float32[4,67]\n  %9 = cast(%2; dtype=int8) : int8[4,67]", {"float16", "bfloat16"}},
      {"cast-cast", "  %2 = cast(%0; dtype=int64) : int64[4,67]\n  %9 = cast(%2; dtype=uint8) : uint8[4,67]", {"int8", "int32", "uint32"}},
      {"cast-cast", "  %2 = cast(%0; dtype=float32) : float32[4,67]\n  %9 = cast(%2; dtype=float16) : float16[4,67]", {"int8", "uint16"}},
      {"cast-cast", "  %2 = cast(%0; dtype=int32) : int32[4,67]\n  %9 = cast(%2; dtype=float32) : float32[4,67]", {"bool", "int16"}},
      {"cast-cast", "  %2 = cast(%0; dtype=float32) : float32[4,67]\n  %9 = cast(%2; dtype=int32) : int32[4,67]", {"bool", "int16"}},
      {"transpose-transpose", "  %2 = transpose(%0; perm=[1,0]) : E[67,4]\n  %9 = transpose(%2; perm=none) : " + t},
      {"transpose-still", "  %2 = reshape(%0; shape=[1,4,67]) : E[1,4,67]\n  %9 = transpose(%2; perm=[1,0,2]) : E[4,1,67]"},
      {"transpose-full", constant("3") + "  %3 = full(%2; shape=[4,67]) : " + t + "\n  %9 = transpose(%3; perm=[1,0]) : E[67,4]"},
      {"broadcast-same", "  %2 = broadcast_to(%0; shape=[4,67]) : " + t + "\n  %9 = negative(%2) : " + t},
      {"broadcast-broadcast",
       "  %2 = broadcast_to(%0; shape=[2,4,67]) : E[2,4,67]\n  %9 = broadcast_to(%2; shape=[3,2,4,67]) : E[3,2,4,67]"},
      {"broadcast-full", constant("3") + "  %3 = full(%2; shape=[1,67]) : E[1,67]\n  %9 = broadcast_to(%3; shape=[4,67]) : " + t},
      {"broadcast-one", constant("3") + "  %9 = broadcast_to(%2; shape=[4,67]) : " + t},
      {"broadcast-one",
       "  %2 = slice(%0; start=[0,0], limit=[1,1], step=[1,1]) : E[1,1]\n  %9 = broadcast_to(%2; shape=[2,3,67]) : E[2,3,67]"},
      {"full-scalar", constant("3") + "  %3 = full(%2; shape=[]) : E[]\n  %9 = add(%0, %3) : " + t},
      {"flip-flip", "  %2 = flip(%0; axis=[-1]) : " + t + "\n  %9 = flip(%2; axis=[1]) : " + t},
      {"slice-everything", "  %2 = slice(%0; start=[0,0], limit=[4,67], step=[1,1]) : " + t + "\n  %9 = negative(%2) : " + t},
      {"concatenate-one", "  %2 = concatenate_few(%0; axis=0) : " + t + "\n  %9 = negative(%2) : " + t},
      {"tile-once", "  %2 = tile(%0; repeats=[1,1,1]) : E[1,4,67]\n  %9 = negative(%2) : E[1,4,67]"},
      {"repeat-once", "  %2 = repeat(%0; repeats=1, axis=0) : " + t + "\n  %9 = negative(%2) : " + t},
      {"reshape-same", "  %2 = reshape(%0; shape=[4,-1]) : " + t + "\n  %9 = negative(%2) : " + t},
      {"expand_dims-same", "  %2 = expand_dims(%0; axis=[]) : " + t + "\n  %9 = negative(%2) : " + t},
      {"squeeze-same", "  %2 = squeeze(%0; axis=none) : " + t + "\n  %9 = negative(%2) : " + t},
      {"reshape-full", constant("3") + "  %3 = full(%2; shape=[4,67]) : " + t + "\n  %9 = reshape(%3; shape=[268]) : E[268]"},
      {"expand_dims-full", constant("3") + "  %3 = full(%2; shape=[4]) : E[4]\n  %9 = expand_dims(%3; axis=[0]) : E[1,4]"},
      {"squeeze-full", constant("3") + "  %3 = full(%2; shape=[4,1]) : E[4,1]\n  %9 = squeeze(%3; axis=none) : E[4]"},
      {"reshape-constant", "  %2 = constant(; value=E[2]{3,4}) : E[2]\n  %9 = reshape(%2; shape=[2,1]) : E[2,1]"},
      {"expand_dims-constant", "  %2 = constant(; value=E[2]{3,4}) : E[2]\n  %9 = expand_dims(%2; axis=[0]) : E[1,2]"},
      {"squeeze-constant", "  %2 = constant(; value=E[2,1]{3,4}) : E[2,1]\n  %9 = squeeze(%2; axis=none) : E[2]"},
      {"reshape-view", "  %2 = reshape(%0; shape=[268]) : E[268]\n  %9 = reshape(%2; shape=[67,4]) : E[67,4]"},
      {"reshape-view", "  %2 = expand_dims(%0; axis=[0]) : E[1,4,67]\n  %9 = reshape(%2; shape=[67,4]) : E[67,4]"},
      {"reshape-view",
       "  %2 = reshape(%0; shape=[1,268]) : E[1,268]\n  %3 = negative(%2) : E[1,268]\n  %4 = squeeze(%3; axis=[0]) : E[268]\n  "
       "%9 = reshape(%4; shape=[67,4]) : E[67,4]"},
      {"expand_dims-view", "  %2 = reshape(%0; shape=[268]) : E[268]\n  %9 = expand_dims(%2; axis=[1]) : E[268,1]"},
      {"expand_dims-view", "  %2 = expand_dims(%0; axis=[0]) : E[1,4,67]\n  %9 = expand_dims(%2; axis=[0]) : E[1,1,4,67]"},
      {"expand_dims-view",
       "  %2 = reshape(%0; shape=[1,268]) : E[1,268]\n  %3 = negative(%2) : E[1,268]\n  %4 = squeeze(%3; axis=[0]) : "
       "E[268]\n  %9 = expand_dims(%4; axis=[1]) : E[268,1]"},
      {"squeeze-view", "  %2 = reshape(%0; shape=[1,268]) : E[1,268]\n  %9 = squeeze(%2; axis=none) : E[268]"},
      {"squeeze-view", "  %2 = expand_dims(%0; axis=[0,1]) : E[1,1,4,67]\n  %9 = squeeze(%2; axis=[0]) : E[1,4,67]"},
      {"squeeze-view",
       "  %2 = reshape(%0; shape=[1,1,268]) : E[1,1,268]\n  %3 = negative(%2) : E[1,1,268]\n  %4 = squeeze(%3; axis=[0]) : "
       "E[1,268]\n  %9 = squeeze(%4; axis=[0]) : E[268]"},
      {"max-of-one", "  %2 = reshape(%0; shape=[268,1]) : E[268,1]\n  %9 = max(%2; axis=[1], keepdims=false) : E[268]"},
      {"prod-of-one", "  %2 = reshape(%0; shape=[268,1]) : E[268,1]\n  %9 = prod(%2; axis=[1], keepdims=false) : E[268]", kFloats},
      {"sum-of-one", "  %2 = reshape(%0; shape=[268,1]) : E[268,1]\n  %9 = sum(%2; axis=[1], keepdims=false) : E[268]", {"int32", "int64"}},
      {"min-of-one", "  %9 = min(%0; axis=[], keepdims=true) : " + t},
  };
}

// The gradient of relu behind that of max_pool, for windows side by side and for windows that overlap and are padded.
std::vector<Case> pooling_cases() {
  const auto text = [](int windows, const std::string& pool) {
    const std::string x = "[1,4,67]", some = cat("[", windows, ",67]"), pooled = cat("[1,", windows, ",67]");
    return "  %2 = reshape(%0; shape=" + x + ") : E" + x + "\n  %3 = max_pool_index(%2; " + pool + ") : int32" + pooled +
           "\n  %4 = slice(%1; start=[0,0], limit=" + some + ", step=[1,1]) : E" + some + "\n  %5 = reshape(%4; shape=" + pooled + ") : E" +
           pooled + "\n  %6 = max_pool_grad(%5, %3; extents=[4], " + pool + ") : E" + x +
           "\n  %7 = constant(; value=E[]{0}) : E[]\n  %8 = greater(%2, %7) : bool" + x + "\n  %9 = where(%8, %6, %7) : E" + x;
  };
  const std::vector<std::string> types = {"float32", "float64", "float16", "bfloat16", "int32"};
  return {{"where-max_pool_grad", text(2, "pool_size=[2], strides=none, padding='valid'"), types},
          {"where-max_pool_grad", text(4, "pool_size=[3], strides=[1], padding='same'"), types}};
}

// One operand is stretched to the shape that the other one has anyway, on either side.
std::vector<Case> stretch_cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& op, const std::string& result, const std::vector<std::string>& types) {
    for (const std::string stretch : {"full", "broadcast_to"})
      for (const std::string operands : {"(%3, %0)", "(%0, %3)"}) {
        const std::string from = stretch == "full" ? constant(types == kBools ? "true" : "3")
                                                   : "  %2 = slice(%1; start=[0,0], limit=[1,67], step=[1,1]) : E[1,67]\n";
        cases.push_back({"unstretched",
                         from + "  %3 = " + stretch + "(%2; shape=[4,67]) : E[4,67]\n  %9 = " + op + operands + " : " + result + "[4,67]",
                         types});
      }
  };
  const std::vector<std::string> some = {"float32", "float16", "int32"};
  for (const char* op : {"add", "subtract", "multiply", "maximum", "minimum", "power"}) add(op, "E", some);
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) add(op, "bool", some);
  for (const char* op : {"logical_and", "logical_or"}) add(op, "bool", kBools);
  add("divide", "E", kFloats);
  // Nothing but stretched operands: the result is stretched.
  cases.push_back({"unstretched",
                   "  %2 = slice(%1; start=[0,0], limit=[1,67], step=[1,1]) : E[1,67]\n  %3 = broadcast_to(%2; shape=[4,67]) : E[4,67]\n"
                   "  %9 = exp(%3) : E[4,67]",
                   kFloats});
  cases.push_back(
      {"unstretched",
       "  %2 = slice(%1; start=[0,0], limit=[1,67], step=[1,1]) : E[1,67]\n  %3 = slice(%0; start=[0,0], limit=[4,1], step=[1,1]) "
       ": E[4,1]\n  %4 = broadcast_to(%2; shape=[4,67]) : E[4,67]\n  %5 = broadcast_to(%3; shape=[4,67]) : E[4,67]\n"
       "  %6 = less(%4, %5) : bool[4,67]\n  %9 = where(%6, %4, %5) : E[4,67]"});
  return cases;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (auto family : {arithmetic_cases, movement_cases, stretch_cases, pooling_cases})
    for (Case& c : family()) all.push_back(std::move(c));
  return all;
}

std::string replaced(std::string text, char what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) text.replace(at, 1, by);
  return text;
}

TEST(Simplify, EachRuleKeepsEveryByte) {
  for (const Case& c : cases())
    for (const std::string& type : c.types) {
      const std::string text = "graph (%0: E[4,67], %1: E[4,67]) {\n" + c.text + "\n  return %9\n}\n";
      const Graph before = graph(replaced(text, 'E', type));
      const uint64_t hits = simplify_rules().hits(c.rule);
      const Graph after = simplify(table(), before);
      EXPECT_GT(simplify_rules().hits(c.rule), hits) << c.rule << " " << type;
      expect_same_bytes(before, after, c.rule + " " + type, 7 * text.size());
    }
}

TEST(Simplify, EveryRuleHasACase) {
  std::vector<std::string> tested;
  for (const Case& c : cases()) tested.push_back(c.rule);
  for (const auto& rule : simplify_rules().rules()) {
    const bool is_tested = std::ranges::find(tested, rule.name) != tested.end() || rule.name.starts_with("matmul-");
    EXPECT_TRUE(is_tested) << rule.name;
  }
}

// What looks alike and would change a byte somewhere.
TEST(Simplify, LeavesAloneWhatIsNotExact) {
  for (const std::string text : {
           "  %2 = constant(; value=float32[]{0}) : float32[]\n  %9 = add(%0, %2) : float32[4]",
           "  %2 = constant(; value=float32[]{0}) : float32[]\n  %9 = multiply(%0, %2) : float32[4]",
           "  %2 = constant(; value=float32[]{-0}) : float32[]\n  %9 = subtract(%0, %2) : float32[4]",
           "  %2 = constant(; value=float32[]{2}) : float32[]\n  %9 = power(%0, %2) : float32[4]",
           "  %2 = constant(; value=float32[]{3}) : float32[]\n  %9 = divide(%0, %2) : float32[4]",
           "  %2 = constant(; value=float32[]{1e-39}) : float32[]\n  %9 = divide(%0, %2) : float32[4]",
           "  %9 = subtract(%0, %0) : float32[4]",
           "  %9 = sum(%0; axis=[], keepdims=false) : float32[4]",
           "  %2 = cast(%0; dtype=float16) : float16[4]\n  %9 = cast(%2; dtype=float32) : float32[4]",
           "  %2 = cast(%0; dtype=int32) : int32[4]\n  %9 = cast(%2; dtype=float32) : float32[4]",
       }) {
    const Graph g = graph("graph (%0: float32[4]) {\n" + text + "\n  return %9\n}\n");
    EXPECT_EQ(simplify(table(), g), ir::prune(table(), g)) << text;
  }
  // Through a float an integer saturates; without it, bits are dropped.
  const Graph g =
      graph("graph (%0: int16[4]) {\n  %1 = cast(%0; dtype=float32) : float32[4]\n  %2 = cast(%1; dtype=int8) : int8[4]\n  return %2\n}\n");
  EXPECT_EQ(simplify(table(), g), g);
}

TEST(Simplify, TransposesGoIntoMatrixProducts) {
  for (const auto& [m, k, n] : {std::tuple{3, 4, 5}, {17, 67, 33}, {64, 64, 64}, {128, 200, 96}, {1, 512, 256}, {300, 7, 300}})
    for (const char* type : {"float32", "float64", "int32"}) {
      const std::string text = replaced(
          replaced(replaced(replaced("graph (%0: E[K,M], %1: E[N,K]) {\n  %2 = transpose(%0; perm=[1,0]) : E[M,K]\n  %3 = transpose(%1; "
                                     "perm=none) : E[K,N]\n"
                                     "  %4 = matmul(%2, %3; transpose_x=false, transpose_y=false, dtype=none) : E[M,N]\n  return %4\n}\n",
                                     'M', std::to_string(m)),
                            'K', std::to_string(k)),
                   'N', std::to_string(n)),
          'E', type);
      const Graph before = graph(text);
      const Graph after = simplify(table(), before);
      EXPECT_EQ(count_of(after, "transpose"), 0u);
      std::vector<Literal> in;
      std::mt19937_64 random(3);
      for (const ir::TensorType& t : before.input_types()) {
        const Shape shape = tandem::bind(t.dims, {});
        std::vector<std::byte> bytes(byte_size(shape, t.dtype));
        for (size_t i = 0; i < bytes.size(); i += size_of(t.dtype))
          ir::store_number(t.dtype, &bytes[i], std::uniform_real_distribution(0.0, 9.0)(random));
        in.push_back(Literal::of(t.dtype, shape, bytes.data()));
      }
      // A library takes another routine for another layout, so floats are only as equal as sums in another order are.
      const auto want = results(before, "cpu", in), got = results(after, "cpu", in);
      if (is_float(before.input_types()[0].dtype))
        testing::expect_close(got, want, table().at("matmul"), text);
      else
        testing::expect_same_bits(got, want, text);
      testing::expect_same_bits(results(before, "ref", in), results(after, "ref", in), text);
    }
}

TEST(Simplify, ReadsWell) {
  const Graph before = graph(
      "graph(%0: float32[b,3]) {\n"
      "  %1 = constant(; value=float32[]{1}) : float32[]\n"
      "  %2 = full(%1; shape=[b,3]) : float32[b,3]\n"
      "  %3 = multiply(%0, %2) : float32[b,3]\n"
      "  %4 = transpose(%3; perm=[1,0]) : float32[3,b]\n"
      "  %5 = transpose(%4; perm=[1,0]) : float32[b,3]\n"
      "  %6 = exp(%5) : float32[b,3]\n"
      "  return %6\n"
      "}\n");
  EXPECT_EQ(ir::print(simplify(table(), before)),
            "graph(%0: float32[b,3]) {\n"
            "  %1 = exp(%0) : float32[b,3]\n"
            "  return %1\n"
            "}\n");
}

TEST(Simplify, GoesIntoSubgraphs) {
  const Graph before = graph(R"(graph (%0: int32[], %1: float32[4]) {
  %2 = branch(%0, %1; branches=[
    graph (%0: float32[4]) {
      %1 = negative(%0) : float32[4]
      %2 = negative(%1) : float32[4]
      return %2
    },
    graph (%0: float32[4]) {
      %1 = exp(%0) : float32[4]
      return %1
    }
  ]) : float32[4]
  return %2
}
)");
  const Graph after = simplify(table(), before);
  EXPECT_EQ(after.nodes[2].attrs.get<ir::Graphs>("branches")[0]->nodes.size(), 1u);
  EXPECT_EQ(after.nodes[2].attrs.get<ir::Graphs>("branches")[1]->nodes.size(), 2u);
}

}  // namespace
}  // namespace tandem::passes
