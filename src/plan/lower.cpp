#include "plan/lower.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "codegen/view.hpp"
#include "ops/table.hpp"

namespace tandem::plan {
namespace {

using codegen::Layout;
using ir::Graph;
using ir::Node;
using ir::Value;

// What steps can end with that depends on the numbers: rows that only a host routine computes look at them, and functions of the program
// do what they like.
bool may_fail(const Node& n) { return n.op->evaluate && !n.op->body && !n.op->loops && !n.op->decompose; }

class Lowerer {
 public:
  Lowerer(const Request& r, Tables& tables) : request_(r), graph_(r.graph), tables_(tables) {}

  Units run() {
    survey();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      lower(static_cast<int32_t>(n));
      for (; named_ < out_.units.size(); ++named_) out_.units[named_].node = static_cast<int32_t>(n);
    }
    finish_outputs();
    return std::move(out_);
  }

 private:
  // A value where it is used: on a device.
  struct At {
    Value value;
    int32_t device;
    friend auto operator<=>(const At&, const At&) = default;
  };
  // How it lies there.
  struct Lying {
    int32_t block = -1;
    Layout operand;
    size_t shift = 0;  // bytes from the block's start to the first element
  };

  // ---- what the graph says ----
  Shape shape_of(Value v) const { return bind(graph_.type(v).dims, request_.bindings); }
  size_t bytes_of(Value v) const { return byte_size(shape_of(v), graph_.type(v).dtype); }
  Layout dense_operand(Value v) const { return Layout::dense(graph_.type(v).dtype, shape_of(v)); }
  int32_t device_of(const Node& n) const { return request_.device_of ? request_.device_of(n) : 0; }
  bool host_memory(int32_t device) const { return request_.host_memory.empty() || request_.host_memory[static_cast<size_t>(device)]; }

  void survey() {
    const size_t ins = graph_.inputs.size(), outs = graph_.outputs.size();
    out_.bindings = request_.bindings;
    out_.donations = request_.donations;
    out_.fresh_inputs = request_.fresh_inputs;
    out_.input_devices = request_.input_devices.empty() ? std::vector<int32_t>(ins) : request_.input_devices;
    out_.output_devices = request_.output_devices.empty() ? std::vector<int32_t>(outs) : request_.output_devices;
    for (size_t i = 0; i < ins; ++i) {
      const Value v = graph_.inputs[i];
      Layout o = request_.inputs.empty() ? dense_operand(v) : request_.inputs[i];
      TANDEM_CHECK(o.dtype == graph_.type(v).dtype && o.shape == shape_of(v), "input ", i, " is not what the graph declares");
      const int32_t block = new_block(bytes_of(v), out_.input_devices[i], Block::Kind::Input, static_cast<int32_t>(i));
      out_.input_blocks.push_back(block);
      home_[v] = out_.input_devices[i];
      lying_[{v, home_[v]}] = {block, o, 0};
      out_.inputs.push_back(std::move(o));
    }
    out_.aliases.resize(outs);
    out_.output_blocks.assign(outs, -1);
    for (Value v : graph_.outputs) out_.outputs.push_back(dense_operand(v));
  }

  int32_t new_block(size_t bytes, int32_t device, Block::Kind kind = Block::Kind::Local, int32_t index = -1) {
    out_.blocks.push_back({kind, index, device, bytes});
    return static_cast<int32_t>(out_.blocks.size()) - 1;
  }
  Block& block(int32_t id) { return out_.blocks[static_cast<size_t>(id)]; }
  Access whole(int32_t id) { return {id, block(id).bytes}; }

