#include "engine/state_placement.hpp"

#include <algorithm>
#include <map>

#include "device/account.hpp"
#include "ops/table.hpp"
#include "transform/cut.hpp"

namespace tandem::engine {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

constexpr size_t kLeastBytes = 4096;  // a smaller tensor frees nothing worth a copy each step
constexpr size_t kScrapBytes = 1024;  // operands of an update that cost nothing to bring
constexpr size_t kGatheredShare = 4;  // a row lookup is the table's that gives at most this part of it

// The value whose bytes it is.
Value source_of(const Graph& g, Value v) {
  while (g.node(v).op->has(ir::kView) && v.out == 0) v = g.node(v).inputs[0];
  return v;
}

std::vector<std::vector<int32_t>> users_of(const Graph& g) {
  std::vector<std::vector<int32_t>> users(g.nodes.size());
  for (size_t n = 0; n < g.nodes.size(); ++n)
    for (const Value v : g.nodes[n].inputs) users[static_cast<size_t>(v.node)].push_back(static_cast<int32_t>(n));
  return users;
}

}  // namespace

StatePlacement::StatePlacement(const plan::Request& request, int32_t device, int32_t host, CanFn can)
    : request_(request), device_(device), host_(host), can_(std::move(can)) {
  find_groups();
}

size_t StatePlacement::bytes_of(const Graph& g, Value v) const {
  const ir::TensorType& t = g.type(v);
  return byte_size(bind(t.dims, request_.bindings), t.dtype);
}

void StatePlacement::find_groups() {
  const Graph& g = request_.graph;
  std::vector<int64_t> uses(g.inputs.size());
  std::vector<int32_t> maker(g.inputs.size(), -1);  // of the next value
  std::map<int32_t, size_t> input_of;               // by node
  for (size_t i = 0; i < g.inputs.size(); ++i) input_of[g.inputs[i].node] = i;
  for (const Node& n : g.nodes)
    for (const Value v : n.inputs)
      if (const auto it = input_of.find(v.node); it != input_of.end()) ++uses[it->second];
  for (size_t k = 0; k < request_.donations.size(); ++k)
    if (const int32_t j = request_.donations[k]; j >= 0) maker[static_cast<size_t>(j)] = source_of(g, g.outputs[k]).node;
  std::map<int32_t, size_t> group_of;  // by maker
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    const size_t bytes = bytes_of(g, g.inputs[i]);
    if (request_.input_devices[i] != device_ || bytes < kLeastBytes) continue;
    const int32_t by = maker[i];
    const auto known = group_of.find(by);
    if (by < 0 || known == group_of.end()) {
      if (by >= 0) group_of[by] = groups_.size();
      groups_.emplace_back();
    }
    Group& group = by >= 0 ? groups_[group_of[by]] : groups_.back();
    group.inputs.push_back(i);
    group.bytes += device::Account::counted(bytes);
    state_bytes_ += device::Account::counted(bytes);
  }
  // A gradient comes and a weight goes, whatever else there is. What nobody overwrites is brought for each of its uses.
  for (Group& group : groups_) {
    int64_t copies = 0;
    for (const size_t i : group.inputs) copies += maker[i] < 0 ? std::max<int64_t>(uses[i], 1) : uses[i] > 1 ? 2 : 0;
    group.worth = static_cast<double>(group.inputs.size()) / static_cast<double>(std::max<int64_t>(copies, 1));
  }
  for (const Group& group : groups_)
    for (const size_t i : group.inputs)
      singles_.push_back({{i}, device::Account::counted(bytes_of(g, g.inputs[i])), -static_cast<double>(uses[i])});
  for (auto* list : {&groups_, &singles_})
    std::ranges::stable_sort(*list,
                             [](const Group& a, const Group& b) { return a.worth != b.worth ? a.worth > b.worth : a.bytes > b.bytes; });
}

