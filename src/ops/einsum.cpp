// Einstein's summation in NumPy's notation. Operands are contracted pair by pair: each pair is one (batched) matrix product.
#include <algorithm>
#include <cctype>
#include <map>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// --- the equation ---------------------------------------------------------------------------------------------------------------

using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;  // axes under "..." are labels from here on, counted from their right end; letters are themselves

struct Equation {
  std::vector<Labels> terms;
  Labels out;
  std::map<int, Dim> sizes;  // of each label
};

bool contains(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

std::string label_name(int label) {
  return label >= kEllipsis ? cat("axis ", kEllipsis - 1 - label, " under ...") : cat("label '", static_cast<char>(label), "'");
}

std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  return terms;
}

void append_ellipsis(Labels& labels, int axes) {
  for (int i = axes - 1; i >= 0; --i) labels.push_back(kEllipsis + i);
}

// A term's labels; the ellipsis stands for `ellipsis_axes` axes, or for what is left of `rank` when that is given.
Labels parse_term(const OpCall& call, const std::string& term, int rank, int& ellipsis_axes) {
  const auto letters = static_cast<int>(std::count_if(term.begin(), term.end(), [](unsigned char c) { return std::isalpha(c) != 0; }));
  const size_t dots = term.find("...");
  if (rank >= 0) {
    if (dots == std::string::npos ? letters != rank : letters > rank)
      call.fail("'", term, "' names ", letters, " axes, the operand has ", rank);
    ellipsis_axes = rank - letters;
  }
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      append_ellipsis(labels, ellipsis_axes);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(static_cast<unsigned char>(term[i]));
    } else {
      call.fail("'", term[i], "' in '", term, "' is no label\n  hint: a term is letters and at most one ...");
    }
  }
  return labels;
}

void unify_sizes(const OpCall& call, Equation& e) {
  for (size_t k = 0; k < e.terms.size(); ++k) {
    for (size_t i = 0; i < e.terms[k].size(); ++i) {
      const int label = e.terms[k][i];
      const Dim& size = call.in[k].dims[i];
      const auto earlier = std::find(e.terms[k].begin(), e.terms[k].begin() + static_cast<std::ptrdiff_t>(i), label);
      const Dim& first = call.in[k].dims[static_cast<size_t>(earlier - e.terms[k].begin())];
      auto [known, is_new] = e.sizes.emplace(label, size);
      if (known->second.is(1)) known->second = size;
      // An axis of one stretches over others of its label, but not over itself on a diagonal.
      if (!(first == size) || (!size.is(1) && !(known->second == size)))
        call.fail(label_name(label), " is ", first == size ? known->second : first, " and ", size, " in operand ", k, " ",
                  str(call.in[k].dims));
    }
  }
}

// Without "->": the ellipsis, then every letter that appears once, in alphabetical order.
Labels implicit_output(const Equation& e, int ellipsis_axes) {
  std::map<int, int> uses;
  for (const Labels& term : e.terms)
    for (int label : term) ++uses[label];
  Labels out;
  append_ellipsis(out, ellipsis_axes);
  for (auto [label, count] : uses)
    if (label < kEllipsis && count == 1) out.push_back(label);
  return out;
}

void check_output(const OpCall& call, const Equation& e, int ellipsis_axes) {
  for (int label : e.out) {
    if (e.sizes.find(label) == e.sizes.end()) call.fail(label_name(label), " of the result is in no operand");
    if (std::count(e.out.begin(), e.out.end(), label) > 1) call.fail(label_name(label), " is twice in the result");
  }
  if (ellipsis_axes > 0 && !contains(e.out, kEllipsis))
    call.fail("the operands have ", ellipsis_axes, " axes under ..., the result has no ...\n  hint: name those axes to sum over them");
}

Equation parse_equation(const OpCall& call) {
  std::string text;
  for (char c : call.attrs.get<std::string>("equation"))
    if (c != ' ') text += c;
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(std::string_view(text).substr(0, arrow));
  if (terms.size() != call.in.size()) call.fail("'", text, "' has ", terms.size(), " terms for ", call.in.size(), " operands");
  Equation e;
  int ellipsis_axes = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    int axes = 0;
    e.terms.push_back(parse_term(call, terms[k], call.in[k].rank(), axes));
    ellipsis_axes = std::max(ellipsis_axes, axes);
  }
  unify_sizes(call, e);
  e.out = arrow == std::string::npos ? implicit_output(e, ellipsis_axes) : parse_term(call, text.substr(arrow + 2), -1, ellipsis_axes);
  check_output(call, e, ellipsis_axes);
  return e;
}

