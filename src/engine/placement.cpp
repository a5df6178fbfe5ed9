#include "engine/placement.hpp"

#include <algorithm>
#include <functional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "ir/rewrite.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"
#include "plan/placement.hpp"
#include "plan/seconds.hpp"

namespace tandem::engine {

namespace {
bool is_source(const ir::Node& n) { return n.op->name == "input" || n.op->name == "constant"; }
}  // namespace

bool can(const device::Device& device, const ir::Graph& g, const ir::Node& n) {
  if (is_source(n)) return true;
  for (const auto& [key, value] : n.attrs.entries())
    if (const auto* graphs = std::get_if<ir::Graphs>(&value))
      if (!std::ranges::all_of(*graphs, [&](const ir::GraphRef& body) {
            return std::ranges::all_of(body->nodes, [&](const ir::Node& inner) { return can(device, *body, inner); });
          }))
        return false;
  if (ir::has_subgraphs(n)) return true;
  std::vector<ir::TensorType> in;
  for (ir::Value v : n.inputs) in.push_back(g.type(v));
  return device.can({*n.op, in, n.attrs});
}

namespace {

constexpr double kGain = 0.9;   // leaving the CPU has to save a tenth at least: the model is no better than that
constexpr double kAlike = 1.3;  // measured rates of two cards of one kind differ by less

[[noreturn]] void refuse(const ir::Node& n, const device::DeviceInfo& info) {
  const bool is_host_routine = n.op->evaluate && !n.op->body && !n.op->loops && !n.op->decompose;
  const std::string text =
      cat(n.op->name, ": ", info.name, " cannot do it", is_host_routine ? ": only the CPU has a routine for it" : " for these types",
          n.location ? cat("\n  at ", n.location) : std::string(), "\n  hint: soft placement lets the CPU do it");
  user_error(text);
}

// The first wish in a node's bodies.
int32_t wish_inside(const ir::Node& n) {
  for (const auto& [key, value] : n.attrs.entries())
    if (const auto* graphs = std::get_if<ir::Graphs>(&value))
      for (const ir::GraphRef& body : *graphs)
        for (const ir::Node& inner : body->nodes) {
          const int32_t found = inner.device >= 0 ? inner.device : wish_inside(inner);
          if (found >= 0) return found;
        }
  return kAny;
}

bool has_wishes(const ir::Graph& g) {
  return std::ranges::any_of(g.nodes, [](const ir::Node& n) { return n.device >= 0 || wish_inside(n) >= 0; });
}

// Every node's wish set anew, also in bodies: `f` of what it was. A node that has bodies has one device with them.
ir::Graph with_wishes(ir::Graph g, const std::function<int32_t(int32_t)>& f) {
  for (ir::Node& n : g.nodes) {
    if (is_source(n)) continue;
    n.device = f(n.device >= 0 ? n.device : wish_inside(n));
    if (ir::has_subgraphs(n)) {
      const int32_t own = n.device;
      ir::map_subgraphs(n, [&](const ir::Graph& inner) { return with_wishes(inner, [&](int32_t) { return own; }); });
    }
  }
  return g;
}

class Placer {
 public:
  Placer(const ToPlace& wanted, const Devices& devices) : wanted_(wanted), devices_(devices) {}

  Placed run() {
    if (devices_.count() == 1) return {without_wishes(0), &devices_, {}, {}, {}};
    const bool wishes = has_wishes(wanted_.graph);
    if (!wanted_.soft) check_wishes(wanted_.graph);
    if (devices_.preferred >= 0) return all_on(devices_.preferred, Why::Preferred);
    Placed best = all_on(devices_.host, Why::Cost);
    double least = cost_on_host(best);
    for (const int32_t d : devices_.accelerators()) {
      if (!is_alike_new(d)) continue;
      if (!wishes && !has_inputs_on(d) && least <= 2 * rates(d).launch_seconds) continue;
      Placed there = all_on(d, Why::Cost);
      double seconds = cost(there);
      if (!wishes) {
        Placed part = divided(there, d);
        const double of_part = cost(part);
        if (of_part < seconds) there = std::move(part), seconds = of_part;
      }
      if (seconds >= kGain * least) continue;
      best = std::move(there);
      least = seconds;
    }
    return best;
  }

