// The gradient of a while loop in memory that does not depend on the number of trips.
//
// The loop runs again and keeps its carries at every stride-th trip in a buffer of K slots. When the buffer is full, every other slot
// is dropped and the stride doubles. The way back goes through the slots from the last to the first; the trips of one stretch run
// again from their slot into a second, smaller buffer, so that up to K * kInnerSlots trips cost one more forward pass; beyond that the
// second buffer's stride doubles too. A loop whose max_trips fits into the buffer keeps every trip and computes nothing again.
// All of it is made of ordinary rows, so it can be differentiated again.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

namespace {

constexpr int64_t kSlots = 64;
constexpr int64_t kInnerSlots = 16;

// The state of a loop in groups, so that each part of it has a name.
using Group = std::vector<Expr>;
using State = std::vector<Group>;
using ConditionFn = std::function<Expr(Builder&, const State&)>;
using StepFn = std::function<State(Builder&, const State&)>;

std::vector<Value> flat(const State& s) {
  std::vector<Value> all;
  for (const Group& g : s)
    for (const Expr& e : g) all.push_back(e.value());
  return all;
}

State grouped_like(const State& shape, Builder& b, std::span<const Value> v) {
  State s;
  for (const Group& g : shape) {
    s.push_back(exprs(b, v.first(g.size())));
    v = v.subspan(g.size());
  }
  return s;
}

std::vector<TensorType> types_of(const State& s) {
  std::vector<TensorType> types;
  for (const Group& g : s)
    for (const Expr& e : g) types.push_back(e.type());
  return types;
}

State run_while(Builder& b, const State& start, const ConditionFn& condition, const StepFn& step, const Attr& max_trips = {}) {
  const std::vector<TensorType> types = types_of(start);
  const GraphRef test = make_graph(b.table(), types, "condition", [&](Builder& inner, std::span<const Value> in) {
    return std::vector<Value>{condition(inner, grouped_like(start, inner, in)).value()};
  });
  const GraphRef body = make_graph(b.table(), types, "body", [&](Builder& inner, std::span<const Value> in) {
    return flat(step(inner, grouped_like(start, inner, in)));
  });
  return grouped_like(start, b, b.nodes("while", flat(start), {{"functions", Graphs{test, body}}, {"max_trips", max_trips}}));
}

Expr number(Builder& b, int64_t v) { return {b, b.scalar(DType::I32, static_cast<double>(v))}; }
Expr floor_divide(const Expr& a, const Expr& b) { return a.op("floor_divide", {b}); }

// Row `slot` of a buffer [slots, …].
Expr starts_at(const Expr& slot, int rank) {
  std::vector<Expr> starts(static_cast<size_t>(rank), number(slot.builder(), 0));
  starts[0] = slot;
  return call(slot.builder(), "stack", starts, {{"axis", int64_t{0}}})[0];
}
Expr read_slot(const Expr& buffer, const Expr& slot) {
  Dims sizes = buffer.dims(), dims(sizes.begin() + 1, sizes.end());
  sizes[0] = 1;
  return buffer.op("dynamic_slice", {starts_at(slot, buffer.rank())}, {{"sizes", sizes}}).reshape(dims);
}
Expr write_slot(const Expr& buffer, const Expr& slot, const Expr& x) {
  Dims dims = x.dims();
  dims.insert(dims.begin(), 1);
  return buffer.op("dynamic_update_slice", {x.reshape(dims), starts_at(slot, buffer.rank())});
}
// Slots 0, 2, 4 … move to 0, 1, 2 …; what is in the upper half afterwards is never read before it is written.
Expr keep_every_other(const Expr& buffer) {
  const Dims& dims = buffer.dims();
  Ints steps(dims.size(), 1);
  steps[0] = 2;
  const Expr half = buffer.op("slice", {{"start", Dims(dims.size(), Dim(0))}, {"limit", dims}, {"step", steps}});
  return half.op("concatenate", {half}, {{"axis", int64_t{0}}});
}

// Carries kept along a run of trips: trip t is in slot t / stride when t is a multiple of the stride.
struct Checkpoints {
  Expr trips, stride;  // int32 scalars
  Group buffers;
};

Checkpoints store_at(const Checkpoints& c, const Expr& slot, const Group& carries) {
  Checkpoints stored = c;
  for (size_t i = 0; i < carries.size(); ++i) stored.buffers[i] = write_slot(c.buffers[i], slot, carries[i]);
  return stored;
}

// Before trip `c.trips` of a run that may be longer than the buffer has slots.
Checkpoints store(Builder& b, const Checkpoints& c, const Group& carries, int64_t slots) {
  const Expr due = equal(c.trips.op("remainder", {c.stride}), 0);
  const Expr full = equal(c.trips, c.stride * static_cast<double>(slots));
  const Expr choice = due.cast(DType::I32) + full.cast(DType::I32);
  const State state{{c.trips, c.stride}, c.buffers, carries};
  const std::vector<TensorType> types = types_of(state);
  enum { kSkip, kWrite, kThinOut };
  Graphs branches;
  for (int kind : {kSkip, kWrite, kThinOut})
    branches.push_back(make_graph(b.table(), types, "store", [&](Builder& inner, std::span<const Value> in) {
      const State s = grouped_like(state, inner, in);
      Checkpoints next{s[0][0], s[0][1], s[1]};
      if (kind == kThinOut) {
        next.stride = next.stride * 2;
        for (Expr& buffer : next.buffers) buffer = keep_every_other(buffer);
      }
      if (kind != kSkip) next = store_at(next, floor_divide(next.trips, next.stride), s[2]);
      return flat({{next.stride}, next.buffers});
    }));
  std::vector<Value> operands{choice.value()};
  for (Value v : flat(state)) operands.push_back(v);
  const State found = grouped_like({{c.stride}, c.buffers}, b, b.nodes("branch", operands, {{"branches", branches}}));
  return {c.trips, found[0][0], found[1]};
}

class WhileGrad {
 public:
  explicit WhileGrad(const NodeGrad& n)
      : n_(n), condition_(*n.node.attrs.get<Graphs>("functions")[0]), body_(*n.node.attrs.get<Graphs>("functions")[1]) {
    const std::vector<bool> varied = varied_carries(body_, n.needed, n.needed.size());
    for (size_t j = 0; j < n.needed.size(); ++j) {
      (body_.outputs[j] == body_.inputs[j] ? fixed_ : moving_).push_back(j);
      if (varied[j]) active_.push_back(j);
    }
    const Attr* limit = n.node.attrs.find("max_trips");
    if (limit) max_trips_ = *limit;
    const auto* trips = std::get_if<int64_t>(&max_trips_);
    keeps_all_ = trips && *trips <= kSlots;
    slots_ = keeps_all_ ? std::max<int64_t>(*trips, 1) : kSlots;
  }

