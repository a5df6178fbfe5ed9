// Fusion: nodes that can be computed in one walk over memory become one node `fused`. Greedy, in the order of the graph: a node joins
// the latest of its operands' groups that can take it. What only moves elements (transposes, broadcasts, slices) belongs to no group: it
// is written out wherever it is read.
#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "ir/compose.hpp"
#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using ir::Form;
using ir::Graph;
using ir::Node;
using ir::Prim;
using ir::Scalar;
using ir::Value;

constexpr size_t kMostNodes = 48;         // of a group: longer kernels gain nothing and compile slowly
constexpr size_t kMostOperands = 24;      // in and out
constexpr int64_t kLongestRow = 1 << 16;  // elements: longer rows leave the cache before they are walked again
constexpr int64_t kFewestRows = 8;        // fewer leave threads without work when rows are long
constexpr int64_t kLongRow = 1 << 13;

enum class Kind : uint8_t {
  Source,   // input, constant tensor
  Free,     // moves elements by affine indices, or is one number: written out where it is read
  Map,      // one element from elements at the same or other places
  Reduce,   // has a reduction
  Product,  // trait kProduct
  Other,    // control flow, host routines, scans, views with awkward indices
};

// A load of somebody's result: where, over the axes of the node that reads it.
struct Access {
  Value value;
  std::vector<Scalar> index;  // empty, and the value not: it is an operand, but none of its elements is read
  bool in_address = false;    // what is read here decides where something else is read
};

struct Group {
  Form form = Form::Map;
  int32_t device = -1;  // of all its nodes
  Dims space;           // without axes of 1; Row: the whole rows
  Dims reduce;          // Reduce: the extents
  std::vector<int32_t> nodes;
  int32_t first = 0, last = 0;  // node numbers
};

class Fuser {
 public:
  Fuser(const ir::OpTable& table, const Graph& g)
      : table_(table), g_(g), kinds_(g), composer_(g, [this](Value v) { return is_free(v) ? -1 : number(v); }) {}

  Graph run() {
    classify();
    find_accesses();
    if (free_cheap_maps()) {
      composer_.forget();
      find_accesses();
    }
    find_sinks();
    group_of_ = ir::NodeMap<int32_t>(g_, -1);
    seen_ = ir::NodeMap<int>(g_);
    for (int32_t n = 0; n < count(); ++n) place(n);
    return build();
  }

 private:
  int32_t count() const { return g_.count(); }
  const Node& node(int32_t n) const { return g_.node(n); }
  Kind kind(int32_t n) const { return kinds_[n]; }
  bool is_free(Value v) const { return kinds_[v] == Kind::Free; }
  const Dims& dims(int32_t n) const { return node(n).types[0].dims; }

  // ---- what nodes are ----
  void classify() {
    for (int32_t n = 0; n < count(); ++n) kinds_[n] = kind_of(n);
  }

  Kind kind_of(int32_t n) {
    const Node& x = node(n);
    if (x.op->name == "input") return Kind::Source;
    if (x.op->name == "constant")
      return x.attrs.get<ir::Literal>("value").bytes->size() == size_of(x.types[0].dtype) ? Kind::Free : Kind::Source;
    if (x.op->has(ir::kProduct)) return Kind::Product;
    if ((!x.op->body && !x.op->loops) || x.types.size() != 1) return Kind::Other;
    const ir::Loops& l = composer_.loops(n);
    if (l.scan_axis >= 0) return Kind::Other;
    if (l.reduction) return l.reduction->limit ? Kind::Other : Kind::Reduce;
    return ir::moves_only(l.results[0]) ? Kind::Free : x.op->has(ir::kView) ? Kind::Other : Kind::Map;
  }

