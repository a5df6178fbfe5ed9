// einsum: shapes with symbols, texts of mistakes, numbers, and what it expands to.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

Attrs equation(std::string text) { return {{"equation", std::move(text)}}; }

TEST(OpsEinsum, EinsumShapes) {
  EXPECT_EQ(types_of("einsum", {f32({b, 7, 8, 4}), f32({b, 9, 8, 4})}, equation("bqhd, bkhd -> bhqk")), "float32[b,8,7,9]");
  EXPECT_EQ(types_of("einsum", {f32({3, 4}), f32({4, 5})}, equation("zb,ba")), "float32[5,3]") << "alphabetical order";
  EXPECT_EQ(types_of("einsum", {f32({b, 2, 3}), f32({3})}, equation("...i,i")), "float32[b,2]");
  EXPECT_EQ(types_of("einsum", {f32({b, b})}, equation("ii->i")), "float32[b]");
  EXPECT_EQ(types_of("einsum", {f32({2, 1, 3}), f32({5, 3})}, equation("...i,...i->...")), "float32[2,5]");
}

TEST(OpsEinsum, EinsumMistakes) {
  EXPECT_EQ(error_of("einsum", {f32({3, 4}), f32({5, 6})}, equation("ij,jk")), "einsum: label 'j' is 4 and 5 in operand 1 [5,6]");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ii")), "einsum: label 'i' is 3 and 4 in operand 0 [3,4]");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ijk->i")), "einsum: 'ijk' names 3 axes, the operand has 2");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij,jk->ik")), "einsum: 'ij,jk->ik' has 2 terms for 1 operands");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij->ik")), "einsum: label 'k' of the result is in no operand");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij->ii")), "einsum: label 'i' is twice in the result");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("i.j")),
            "einsum: '.' in 'i.j' is no label\n  hint: a term is letters and at most one ...");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("i...->i")),
            "einsum: the operands have 1 axes under ..., the result has no ...\n  hint: name those axes to sum over them");
  EXPECT_EQ(error_of("einsum", {}, equation("")), "einsum: needs at least one operand");
}

TEST(OpsEinsum, EinsumValues) {
  const Array m = of({2, 3}, {1, 2, 3, 4, 5, 6}), square = of({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run("einsum", {square}, equation("ii")).values(), (Doubles{5}));
  EXPECT_EQ(run("einsum", {m}, equation("ij->ji")).values(), (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("einsum", {m, m}, equation("ij,kj->ik")).values(), (Doubles{14, 32, 32, 77}));
  EXPECT_EQ(run("einsum", {m, square, m}, equation("ij,ik,kl->jl")).values(), (Doubles{85, 116, 147, 113, 154, 195, 141, 192, 243}));
  const Array bytes = of({2}, {100, 100}, DType::I8);
  EXPECT_EQ(run("einsum", {bytes}, equation("i->")).at(0), static_cast<int8_t>(200)) << "einsum keeps the type";
}

TEST(OpsEinsum, EinsumIsCheap) {
  // Stored orders that a product can take as they are need no transposition.
  for (std::string_view text : {"ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ij,ki->kj", "bij,bkj->bik"}) {
    const size_t rank = text[2] == ',' ? 2 : 3;
    const Graph g = expanded("einsum", {f32(Dims(rank, Dim(3))), f32(Dims(rank, Dim(3)))}, equation(std::string(text)));
    EXPECT_EQ(count_of(g, "transpose"), 0) << text;
    EXPECT_EQ(count_of(g, "matmul"), 1) << text;
  }
  // (A B) v costs a thousand times what A (B v) does.
  const Graph chain = expanded("einsum", {f32({1000, 1000}), f32({1000, 1000}), f32({1000})}, equation("ij,jk,k->i"));
  for (const Node& node : chain.nodes)
    if (node.op->name == "matmul") {
      EXPECT_TRUE(node.types[0].dims.back().is(1)) << node.types[0].str();
    }
}

}  // namespace
}  // namespace tandem
