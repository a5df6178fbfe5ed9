// The interpreter compiles each expression into a flat list of steps over registers, once a call; a register holds a value for each of
// a run of lanes, so that deciding what to do is paid for once a run. Lanes only say what is computed together: every output combines
// its elements in plain order.
#include "codegen/interpret.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/text.hpp"
#include "codegen/interpret_ops.hpp"

namespace tandem::codegen {
namespace {

using interpreter::Lanes;
using ir::Prim;
using ir::Scalar;

constexpr int64_t kLanes = 256;

// One dimension of a load's address.
struct Coordinate {
  int reg;
  int64_t stride;
  int64_t extent;  // < 0: not known, not checked
};

struct Instruction {
  Prim prim;
  DType type;  // of the operands (Load: of the memory)
  DType result;
  int out;
  std::array<int, 3> in = {-1, -1, -1};
  int input = -1;                  // Load
  std::vector<Coordinate> at;      // Load
  int valid = -1, otherwise = -1;  // guarded Load
  bool rounds = false;             // the result must be rounded to float16 or bfloat16
};

// What differs between the two ways to say a kernel.
struct Source {
  const ir::Loops& loops;
  std::vector<int64_t> extents, reduce_extents;
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<const Layout*> layouts;  // empty: loads have one index, which is the offset
  std::function<int64_t(const ir::ScalarNode&)> extent;
};

class Machine {
 public:
  explicit Machine(const Source& s) : source_(s), loops_(s.loops) {
    all_extents_ = s.extents;
    all_extents_.insert(all_extents_.end(), s.reduce_extents.begin(), s.reduce_extents.end());
    if (loops_.reduction) {
      const ir::Reduction& r = *loops_.reduction;
      for (size_t k = 0; k < r.element.size(); ++k) {
        left_.push_back(new_register());
        right_.push_back(new_register());
        next_.push_back(new_register());
        state_.push_back(new_register());
      }
      identity_ = compile(r.identity, left_);
      elements_ = compile(r.element, left_);
      combine_ = compile(r.combine, left_);
      if (r.limit) limit_ = compile(std::span(&r.limit, 1), left_);
    }
    for (const ir::Reduction& r : loops_.row_reductions) compile_row(r);
    results_ = compile(loops_.results, state_);
    memory_.resize(static_cast<size_t>(register_count_) * kLanes);
    for (const auto& [reg, value] : constants_) fill_constant(reg, value);
  }

  void run() {
    outputs_ = count(source_.extents);
    if (!loops_.row_reductions.empty()) return rows();
    if (outputs_ == 0) return;
    if (!loops_.reduction) return map();
    if (loops_.scan_axis >= 0) return scan();
    const int64_t reduced = count(source_.reduce_extents);
    if (loops_.reduction->limit || outputs_ < std::min<int64_t>(reduced, 32)) return reduce_along();
    reduce_across(reduced);
  }

 private:
  struct Phase {
    std::vector<Instruction> steps;
    std::vector<int> results;  // a register for each root
  };
  struct RowPhase {
    Phase identity, element, combine;
    std::vector<int> left, right, state;
    std::vector<DType> types;
  };
  struct Constant {
    DType type;
    uint64_t bits;
    friend auto operator<=>(const Constant&, const Constant&) = default;
  };

  static int64_t count(const std::vector<int64_t>& extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  }
  int new_register() { return register_count_++; }
  template <class T> T* at(int reg) { return reinterpret_cast<T*>(memory_.data() + static_cast<int64_t>(reg) * kLanes); }
  void copy(int to, int from, int64_t n) { std::copy_n(at<uint64_t>(from), n, at<uint64_t>(to)); }

