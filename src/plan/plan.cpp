// Lowers an expanded graph with bound symbols to steps and places. A value that dies gives its place to the next.
#include "plan/plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/log.hpp"
#include "base/text.hpp"
#include "codegen/view.hpp"
#include "ops/table.hpp"
#include "plan/allocate.hpp"
#include "plan/order.hpp"

namespace tandem::plan {
namespace {

using codegen::Operand;
using ir::Graph;
using ir::Node;
using ir::Value;

constexpr size_t kMostGapBytes = size_t{1} << 20;        // of an arena
constexpr size_t kGapFromBytes = 4096;                   // of a value
constexpr size_t kPredicateBytes = codegen::kAlignment;  // in front of a loop's scratch: where its condition writes

// Bytes that one or more values share (views, results in place). Lives from its first write to its last read, counted in steps.
struct Storage {
  Slot slot;
  int first = -1, last = -1;
  bool placed = false;  // has a slot that is not the arena's to give
};

class Planner {
 public:
  explicit Planner(const Request& r) : request_(r), graph_(r.graph) {}

  Plan run() {
    plan_.bindings = request_.bindings;
    survey();
    const auto is_view = [&](const Node& n) { return n.op->has(ir::kView) || n.op->name == "barrier" || movement(n).has_value(); };
    for (int32_t n : order({graph_, request_.donations, [&](Value v) { return bytes_of(v); }, is_view})) lower(n);
    finish_outputs();
    donate();
    place();
    return std::move(plan_);
  }

 private:
  // ---- what the graph says ----
  Shape shape_of(Value v) const { return bind(graph_.type(v).dims, request_.bindings); }
  size_t bytes_of(Value v) const { return byte_size(shape_of(v), graph_.type(v).dtype); }

  void survey() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const Value v = graph_.inputs[i];
      Operand o = request_.inputs.empty() ? Operand::dense(graph_.type(v).dtype, shape_of(v)) : request_.inputs[i];
      TANDEM_CHECK(o.dtype == graph_.type(v).dtype && o.shape == shape_of(v), "input ", i, " is not what the graph declares");
      plan_.inputs.push_back(o);
    }
    plan_.donated.assign(graph_.outputs.size(), -1);
    plan_.aliases.resize(graph_.outputs.size());
    for (Value v : graph_.outputs) plan_.outputs.push_back(Operand::dense(graph_.type(v).dtype, shape_of(v)));
  }

  // ---- storages ----
  int new_storage(size_t bytes) {
    Storage s;
    s.slot.bytes = bytes;
    storages_.push_back(s);
    return static_cast<int>(storages_.size()) - 1;
  }
  int fixed_storage(Slot::Base base, int32_t index, size_t bytes) {
    const int id = new_storage(bytes);
    storages_[static_cast<size_t>(id)].slot.base = base;
    storages_[static_cast<size_t>(id)].slot.index = index;
    storages_[static_cast<size_t>(id)].placed = true;
    return id;
  }
  Storage& storage(Value v) { return storages_[static_cast<size_t>(storage_of_.at(v))]; }

  // Uses are written down as storage numbers and become slots when everything has its place.
  struct Use {
    int storage;
    int32_t value;
    size_t bytes;
    size_t shift = 0;
  };
  struct Draft {
    std::vector<Use> reads, writes, others;
    int scratch = -1;
  };
  int32_t value_id(Value v) {
    auto [it, fresh] = value_ids_.try_emplace(v, static_cast<int32_t>(value_ids_.size()));
    (void)fresh;
    return it->second;
  }
  int step_index() const { return static_cast<int>(plan_.steps.size()); }

  Use read(Value v) {
    Storage& s = storage(v);
    s.last = std::max(s.last, step_index());
    const auto view = views_.find(v);
    return {storage_of_.at(v), value_id_at_.at(storage_of_.at(v)), s.slot.bytes, view == views_.end() ? 0 : view->second.shift};
  }
  Use write(int id, int32_t value, size_t bytes) {
    Storage& s = storages_[static_cast<size_t>(id)];
    if (s.first < 0) s.first = step_index();
    s.last = std::max(s.last, step_index());
    value_id_at_[id] = value;
    return {id, value, bytes};
  }
  int scratch(size_t bytes) {
    if (bytes == 0) return -1;
    const int id = new_storage(bytes);
    write(id, -1, bytes);
    return id;
  }
  void add_step(Step step, Draft draft) {
    plan_.steps.push_back(std::move(step));
    drafts_.push_back(std::move(draft));
  }