 private:
  void check_wishes(const ir::Graph& g) const {
    for (const ir::Node& n : g.nodes) {
      const int32_t wish = n.device >= 0 ? n.device : wish_inside(n);
      if (known(wish) && n.op->name != "host_call" && !can(devices_.at(wish), g, n)) refuse(n, devices_.at(wish).info());
    }
  }
  // Nothing is known of what a composite costs that is kept whole: it counts as what it stands for.
  double cost_on_host(const Placed& p) const {
    if (std::ranges::none_of(p.graph.nodes, [](const ir::Node& n) { return n.op->decompose != nullptr; })) return cost(p);
    Placed expanded = p;
    expanded.graph = passes::run_pipeline(ops::table(), wanted_.graph, {}, wanted_.precision);
    expanded.of_nodes.assign(expanded.graph.nodes.size(), devices_.host);
    return cost(expanded);
  }
  const device::Rates& rates(int32_t d) const { return devices_.at(d).rates(); }
  bool has_inputs_on(int32_t d) const { return std::ranges::find(wanted_.homes, d) != wanted_.homes.end(); }
  static bool are_alike(const device::Rates& a, const device::Rates& b) {
    const auto close = [](double x, double y) { return x <= kAlike * y && y <= kAlike * x; };
    return close(a.flops_per_second, b.flops_per_second) && close(a.bytes_per_second, b.bytes_per_second) &&
           close(a.link_bytes_per_second, b.link_bytes_per_second);
  }
  // Of cards that are as fast as one before and have none of the operands, that one will do.
  bool is_alike_new(int32_t d) const {
    if (has_inputs_on(d)) return true;
    for (const int32_t before : devices_.accelerators()) {
      if (before == d) return true;
      if (are_alike(rates(before), rates(d))) return false;
    }
    return true;
  }

  ir::Graph passed(const ir::Graph& g, int32_t otherwise) const {
    const auto keeps = [&](const ir::OpCall& call) { return devices_.at(call.device >= 0 ? call.device : otherwise).keeps(call); };
    return passes::run_pipeline(ops::table(), g, keeps, wanted_.precision);
  }
  ir::Graph without_wishes(int32_t otherwise) const {
    if (!has_wishes(wanted_.graph)) return passed(wanted_.graph, otherwise);
    return passed(with_wishes(wanted_.graph, [](int32_t) { return kAny; }), otherwise);
  }

  // What has no wish goes to one device, as far as that can do it.
  Placed all_on(int32_t device, Why why) const {
    Placed p;
    p.devices = &devices_;
    const bool wishes = has_wishes(wanted_.graph);
    // Without any, nodes keep none: then the device of a node is one more thing that the passes need not compare.
    p.graph = wishes ? passed(with_wishes(wanted_.graph, [&](int32_t wish) { return known(wish) ? wish : device; }), device)
                     : passed(wanted_.graph, device);
    for (const ir::Node& n : p.graph.nodes) {
      const int32_t there = n.device >= 0 ? n.device : device;
      const bool does = can(devices_.at(there), p.graph, n);
      p.of_nodes.push_back(does ? there : devices_.host);
      p.why.push_back(!does ? Why::Cannot : was_asked(n) && there != device ? Why::Asked : why);
    }
    find_homes(p);
    return p;
  }
  bool known(int32_t wish) const { return wish >= 0 && static_cast<size_t>(wish) < devices_.count(); }
  static bool was_asked(const ir::Node& n) { return n.device >= 0; }