  // ---- where values lie ----
  // On the device that asks, as it lies there; brought there once, when it is on another.
  const Lying& lying(Value v, int32_t device) {
    if (const auto it = lying_.find({v, device}); it != lying_.end()) return it->second;
    if (const Node& n = graph_.node(v); n.op->name == "constant") return lying_[{v, device}] = constant(n, v, device);
    const int32_t home = home_.at(v);
    // From one card to the other it goes through the host's memory, where who asks next finds it.
    const bool by_host = !host_memory(home) && !host_memory(device);
    const int32_t source = by_host ? host() : home;
    const Lying from = by_host ? lying(v, source) : dense(v, home);
    return lying_[{v, device}] = {transfer(from, v, source, device), from.operand, 0};
  }
  int32_t host() const {
    const auto it = std::ranges::find(request_.host_memory, true);
    TANDEM_CHECK(it != request_.host_memory.end(), "no device's memory is the host's");
    return static_cast<int32_t>(it - request_.host_memory.begin());
  }
  int32_t transfer(const Lying& from, Value v, int32_t source, int32_t target) {
    Unit u;
    const bool up = !host_memory(target);
    u.kind = host_memory(source) && host_memory(target) ? Kind::Copy : up ? Kind::Upload : Kind::Download;
    u.device = u.kind == Kind::Download ? source : target;  // whose stream does it
    u.label = cat(up ? "upload " : "download ", graph_.type(v));
    u.location = graph_.node(v).location;
    const int32_t to = new_block(bytes_of(v), target);
    u.reads.push_back({from.block, bytes_of(v), from.shift});
    u.writes.push_back(whole(to));
    out_.units.push_back(std::move(u));
    return to;
  }
  Access read(Value v, int32_t device) {
    const Lying& l = lying(v, device);
    return {l.block, block(l.block).bytes, l.shift};
  }

  Lying constant(const Node& n, Value v, int32_t device) {
    const auto index = static_cast<int32_t>(tables_.constants.size());
    tables_.constants.push_back({n.attrs.get<ir::Literal>("value"), device});
    return {new_block(bytes_of(v), device, Block::Kind::Constant, index), dense_operand(v), 0};
  }

  // Views, host routines, bodies and other devices want dense operands; what lies otherwise is copied for them, once.
  Lying dense(Value v, int32_t device) {
    const Lying from = lying(v, device);
    if (from.operand.is_dense() && from.shift == 0 && block(from.block).bytes == bytes_of(v)) return from;
    if (const auto it = dense_.find({v, device}); it != dense_.end()) return it->second;
    codegen::Kernel k;
    k.op = &ops::table().at("identity");
    k.in = {from.operand};
    k.out = {Layout::dense(k.in[0].dtype, k.in[0].shape)};
    ir::Loops loops;
    loops.extents = to_dims(k.in[0].shape);
    std::vector<ir::Scalar> at;
    for (int j = 0; j < k.in[0].shape.rank(); ++j) at.push_back(ir::axis(j));
    loops.results = {ir::load(0, k.in[0].dtype, std::move(at))};
    const DType t = k.in[0].dtype;
    k.stages.push_back(codegen::canonical(loops, {}, k.in, {&t, 1}));
    Unit u;
    u.device = device;
    u.kernel = add_kernel(std::move(k), device);
    u.label = "make dense";
    u.reads.push_back({from.block, block(from.block).bytes, from.shift});
    const int32_t to = new_block(bytes_of(v), device);
    u.writes.push_back(whole(to));
    out_.units.push_back(std::move(u));
    return dense_[{v, device}] = {to, dense_operand(v), 0};
  }
  Access read_dense(Value v, int32_t device) { return {dense(v, device).block, bytes_of(v)}; }

  int32_t add_kernel(codegen::Kernel kernel, int32_t device) {
    tables_.kernels.push_back({std::move(kernel), device});
    return static_cast<int32_t>(tables_.kernels.size()) - 1;
  }

  // ---- nodes ----
  void lower(int32_t index) {
    const Node& n = graph_.nodes[static_cast<size_t>(index)];
    if (n.op->name == "input" || n.op->name == "constant") return;  // where they are asked for
    const Value v{index, 0};
    if (n.op->has(ir::kView)) return lower_view(n, v);
    if (n.op->name == "barrier") return lower_barrier(n, index);
    if (lower_movement(n, v)) return;
    if (n.op->name == "branch") return lower_branch(n, index);
    if (n.op->name == "while") return lower_while(n, index);
    if (n.op->name == "scan") return lower_scan(n, index);
    lower_kernel(n, index);
  }