  // ---- compiling ----
  // `acc` are the registers that Acc means in these expressions.
  Phase compile(std::span<const Scalar> roots, const std::vector<int>& acc) {
    Phase phase;
    std::unordered_map<const ir::ScalarNode*, int> done;
    const std::vector<Scalar> shared = ir::share(roots);
    for (const Scalar& s : ir::post_order(shared)) done.emplace(s.get(), leaf(*s, acc) ? leaf_register_ : step(*s, done, phase));
    for (const Scalar& root : shared) phase.results.push_back(done.at(root.get()));
    return phase;
  }

  // A reduction along rows: its elements see the states of those before it, which its own joins.
  void compile_row(const ir::Reduction& r) {
    RowPhase p;
    for (size_t k = 0; k < r.element.size(); ++k) {
      p.left.push_back(new_register());
      p.right.push_back(new_register());
    }
    p.identity = compile(r.identity, p.left);
    p.element = compile(r.element, state_);
    right_ = p.right;
    p.combine = compile(r.combine, p.left);
    for (size_t k = 0; k < r.element.size(); ++k) {
      p.types.push_back(r.element[k].dtype());
      p.state.push_back(new_register());
    }
    state_.insert(state_.end(), p.state.begin(), p.state.end());
    rows_.push_back(std::move(p));
  }

  bool leaf(const ir::ScalarNode& n, const std::vector<int>& acc) {
    switch (n.prim) {
      case Prim::Const: leaf_register_ = constant(n.dtype, n.bits); return true;
      case Prim::Extent: leaf_register_ = constant(DType::I64, static_cast<uint64_t>(source_.extent(n))); return true;
      case Prim::Axis: {
        const auto it = axes_.find(n.index);
        TANDEM_CHECK(n.index < static_cast<int>(all_extents_.size()), "axis ", n.index, " of ", all_extents_.size());
        leaf_register_ = it != axes_.end() ? it->second : axes_.emplace(n.index, new_register()).first->second;
        return true;
      }
      case Prim::Acc: leaf_register_ = acc.at(static_cast<size_t>(n.index)); return true;
      case Prim::Right: leaf_register_ = right_.at(static_cast<size_t>(n.index)); return true;
      case Prim::Arg: internal_error("loops with an argument of a body");
      default: return false;
    }
  }
  int constant(DType t, uint64_t bits) {
    for (const auto& [reg, c] : constants_)
      if (c == Constant{t, bits}) return reg;
    constants_.emplace_back(new_register(), Constant{t, bits});
    return constants_.back().first;
  }
  void fill_constant(int reg, const Constant& c) {
    dispatch(c.type, [&](auto zero) {
      using T = std::conditional_t<std::is_same_v<decltype(zero), bool>, uint8_t, decltype(zero)>;
      using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                      std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
      std::fill_n(at<interpreter::Register<T>>(reg), kLanes, interpreter::from_memory(std::bit_cast<T>(static_cast<Bits>(c.bits))));
    });
  }

  int step(const ir::ScalarNode& n, const std::unordered_map<const ir::ScalarNode*, int>& done, Phase& phase) {
    Instruction s{.prim = n.prim, .type = n.in.empty() ? n.dtype : n.in[0].dtype(), .result = n.dtype, .out = new_register()};
    auto reg = [&](size_t i) { return done.at(n.in[i].get()); };
    if (n.prim == Prim::Load) {
      s.type = n.dtype;
      s.input = n.index;
      const size_t rank = n.in.size() - (n.guarded ? 2 : 0);
      const Layout* layout = source_.layouts.empty() ? nullptr : source_.layouts.at(static_cast<size_t>(n.index));
      TANDEM_CHECK(layout ? layout->shape.size() == rank && layout->dtype == n.dtype : rank == 1, "load", n.index, " with ", rank,
                   " indices");
      for (size_t d = 0; d < rank; ++d)
        s.at.push_back(layout ? Coordinate{reg(d), layout->strides[d], layout->shape[d]} : Coordinate{reg(d), 1, -1});
      if (n.guarded) {
        s.valid = reg(rank);
        s.otherwise = reg(rank + 1);
      }
    } else {
      for (size_t i = 0; i < n.in.size(); ++i) s.in[i] = reg(i);
      const bool exact = n.prim == Prim::Min || n.prim == Prim::Max || n.prim == Prim::Select || n.prim == Prim::Neg ||
                         n.prim == Prim::Abs || n.prim == Prim::Bitcast;
      s.rounds = interpreter::is_small_float(n.dtype) && !exact;
    }
    phase.steps.push_back(std::move(s));
    return phase.steps.back().out;
  }