  // One operation on a tensor that is in memory anyway, such as x - mean: whoever reads it may as well read the tensor. So may those who
  // share a map of such tensors among them, each element going to one, such as the parts of a sum.
  bool free_cheap_maps() {
    bool any = false;
    for (int32_t n = 0; n < count(); ++n) {
      if (kind(n) != Kind::Map || !node(n).op->body || is_output_[n]) continue;
      if (users_[n].size() < 2) continue;
      if (std::ranges::any_of(users_[n], [&](int32_t u) { return node(u).device != node(n).device; })) continue;
      int32_t wholes = 0;
      bool in_memory = true;
      const Dim size = product(dims(n));
      for (const Access& a : accesses_[n])
        if (product(g_.type(a.value).dims) == size) {
          in_memory = in_memory && is_in_memory(a.value.node);
          ++wholes;
        }
      const bool cheap = wholes == 1 && is_cheap(composer_.loops(n).results[0]);
      if (!in_memory || wholes == 0 || (!cheap && !is_shared_out(n))) continue;
      kinds_[n] = Kind::Free;
      any = true;
    }
    return any;
  }
  bool is_shared_out(int32_t n) const {
    Dim read = 0;
    for (int32_t u : users_[n]) {
      if (kind(u) != Kind::Map) return false;
      read = read + product(dims(u));
    }
    return read == product(dims(n));
  }
  static bool is_cheap(const Scalar& s) {
    const auto is_leaf = [](const Scalar& x) { return x->in.empty() || x->prim == Prim::Load; };
    const bool simple = s->prim == Prim::Add || s->prim == Prim::Sub || s->prim == Prim::Mul || s->prim == Prim::Neg;
    return simple && std::ranges::all_of(s->in, is_leaf);
  }
  // Whether a value goes to memory whatever is fused.
  bool is_in_memory(int32_t n) const {
    if (kind(n) == Kind::Source || kind(n) == Kind::Other || is_output_[n]) return true;
    return std::ranges::any_of(users_[n], [&](int32_t u) { return kind(u) != Kind::Map; });
  }

  // ---- who reads what ----
  int number(Value v) {
    const auto [it, fresh] = numbers_.try_emplace(v, static_cast<int>(values_.size()));
    if (fresh) values_.push_back(v);
    return it->second;
  }

  static std::vector<Scalar> axes(size_t n) {
    std::vector<Scalar> a;
    for (size_t j = 0; j < n; ++j) a.push_back(ir::axis(static_cast<int>(j)));
    return a;
  }

  void find_accesses() {
    accesses_ = ir::NodeMap<std::vector<Access>>(g_);
    users_ = ir::NodeMap<std::vector<int32_t>>(g_);
    is_output_ = ir::NodeMap<bool>(g_);
    for (Value v : g_.outputs) is_output_[v] = true;
    // Movement that somebody wants in memory is a reader like any other.
    ir::NodeMap<bool> in_memory = is_output_;
    for (int32_t n = count(); n-- > 0;) {
      if (is_loops(n) || (kind(n) == Kind::Free && !in_memory[n])) continue;
      for (Value v : node(n).inputs) in_memory[v] = true;
    }
    for (int32_t n = 0; n < count(); ++n) {
      if (is_loops(n)) read_loops(n);
      if (kind(n) == Kind::Free && !in_memory[n]) continue;
      for (Value v : needs(n)) add_user(v.node, n);
    }
  }
  bool is_loops(int32_t n) const { return kind(n) == Kind::Map || kind(n) == Kind::Reduce; }
  // What has to be there before a node: what its loops load, movement aside, or its operands.
  std::vector<Value> needs(int32_t n) const {
    if (!is_loops(n)) return node(n).inputs;
    std::vector<Value> values;
    for (const Access& a : accesses_[n]) values.push_back(a.value);
    return values;
  }
  void add_user(int32_t read, int32_t by) {
    auto& list = users_[read];
    if (list.empty() || list.back() != by) list.push_back(by);
  }
  void read_loops(int32_t n) {
    const ir::Loops l = composer_.loops(n);
    std::vector<Scalar> roots;
    composer_.number_state(n, 0);
    if (l.reduction)
      for (const Scalar& e : l.reduction->element)
        roots.push_back(composer_.inside(n, e, axes(l.extents.size() + l.reduction->extents.size())));
    for (const Scalar& r : l.results) roots.push_back(composer_.inside(n, r, axes(l.extents.size())));
    std::set<const ir::ScalarNode*> addresses;
    for (const Scalar& s : ir::post_order(roots))
      if (s->prim == Prim::Load)
        for (const Scalar& i : ir::post_order(std::span(s->in).first(s->in.size() - (s->guarded ? 1 : 0)))) addresses.insert(i.get());
    for (const Scalar& s : ir::post_order(roots))
      if (s->prim == Prim::Load) {
        Access a{values_[static_cast<size_t>(s->index)], s->in, addresses.contains(s.get())};
        if (s->guarded) a.index.resize(a.index.size() - 2);
        accesses_[n].push_back(std::move(a));
      }
    mention(n, n);
  }
  // An operand that is not loaded (only its extents count) must be there all the same.
  void mention(int32_t reader, int32_t n) {
    for (Value v : node(n).inputs) {
      if (is_free(v)) {
        mention(reader, v.node);
        continue;
      }
      auto& known = accesses_[reader];
      if (std::ranges::none_of(known, [&](const Access& a) { return a.value == v; })) known.push_back({v, {}});
    }
  }

