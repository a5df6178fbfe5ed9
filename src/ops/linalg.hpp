// The gradients of the linear algebra rows and the small graph pieces that both files of them use.
#pragma once
#include "ir/builder.hpp"

namespace tandem::ops {

ir::Expr swap_last(const ir::Expr& x);                    // exchanges the last two axes
ir::Expr identity_like(const ir::Expr& x, const Dim& n);  // [n, n] of x's type
// Columns [begin, end) of the last axis.
ir::Expr take_columns(const ir::Expr& x, const Dim& begin, const Dim& end);
// Rows of b (the axis before the last) in the order of `permutation` [..., n].
ir::Expr permute_rows(const ir::Expr& b, const ir::Expr& permutation);
struct TriangularKind {
  bool lower = true, transpose = false, unit = false;
};
ir::Expr triangular_solve(const ir::Expr& a, const ir::Expr& b, TriangularKind kind);

std::vector<ir::Expr> vjp_cholesky(const ir::GradCall& g);
std::vector<ir::Expr> vjp_triangular_solve(const ir::GradCall& g);
std::vector<ir::Expr> vjp_lu(const ir::GradCall& g);
std::vector<ir::Expr> vjp_qr(const ir::GradCall& g);
std::vector<ir::Expr> vjp_svd(const ir::GradCall& g);
std::vector<ir::Expr> vjp_eigh(const ir::GradCall& g);
std::vector<ir::Expr> vjp_inverse(const ir::GradCall& g);
std::vector<ir::Expr> vjp_det(const ir::GradCall& g);
std::vector<ir::Expr> vjp_slogdet(const ir::GradCall& g);
std::vector<ir::Expr> vjp_pinv(const ir::GradCall& g);

}  // namespace tandem::ops