  // ---- running ----
  void run(const Phase& phase, int64_t n) {
    for (const Instruction& s : phase.steps) run(s, n);
  }
  void run(const Instruction& s, int64_t n) {
    if (s.prim == Prim::Load) return load(s, n);
    Lanes l{{}, at<void*>(s.out), n};
    for (size_t i = 0; i < 3 && s.in[i] >= 0; ++i) l.in[i] = at<void*>(s.in[i]);
    if (s.prim == Prim::Cast) {
      interpreter::cast(s.type, s.result, l);
    } else if (s.prim == Prim::Bitcast) {
      interpreter::bitcast(s.type, s.result, l);
    } else if (s.prim == Prim::Select) {
      select(s, n);
    } else {
      primitive(s, l);
    }
    if (s.rounds) interpreter::round_lanes(s.result, Lanes{{l.out}, l.out, n});
  }
  static void primitive(const Instruction& s, const Lanes& l) {
    if (!interpreter::primitive(s.prim, s.type, l)) internal_error("primitive ", ir::name(s.prim), " on ", name(s.type));
  }
  void select(const Instruction& s, int64_t n) {
    const uint8_t* c = at<uint8_t>(s.in[0]);
    dispatch(s.result, [&](auto zero) {
      using T = interpreter::Register<decltype(zero)>;
      const T *a = at<T>(s.in[1]), *b = at<T>(s.in[2]);
      T* r = at<T>(s.out);
      for (int64_t i = 0; i < n; ++i) r[i] = c[i] ? a[i] : b[i];
    });
  }

  // Lanes that are not valid never touch memory.
  void load(const Instruction& s, int64_t n) {
    const uint8_t* valid = s.valid >= 0 ? at<uint8_t>(s.valid) : nullptr;
    std::array<int64_t, kLanes> offsets;
    std::fill_n(offsets.begin(), n, 0);
    for (const Coordinate& c : s.at) {
      const int64_t* index = at<int64_t>(c.reg);
      for (int64_t i = 0; i < n; ++i) {
        if (c.extent >= 0 && (!valid || valid[i]) && (index[i] < 0 || index[i] >= c.extent))
          internal_error("load", s.input, " at index ", index[i], " of an axis of size ", c.extent, " in ", ir::str(loops_));
        offsets[static_cast<size_t>(i)] += static_cast<int64_t>(static_cast<uint64_t>(index[i]) * static_cast<uint64_t>(c.stride));
      }
    }
    dispatch(s.type, [&](auto zero) {
      using T = std::conditional_t<std::is_same_v<decltype(zero), bool>, uint8_t, decltype(zero)>;
      using R = interpreter::Register<T>;
      const T* p = static_cast<const T*>(source_.in[static_cast<size_t>(s.input)]);
      R* r = at<R>(s.out);
      const R* otherwise = valid ? at<R>(s.otherwise) : nullptr;
      const bool is_bool = s.type == DType::Bool;
      for (int64_t i = 0; i < n; ++i) {
        if (valid && !valid[i]) {
          r[i] = otherwise[i];
          continue;
        }
        const R value = interpreter::from_memory(p[offsets[static_cast<size_t>(i)]]);
        r[i] = is_bool ? static_cast<R>(value != R(0)) : value;
      }
    });
  }