  // ---- maps that only a reduction reads ----
  // They are computed inside it instead of going through memory, when that computes each element once.
  void find_sinks() {
    sinks_ = ir::NodeMap<int32_t>(g_, -1);
    sunk_ = ir::NodeMap<std::vector<int32_t>>(g_);
    for (int32_t n = count(); n-- > 0;) {
      const auto& users = users_[n];
      if (kind(n) != Kind::Map || is_output_[n] || users.empty()) continue;
      const int32_t sink = sink_through(n, users[0]);
      if (sink < 0 || !std::ranges::all_of(users, [&](int32_t u) { return sink_through(n, u) == sink; })) continue;
      sinks_[n] = sink;
      sunk_[sink].push_back(n);
    }
  }
  // The reduction that n would be computed in because of one of its readers, or -1.
  int32_t sink_through(int32_t n, int32_t user) {
    if (node(user).device != node(n).device) return -1;
    if (kind(user) == Kind::Map) return ir::same_space(dims(user), dims(n)) ? sinks_[user] : -1;
    if (kind(user) != Kind::Reduce) return -1;
    const ir::Loops& l = composer_.loops(user);
    return product(l.extents) * product(l.reduction->extents) == product(dims(n)) ? user : -1;
  }

  // ---- groups ----
  int32_t group_of(int32_t n) const { return group_of_[n]; }
  Group& group(int32_t g) { return groups_[static_cast<size_t>(g)]; }
  const std::vector<Access>& accesses(int32_t n) const { return accesses_[n]; }

  void place(int32_t n) {
    if (kind(n) == Kind::Product && dims(n).size() >= 2) start({n}, Form::Epilogue, ir::without_ones(dims(n)));
    if (kind(n) == Kind::Map && sinks_[n] < 0) place_map(n);
    if (kind(n) == Kind::Reduce) place_reduce(n);
  }

  void place_map(int32_t n) {
    int32_t home = -1;
    for (int32_t g : candidates(std::span(&n, 1)))
      if (takes_map(g, n) && has_room(g, std::span(&n, 1)) && keeps_order(g, std::span(&n, 1))) {
        home = g;
        add(g, n);
        break;
      }
    if (home < 0) home = start({n}, Form::Map, ir::without_ones(dims(n)));
    absorb(home, std::span(&n, 1));
  }

  // Other groups that the new nodes read, in the same space, come along.
  void absorb(int32_t home, std::span<const int32_t> fresh) {
    for (int32_t g : candidates(fresh)) {
      const bool rows = group(home).form == Form::Row;
      const bool fitting = group(g).form == Form::Map || (rows && group(g).form == Form::Row);
      if (g == home || !fitting || group(g).space != group(home).space) continue;
      const auto reads_rightly = [&](int32_t m) { return rows ? reads_row_elements(g, m, reader_dims(m)) : reads_own_elements(g, m); };
      const std::vector<int32_t> nodes = group(g).nodes;
      if (!std::ranges::all_of(group(home).nodes, reads_rightly) || !has_room(home, nodes)) continue;
      if (!keeps_order(home, nodes) || !keeps_order(g, group(home).nodes)) continue;
      for (int32_t m : nodes) add(home, m);
      group(g).nodes.clear();
    }
  }