  // State lives where its first reader is; what nobody reads stays.
  void find_homes(Placed& p) const {
    p.homes.assign(p.graph.inputs.size(), kAny);
    if (wanted_.is_state.empty()) return;
    for (size_t i = 0; i < p.graph.inputs.size(); ++i) {
      if (!wanted_.is_state[i]) continue;
      const int32_t input = p.graph.inputs[i].node;
      // Movement needs no step of its own: who reads it is behind it.
      std::vector<int32_t> reading{input};
      for (size_t n = static_cast<size_t>(input) + 1; n < p.graph.nodes.size() && p.homes[i] < 0; ++n) {
        const ir::Node& node = p.graph.nodes[n];
        if (std::ranges::none_of(node.inputs, [&](ir::Value v) { return std::ranges::find(reading, v.node) != reading.end(); })) continue;
        if (is_movement(node))
          reading.push_back(static_cast<int32_t>(n));
        else
          p.homes[i] = p.of_nodes[n];
      }
    }
  }
  static bool is_movement(const ir::Node& n) { return n.op->has(ir::kView) || n.op->name == "barrier" || n.op->name == "transpose"; }

  Estimate estimated(const Placed& p) const { return estimate(request_of(p, wanted_), devices_); }
  double cost(const Placed& p) const { return estimated(p).seconds; }

  // The cheapest cut between the CPU and a device. Seconds of each node come from the graph with everything on one of them.
  Placed divided(Placed p, int32_t device) const {
    const ir::Graph& g = p.graph;
    const size_t count = g.nodes.size();
    Placed on_host = p;
    std::ranges::fill(on_host.of_nodes, devices_.host);
    std::ranges::fill(on_host.homes, kAny);
    plan::PlacementProblem problem;
    problem.nodes.resize(count);
    const device::Rates& link = rates(device);
    int side = 0;
    for (const Placed* all : {static_cast<const Placed*>(&on_host), static_cast<const Placed*>(&p)}) {
      for (const Estimate::Row& row : estimated(*all).rows)
        if (row.node >= 0 && row.moved_bytes == 0)
          problem.nodes[static_cast<size_t>(row.node)].seconds[static_cast<size_t>(side)] += row.seconds;
      ++side;
    }
    for (size_t n = 0; n < count; ++n)
      if (!is_source(g.nodes[n]) && p.of_nodes[n] == devices_.host)
        problem.nodes[n].fixed = 0;
      else if (g.nodes[n].op->decompose)
        problem.nodes[n].fixed = 1;  // only that device keeps it whole
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      const bool moves = !wanted_.is_state.empty() && wanted_.is_state[i];
      if (!moves) problem.nodes[static_cast<size_t>(g.inputs[i].node)].fixed = wanted_.homes[i] == device ? 1 : 0;
    }
    std::vector<std::vector<size_t>> value_of(count);  // by node and result
    for (size_t n = 0; n < count; ++n)
      for (const ir::TensorType& t : g.nodes[n].types) {
        value_of[n].push_back(problem.values.size());
        const auto bytes = static_cast<double>(byte_size(bind(t.dims, wanted_.bindings), t.dtype));
        const bool crosses = g.nodes[n].op->name != "constant";
        problem.values.push_back({static_cast<int32_t>(n), {}, crosses ? device::copy_seconds(bytes, link) : 0});
      }
    const auto reads = [&](ir::Value v, int32_t reader) {
      problem.values[value_of[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)]].readers.push_back(reader);
    };
    for (size_t n = 0; n < count; ++n)
      for (const ir::Value v : g.nodes[n].inputs) reads(v, static_cast<int32_t>(n));
    for (size_t k = 0; k < wanted_.donations.size(); ++k)  // new state goes back to where it lives
      if (wanted_.donations[k] >= 0) reads(g.outputs[k], g.inputs[static_cast<size_t>(wanted_.donations[k])].node);
    const plan::Placement found = plan::place_between(problem);
    for (size_t n = 0; n < count; ++n) {
      const int32_t there = found.side[n] ? device : devices_.host;
      if (p.of_nodes[n] == there) continue;
      p.of_nodes[n] = there;
      p.why[n] = Why::Cost;
    }
    for (size_t i = 0; i < g.inputs.size(); ++i)
      if (!wanted_.is_state.empty() && wanted_.is_state[i])
        p.homes[i] = found.side[static_cast<size_t>(g.inputs[i].node)] ? device : devices_.host;
    return p;
  }