  // Lane i goes to output element offset(i), for all outputs or some.
  template <class F> void store(int64_t n, F offset, size_t first = 0, size_t last = SIZE_MAX) {
    for (size_t o = first; o < std::min(last, loops_.results.size()); ++o)
      dispatch(loops_.results[o].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const auto* r = at<interpreter::Register<T>>(results_.results[o]);
        T* p = static_cast<T*>(source_.out[o]);
        for (int64_t i = 0; i < n; ++i) p[offset(i)] = interpreter::to_memory<T>(r[i]);
      });
  }

  // The values of `axes` at the points [begin, begin+n) of the space they span, row-major.
  void set_axes(std::span<const int> axes, std::span<const int64_t> extents, int64_t begin, int64_t n) {
    int64_t inner = 1;
    for (size_t j = axes.size(); j-- > 0;) {
      if (auto it = axes_.find(axes[j]); it != axes_.end()) {
        int64_t* v = at<int64_t>(it->second);
        int64_t value = begin / inner % extents[j], rest = begin % inner;
        for (int64_t i = 0; i < n; ++i) {
          v[i] = value;
          if (++rest < inner) continue;
          rest = 0;
          if (++value == extents[j]) value = 0;
        }
      }
      inner *= extents[j];
    }
  }
  // One point of that space in all lanes.
  void set_point(std::span<const int> axes, std::span<const int64_t> extents, int64_t point, int64_t n) {
    for (size_t j = axes.size(); j-- > 0; point /= extents[j])
      if (auto it = axes_.find(axes[j]); it != axes_.end()) std::fill_n(at<int64_t>(it->second), n, point % extents[j]);
  }
  std::vector<int> output_axes() const { return range(0, source_.extents.size()); }
  std::vector<int> reduce_axes() const { return range(source_.extents.size(), source_.reduce_extents.size()); }
  static std::vector<int> range(size_t first, size_t n) {
    std::vector<int> r(n);
    std::iota(r.begin(), r.end(), static_cast<int>(first));
    return r;
  }

  void map() {
    const std::vector<int> axes = output_axes();
    for (int64_t p = 0; p < outputs_; p += kLanes) {
      const int64_t n = std::min(kLanes, outputs_ - p);
      set_axes(axes, source_.extents, p, n);
      run(results_, n);
      store(n, [p](int64_t i) { return p + i; });
    }
  }

  void rows() {
    const std::vector<int> axes = output_axes(), outer(axes.begin(), axes.end() - 1), inner{axes.back()};
    const std::vector<int64_t> outer_extents(source_.extents.begin(), source_.extents.end() - 1);
    const int64_t length = source_.extents.back();
    const size_t whole = loops_.results.size() - static_cast<size_t>(loops_.row_results);
    const auto walk = [&](auto f) {
      for (int64_t e = 0; e < length; e += kLanes) {
        const int64_t n = std::min(kLanes, length - e);
        set_axes(inner, std::span(&length, 1), e, n);
        f(e, n);
      }
    };
    const int64_t row_count = count(outer_extents);
    for (int64_t row = 0; row < row_count; ++row) {
      set_point(outer, outer_extents, row, kLanes);
      for (const RowPhase& p : rows_) {
        run(p.identity, 1);
        for (size_t k = 0; k < p.left.size(); ++k) copy(p.left[k], p.identity.results[k], 1);
        walk([&](int64_t, int64_t n) {
          run(p.element, n);
          for (int64_t i = 0; i < n; ++i) {
            for (size_t k = 0; k < p.left.size(); ++k) take_lane(p.types[k], p.right[k], 0, p.element.results[k], i);
            run(p.combine, 1);
            for (size_t k = 0; k < p.left.size(); ++k) copy(p.state[k], p.combine.results[k], 1);
            for (size_t k = 0; k < p.left.size(); ++k) copy(p.left[k], p.state[k], 1);
          }
        });
        for (size_t k = 0; k < p.left.size(); ++k)
          for (int64_t i = 0; i < kLanes; ++i) take_lane(p.types[k], p.state[k], i, p.left[k], 0);
      }
      walk([&](int64_t e, int64_t n) {
        run(results_, n);
        store(n, [&](int64_t i) { return row * length + e + i; }, 0, whole);
      });
      run(results_, 1);  // also when the row is empty
      store(1, [&](int64_t) { return row; }, whole);
    }
  }