  void place_reduce(int32_t n) {
    std::vector<int32_t> nodes = sunk_[n];
    nodes.push_back(n);
    std::ranges::sort(nodes);
    const ir::Loops& l = composer_.loops(n);
    const Dims rows = ir::without_ones(l.extents);
    if (is_row(n, rows)) {
      Dims space = rows;
      space.push_back(l.reduction->extents[0]);
      std::vector<int32_t> homes = candidates(nodes);
      for (int32_t g : siblings(n))  // another walk over the same rows will do as well
        if (group(g).form == Form::Row && std::ranges::find(homes, g) == homes.end()) homes.push_back(g);
      for (int32_t g : homes) {
        const bool fitting = (group(g).form == Form::Row || group(g).form == Form::Map) && group(g).space == space;
        if (!fitting || !has_room(g, nodes) || !keeps_order(g, nodes)) continue;
        if (!std::ranges::all_of(nodes, [&](int32_t m) { return reads_row_elements(g, m, reader_dims(m)); })) continue;
        group(g).form = Form::Row;
        for (int32_t m : nodes) add(g, m);
        return absorb(g, nodes);
      }
      start(nodes, Form::Row, std::move(space));
      return;
    }
    // Another reduction over the same elements goes along.
    for (int32_t g : siblings(n)) {
      const bool fitting = group(g).form == Form::Reduce && group(g).space == rows && group(g).reduce == l.reduction->extents;
      if (!fitting || !has_room(g, nodes) || !keeps_order(g, nodes)) continue;
      const auto reads_it = [&](int32_t m) {
        return std::ranges::any_of(accesses(m), [&](const Access& a) { return group_of(a.value.node) == g; });
      };
      if (std::ranges::any_of(nodes, reads_it)) continue;
      for (int32_t m : nodes) add(g, m);
      return;
    }
    const int32_t g = start(nodes, Form::Reduce, rows);
    group(g).reduce = l.reduction->extents;
  }

  // Whether a reduction goes along the last axis of something, in rows that stay in the cache and are enough for all threads.
  bool is_row(int32_t n, const Dims& rows) {
    const ir::Loops& l = composer_.loops(n);
    if (rows.empty() || l.reduction->extents.size() != 1) return false;
    const Dim& length = l.reduction->extents[0];
    if (length.is(1) || length.is(0) || (length.is_const() && length.value() > kLongestRow)) return false;
    const Dim row_count = product(rows);
    if (row_count.is_const() && row_count.value() < kFewestRows && length.is_const() && length.value() > kLongRow) return false;
    const Dims reader = reader_dims(n);
    return std::ranges::any_of(accesses(n), [&](const Access& a) { return ir::is_own_element(a.index, g_.type(a.value).dims, reader); });
  }
  // The extents of the axes that a node's accesses are written in.
  Dims reader_dims(int32_t n) {
    const ir::Loops& l = composer_.loops(n);
    Dims all = l.extents;
    if (l.reduction) all.insert(all.end(), l.reduction->extents.begin(), l.reduction->extents.end());
    return all;
  }