Dims dims_of(const Equation& e, const Labels& labels) {
  Dims dims;
  for (int label : labels) dims.push_back(e.sizes.at(label));
  return dims;
}

std::vector<TensorType> infer_einsum(const OpCall& call) {
  if (call.in.empty()) call.fail("needs at least one operand");
  const Equation e = parse_equation(call);
  return {{call.in[0].dtype, dims_of(e, e.out)}};
}

// --- the contraction ------------------------------------------------------------------------------------------------------------

struct Term {
  Expr x;
  Labels labels;
};

Expr arranged(const Term& term, const Labels& order) {
  Ints perm;
  for (int label : order) perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
  return term.x.transpose(perm);
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Diagonals for repeated labels; axes of one that stretch, and labels that nobody else needs, go away.
void simplify(const Equation& e, Term& term, const Labels& needed) {
  for (size_t j = 1; j < term.labels.size();) {
    const auto i = std::find(term.labels.begin(), term.labels.end(), term.labels[j]) - term.labels.begin();
    if (static_cast<size_t>(i) == j) {
      ++j;
      continue;
    }
    term.x = term.x.op("diagonal", {{"axis1", int64_t{i}}, {"axis2", static_cast<int64_t>(j)}});
    term.labels.push_back(term.labels[j]);  // the diagonal is the last axis
    term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
    term.labels.erase(term.labels.begin() + i);
    j = 1;
  }
  Labels kept;
  Ints summed_axes;
  Dims dims;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const int label = term.labels[i];
    const Dim size = term.x.dims()[i];
    if (size.is(1) && !e.sizes.at(label).is(1)) continue;
    if (contains(needed, label))
      kept.push_back(label);
    else
      summed_axes.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(size);
  }
  term.x = term.x.reshape(dims);
  if (!summed_axes.empty()) term.x = term.x.sum(summed_axes).cast(term.x.dtype());  // small integers are summed in 32 bits
  term.labels = kept;
}

// One side of a matrix product as [batch…, rows, columns]. `flipped` says that it is stored as [batch…, columns, rows].
Expr as_matrix(const Equation& e, const Term& term, const Labels& batch, const Labels& rows, const Labels& columns, bool& flipped) {
  flipped = term.labels == joined({batch, columns, rows}) && !(term.labels == joined({batch, rows, columns}));
  const Labels &first = flipped ? columns : rows, &second = flipped ? rows : columns;
  Dims dims = dims_of(e, batch);
  dims.push_back(product(dims_of(e, first)));
  dims.push_back(product(dims_of(e, second)));
  return arranged(term, joined({batch, first, second})).reshape(dims);
}

// Nothing is summed: the product of all pairs of elements, with axes where the other has none.
Term multiply_terms(const Equation& e, const Term& a, const Term& b, const Labels& all) {
  const auto stretched = [&](const Term& term) {
    Labels own;
    Dims dims;
    for (int label : all) {
      const bool there = contains(term.labels, label);
      if (there) own.push_back(label);
      dims.push_back(there ? e.sizes.at(label) : Dim(1));
    }
    return arranged(term, own).reshape(dims);
  };
  return {stretched(a) * stretched(b), all};
}