  // ---- nodes ----
  // How a value lies where it is not dense: inputs as they are given, and movement that is only a way to walk.
  struct Lying {
    Operand operand;
    size_t shift = 0;  // bytes from the storage's start to the first element
  };
  Operand operand(Value v) const {
    if (const auto it = views_.find(v); it != views_.end()) return it->second.operand;
    return Operand::dense(graph_.type(v).dtype, shape_of(v));
  }

  void lower(int32_t index) {
    const Node& n = graph_.nodes[static_cast<size_t>(index)];
    const Value v{index, 0};
    if (n.op->name == "input") return lower_input(v);
    if (n.op->name == "constant") return lower_constant(n, v);
    if (n.op->has(ir::kView)) return lower_view(n, v);
    if (n.op->name == "barrier") return lower_barrier(n, index);
    if (lower_movement(n, v)) return;
    if (n.op->name == "branch") return lower_branch(n, index);
    if (n.op->name == "while") return lower_while(n, index);
    if (n.op->name == "scan") return lower_scan(n, index);
    lower_kernel(n, index);
  }

  void lower_input(Value v) {
    const auto it = std::find(graph_.inputs.begin(), graph_.inputs.end(), v);
    const auto i = static_cast<size_t>(it - graph_.inputs.begin());
    if (!plan_.inputs[i].is_dense()) views_[v] = {plan_.inputs[i], 0};
    const int id = fixed_storage(Slot::Base::Input, static_cast<int32_t>(i), bytes_of(v));
    storage_of_[v] = id;
    value_id_at_[id] = value_id(v);
  }

  void lower_constant(const Node& n, Value v) {
    const auto& literal = n.attrs.get<ir::Literal>("value");
    device::BufferRef buffer = request_.device.allocate(literal.bytes->size());
    if (!literal.bytes->empty()) request_.device.make_stream()->upload(buffer->data(), literal.bytes->data(), literal.bytes->size());
    const int id = fixed_storage(Slot::Base::Constant, static_cast<int32_t>(plan_.constants.size()), bytes_of(v));
    plan_.constants.push_back(std::move(buffer));
    storage_of_[v] = id;
    value_id_at_[id] = value_id(v);
  }

  void lower_view(const Node& n, Value v) {
    // What lies densely within something larger stays there in another shape too.
    if (const auto it = views_.find(n.inputs[0]); it != views_.end() && it->second.operand.is_dense()) {
      storage_of_[v] = storage_of_.at(n.inputs[0]);
      views_[v] = {Operand::dense(graph_.type(v).dtype, shape_of(v)), it->second.shift};
      return;
    }
    const Value source = dense(n.inputs[0]);
    storage_of_[v] = storage_of_.at(source);
  }