  InputGrads run() {
    InputGrads grads(n_.node.inputs.size());
    if (active_.empty()) return grads;
    Builder& b = n_.builder;
    Group fixed, cotangents;
    for (size_t j : fixed_) fixed.emplace_back(b, n_.node.inputs[j]);
    for (size_t j : active_) {
      const Value g = n_.output_grads[j];
      cotangents.emplace_back(b, g ? g : zeros(b, b.type(n_.node.inputs[j])));
    }
    const Checkpoints kept = run_forward(b);
    const Group found = run_back(b, kept, fixed, cotangents);
    for (size_t i = 0; i < active_.size(); ++i) grads[active_[i]] = found[i].value();
    return grads;
  }

 private:
  std::vector<Value> carries(const Group& moving, const Group& fixed) const {
    std::vector<Value> all(moving_.size() + fixed_.size());
    for (size_t i = 0; i < moving_.size(); ++i) all[moving_[i]] = moving[i].value();
    for (size_t i = 0; i < fixed_.size(); ++i) all[fixed_[i]] = fixed[i].value();
    return all;
  }

  Group moving_of(const Group& all) const {
    Group moving;
    for (size_t j : moving_) moving.push_back(all[j]);
    return moving;
  }

  Group step(Builder& b, const Group& moving, const Group& fixed) const {
    return moving_of(exprs(b, inline_graph(b, body_, carries(moving, fixed))));
  }

  // The cotangents before a trip from those after it. Those of carries that the body passes through grow by what it read of them.
  Group step_back(Builder& b, const Group& moving, const Group& fixed, const Group& cotangents) const {
    const auto first = static_cast<int32_t>(b.graph().nodes.size());  // how the carries came about is none of this trip's business
    const std::vector<Value> inputs = carries(moving, fixed), outputs = inline_graph(b, body_, inputs);
    std::vector<Value> targets, sources;
    for (size_t j : active_) {
      targets.push_back(outputs[j]);
      sources.push_back(inputs[j]);
    }
    const std::vector<Value> found = gradients_within(b, first, targets, values(cotangents), sources);
    Group grads;
    for (size_t i = 0; i < found.size(); ++i) grads.emplace_back(b, found[i] ? found[i] : zeros(b, b.type(sources[i])));
    return grads;
  }

  static Group make_buffers(Builder& b, const Group& carries, int64_t slots) {
    Group buffers;
    for (const Expr& c : carries) {
      TensorType t = c.type();
      t.dims.insert(t.dims.begin(), slots);
      buffers.emplace_back(b, zeros(b, t));
    }
    return buffers;
  }