  void start(int64_t n) {
    run(identity_, n);
    for (size_t k = 0; k < left_.size(); ++k) copy(left_[k], identity_.results[k], n);
  }
  // left = combine(left, right), lane by lane.
  void combine(int64_t n) {
    run(combine_, n);
    // A result may be one of the accumulators, so all are read before one is written.
    for (size_t k = 0; k < left_.size(); ++k) copy(next_[k], combine_.results[k], n);
    for (size_t k = 0; k < left_.size(); ++k) copy(left_[k], next_[k], n);
  }
  void finish(int64_t n) {
    for (size_t k = 0; k < left_.size(); ++k) copy(state_[k], left_[k], n);
    run(results_, n);
  }

  // Each lane owns an output.
  void reduce_across(int64_t reduced) {
    const std::vector<int> outer = output_axes(), inner = reduce_axes();
    for (int64_t p = 0; p < outputs_; p += kLanes) {
      const int64_t n = std::min(kLanes, outputs_ - p);
      set_axes(outer, source_.extents, p, n);
      start(n);
      for (int64_t e = 0; e < reduced; ++e) {
        set_point(inner, source_.reduce_extents, e, n);
        run(elements_, n);
        for (size_t k = 0; k < left_.size(); ++k) copy(right_[k], elements_.results[k], n);
        combine(n);
      }
      finish(n);
      store(n, [p](int64_t i) { return p + i; });
    }
  }

  // Lanes are elements of one output.
  void reduce_along() {
    const std::vector<int> outer = output_axes(), inner = reduce_axes();
    std::vector<int64_t> extents = source_.reduce_extents;
    for (int64_t p = 0; p < outputs_; ++p) {
      set_point(outer, source_.extents, p, kLanes);
      if (loops_.reduction->limit) {
        run(limit_, 1);
        extents[0] = std::clamp<int64_t>(*at<int64_t>(limit_.results[0]), 0, source_.reduce_extents[0]);
      }
      start(1);
      const int64_t reduced = count(extents);
      for (int64_t e = 0; e < reduced; e += kLanes) {
        const int64_t n = std::min(kLanes, reduced - e);
        set_axes(inner, extents, e, n);
        run(elements_, n);
        fold(n, [](int64_t) {});
      }
      finish(1);
      store(1, [p](int64_t) { return p; });
    }
  }

  // The usual reductions are one step on one component, whose lanes can be walked without interpreting each.
  bool is_plain_fold() const {
    if (left_.size() != 1 || combine_.steps.size() != 1) return false;
    const Instruction& s = combine_.steps[0];
    return !s.rounds && combine_.results[0] == s.out && s.in[2] < 0 && s.in[0] == left_[0] && s.in[1] == right_[0] && s.prim >= Prim::Add &&
           s.prim <= Prim::Xor && s.result == s.type;
  }

  // Combines n elements in order into lane 0 of `left`; after each, `after(i)` sees the state there.
  template <class F> void fold(int64_t n, F after, bool only_last = true) {
    if (only_last && is_plain_fold()) {
      Lanes l{{at<void*>(left_[0]), at<void*>(elements_.results[0])}, at<void*>(left_[0]), n};
      l.step[0] = l.out_step = 0;
      return primitive(combine_.steps[0], l);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < right_.size(); ++k) take_lane(loops_.reduction->element[k].dtype(), right_[k], 0, elements_.results[k], i);
      combine(1);
      after(i);
    }
  }
  void take_lane(DType t, int to, int64_t to_lane, int from, int64_t from_lane) {
    dispatch(t, [&](auto zero) {
      using T = interpreter::Register<decltype(zero)>;
      at<T>(to)[to_lane] = at<T>(from)[from_lane];
    });
  }