  bool takes_map(int32_t g, int32_t n) {
    const auto from_here = [&](const Access& a) { return a.in_address && group_of(a.value.node) == g; };
    if (group(g).form != Form::Map && std::ranges::any_of(accesses(n), from_here)) return false;  // accumulators give no addresses
    const Dims space = ir::without_ones(dims(n));
    if (group(g).form != Form::Row) return space == group(g).space && reads_own_elements(g, n);
    const Dims rows(group(g).space.begin(), group(g).space.end() - 1);
    return (space == group(g).space && reads_row_elements(g, n, dims(n))) || (space == rows && reads_own_elements(g, n));
  }
  bool reads_own_elements(int32_t g, int32_t n) {
    if (kind(n) == Kind::Product)  // it reads whole rows and columns
      return std::ranges::none_of(needs(n), [&](Value v) { return group_of(v.node) == g; });
    return std::ranges::all_of(accesses(n), [&](const Access& a) {
      return group_of(a.value.node) != g || ir::is_own_element(a.index, g_.type(a.value).dims, dims(n));
    });
  }
  // Own elements of whole rows, and what there is one of in the reader's own row.
  bool reads_row_elements(int32_t g, int32_t n, const Dims& reader) {
    Dims row = reader;
    while (!row.empty() && row.back().is(1)) row.pop_back();
    if (!row.empty()) row.pop_back();
    return std::ranges::all_of(accesses(n), [&](const Access& a) {
      if (group_of(a.value.node) != g) return true;
      const Dims& d = g_.type(a.value).dims;
      return ir::is_own_element(a.index, d, reader) || ir::is_own_element(a.index, d, row);
    });
  }

  // Groups that some nodes read from, the latest first: the fewer nodes lie between, the less there is to check.
  std::vector<int32_t> candidates(std::span<const int32_t> nodes) {
    std::vector<int32_t> found;
    for (int32_t n : nodes)
      for (const Access& a : accesses(n))
        if (const int32_t g = group_of(a.value.node); g >= 0 && std::ranges::find(found, g) == found.end()) found.push_back(g);
    std::ranges::sort(found, [&](int32_t a, int32_t b) { return group(a).last > group(b).last; });
    return found;
  }
  std::vector<int32_t> siblings(int32_t n) {
    std::vector<int32_t> found;
    for (const Access& a : accesses(n))
      for (int32_t u : users_[a.value])
        if (const int32_t g = u < n ? group_of(u) : -1; g >= 0 && std::ranges::find(found, g) == found.end()) found.push_back(g);
    return found;
  }

  bool has_room(int32_t g, std::span<const int32_t> nodes) {
    if (std::ranges::any_of(nodes, [&](int32_t n) { return node(n).device != group(g).device; })) return false;
    if (group(g).nodes.size() + nodes.size() > kMostNodes) return false;
    if (group(g).form == Form::Epilogue && std::ranges::any_of(nodes, [&](int32_t n) { return waits_for_another_device(n); })) return false;
    std::set<int32_t> inside(group(g).nodes.begin(), group(g).nodes.end());
    inside.insert(nodes.begin(), nodes.end());
    std::set<Value> operands;
    size_t results = 0;
    for (int32_t n : inside) {
      for (Value v : needs(n))
        if (!inside.contains(v.node)) operands.insert(v);
      const auto& users = users_[n];
      if (is_output_[n] || std::ranges::any_of(users, [&](int32_t u) { return !inside.contains(u); })) ++results;
    }
    return operands.size() + results <= kMostOperands;
  }

  // A product would wait for it before it begins.
  bool waits_for_another_device(int32_t n) {
    return std::ranges::any_of(needs(n), [&](Value v) { return node(v.node).device >= 0 && node(v.node).device != node(n).device; });
  }

  // Whether the group can take nodes in without having to run both before and after something else.
  bool keeps_order(int32_t g, std::span<const int32_t> nodes) {
    const int32_t own = nodes.empty() ? -1 : group_of(nodes[0]);
    const int32_t first = horizon(g);
    ++stamp_;
    for (int32_t n : nodes)
      for (Value v : needs(n)) {
        const int32_t m = v.node;
        const int32_t h = group_of(m);
        if (h == g || (h >= 0 && h == own) || std::ranges::find(nodes, m) != nodes.end()) continue;
        if (depends_on(m, g, first)) return false;
      }
    return true;
  }