  // The loop again, with its own carries first (see ops/control.hpp).
  Checkpoints run_forward(Builder& b) const {
    const Group operands = exprs(b, n_.node.inputs);
    const State start{operands, {number(b, 0), number(b, 1)}, make_buffers(b, moving_of(operands), slots_)};
    const State end = run_while(
        b, start, [&](Builder& inner, const State& s) { return Expr(inner, inline_graph(inner, condition_, values(s[0]))[0]); },
        [&](Builder& inner, const State& s) {
          Checkpoints c{s[1][0], s[1][1], s[2]};
          const Group moving = moving_of(s[0]);
          c = keeps_all_ ? store_at(c, c.trips, moving) : store(inner, c, moving, slots_);
          return State{exprs(inner, inline_graph(inner, body_, values(s[0]))), {c.trips + 1, c.stride}, c.buffers};
        },
        max_trips_);
    return {end[1][0], end[1][1], end[2]};
  }

  // `count` trips from `moving` on, kept in `buffers`.
  Checkpoints run_stretch(Builder& b, const Group& moving, const Group& fixed, const Expr& count, const Group& buffers) const {
    const State start{moving, fixed, {number(b, 0), number(b, 1), count}, buffers};
    const State end = run_while(
        b, start, [](Builder&, const State& s) { return s[2][0] < s[2][2]; },
        [&](Builder& inner, const State& s) {
          const Checkpoints c = store(inner, {s[2][0], s[2][1], s[3]}, s[0], kInnerSlots);
          return State{step(inner, s[0], s[1]), s[1], {c.trips + 1, c.stride, s[2][2]}, c.buffers};
        });
    return {end[2][0], end[2][1], end[3]};
  }

  // The carries `count` trips behind `moving`.
  Group replay(Builder& b, const Group& moving, const Group& fixed, const Expr& count) const {
    return run_while(
        b, {moving, fixed, {count}}, [](Builder&, const State& s) { return s[2][0] > 0; },
        [&](Builder& inner, const State& s) { return State{step(inner, s[0], s[1]), s[1], {s[2][0] - 1}}; })[0];
  }

  // Calls back(slot's carries, trips from this slot to the next one, state) for the slots from the last to the first.
  using StretchFn = std::function<State(Builder&, const Group& moving, const Expr& count, const State&)>;
  static State for_each_slot(Builder& b, const Checkpoints& c, const State& start, const StretchFn& back) {
    State all{{floor_divide(c.trips - 1, c.stride), c.trips, c.stride}, c.buffers};
    all.insert(all.end(), start.begin(), start.end());
    const State end = run_while(
        b, all, [](Builder&, const State& s) { return s[0][0] >= 0; },
        [&](Builder& inner, const State& s) {
          const Expr slot = s[0][0], trips = s[0][1], stride = s[0][2];
          Group moving;
          for (const Expr& buffer : s[1]) moving.push_back(read_slot(buffer, slot));
          const State next = back(inner, moving, minimum(trips - slot * stride, stride), State(s.begin() + 2, s.end()));
          State result{{slot - 1, trips, stride}, s[1]};
          result.insert(result.end(), next.begin(), next.end());
          return result;
        });
    return {end.begin() + 2, end.end()};
  }

  Group run_back(Builder& b, const Checkpoints& kept, const Group& fixed, const Group& cotangents) const {
    if (keeps_all_)
      return for_each_slot(b, kept, {fixed, cotangents}, [&](Builder& inner, const Group& moving, const Expr&, const State& s) {
        return State{s[0], step_back(inner, moving, s[0], s[1])};
      })[1];
    const Group moving = moving_of(exprs(b, n_.node.inputs));
    return for_each_slot(b, kept, {fixed, cotangents, make_buffers(b, moving, kInnerSlots)},
                         [&](Builder& inner, const Group& at, const Expr& count, const State& s) {
                           const Checkpoints stretch = run_stretch(inner, at, s[0], count, s[2]);
                           return State{s[0], back_over_stretch(inner, stretch, s[0], s[1]), stretch.buffers};
                         })[1];
  }

  Group back_over_stretch(Builder& b, const Checkpoints& kept, const Group& fixed, const Group& cotangents) const {
    return for_each_slot(b, kept, {fixed, cotangents}, [&](Builder& outer, const Group& moving, const Expr& count, const State& s) {
      const State start{{count - 1}, moving, s[0], s[1]};
      const State end = run_while(
          outer, start, [](Builder&, const State& t) { return t[0][0] >= 0; },
          [&](Builder& inner, const State& t) {
            const Group at = replay(inner, t[1], t[2], t[0][0]);
            return State{{t[0][0] - 1}, t[1], t[2], step_back(inner, at, t[2], t[3])};
          });
      return State{s[0], end[3]};
    })[1];
  }

  const NodeGrad& n_;
  const Graph& condition_;
  const Graph& body_;
  std::vector<size_t> moving_, fixed_;  // carries that the body changes; that it passes through as they are
  std::vector<size_t> active_;          // carries that have a cotangent
  Attr max_trips_;
  bool keeps_all_ = false;
  int64_t slots_ = kSlots;
};

}  // namespace

InputGrads while_gradients(const NodeGrad& n) { return WhileGrad(n).run(); }

}  // namespace tandem::transform