  const ToPlace& wanted_;
  const Devices& devices_;
};

}  // namespace

std::string_view words(Why why) {
  switch (why) {
    case Why::Only: return "the only device";
    case Why::Asked: return "asked for";
    case Why::Cannot: return "the other device cannot";
    case Why::Preferred: return "default device";
    case Why::Cost: return "costs least";
    case Why::Moved: return "read on another device";
  }
  return "";
}

Placed place(const ToPlace& wanted, const Devices& devices) { return Placer(wanted, devices).run(); }

plan::Request request_of(const Placed& placed, const ToPlace& wanted) {
  plan::Request r{placed.graph, wanted.bindings};
  r.inputs = wanted.inputs;
  r.donations.assign(wanted.donations.begin(), wanted.donations.end());
  r.input_devices = wanted.homes;
  if (r.input_devices.empty()) r.input_devices.assign(placed.graph.inputs.size(), 0);
  for (size_t i = 0; i < placed.homes.size(); ++i)
    if (placed.homes[i] >= 0) r.input_devices[i] = placed.homes[i];
  r.output_devices.assign(placed.graph.outputs.size(), kAny);
  for (size_t k = 0; k < r.donations.size(); ++k)
    if (r.donations[k] >= 0) r.output_devices[k] = r.input_devices[static_cast<size_t>(r.donations[k])];
  r.device_of = [&placed](const ir::Node& n) { return placed.of(n); };
  for (size_t d = 0; d < placed.devices->count(); ++d) r.host_memory.push_back(placed.devices->at(d).info().host_memory);
  return r;
}

Estimate estimate(const plan::Request& request, const Devices& devices, const Placed* placed, KernelSeconds kernel_seconds) {
  plan::Tables tables;
  const plan::Units units = plan::lower(request, tables);
  std::vector<double> seconds;
  for (const plan::Tables::Entry& e : tables.kernels)
    seconds.push_back(kernel_seconds == KernelSeconds::Timed ? timed_seconds(devices, e, devices.at(e.device).load(e.kernel))
                                                             : devices.at(e.device).seconds(e.kernel));
  std::vector<plan::DeviceFacts> facts(devices.count());
  for (size_t d = 0; d < facts.size(); ++d) facts[d] = {.host_memory = devices.at(d).info().host_memory, .rates = devices.at(d).rates()};
  Estimate e;
  for (const plan::Unit& u : units.units) {
    Estimate::Row row{.node = u.node, .device = u.device, .kind = u.kind, .label = u.label, .location = u.location};
    row.seconds = plan::seconds_of(u, {seconds, facts});
    if (u.kind == plan::Kind::Upload || u.kind == plan::Kind::Download) {
      row.moved_bytes = u.writes[0].bytes;
      row.why = Why::Moved;
    } else if (placed && u.node >= 0 && !placed->why.empty()) {
      row.why = placed->why[static_cast<size_t>(u.node)];
    }
    e.seconds += row.seconds;
    e.rows.push_back(std::move(row));
  }
  return e;
}

double timed_seconds(const Devices& devices, const plan::Tables::Entry& entry, const std::shared_ptr<const device::Program>& program) {
  device::KernelTimes::Allocate allocate;
  if (devices.times_kernels)
    allocate = [&](size_t bytes) { return devices.memories[static_cast<size_t>(entry.device)]->allocate_if_room(bytes); };
  return device::kernel_seconds(devices.at(entry.device), entry.kernel, program, allocate);
}

}  // namespace tandem::engine