  void scan() {
    const auto axis = static_cast<size_t>(loops_.scan_axis);
    std::vector<int> others = output_axes();
    std::vector<int64_t> extents = source_.extents;
    others.erase(others.begin() + loops_.scan_axis);
    extents.erase(extents.begin() + loops_.scan_axis);
    const int64_t length = source_.extents[axis], rows = count(extents);
    int64_t inner = 1;
    for (size_t j = axis + 1; j < source_.extents.size(); ++j) inner *= source_.extents[j];
    const auto offset = [=](int64_t row, int64_t i) { return (row / inner * length + i) * inner + row % inner; };
    const std::vector<int> scanned{loops_.scan_axis};
    if (rows >= length) {
      for (int64_t p = 0; p < rows; p += kLanes) {
        const int64_t n = std::min(kLanes, rows - p);
        set_axes(others, extents, p, n);
        start(n);
        for (int64_t i = 0; i < length; ++i) {
          set_point(scanned, std::span(&length, 1), i, n);
          run(elements_, n);
          for (size_t k = 0; k < left_.size(); ++k) copy(right_[k], elements_.results[k], n);
          combine(n);
          finish(n);
          store(n, [&](int64_t lane) { return offset(p + lane, i); });
        }
      }
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      set_point(others, extents, row, kLanes);
      start(1);
      for (int64_t begin = 0; begin < length; begin += kLanes) {
        const int64_t n = std::min(kLanes, length - begin);
        set_axes(scanned, std::span(&length, 1), begin, n);
        run(elements_, n);
        const auto keep = [&](int64_t i) {
          for (size_t k = 0; k < left_.size(); ++k) take_lane(loops_.reduction->element[k].dtype(), state_[k], i, left_[k], 0);
        };
        fold(n, keep, false);
        run(results_, n);
        store(n, [&](int64_t lane) { return offset(row, begin + lane); });
      }
    }
  }

  const Source& source_;
  const ir::Loops& loops_;
  std::vector<int64_t> all_extents_;
  int64_t outputs_ = 0;
  int register_count_ = 0, leaf_register_ = -1;
  std::map<int, int> axes_;  // axis -> register
  std::vector<std::pair<int, Constant>> constants_;
  std::vector<int> left_, right_, next_, state_;  // accumulators inside `combine`, and what results see
  Phase identity_, elements_, combine_, limit_, results_;
  std::vector<RowPhase> rows_;
  std::vector<uint64_t> memory_;
};

}  // namespace

void interpret(const ir::Loops& loops, const Bindings& bindings, std::span<const HostOperand> in, std::span<const HostOperand> out) {
  Source s{loops, {}, {}, {}, {}, {}, [&](const ir::ScalarNode& n) { return n.dim.eval(bindings); }};
  for (const Dim& d : loops.extents) s.extents.push_back(d.eval(bindings));
  if (loops.reduction)
    for (const Dim& d : loops.reduction->extents) s.reduce_extents.push_back(d.eval(bindings));
  for (const HostOperand& o : in) {
    s.in.push_back(o.data);
    s.layouts.push_back(&o.layout);
  }
  for (const HostOperand& o : out) s.out.push_back(o.data);
  for (size_t i = 0; i < loops.results.size(); ++i)
    TANDEM_CHECK(loops.results[i].dtype() == out[i].layout.dtype, "output ", i, " of loops is ", name(loops.results[i].dtype()));
  Machine(s).run();
}

void interpret(const LoopKernel& kernel, std::span<void* const> in, std::span<void* const> out) {
  Source s{kernel.loops, kernel.extents, kernel.reduce_extents, {}, {}, {}, [&](const ir::ScalarNode& n) {
             return kernel.params.at(static_cast<size_t>(n.index));
           }};
  s.in.assign(in.begin(), in.end());
  s.out.assign(out.begin(), out.end());
  Machine(s).run();
}

}  // namespace tandem::codegen