  // The node before which nothing can need something of a group. Not its first: a group that began earlier may have taken in a node behind
  // it, and then whoever reads that one waits too.
  int32_t horizon(int32_t g) const {
    int32_t first = groups_[static_cast<size_t>(g)].first;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Group& h : groups_)
        if (!h.nodes.empty() && h.last >= first && h.first < first) {
          first = h.first;
          moved = true;
        }
    }
    return first;
  }

  // Whether a node needs something of a group, directly or through others. Looks only at what comes behind `first`, the group's horizon,
  // and only once at each node for one stamp.
  bool depends_on(int32_t start_node, int32_t g, int32_t first) {
    std::vector<int32_t> stack{start_node};
    const auto push = [&](int32_t m) {
      if (seen_[m] == stamp_) return;
      seen_[m] = stamp_;
      const int32_t h = group_of(m);
      if ((h >= 0 ? group(h).last : m) >= first) stack.push_back(m);
    };
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      if (group_of(n) == g) return true;
      if (const int32_t h = group_of(n); h >= 0)
        for (int32_t m : group(h).nodes) push(m);
      for (Value v : needs(n)) push(v.node);
    }
    return false;
  }

  int32_t start(const std::vector<int32_t>& nodes, Form form, Dims space) {
    Group fresh;
    fresh.form = form;
    fresh.device = node(nodes.front()).device;
    fresh.space = std::move(space);
    fresh.first = nodes.front();
    groups_.push_back(std::move(fresh));
    const auto g = static_cast<int32_t>(groups_.size()) - 1;
    for (int32_t n : nodes) add(g, n);
    return g;
  }
  void add(int32_t g, int32_t n) {
    group_of_[n] = g;
    group(g).nodes.push_back(n);
    group(g).first = std::min(group(g).first, n);
    group(g).last = std::max(group(g).last, n);
  }

  // ---- the new graph ----
  // A unit is a group, or a node by itself; it is named by its first node.
  int32_t unit_of(int32_t n) const {
    const int32_t g = group_of(n);
    return g < 0 ? n : groups_[static_cast<size_t>(g)].first;
  }

  Graph build() {
    // Which nodes are wanted, from the outputs back: a dead node is not brought to life.
    ir::NodeMap<bool> wanted(g_);
    ir::NodeMap<std::vector<int32_t>> members(g_);  // by unit
    std::vector<int32_t> stack;
    const auto want = [&](int32_t n) {
      if (wanted[n]) return;
      wanted[n] = true;
      stack.push_back(n);
    };
    for (Value v : g_.outputs) want(v.node);
    needed_ = ir::NodeMap<bool>(g_);
    for (Value v : g_.outputs) needed_[v] = true;
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      for (Value v : needs(n)) {
        if (group_of(n) < 0 || group_of(v.node) != group_of(n)) needed_[v] = true;
        want(v.node);
      }
    }

    for (int32_t n = 0; n < count(); ++n)
      if (wanted[n] && group_of(n) >= 0) members[unit_of(n)].push_back(n);

    // Kahn's algorithm over units, earliest first.
    std::map<int32_t, std::set<int32_t>> waits, readers;
    for (int32_t n = 0; n < count(); ++n) {
      if (!wanted[n] || kind(n) == Kind::Source) continue;
      auto& own = waits[unit_of(n)];
      for (Value v : needs(n))
        if (kind(v.node) != Kind::Source && unit_of(v.node) != unit_of(n)) {
          own.insert(unit_of(v.node));
          readers[unit_of(v.node)].insert(unit_of(n));
        }
    }
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (const auto& [unit, on] : waits)
      if (on.empty()) ready.push(unit);

    ir::Builder b(table_);
    ir::Rewriter r(b, g_);
    r.inputs();
    for (int32_t n = 0; n < count(); ++n)
      if (wanted[n] && kind(n) == Kind::Source && node(n).op->name != "input") r.put(n, r.copy(n));
    size_t emitted = 0;
    while (!ready.empty()) {
      const int32_t unit = ready.top();
      ready.pop();
      ++emitted;
      if (group_of(unit) >= 0)
        emit_group(b, r, group(group_of(unit)), members[unit]);
      else
        r.put(unit, r.copy(unit));
      for (int32_t reader : readers[unit])
        if (waits[reader].erase(unit) && waits[reader].empty()) ready.push(reader);
    }
    TANDEM_CHECK(emitted == waits.size(), "fusion made groups that need each other: ", emitted, " of ", waits.size(), " could be ordered");
    return b.finish(r.now(g_.outputs), g_.name);
  }

  void emit_group(ir::Builder& b, ir::Rewriter& r, const Group& group, const std::vector<int32_t>& nodes) {
    const auto is_plain = [&](Value v) { return !is_free(v); };
    if (nodes.size() == 1 && std::ranges::all_of(node(nodes[0]).inputs, is_plain)) return r.put(nodes[0], r.copy(nodes[0]));
    if (nodes.size() == 1 && kind(nodes[0]) == Kind::Product) return r.put(nodes[0], r.copy(nodes[0]));

    ir::Builder inner(table_);
    std::map<Value, Value> to;
    std::vector<Value> operands;
    const auto take = [&](Value v) {
      if (to.contains(v)) return;
      to[v] = inner.input(g_.type(v));
      operands.push_back(v);
    };
    const std::set<int32_t> inside(nodes.begin(), nodes.end());
    for (int32_t n : nodes)
      if (kind(n) == Kind::Product)  // its operands come first, one by one even when two are the same
        for (Value v : node(n).inputs) {
          to[v] = inner.input(g_.type(v));
          operands.push_back(v);
        }
    for (int32_t n : nodes)
      if (kind(n) != Kind::Product)
        for (const Access& a : accesses(n))
          if (!inside.contains(a.value.node)) take(a.value);
    for (int32_t n : nodes) copy(inner, n, to);

    std::vector<Value> results, outputs;  // whole rows first
    for (const bool per_row : {false, true})
      for (int32_t n : nodes)
        if (needed_[n] && is_per_row(group, n) == per_row) {
          results.push_back({n, 0});
          outputs.push_back(to.at({n, 0}));
        }
    ir::Attrs attrs{{"body", ir::Graphs{std::make_shared<const Graph>(inner.finish(std::move(outputs), g_.name))}},
                    {"form", std::string(ir::name(group.form))}};
    b.follow(node(nodes.back()));
    const std::vector<Value> out = b.nodes("fused", r.now(operands), attrs);
    for (size_t i = 0; i < out.size(); ++i) r.put(results[i].node, {{out[i]}});
  }
  bool is_per_row(const Group& group, int32_t n) const {
    return group.form == Form::Row && ir::without_ones(dims(n)).size() < group.space.size();
  }

  // A node and the movement before it, as far as the body does not have them.
  void copy(ir::Builder& b, int32_t n, std::map<Value, Value>& to) {
    if (to.contains({n, 0})) return;
    const Node& x = node(n);
    for (Value v : x.inputs)
      if (!to.contains(v)) copy(b, v.node, to);
    std::vector<Value> in;
    if (kind(n) == Kind::Product)
      in = first_inputs(b, x.inputs.size());
    else
      for (Value v : x.inputs) in.push_back(to.at(v));
    b.follow(x);
    to[{n, 0}] = b.node(*x.op, in, x.attrs).front();
  }
  static std::vector<Value> first_inputs(const ir::Builder& b, size_t count) {
    return {b.graph().inputs.begin(), b.graph().inputs.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  const ir::OpTable& table_;
  const Graph& g_;
  ir::NodeMap<Kind> kinds_;
  std::map<Value, int> numbers_;
  std::vector<Value> values_;  // by number
  ir::Composer composer_;
  ir::NodeMap<std::vector<Access>> accesses_;
  ir::NodeMap<std::vector<int32_t>> users_, sunk_;
  ir::NodeMap<bool> is_output_, needed_;
  ir::NodeMap<int32_t> sinks_;
  std::vector<Group> groups_;
  ir::NodeMap<int32_t> group_of_;
  ir::NodeMap<int> seen_;
  int stamp_ = 0;
};

}  // namespace

Graph fuse(const ir::OpTable& table, const Graph& g) {
  return Fuser(table, ir::with_subgraphs(g, [&](const Graph& inner) { return fuse(table, inner); })).run();
}

}  // namespace tandem::passes