Term contract_pair(const Equation& e, Term a, Term b, const Labels& needed) {
  const auto only_in = [](const Term& one, const Term& other) {
    Labels only;
    for (int label : one.labels)
      if (!contains(other.labels, label)) only.push_back(label);
    return only;
  };
  // The side whose own labels come first in the result goes to the left, which saves a transposition at the end.
  for (int label : e.out) {
    const bool in_a = contains(a.labels, label), in_b = contains(b.labels, label);
    if (in_a == in_b) continue;
    if (in_b) std::swap(a, b);
    break;
  }
  Labels batch, summed;
  for (int label : a.labels)
    if (contains(b.labels, label)) (contains(needed, label) ? batch : summed).push_back(label);
  const Labels rows = only_in(a, b), columns = only_in(b, a);
  const Labels all = joined({batch, rows, columns});
  if (summed.empty()) return multiply_terms(e, a, b, all);
  bool transpose_x = false, transpose_y = false;
  const Expr x = as_matrix(e, a, batch, rows, summed, transpose_x);
  const Expr y = as_matrix(e, b, batch, summed, columns, transpose_y);
  const Expr z = x.op("matmul", {y}, {{"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
  return {z.reshape(dims_of(e, all)), all};
}

// The labels that anything but the operands i and j still needs.
Labels needed_by_others(const Equation& e, const std::vector<Term>& terms, size_t i, size_t j) {
  Labels needed = e.out;
  for (size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
  return needed;
}

// Multiplications that one contraction takes; a symbol counts as a usual batch.
double pair_cost(const Equation& e, const Term& a, const Term& b) {
  constexpr double kSymbol = 64;
  double cost = 1;
  const auto count = [&](int label) {
    const Dim& size = e.sizes.at(label);
    cost *= size.is_const() ? static_cast<double>(size.value()) : kSymbol;
  };
  for (int label : a.labels) count(label);
  for (int label : b.labels)
    if (!contains(a.labels, label)) count(label);
  return cost;
}

std::pair<size_t, size_t> cheapest_pair(const Equation& e, const std::vector<Term>& terms) {
  std::pair<size_t, size_t> best{0, 1};
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = i + 1; j < terms.size(); ++j)
      if (pair_cost(e, terms[i], terms[j]) < pair_cost(e, terms[best.first], terms[best.second])) best = {i, j};
  return best;
}

std::vector<Expr> expand_einsum(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Equation e = parse_equation(call);
  std::vector<Term> terms;
  for (size_t k = 0; k < in.size(); ++k) terms.push_back({in[k], e.terms[k]});
  for (size_t k = 0; k < in.size(); ++k) simplify(e, terms[k], needed_by_others(e, terms, k, k));
  while (terms.size() > 1) {
    const auto [i, j] = cheapest_pair(e, terms);
    terms[i] = contract_pair(e, terms[i], terms[j], needed_by_others(e, terms, i, j));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
  }
  return {arranged(terms[0], e.out)};
}

}  // namespace

Rows einsum_rows() {
  return {
      {.name = "einsum",
       .sig = "(xs: number...; equation: string) -> same",
       .doc = "Sums of products by labelled axes, in NumPy's notation: 'bij,bjk->bik'; a label twice in one term is a diagonal, ... stands "
              "for broadcast axes, and without -> the result has the labels that appear once.",
       .infer = infer_einsum,
       .decompose = expand_einsum,
       .samples = {"([3,4], [4,5]; equation='ij,jk->ik')",
                   "([3,4], [4,5]; equation='ij,jk')",
                   "([3,4], [5,3]; equation='ij,ki->kj')",
                   "([2,3,4], [2,4,5]; equation='bij,bjk->bik')",
                   "([2,3,2,4], [2,5,2,4]; equation='bqhd,bkhd->bhqk')",
                   "([2,2,3,5], [2,5,2,4]; equation='bhqk,bkhd->bqhd')",
                   "([3,3]; equation='ii')",
                   "([3,3]; equation='ii->i')",
                   "([2,3,3,2]; equation='abbc->ca')",
                   "([3,4]; equation='ij->ji')",
                   "([3,4]; equation='ij->')",
                   "([3,4]; equation='ba')",
                   "([3], [4]; equation='i,j->ij')",
                   "([3,4], [3,4]; equation='ij,ij->i')",
                   "([2,3,4], [4]; equation='...j,j->...')",
                   "([2,1,3,4], [5,4,2]; equation='...ij,...jk->...ik')",
                   "([3,4], [4,2], [2,5]; equation='ij,jk,kl->il')",
                   "([2], [2,3], [3,4], [4]; equation='a,ab,bc,c')",
                   "([3,4], [1,4]; equation='ij,ij->ij')",
                   "([], [3]; equation=',i->i')",
                   "([2,3,4,2,3], [3,2,5]; equation='abcde,edf->abcf')",
                   "([0,3], [3,2]; equation='ij,jk->ik')",
                   "([2,0], [0,3]; equation='ij,jk->ik')",
                   "([5,70] in -1..1, [70,9] in -1..1; equation='ij,jk->ki')"}},
  };
}

}  // namespace tandem::ops