Placement StatePlacement::place(size_t bytes, Updates updates) const {
  Placement p;
  p.graph = request_.graph;
  p.input_devices = request_.input_devices;
  p.output_devices = request_.output_devices.empty() ? std::vector<int32_t>(p.graph.outputs.size()) : request_.output_devices;
  std::vector<bool> is_sent(p.graph.inputs.size());
  for (const Group& group : updates == Updates::OnHost ? groups_ : singles_) {
    if (p.sent_bytes >= bytes) break;
    for (const size_t i : group.inputs) {
      is_sent[i] = true;
      p.input_devices[i] = host_;
      ++p.sent;
    }
    p.sent_bytes += group.bytes;
  }
  for (size_t k = 0; k < request_.donations.size(); ++k)
    if (const int32_t j = request_.donations[k]; j >= 0 && is_sent[static_cast<size_t>(j)]) p.output_devices[k] = host_;
  p.on_host.resize(p.graph.nodes.size());
  if (updates == Updates::OnHost && p.sent > 0) choose_nodes(p, is_sent);
  return p;
}

// The nodes that make the next values of what is on the host, and what only they want or what only takes rows of it.
void StatePlacement::choose_nodes(Placement& p, const std::vector<bool>& is_sent) const {
  const auto makers = [&](const Graph& g) {
    std::vector<bool> is_maker(g.nodes.size());
    for (size_t k = 0; k < request_.donations.size(); ++k)
      if (const int32_t j = request_.donations[k]; j >= 0 && is_sent[static_cast<size_t>(j)])
        is_maker[static_cast<size_t>(source_of(g, g.outputs[k]).node)] = true;
    return is_maker;
  };
  std::vector<bool> ends = makers(p.graph);
  for (size_t n = 0; n < ends.size(); ++n) ends[n] = ends[n] && transform::has_exact_epilogue(p.graph.nodes[n]);
  if (std::ranges::find(ends, true) != ends.end()) p.graph = transform::cut_epilogues(ops::table(), p.graph, ends);

  const Graph& g = p.graph;
  const std::vector<bool> is_maker = makers(g);
  const std::vector<std::vector<int32_t>> users = users_of(g);
  p.on_host.assign(g.nodes.size(), false);
  std::vector<bool> is_there(g.nodes.size());  // its result is on the host
  for (size_t i = 0; i < g.inputs.size(); ++i) is_there[static_cast<size_t>(g.inputs[i].node)] = is_sent[i];
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (node.op->has(ir::kView)) is_there[n] = is_there[static_cast<size_t>(node.inputs[0].node)];
    if (node.op->name == "input" || node.op->name == "constant" || node.op->has(ir::kView)) continue;
    if (!can_(g, node)) {
      is_there[n] = true;
      continue;
    }
    size_t read = 0, made = 0;
    for (const Value v : node.inputs)
      if (is_there[static_cast<size_t>(v.node)]) read += bytes_of(g, v);
    for (size_t o = 0; o < node.types.size(); ++o) made += bytes_of(g, {static_cast<int32_t>(n), static_cast<int32_t>(o)});
    const bool takes_rows = read >= kLeastBytes && made * kGatheredShare <= read;
    if (!(is_maker[n] || takes_rows) || !transform::is_exact_map(g, node)) continue;
    p.on_host[n] = is_there[n] = true;
  }
  // What is made for them alone, of little or of what is there.
  for (size_t n = g.nodes.size(); n-- > 0;)
    if (!p.on_host[n] && is_moved_with(g, static_cast<int32_t>(n), is_there, users)) p.on_host[n] = is_there[n] = true;
}

bool StatePlacement::is_moved_with(const Graph& g, int32_t number, const std::vector<bool>& is_there,
                                   const std::vector<std::vector<int32_t>>& users) const {
  const Node& node = g.nodes[static_cast<size_t>(number)];
  const std::vector<int32_t>& readers = users[static_cast<size_t>(number)];
  if (readers.empty() || node.op->name == "input" || node.op->name == "constant" || node.op->has(ir::kView)) return false;
  if (std::ranges::any_of(g.outputs, [&](Value v) { return v.node == number; })) return false;
  if (!std::ranges::all_of(readers, [&](int32_t r) { return is_there[static_cast<size_t>(r)]; })) return false;
  size_t brought = 0, made = 0;
  for (const Value v : node.inputs)
    if (!is_there[static_cast<size_t>(v.node)] && g.node(v).op->name != "constant") brought += bytes_of(g, v);
  for (size_t o = 0; o < node.types.size(); ++o) made += bytes_of(g, {number, static_cast<int32_t>(o)});
  return made >= kLeastBytes && brought <= kScrapBytes && transform::is_exact_map(g, node);
}

}  // namespace tandem::engine