  // What needs no step of its own happens where its operand is.
  int32_t home_of(Value v, const Node& user) const {
    const auto it = home_.find(v);
    return it == home_.end() ? device_of(user) : it->second;  // a constant is everywhere
  }

  void lower_view(const Node& n, Value v) {
    const int32_t device = home_[v] = home_of(n.inputs[0], n);
    // What lies densely within something larger stays there in another shape too.
    Lying l = lying(n.inputs[0], device);
    if (!l.operand.is_dense()) l = dense(n.inputs[0], device);
    l.operand = dense_operand(v);
    lying_[{v, device}] = std::move(l);
  }

  // It only says what comes first. Its results are its operands' bytes.
  void lower_barrier(const Node& n, int32_t index) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const Value v{index, static_cast<int32_t>(i)};
      home_[v] = home_of(n.inputs[i], n);
      lying_[{v, home_[v]}] = Lying(lying(n.inputs[i], home_[v]));
    }
  }

  // A transpose, broadcast or slice is its operand's bytes, walked in other steps. Who cannot walk so asks for a dense copy.
  bool lower_movement(const Node& n, Value v) {
    if (!n.op->loops || n.inputs.size() != 1 || n.types.size() != 1) return false;
    if (byte_size(bind(n.types[0].dims, request_.bindings), n.types[0].dtype) == 0) return false;
    const int32_t device = home_of(n.inputs[0], n);
    const std::vector<ir::TensorType> in{graph_.type(n.inputs[0])};
    const Lying from = lying(n.inputs[0], device);
    const auto view = codegen::as_view(ir::loops_of(*n.op, in, n.attrs, n.types), request_.bindings, from.operand);
    if (!view) return false;
    home_[v] = device;
    lying_[{v, device}] = {from.block, view->operand, from.shift + static_cast<size_t>(view->offset) * size_of(view->operand.dtype)};
    return true;
  }

  static std::string label(const Node& n) {
    std::string text(n.op->name);
    if (n.op->name == "fused") {
      text.clear();
      for (const Node& part : n.attrs.get<ir::Graphs>("body").at(0)->nodes)
        if (part.op->name != "input" && part.op->name != "constant") text += cat(text.empty() ? "" : "+", part.op->name);
    }
    return n.types.empty() ? text : cat(text, " ", n.types[0]);
  }
  Unit unit(Kind kind, const Node& n, int32_t device) const {
    Unit u;
    u.kind = kind;
    u.device = device;
    u.label = label(n);
    u.location = n.location;
    return u;
  }
  void add_writes(Unit& u, const Node& n, int32_t index) {
    for (size_t o = 0; o < n.types.size(); ++o) {
      const Value v{index, static_cast<int32_t>(o)};
      const int32_t id = new_block(bytes_of(v), u.device);
      home_[v] = u.device;
      lying_[{v, u.device}] = {id, dense_operand(v), 0};
      u.writes.push_back(whole(id));
    }
  }

  void lower_kernel(const Node& n, int32_t index) {
    const bool strided_ok = n.op->body || n.op->loops || n.op->decompose || n.op->name == "fused";
    Unit u = unit(Kind::Launch, n, device_of(n));
    u.may_fail = may_fail(n);
    std::vector<ir::TensorType> in_types;
    std::vector<Layout> in;
    for (Value v : n.inputs) {
      in_types.push_back(graph_.type(v));
      in.push_back(strided_ok ? lying(v, u.device).operand : dense(v, u.device).operand);
      u.reads.push_back(strided_ok ? read(v, u.device) : read_dense(v, u.device));
    }
    u.kernel = add_kernel(codegen::make_kernel(*n.op, n.attrs, in_types, n.types, request_.bindings, in), u.device);
    add_writes(u, n, index);
    out_.units.push_back(std::move(u));
  }

  // ---- control flow: a node and all of its bodies are on one device ----
  Unit control(Kind kind, const Node& n, const char* graphs) {
    Unit u = unit(kind, n, device_of(n));
    for (Value v : n.inputs) u.reads.push_back(read_dense(v, u.device));
    for (const ir::GraphRef& g : n.attrs.get<ir::Graphs>(graphs)) {
      Request inner{*g, request_.bindings};
      inner.outputs_own_memory = true;
      inner.host_memory = request_.host_memory;
      inner.device_of = [device = u.device](const Node&) { return device; };
      inner.input_devices.assign(g->inputs.size(), u.device);
      inner.output_devices.assign(g->outputs.size(), u.device);
      u.bodies.push_back(std::make_shared<const Units>(plan::lower(inner, tables_)));
      u.may_fail |= std::ranges::any_of(u.bodies.back()->units, &Unit::may_fail);
    }
    return u;
  }
  // Trips of a loop alternate between the results' own places and these.
  void alternate(Unit& u) {
    for (int64_t i = 0; i < u.carries; ++i) u.other_carries.push_back(whole(new_block(u.writes[static_cast<size_t>(i)].bytes, u.device)));
  }
  void lower_branch(const Node& n, int32_t index) {
    Unit u = control(Kind::Branch, n, "branches");
    add_writes(u, n, index);
    out_.units.push_back(std::move(u));
  }
  void lower_while(const Node& n, int32_t index) {
    Unit u = control(Kind::While, n, "functions");
    u.carries = static_cast<int64_t>(n.inputs.size());
    u.trips = n.attrs.has("max_trips") ? n.attrs.get<int64_t>("max_trips") : -1;
    add_writes(u, n, index);
    alternate(u);
    out_.units.push_back(std::move(u));
  }
  void lower_scan(const Node& n, int32_t index) {
    Unit u = control(Kind::Scan, n, "functions");
    u.carries = n.attrs.get<int64_t>("carries");
    u.sequences = n.attrs.get<int64_t>("sequences");
    u.trips = n.attrs.get<Dims>("length").at(0).eval(request_.bindings);
    u.reverse = n.attrs.get<bool>("reverse");
    add_writes(u, n, index);
    alternate(u);
    out_.units.push_back(std::move(u));
  }

  // ---- outputs ----
  // A result that a unit writes is written to the caller's memory straight away; what is an input's or a constant's bytes is handed on as
  // such, or copied where the caller wants memory of its own.
  void finish_outputs() {
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      int32_t& device = out_.output_devices[k];
      if (device < 0) device = home_of(graph_.outputs[k], graph_.node(graph_.outputs[k]));
      const Lying from = dense(graph_.outputs[k], device);
      Block& b = block(from.block);
      const auto index = static_cast<int32_t>(k);
      if (b.kind == Block::Kind::Local) {
        b.kind = Block::Kind::Output;
        b.index = index;
        out_.output_blocks[k] = from.block;
      } else if (!request_.outputs_own_memory && b.kind == Block::Kind::Input) {
        out_.aliases[k].input = b.index;
      } else if (!request_.outputs_own_memory && b.kind == Block::Kind::Constant) {
        out_.aliases[k].constant = b.index;
      } else {
        Unit copy;
        copy.kind = Kind::Copy;
        copy.device = out_.output_devices[k];
        copy.label = "copy";
        const size_t bytes = bytes_of(graph_.outputs[k]);
        copy.reads.push_back({from.block, bytes});
        out_.output_blocks[k] = new_block(bytes, copy.device, Block::Kind::Output, index);
        copy.writes.push_back(whole(out_.output_blocks[k]));
        out_.units.push_back(std::move(copy));
      }
    }
  }

  const Request& request_;
  const Graph& graph_;
  Tables& tables_;
  Units out_;
  size_t named_ = 0;               // units that know their nodes
  std::map<Value, int32_t> home_;  // the device that makes it
  std::map<At, Lying> lying_, dense_;
};

}  // namespace

Units lower(const Request& request, Tables& tables) { return Lowerer(request, tables).run(); }

}  // namespace tandem::plan
