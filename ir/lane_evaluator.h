// Runs a compiled stage, a block of elements along one axis at a time: each expression is evaluated for all lanes of
// the block before the next, so that what it costs to interpret is shared by them.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "compiled_stage.h"

namespace gopt::ir {

inline constexpr int kLanes = 256;  // at most, of a block

class LaneEvaluator {
 public:
  LaneEvaluator(const Stage& stage, std::span<const TensorView> inputs, size_t lane_axis)
      : inputs_(inputs), stage_(compile_stage(stage, inputs, lane_axis)), slots_(stage_.slots, 0) {
    integer_ = !is_floating(stage.element) && node(stage_.root).domain != Domain::Real;
  }

  bool integer() const { return integer_; }
  // Neighbours along the lanes lie far apart in what is read, as in a transposition.
  bool reads_across() const {
    return std::ranges::any_of(stage_.nodes, [](const StageExpr& e) {
      return e.kind == ExprKind::Read && !e.subscripts.empty() && !e.subscripts.back().uses_lane() &&
             std::ranges::any_of(e.subscripts, &CompiledIndex::uses_lane);
    });
  }
  // Elements of n lanes from `first` on, the other axes at `position`: integers where integer(), else doubles.
  template <class T>
  void run(std::span<const int64_t> position, int64_t first, int n, T* out) {
    for (size_t k = 0; k < position.size(); k++) slots_[k] = position[k];
    if (stage_.lane >= 0) slots_[static_cast<size_t>(stage_.lane)] = first;
    first_ = first;
    n_ = n;
    const Mask* everything = nullptr;
    evaluate<T>(stage_.root, everything, out);
  }

 private:
  using Mask = std::array<bool, kLanes>;

  static double apply_function(Function f, double x, double y) {
    using T = double;
    switch (f) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return numeric;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
    }
    (void)y;
    return 0;
  }

  template <class T>
  static void fill(T* out, int n, T value) {
    std::fill(out, out + n, value);
  }

  const StageExpr& node(int id) const { return stage_.nodes[static_cast<size_t>(id)]; }

  // Evaluates into n_ lanes; lanes that the mask leaves out hold anything and read nothing.
  template <class T>
  void evaluate(int id, const Mask* mask, T* out) {
    const StageExpr& e = node(id);
    // An operand of the other kind is evaluated as what it is, then converted.
    if constexpr (std::is_same_v<T, double>) {
      if (e.domain == Domain::Integer) return converted<int64_t>(id, mask, out);
    } else {
      if (e.domain == Domain::Real) return converted<double>(id, mask, out);
    }
    switch (e.kind) {
      case ExprKind::Constant: return fill(out, n_, static_cast<T>(e.value));
      case ExprKind::Size: return index_lanes(e.index, out);
      case ExprKind::Read: return read_lanes(e, mask, out);
      case ExprKind::Select: return select_lanes(e, mask, out);
      case ExprKind::Choose: return choose_lanes(e, mask, out);
      case ExprKind::Call: return call_lanes(e, mask, out);
      case ExprKind::Convert: return convert_lanes(e, mask, out);
      case ExprKind::Reduce: return reduce_lanes(e, mask, out);
      case ExprKind::Less:
      case ExprKind::Equal: return compare_lanes(e, mask, out);
      case ExprKind::Add: return binary_lanes(e, mask, out, [](T a, T b) { return a + b; });
      case ExprKind::Subtract: return binary_lanes(e, mask, out, [](T a, T b) { return a - b; });
      case ExprKind::Multiply: return binary_lanes(e, mask, out, [](T a, T b) { return a * b; });
      case ExprKind::Divide: return signed_or_not(e, mask, out, [](auto a, auto b) { return divide(a, b); });
      case ExprKind::Maximum: return signed_or_not(e, mask, out, [](auto a, auto b) { return largest(a, b); });
      case ExprKind::Minimum: return signed_or_not(e, mask, out, [](auto a, auto b) { return smallest(a, b); });
    }
  }