  // It only says what comes first, and that was settled by the order.
  void lower_barrier(const Node& n, int32_t index) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const Value v{index, static_cast<int32_t>(i)};
      storage_of_[v] = storage_of_.at(n.inputs[i]);
      if (const auto it = views_.find(n.inputs[i]); it != views_.end()) views_[v] = it->second;
    }
  }

  // A transpose, broadcast or slice is its operand's bytes, walked in other steps. Who cannot walk so asks for a dense copy.
  std::optional<codegen::View> movement(const Node& n) const {
    if (!n.op->loops || n.inputs.size() != 1 || n.types.size() != 1) return std::nullopt;
    if (byte_size(bind(n.types[0].dims, request_.bindings), n.types[0].dtype) == 0) return std::nullopt;
    const std::vector<ir::TensorType> in{graph_.type(n.inputs[0])};
    return codegen::as_view(ir::loops_of(*n.op, in, n.attrs, n.types), request_.bindings, operand(n.inputs[0]));
  }
  bool lower_movement(const Node& n, Value v) {
    const auto view = movement(n);
    if (!view) return false;
    const auto it = views_.find(n.inputs[0]);
    const size_t shift = it == views_.end() ? 0 : it->second.shift;
    storage_of_[v] = storage_of_.at(n.inputs[0]);
    views_[v] = {view->operand, shift + static_cast<size_t>(view->offset) * size_of(view->operand.dtype)};
    return true;
  }

  // Views, host routines and sub-plans want dense operands; what lies otherwise is copied for them, once.
  Value dense(Value v) {
    const auto it = views_.find(v);
    if (it == views_.end() || (it->second.operand.is_dense() && it->second.shift == 0 && storage(v).slot.bytes == bytes_of(v))) return v;
    const Value copy{-2 - v.node, v.out};  // a value of ours, beside the graph's
    if (storage_of_.contains(copy)) return copy;
    const ir::OpDef& op = ops::table().at("identity");
    codegen::Kernel k;
    k.op = &op;
    k.in = {it->second.operand};
    k.out = {Operand::dense(k.in[0].dtype, k.in[0].shape)};
    ir::Loops loops;
    loops.extents = to_dims(k.in[0].shape);
    std::vector<ir::Scalar> at;
    for (int j = 0; j < k.in[0].shape.rank(); ++j) at.push_back(ir::axis(j));
    loops.results = {ir::load(0, k.in[0].dtype, std::move(at))};
    const DType t = k.in[0].dtype;
    k.stages.push_back(codegen::canonical(loops, {}, k.in, {&t, 1}));
    Draft d;
    d.reads.push_back(read(v));
    storage_of_[copy] = new_storage(bytes_of(v));
    d.writes.push_back(write(storage_of_[copy], value_id(copy), bytes_of(v)));
    Step s;
    s.program = request_.device.load(k);
    s.label = "make dense";
    add_step(std::move(s), std::move(d));
    return copy;
  }
  Use read_dense(Value v) {
    const Value d = dense(v);
    Storage& s = storage(d);
    s.last = std::max(s.last, step_index());
    return {storage_of_.at(d), value_id_at_.at(storage_of_.at(d)), bytes_of(v)};
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

  void lower_kernel(const Node& n, int32_t index) {
    const bool strided_ok = n.op->body || n.op->loops || n.op->decompose || n.op->name == "fused";
    std::vector<ir::TensorType> in_types;
    std::vector<Operand> in;
    for (Value v : n.inputs) {
      in_types.push_back(graph_.type(v));
      if (!strided_ok) dense(v);
      in.push_back(strided_ok ? operand(v) : Operand::dense(graph_.type(v).dtype, shape_of(v)));
    }
    const codegen::Kernel kernel = codegen::make_kernel(*n.op, n.attrs, in_types, n.types, request_.bindings, in);
    Step s;
    s.program = request_.device.load(kernel);
    s.label = label(n);
    s.location = n.location;
    if (log::enabled(log::Topic::Step)) s.cost = codegen::cost_of(kernel);
    Draft d;
    for (Value v : n.inputs) d.reads.push_back(strided_ok ? read(v) : read_dense(v));
    if (const size_t bytes = s.program->scratch_bytes(); bytes) d.scratch = scratch(bytes);
    for (size_t o = 0; o < n.types.size(); ++o) {
      const Value v{index, static_cast<int32_t>(o)};
      storage_of_[v] = new_storage(bytes_of(v));
      d.writes.push_back(write(storage_of_[v], value_id(v), bytes_of(v)));
    }
    s.in_place = kernel.replaceable;
    for (size_t i = 0; i < s.in_place.size(); ++i) s.in_place[i] = s.in_place[i] || s.program->is_replaceable(i);
    add_step(std::move(s), std::move(d));
  }

  std::shared_ptr<const Plan> sub_plan(const Graph& g) {
    return std::make_shared<const Plan>(make_plan({g, request_.device, request_.bindings, {}, {}, true}));
  }
  void control_writes(const Node& n, int32_t index, Draft& d) {
    for (size_t o = 0; o < n.types.size(); ++o) {
      const Value v{index, static_cast<int32_t>(o)};
      storage_of_[v] = new_storage(bytes_of(v));
      d.writes.push_back(write(storage_of_[v], value_id(v), bytes_of(v)));
    }
  }
  void control_reads(const Node& n, Draft& d) {
    for (Value v : n.inputs) dense(v);
    for (Value v : n.inputs) d.reads.push_back(read_dense(v));
  }
  Step control_step(Step::Kind kind, const Node& n, const char* graphs) {
    Step s;
    s.kind = kind;
    s.label = label(n);
    s.location = n.location;
    for (const ir::GraphRef& g : n.attrs.get<ir::Graphs>(graphs)) s.bodies.push_back(sub_plan(*g));
    return s;
  }
  static size_t widest(const Step& s) {
    size_t bytes = 0;
    for (const auto& b : s.bodies) bytes = std::max(bytes, b->arena_bytes);
    return bytes;
  }
  // Trips of a loop alternate between the results' own places and these.
  void alternate(const Node& n, int64_t carries, Draft& d) {
    for (int64_t i = 0; i < carries; ++i) {
      const size_t bytes = byte_size(bind(n.types[static_cast<size_t>(i)].dims, request_.bindings), n.types[static_cast<size_t>(i)].dtype);
      d.others.push_back(write(new_storage(bytes), -1, bytes));
    }
  }

  void lower_branch(const Node& n, int32_t index) {
    Step s = control_step(Step::Kind::Branch, n, "branches");
    Draft d;
    control_reads(n, d);
    d.scratch = scratch(widest(s));
    control_writes(n, index, d);
    add_step(std::move(s), std::move(d));
  }
  void lower_while(const Node& n, int32_t index) {
    Step s = control_step(Step::Kind::While, n, "functions");
    s.carries = static_cast<int64_t>(n.inputs.size());
    s.trips = n.attrs.has("max_trips") ? n.attrs.get<int64_t>("max_trips") : -1;
    Draft d;
    control_reads(n, d);
    d.scratch = scratch(kPredicateBytes + widest(s));
    control_writes(n, index, d);
    alternate(n, s.carries, d);
    add_step(std::move(s), std::move(d));
  }
  void lower_scan(const Node& n, int32_t index) {
    Step s = control_step(Step::Kind::Scan, n, "functions");
    s.carries = n.attrs.get<int64_t>("carries");
    s.sequences = n.attrs.get<int64_t>("sequences");
    s.trips = n.attrs.get<Dims>("length").at(0).eval(request_.bindings);
    s.reverse = n.attrs.get<bool>("reverse");
    Draft d;
    control_reads(n, d);
    d.scratch = scratch(widest(s));
    control_writes(n, index, d);
    alternate(n, s.carries, d);
    add_step(std::move(s), std::move(d));
  }

  // ---- outputs ----
  // A result that a step writes is written to the caller's memory straight away; what is an input's or a constant's bytes is handed on as
  // such, or copied where the caller wants memory of its own.
  void finish_outputs() {
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      const Value v = dense(graph_.outputs[k]);
      const int id = storage_of_.at(v);
      Storage& s = storages_[static_cast<size_t>(id)];
      if (!s.placed) {
        s.slot.base = Slot::Base::Output;
        s.slot.index = static_cast<int32_t>(k);
        s.placed = true;
        continue;
      }
      if (!request_.outputs_own_memory && s.slot.base == Slot::Base::Input) {
        plan_.aliases[k].input = s.slot.index;
        continue;
      }
      if (!request_.outputs_own_memory && s.slot.base == Slot::Base::Constant) {
        plan_.aliases[k].constant = s.slot.index;
        continue;
      }
      Step copy;
      copy.kind = Step::Kind::Copy;
      copy.label = "copy";
      Draft d;
      s.last = std::max(s.last, step_index());
      const size_t bytes = bytes_of(graph_.outputs[k]);
      d.reads.push_back({id, value_id_at_.at(id), bytes});
      const int to = fixed_storage(Slot::Base::Output, static_cast<int32_t>(k), bytes);
      d.writes.push_back(write(to, value_id({-1000000 - static_cast<int32_t>(k), 0}), bytes));
      add_step(std::move(copy), std::move(d));
    }
  }

  // An output that may overwrite an input does so when nothing reads the input after it is written.
  void donate() {
    for (size_t k = 0; k < request_.donations.size(); ++k) {
      const int32_t j = request_.donations[k];
      if (j < 0 || plan_.aliases[k].input >= 0 || plan_.aliases[k].constant >= 0) continue;
      const bool handed_on = std::any_of(plan_.aliases.begin(), plan_.aliases.end(), [&](const OutputAlias& a) { return a.input == j; });
      const bool taken = std::find(plan_.donated.begin(), plan_.donated.end(), j) != plan_.donated.end();
      if (handed_on || taken || !plan_.inputs[static_cast<size_t>(j)].is_dense()) continue;
      const int out = find_output(k), in = storage_of_.at(graph_.inputs[static_cast<size_t>(j)]);
      Storage& o = storages_[static_cast<size_t>(out)];
      const Storage& i = storages_[static_cast<size_t>(in)];
      if (o.slot.bytes != i.slot.bytes || o.first < i.last) continue;
      if (o.first == i.last && !may_replace(static_cast<size_t>(o.first), in, o.slot.bytes)) continue;
      o.slot.base = Slot::Base::Input;
      o.slot.index = j;
      plan_.donated[k] = j;
    }
  }
  int find_output(size_t k) {
    for (size_t i = 0; i < storages_.size(); ++i)
      if (storages_[i].placed && storages_[i].slot.base == Slot::Base::Output && storages_[i].slot.index == static_cast<int32_t>(k))
        return static_cast<int>(i);
    internal_error("output ", k, " has no storage");
  }

  // A result of so many bytes may take the place of that storage: every time the step reads it, that is at the element being written.
  bool may_replace(size_t step, int id, size_t bytes) {
    const Step& s = plan_.steps[step];
    const Draft& d = drafts_[step];
    if (s.in_place.empty() || storages_[static_cast<size_t>(id)].slot.bytes != bytes) return false;
    for (size_t r = 0; r < d.reads.size(); ++r)
      if (root(d.reads[r].storage) == root(id) && (!s.in_place[r] || d.reads[r].shift != 0 || d.reads[r].bytes != bytes)) return false;
    return true;
  }
  int root(int id) const { return merged_.empty() ? id : merged_[static_cast<size_t>(id)]; }

  // ---- places ----
  void place() {
    merge_in_place();
    std::vector<size_t> placed;
    std::vector<Lifetime> lifetimes;
    for (size_t i = 0; i < storages_.size(); ++i) {
      const Storage& s = storages_[i];
      if (s.placed || merged_[i] != static_cast<int>(i) || s.first < 0) continue;
      placed.push_back(i);
      lifetimes.push_back({s.first, s.last, s.slot.bytes});
    }
    keep_apart(lifetimes);
    const Allocation allocation = allocate(lifetimes, {.alignment = codegen::kAlignment});
    for (size_t k = 0; k < placed.size(); ++k) storages_[placed[k]].slot.offset = allocation.offsets[k];
    plan_.arena_bytes = codegen::align_up(allocation.peak);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const Use& u : drafts_[i].reads) plan_.steps[i].reads.push_back(slot(u));
      for (const Use& u : drafts_[i].writes) plan_.steps[i].writes.push_back(slot(u));
      for (const Use& u : drafts_[i].others) plan_.steps[i].other_carries.push_back(slot(u));
      if (drafts_[i].scratch >= 0)
        plan_.steps[i].scratch = slot({drafts_[i].scratch, -1, storages_[static_cast<size_t>(drafts_[i].scratch)].slot.bytes});
    }
  }
  // Where values are so few and small that all stay in caches, what lies between them may take some memory.
  void keep_apart(std::vector<Lifetime>& lifetimes) const {
    const size_t gap = request_.device.info().gap_bytes;
    if (lifetimes.size() * gap > kMostGapBytes) return;
    for (Lifetime& l : lifetimes)
      if (l.bytes >= kGapFromBytes) l.bytes += gap;
  }
  Slot slot(const Use& u) const {
    Slot s = storages_[static_cast<size_t>(merged_[static_cast<size_t>(u.storage)])].slot;
    s.bytes = u.bytes;
    s.shift = u.shift;
    s.value = u.value;
    return s;
  }

  // Results that may, take the places of operands that die in their step.
  void merge_in_place() {
    merged_.resize(storages_.size());
    std::iota(merged_.begin(), merged_.end(), 0);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (plan_.steps[i].in_place.empty()) continue;
      for (const Use& w : drafts_[i].writes) {
        const Storage& out = storages_[static_cast<size_t>(w.storage)];
        if (out.placed || out.first != static_cast<int>(i)) continue;
        for (const Use& u : drafts_[i].reads) {
          const int in = merged_[static_cast<size_t>(u.storage)];
          Storage& s = storages_[static_cast<size_t>(in)];
          if (s.placed || s.last != static_cast<int>(i) || !may_replace(i, in, out.slot.bytes)) continue;
          merged_[static_cast<size_t>(w.storage)] = in;
          s.last = out.last;  // so that no other result of this step takes it
          if (s.last == static_cast<int>(i)) s.last = static_cast<int>(i) + 1;
          break;
        }
      }
    }
  }

  const Request& request_;
  const Graph& graph_;
  Plan plan_;
  std::vector<Storage> storages_;
  std::vector<Draft> drafts_;
  std::map<Value, int> storage_of_;
  std::map<Value, int32_t> value_ids_;
  std::map<int, int32_t> value_id_at_;
  std::map<Value, Lying> views_;
  std::vector<int> merged_;
};

}  // namespace

Plan make_plan(const Request& request) { return Planner(request).run(); }

}  // namespace tandem::plan