  static double divide(double a, double b) { return a / b; }
  static int64_t divide(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
  }
  static uint64_t divide(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
  static int64_t remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
  static uint64_t remainder(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
  // NaN wins, as in ONNX Runtime and numpy.
  template <class T>
  static T largest(T a, T b) {
    return a != a ? a : b != b ? b : a < b ? b : a;
  }
  template <class T>
  static T smallest(T a, T b) {
    return a != a ? a : b != b ? b : b < a ? b : a;
  }

  template <class From, class T>
  void converted(int id, const Mask* mask, T* out) {
    std::array<From, kLanes> values;
    evaluate<From>(id, mask, values.data());
    for (int l = 0; l < n_; l++) {
      if constexpr (std::is_same_v<From, double>) {
        const double v = values[static_cast<size_t>(l)];
        out[l] = std::isnan(v) || (mask && !(*mask)[static_cast<size_t>(l)]) ? T(0)
                 : v >= 9223372036854775808.0                                ? INT64_MAX
                 : v < -9223372036854775808.0                                ? INT64_MIN
                                                                             : static_cast<T>(v);
      } else {
        const int64_t v = values[static_cast<size_t>(l)];
        out[l] = node(id).is_unsigned ? static_cast<T>(static_cast<uint64_t>(v)) : static_cast<T>(v);
      }
    }
  }

  template <class T, class F>
  void binary_lanes(const StageExpr& e, const Mask* mask, T* out, const F& f) {
    std::array<T, kLanes> b;
    evaluate<T>(e.args[0], mask, out);
    evaluate<T>(e.args[1], mask, b.data());
    if constexpr (std::is_same_v<T, int64_t>) {
      // Wraps around, as ONNX's integers do; lanes left out hold anything.
      for (int l = 0; l < n_; l++)
        out[l] = mask && !(*mask)[static_cast<size_t>(l)] ? 0 : wrap(e.kind, out[l], b[static_cast<size_t>(l)], f);
    } else {
      for (int l = 0; l < n_; l++) out[l] = f(out[l], b[static_cast<size_t>(l)]);
    }
  }
  // f of the lanes, or of what they are without a sign.
  template <class T, class F>
  void signed_or_not(const StageExpr& e, const Mask* mask, T* out, const F& f) {
    if constexpr (std::is_same_v<T, int64_t>) {
      if (e.is_unsigned)
        return binary_lanes(e, mask, out, [&](int64_t a, int64_t b) {
          return static_cast<int64_t>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
        });
    }
    binary_lanes(e, mask, out, [&](T a, T b) { return f(a, b); });
  }
  template <class F>
  static int64_t wrap(ExprKind kind, int64_t a, int64_t b, const F& f) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (kind == ExprKind::Add) return static_cast<int64_t>(x + y);
    if (kind == ExprKind::Subtract) return static_cast<int64_t>(x - y);
    if (kind == ExprKind::Multiply) return static_cast<int64_t>(x * y);
    return f(a, b);
  }

  template <class T>
  void compare_lanes(const StageExpr& e, const Mask* mask, T* out) {
    const bool real = node(e.args[0]).domain == Domain::Real || node(e.args[1]).domain == Domain::Real;
    real ? compare<double>(e, mask, out) : compare<int64_t>(e, mask, out);
  }
  template <class A, class T>
  void compare(const StageExpr& e, const Mask* mask, T* out) {
    std::array<A, kLanes> a, b;
    evaluate<A>(e.args[0], mask, a.data());
    evaluate<A>(e.args[1], mask, b.data());
    const bool is_unsigned = node(e.args[0]).is_unsigned || node(e.args[1]).is_unsigned;
    for (int l = 0; l < n_; l++) {
      const auto i = static_cast<size_t>(l);
      out[l] = e.kind == ExprKind::Equal ? a[i] == b[i] : is_unsigned ? is_below(a[i], b[i]) : a[i] < b[i];
    }
  }

  static bool is_below(double a, double b) { return a < b; }
  static bool is_below(int64_t a, int64_t b) { return static_cast<uint64_t>(a) < static_cast<uint64_t>(b); }

  template <class T>
  void call_lanes(const StageExpr& e, const Mask* mask, T* out) {
    if constexpr (std::is_same_v<T, int64_t>) {
      if (e.function == Function::Fmod && e.domain == Domain::Integer)
        return signed_or_not(e, mask, out, [](auto a, auto b) { return remainder(a, b); });
    }
    std::array<double, kLanes> x, y{};
    evaluate<double>(e.args[0], mask, x.data());
    if (e.args.size() > 1) evaluate<double>(e.args[1], mask, y.data());
    for (int l = 0; l < n_; l++)
      out[l] = static_cast<T>(apply_function(e.function, x[static_cast<size_t>(l)], y[static_cast<size_t>(l)]));
  }

  // Through memory of the type converted to, so that every rounding and wrapping is the one that storing does.
  template <class T>
  void convert_lanes(const StageExpr& e, const Mask* mask, T* out) {
    std::byte cell[8];
    auto through = [&](auto v) {
      if constexpr (std::is_same_v<decltype(v), double>)
        store_double(cell, e.type, 0, v);
      else
        store_int(cell, e.type, 0, v);
      if constexpr (std::is_same_v<T, double>)
        return load_double(cell, e.type, 0);
      else
        return load_int(cell, e.type, 0);
    };
    if (node(e.args[0]).domain == Domain::Real) {
      std::array<double, kLanes> x;
      evaluate<double>(e.args[0], mask, x.data());
      for (int l = 0; l < n_; l++)
        out[l] = mask && !(*mask)[static_cast<size_t>(l)] ? T(0) : through(x[static_cast<size_t>(l)]);
    } else {
      std::array<int64_t, kLanes> x;
      evaluate<int64_t>(e.args[0], mask, x.data());
      const bool has_no_sign = node(e.args[0]).is_unsigned && is_floating(e.type);
      const auto number = [&](int64_t v) {
        return has_no_sign ? through(static_cast<double>(static_cast<uint64_t>(v))) : through(v);
      };
      for (int l = 0; l < n_; l++)
        out[l] = mask && !(*mask)[static_cast<size_t>(l)] ? T(0) : number(x[static_cast<size_t>(l)]);
    }
  }

  void set_lane(int l) {
    if (stage_.lane >= 0) slots_[static_cast<size_t>(stage_.lane)] = first_ + l;
  }

  template <class T>
  void index_lanes(const CompiledIndex& index, T* out) {
    if (!index.uses_lane()) return fill(out, n_, static_cast<T>(index.value(slots_, inputs_)));
    for (int l = 0; l < n_; l++) {
      set_lane(l);
      out[l] = static_cast<T>(index.value(slots_, inputs_));
    }
    set_lane(0);
  }

  // A read whose subscripts are affine along the lanes: its flat offset and step, and the lanes that lie within the
  // tensor.
  struct AffineRead {
    int64_t offset = 0, step = 0;
    int begin = 0, end = 0;
  };
  std::optional<AffineRead> affine_read(const StageExpr& e) {
    const TensorView& t = inputs_[static_cast<size_t>(e.input)];
    AffineRead r{0, 0, 0, n_};
    for (size_t d = 0; d < e.subscripts.size(); d++) {
      if (!e.subscripts[d].affine_in_lane()) return std::nullopt;
      const int64_t at = e.subscripts[d].value(slots_, inputs_),
                    step = e.subscripts[d].lane_step(slots_, inputs_, stage_.lane);
      auto inside = [&](int l) { return at + step * l >= 0 && at + step * l < t.dims[d]; };
      while (r.begin < r.end && !inside(r.begin)) r.begin++;
      while (r.begin < r.end && !inside(r.end - 1)) r.end--;
      r.offset = r.offset * t.dims[d] + at;
      r.step = r.step * t.dims[d] + step;
    }
    return r;
  }

  template <class T>
  void read_lanes(const StageExpr& e, const Mask* mask, T* out) {
    const TensorView& t = inputs_[static_cast<size_t>(e.input)];
    GOPT_CHECK(t.dims.size() == e.subscripts.size(), "a read with another rank than its tensor");
    auto active = [mask](int l) { return !mask || (*mask)[static_cast<size_t>(l)]; };
    if (const auto r = affine_read(e)) {
      bool covered = true;
      const auto leave_out = [&](int begin, int end) {
        for (int l = begin; l < end; l++) covered &= !active(l);
        std::fill(out + begin, out + std::max(begin, end), T(0));
      };
      leave_out(0, r->begin);
      leave_out(r->end, n_);
      if (covered) return load_lanes(t, *r, out);
    }
    std::vector<int64_t> s(e.subscripts.size());
    for (int l = 0; l < n_; l++) {
      out[l] = 0;
      if (!active(l)) continue;
      set_lane(l);
      for (size_t d = 0; d < s.size(); d++) s[d] = e.subscripts[d].value(slots_, inputs_);
      load_lanes_one(t, flat_offset(t, s), out[l]);
    }
    set_lane(0);
  }
  static void load_lanes_one(const TensorView& t, int64_t offset, double& out) {
    out = load_double(t.data, t.type, offset);
  }
  static void load_lanes_one(const TensorView& t, int64_t offset, int64_t& out) {
    out = load_int(t.data, t.type, offset);
  }

  template <class T>
  void load_lanes(const TensorView& t, const AffineRead& r, T* out) {
    auto plain = [&]<class M>(M) {
      constexpr auto kSize = static_cast<int64_t>(sizeof(M));
      const std::byte* first = t.data + (r.offset + r.begin * r.step) * kSize;
      const auto load = [](const std::byte* p) {
        M v;
        std::memcpy(&v, p, sizeof v);  // mapped weights may lie unaligned
        return static_cast<T>(v);
      };
      if (r.step == 1)  // a loop of its own, which compilers make instructions for several of
        for (int l = r.begin; l < r.end; l++) out[l] = load(first + (l - r.begin) * kSize);
      else if (r.step == 0)
        std::fill(out + r.begin, out + r.end, load(first));
      else
        for (int l = r.begin; l < r.end; l++, first += r.step * kSize) out[l] = load(first);
    };
    if (t.type == ElementType::Float32) return plain(float{});
    if (t.type == ElementType::Float64) return plain(double{});
    if (t.type == ElementType::Int64) return plain(int64_t{});
    for (int l = r.begin; l < r.end; l++) load_lanes_one(t, r.offset + l * r.step, out[l]);
  }

  template <class T>
  void select_lanes(const StageExpr& e, const Mask* mask, T* out) {
    if (!e.cond.uses_lane) return evaluate<T>(e.args[e.cond.value(slots_, inputs_) ? 0 : 1], mask, out);
    Mask then, otherwise;
    holds(e.cond, then);
    int chosen = 0;
    for (int l = 0; l < n_; l++) {
      const auto i = static_cast<size_t>(l);
      const bool active = !mask || (*mask)[i];
      then[i] = then[i] && active;
      otherwise[i] = active && !then[i];
      chosen += then[i];
    }
    merge(e.args[0], e.args[1], then, otherwise, chosen, out);
  }

  // In which lanes the condition holds.
  void holds(const CompiledCond& cond, Mask& mask) {
    const bool joins = cond.kind == CondKind::And || cond.kind == CondKind::Or;
    if (cond.uses_lane && joins) {
      holds(cond.parts[0], mask);
      Mask other;
      for (size_t k = 1; k < cond.parts.size(); k++) {
        holds(cond.parts[k], other);
        for (size_t l = 0; l < static_cast<size_t>(n_); l++)
          mask[l] = cond.kind == CondKind::And ? mask[l] && other[l] : mask[l] || other[l];
      }
      return;
    }
    if (!cond.uses_lane) return fill(mask.data(), n_, cond.value(slots_, inputs_));
    if (cond.index.affine_in_lane()) {
      int64_t v = cond.index.value(slots_, inputs_);
      const int64_t step = cond.index.lane_step(slots_, inputs_, stage_.lane);
      for (int l = 0; l < n_; l++, v += step) mask[static_cast<size_t>(l)] = v >= 0;
      return;
    }
    for (int l = 0; l < n_; l++) {
      set_lane(l);
      mask[static_cast<size_t>(l)] = cond.value(slots_, inputs_);
    }
    set_lane(0);
  }

  template <class T>
  void choose_lanes(const StageExpr& e, const Mask* mask, T* out) {
    Mask then, otherwise;
    int chosen = 0;
    auto split = [&](const auto& test) {
      for (int l = 0; l < n_; l++) {
        const auto i = static_cast<size_t>(l);
        const bool active = !mask || (*mask)[i], holds = active && test[i] != 0;
        then[i] = holds;
        otherwise[i] = active && !holds;
        chosen += holds;
      }
    };
    if (node(e.args[0]).domain == Domain::Real) {
      std::array<double, kLanes> test;
      evaluate<double>(e.args[0], mask, test.data());
      split(test);
    } else {
      std::array<int64_t, kLanes> test;
      evaluate<int64_t>(e.args[0], mask, test.data());
      split(test);
    }
    merge(e.args[1], e.args[2], then, otherwise, chosen, out);
  }

  template <class T>
  void merge(int then_id, int otherwise_id, const Mask& then, const Mask& otherwise, int chosen, T* out) {
    if (chosen == n_) return evaluate<T>(then_id, nullptr, out);
    if (chosen == 0) return evaluate<T>(otherwise_id, &otherwise, out);
    std::array<T, kLanes> other;
    evaluate<T>(then_id, &then, out);
    evaluate<T>(otherwise_id, &otherwise, other.data());
    for (int l = 0; l < n_; l++)
      if (!then[static_cast<size_t>(l)]) out[l] = other[static_cast<size_t>(l)];
  }

  template <class T>
  void reduce_lanes(const StageExpr& e, const Mask* mask, T* out) {
    T start = 0;
    if (e.reduce == ReduceKind::Product) start = 1;
    if (e.reduce == ReduceKind::Max) start = least<T>(e.is_unsigned);
    if (e.reduce == ReduceKind::Min) start = most<T>(e.is_unsigned);
    fill(out, n_, start);
    std::array<T, kLanes> term;
    reduce_over(e, 0, mask, out, term.data());
  }
  template <class T>
  static T least(bool is_unsigned) {
    if constexpr (std::is_same_v<T, double>) return -INFINITY;
    return is_unsigned ? T(0) : std::numeric_limits<T>::min();
  }
  template <class T>
  static T most(bool is_unsigned) {
    if constexpr (std::is_same_v<T, double>) return INFINITY;
    return is_unsigned ? static_cast<T>(UINT64_MAX) : std::numeric_limits<T>::max();
  }
  template <class T>
  void reduce_over(const StageExpr& e, size_t binder, const Mask* mask, T* out, T* term) {
    if (binder < e.binders.size()) {
      const auto& [slot, extent] = e.binders[binder];
      GOPT_CHECK(!extent.uses_lane(), "a reduction whose extent depends on the element");
      const int64_t count = extent.value(slots_, inputs_);
      for (int64_t k = 0; k < count; k++) {
        slots_[static_cast<size_t>(slot)] = k;
        reduce_over(e, binder + 1, mask, out, term);
      }
      return;
    }
    evaluate<T>(e.args[0], mask, term);
    switch (e.reduce) {
      case ReduceKind::Sum:
        for (int l = 0; l < n_; l++) out[l] = sum(out[l], term[l]);
        return;
      case ReduceKind::Product:
        for (int l = 0; l < n_; l++) out[l] = times(out[l], term[l]);
        return;
      case ReduceKind::Max:
        for (int l = 0; l < n_; l++) out[l] = larger(out[l], term[l], e.is_unsigned);
        return;
      case ReduceKind::Min:
        for (int l = 0; l < n_; l++) out[l] = smaller(out[l], term[l], e.is_unsigned);
        return;
    }
  }
  static double larger(double a, double b, bool /*is_unsigned*/) { return largest(a, b); }
  static int64_t larger(int64_t a, int64_t b, bool is_unsigned) {
    return is_unsigned ? is_below(a, b) ? b : a : largest(a, b);
  }
  static double smaller(double a, double b, bool /*is_unsigned*/) { return smallest(a, b); }
  static int64_t smaller(int64_t a, int64_t b, bool is_unsigned) {
    return is_unsigned ? is_below(b, a) ? b : a : smallest(a, b);
  }
  static double sum(double a, double b) { return a + b; }
  static int64_t sum(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static double times(double a, double b) { return a * b; }
  static int64_t times(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }

  std::span<const TensorView> inputs_;
  CompiledStage stage_;
  Slots slots_;
  bool integer_ = false;
  int64_t first_ = 0;
  int n_ = 1;
};

}  // namespace gopt::ir
