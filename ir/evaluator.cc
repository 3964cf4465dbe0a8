#include "evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <thread>

namespace gopt {
namespace {

constexpr int kLanes = 256;

class EvaluationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Slots = std::vector<int64_t>;  // values of symbols, by position

double apply_function(Function f, double x, double y) {
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
void fill(T* out, int n, T value) {
  std::fill(out, out + n, value);
}

// A compiled Index: terms over slots, divisions and loads. `lane` is the slot that runs over the block.
class CompiledIndex;
struct CompiledAtom {
  AtomKind kind;
  int slot = 0;
  std::shared_ptr<const CompiledIndex> numerator, denominator;
  int input = 0;
  std::vector<CompiledIndex> subscripts;
  bool uses_lane = false;
};
struct CompiledTerm {
  int64_t coefficient;
  std::vector<CompiledAtom> atoms;
  int lane_power = 0;        // plain occurrences of the lane symbol
  bool lane_inside = false;  // the lane symbol below a division or load
};

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

class CompiledIndex {
 public:
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> linear;  // slot and coefficient: terms that are one symbol, nearly all there are
  std::vector<CompiledTerm> terms;              // the rest
  int64_t lane_coefficient = 0;                 // of the lane symbol among `linear`

  bool affine_in_lane() const {
    return std::all_of(terms.begin(), terms.end(),
                       [](const CompiledTerm& t) { return !t.lane_inside && t.lane_power <= 1; });
  }
  bool uses_lane() const {
    return lane_coefficient != 0 || std::any_of(terms.begin(), terms.end(), [](const CompiledTerm& t) {
             return t.lane_inside || t.lane_power > 0;
           });
  }
  int64_t value(const Slots& slots, std::span<const TensorView> inputs) const {
    int64_t sum = constant;
    for (const auto& [slot, coefficient] : linear) sum += coefficient * slots[static_cast<size_t>(slot)];
    return terms.empty() ? sum : sum + nonlinear(slots, inputs);
  }
  // Coefficient of the lane symbol. Precondition: affine_in_lane().
  int64_t lane_step(const Slots& slots, std::span<const TensorView> inputs, int lane) const {
    if (terms.empty()) return lane_coefficient;
    Slots at = slots;
    at[static_cast<size_t>(lane)] = 1;
    const int64_t one = nonlinear(at, inputs);
    at[static_cast<size_t>(lane)] = 0;
    return lane_coefficient + one - nonlinear(at, inputs);
  }

 private:
  int64_t nonlinear(const Slots& slots, std::span<const TensorView> inputs) const;
};

int64_t flat_offset(const TensorView& t, std::span<const int64_t> subscripts) {
  int64_t offset = 0;
  for (size_t d = 0; d < subscripts.size(); d++) {
    if (subscripts[d] < 0 || subscripts[d] >= t.dims[d])
      throw EvaluationError("index " + std::to_string(subscripts[d]) + " is out of bounds for an extent of " +
                            std::to_string(t.dims[d]));
    offset = offset * t.dims[d] + subscripts[d];
  }
  return offset;
}

int64_t atom_value(const CompiledAtom& a, const Slots& slots, std::span<const TensorView> inputs) {
  switch (a.kind) {
    case AtomKind::Symbol: return slots[static_cast<size_t>(a.slot)];
    case AtomKind::FloorDiv:
      return floor_quotient(a.numerator->value(slots, inputs), a.denominator->value(slots, inputs));
    case AtomKind::Load: {
      std::vector<int64_t> s;
      for (const CompiledIndex& i : a.subscripts) s.push_back(i.value(slots, inputs));
      const TensorView& t = inputs[static_cast<size_t>(a.input)];
      return load_int(t.data, t.type, flat_offset(t, s));
    }
  }
  return 0;
}

int64_t CompiledIndex::nonlinear(const Slots& slots, std::span<const TensorView> inputs) const {
  int64_t sum = 0;
  for (const CompiledTerm& t : terms) {
    int64_t product = t.coefficient;
    for (const CompiledAtom& a : t.atoms) product *= atom_value(a, slots, inputs);
    sum += product;
  }
  return sum;
}

struct CompiledCond {
  CondKind kind = CondKind::True;
  CompiledIndex index;
  std::vector<CompiledCond> parts;
  bool uses_lane = false;

  bool value(const Slots& slots, std::span<const TensorView> inputs) const {
    switch (kind) {
      case CondKind::True: return true;
      case CondKind::False: return false;
      case CondKind::NonNegative: return index.value(slots, inputs) >= 0;
      case CondKind::And:
        return std::all_of(parts.begin(), parts.end(), [&](const auto& p) { return p.value(slots, inputs); });
      case CondKind::Or:
        return std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return p.value(slots, inputs); });
    }
    return false;
  }
};

struct CompiledExpr {
  ExprKind kind;
  Domain domain;  // Integer or Real; constants follow who asks
  double value = 0;
  CompiledIndex index;
  int input = 0;
  std::vector<CompiledIndex> subscripts;
  std::vector<int> args;
  Function function = Function::Exp;
  CompiledCond cond;
  ElementType type = ElementType::Undefined;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<std::pair<int, CompiledIndex>> binders;  // slot, extent
};

// Compiles a stage's expression once; runs it block by block.
class StageProgram {
 public:
  StageProgram(const Stage& stage, std::span<const TensorView> inputs, size_t lane_axis) : inputs_(inputs) {
    for (const TensorView& t : inputs) types_.push_back(t.type);
    for (AtomId a : stage.axes) slot_of(a);
    lane_ = stage.axes.empty() ? -1 : static_cast<int>(lane_axis);
    root_ = compile(stage.value);
    slots_.assign(slot_ids_.size(), 0);
    integer_ = !is_floating(stage.element) && nodes_[static_cast<size_t>(root_)].domain != Domain::Real;
  }

  // Elements of n lanes from `first` on, the other axes at `position`, as doubles or integers.
  bool integer() const { return integer_; }
  template <class T>
  void run(std::span<const int64_t> position, int64_t first, int n, T* out) {
    for (size_t k = 0; k < position.size(); k++) slots_[k] = position[k];
    if (lane_ >= 0) slots_[static_cast<size_t>(lane_)] = first;
    first_ = first;
    n_ = n;
    const std::array<bool, kLanes>* everything = nullptr;
    evaluate<T>(root_, everything, out);
  }

 private:
  using Mask = std::array<bool, kLanes>;

  int slot_of(AtomId id) {
    auto [it, inserted] = slot_ids_.try_emplace(id, static_cast<int>(slot_ids_.size()));
    return it->second;
  }

  CompiledIndex compile(const Index& index) {
    CompiledIndex c;
    c.constant = index.constant();
    for (const Index::Term& term : index.terms()) {
      if (term.atoms.size() == 1 && atom(term.atoms[0]).kind == AtomKind::Symbol) {
        const int slot = slot_of(term.atoms[0]);
        c.linear.emplace_back(slot, term.coefficient);
        if (slot == lane_) c.lane_coefficient = term.coefficient;
        continue;
      }
      CompiledTerm t{term.coefficient, {}, 0, false};
      for (AtomId id : term.atoms) {
        t.atoms.push_back(compile_atom(id));
        const CompiledAtom& a = t.atoms.back();
        if (a.kind == AtomKind::Symbol)
          t.lane_power += a.slot == lane_;
        else
          t.lane_inside |= a.uses_lane;
      }
      c.terms.push_back(std::move(t));
    }
    return c;
  }
  CompiledAtom compile_atom(AtomId id) {
    const Atom& a = atom(id);
    CompiledAtom c{a.kind, 0, nullptr, nullptr, a.input, {}, false};
    if (a.kind == AtomKind::Symbol) {
      c.slot = slot_of(id);
      c.uses_lane = c.slot == lane_;
    }
    if (a.kind == AtomKind::FloorDiv) {
      c.numerator = std::make_shared<const CompiledIndex>(compile(a.numerator));
      c.denominator = std::make_shared<const CompiledIndex>(compile(a.denominator));
      c.uses_lane = c.numerator->uses_lane() || c.denominator->uses_lane();
    }
    for (const Index& s : a.subscripts) {
      c.subscripts.push_back(compile(s));
      c.uses_lane |= c.subscripts.back().uses_lane();
    }
    return c;
  }
  CompiledCond compile(const Cond& cond) {
    CompiledCond c{cond.kind(), compile(cond.index()), {}, false};
    c.uses_lane = c.index.uses_lane();
    for (const Cond& part : cond.parts()) {
      c.parts.push_back(compile(part));
      c.uses_lane |= c.parts.back().uses_lane;
    }
    return c;
  }

  int compile(const Expr& e) {
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
    CompiledExpr c{.kind = e->kind,
                   .domain = domain_of(e, types_),
                   .value = e->value,
                   .input = e->input,
                   .function = e->function,
                   .type = e->type,
                   .reduce = e->reduce};
    c.index = compile(e->index);
    for (const Index& s : e->subscripts) c.subscripts.push_back(compile(s));
    for (const Binder& b : e->binders) c.binders.emplace_back(slot_of(b.symbol), compile(b.extent));
    for (const Expr& a : e->args) c.args.push_back(compile(a));
    c.cond = compile(e->cond);
    nodes_.push_back(std::move(c));
    known_[e.get()] = static_cast<int>(nodes_.size() - 1);
    return static_cast<int>(nodes_.size() - 1);
  }

  const CompiledExpr& node(int id) const { return nodes_[static_cast<size_t>(id)]; }

  // Evaluates into n_ lanes; lanes that the mask leaves out hold anything and read nothing.
  template <class T>
  void evaluate(int id, const Mask* mask, T* out) {
    const CompiledExpr& e = node(id);
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
      case ExprKind::Divide: return binary_lanes(e, mask, out, [](T a, T b) { return divide(a, b); });
      case ExprKind::Maximum: return binary_lanes(e, mask, out, [](T a, T b) { return largest(a, b); });
      case ExprKind::Minimum: return binary_lanes(e, mask, out, [](T a, T b) { return smallest(a, b); });
    }
  }

  static double divide(double a, double b) { return a / b; }
  static int64_t divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }
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
        out[l] = static_cast<T>(values[static_cast<size_t>(l)]);
      }
    }
  }

  template <class T, class F>
  void binary_lanes(const CompiledExpr& e, const Mask* mask, T* out, const F& f) {
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
  template <class F>
  static int64_t wrap(ExprKind kind, int64_t a, int64_t b, const F& f) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (kind == ExprKind::Add) return static_cast<int64_t>(x + y);
    if (kind == ExprKind::Subtract) return static_cast<int64_t>(x - y);
    if (kind == ExprKind::Multiply) return static_cast<int64_t>(x * y);
    return f(a, b);
  }

  template <class T>
  void compare_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
    const bool real = node(e.args[0]).domain == Domain::Real || node(e.args[1]).domain == Domain::Real;
    real ? compare<double>(e, mask, out) : compare<int64_t>(e, mask, out);
  }
  template <class A, class T>
  void compare(const CompiledExpr& e, const Mask* mask, T* out) {
    std::array<A, kLanes> a, b;
    evaluate<A>(e.args[0], mask, a.data());
    evaluate<A>(e.args[1], mask, b.data());
    for (int l = 0; l < n_; l++) {
      const auto i = static_cast<size_t>(l);
      out[l] = e.kind == ExprKind::Less ? a[i] < b[i] : a[i] == b[i];
    }
  }

  template <class T>
  void call_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
    std::array<double, kLanes> x, y{};
    evaluate<double>(e.args[0], mask, x.data());
    if (e.args.size() > 1) evaluate<double>(e.args[1], mask, y.data());
    for (int l = 0; l < n_; l++)
      out[l] = static_cast<T>(apply_function(e.function, x[static_cast<size_t>(l)], y[static_cast<size_t>(l)]));
  }

  // Through memory of the type converted to, so that every rounding and wrapping is the one that storing does.
  template <class T>
  void convert_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
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
      for (int l = 0; l < n_; l++)
        out[l] = mask && !(*mask)[static_cast<size_t>(l)] ? T(0) : through(x[static_cast<size_t>(l)]);
    }
  }

  void set_lane(int l) {
    if (lane_ >= 0) slots_[static_cast<size_t>(lane_)] = first_ + l;
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
  std::optional<AffineRead> affine_read(const CompiledExpr& e) {
    const TensorView& t = inputs_[static_cast<size_t>(e.input)];
    AffineRead r{0, 0, 0, n_};
    for (size_t d = 0; d < e.subscripts.size(); d++) {
      if (!e.subscripts[d].affine_in_lane()) return std::nullopt;
      const int64_t at = e.subscripts[d].value(slots_, inputs_),
                    step = e.subscripts[d].lane_step(slots_, inputs_, lane_);
      auto inside = [&](int l) { return at + step * l >= 0 && at + step * l < t.dims[d]; };
      while (r.begin < r.end && !inside(r.begin)) r.begin++;
      while (r.begin < r.end && !inside(r.end - 1)) r.end--;
      r.offset = r.offset * t.dims[d] + at;
      r.step = r.step * t.dims[d] + step;
    }
    return r;
  }

  template <class T>
  void read_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
    const TensorView& t = inputs_[static_cast<size_t>(e.input)];
    GOPT_CHECK(t.dims.size() == e.subscripts.size(), "a read with another rank than its tensor");
    auto active = [mask](int l) { return !mask || (*mask)[static_cast<size_t>(l)]; };
    if (const auto r = affine_read(e)) {
      bool covered = true;
      for (int l = 0; l < n_; l++) {
        if (l >= r->begin && l < r->end) continue;
        covered &= !active(l);
        out[l] = 0;
      }
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
      const std::byte* p = t.data + (r.offset + r.begin * r.step) * static_cast<int64_t>(sizeof(M));
      for (int l = r.begin; l < r.end; l++, p += r.step * static_cast<int64_t>(sizeof(M))) {
        M v;
        std::memcpy(&v, p, sizeof v);  // mapped weights may lie unaligned
        out[l] = static_cast<T>(v);
      }
    };
    if (t.type == ElementType::Float32) return plain(float{});
    if (t.type == ElementType::Float64) return plain(double{});
    if (t.type == ElementType::Int64) return plain(int64_t{});
    for (int l = r.begin; l < r.end; l++) load_lanes_one(t, r.offset + l * r.step, out[l]);
  }

  template <class T>
  void select_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
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
      const int64_t step = cond.index.lane_step(slots_, inputs_, lane_);
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
  void choose_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
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
  void reduce_lanes(const CompiledExpr& e, const Mask* mask, T* out) {
    T start = 0;
    if (e.reduce == ReduceKind::Product) start = 1;
    if (e.reduce == ReduceKind::Max)
      start = std::is_same_v<T, double> ? static_cast<T>(-INFINITY) : std::numeric_limits<T>::min();
    if (e.reduce == ReduceKind::Min)
      start = std::is_same_v<T, double> ? static_cast<T>(INFINITY) : std::numeric_limits<T>::max();
    fill(out, n_, start);
    std::array<T, kLanes> term;
    reduce_over(e, 0, mask, out, term.data());
  }
  template <class T>
  void reduce_over(const CompiledExpr& e, size_t binder, const Mask* mask, T* out, T* term) {
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
        for (int l = 0; l < n_; l++) out[l] = largest(out[l], term[l]);
        return;
      case ReduceKind::Min:
        for (int l = 0; l < n_; l++) out[l] = smallest(out[l], term[l]);
        return;
    }
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
  std::vector<ElementType> types_;
  std::map<AtomId, int> slot_ids_;
  std::map<const Expr::Node*, int> known_;
  std::deque<CompiledExpr> nodes_;
  Slots slots_;
  int lane_ = -1, root_ = 0;
  bool integer_ = false;
  int64_t first_ = 0;
  int n_ = 1;
};

// The rows of a stage: all positions of the axes other than the one that carries the lanes.
struct Rows {
  const Stage& stage;
  std::vector<int64_t> dims;
  size_t lane_axis;

  int64_t lanes() const { return dims.empty() ? 1 : dims[lane_axis]; }
  int64_t count() const { return element_count(dims) / lanes(); }
};

// Evaluates rows [begin, end) of the output.
template <class T>
void run_rows(StageProgram& program, const Rows& rows, int64_t begin, int64_t end, std::byte* out) {
  std::array<T, kLanes> block;
  std::vector<int64_t> position(rows.dims.size(), 0);
  int64_t lane_stride = 1;
  for (size_t d = rows.lane_axis + 1; d < rows.dims.size(); d++) lane_stride *= rows.dims[d];
  for (int64_t row = begin; row < end; row++) {
    int64_t rest = row, base = 0;
    for (size_t d = rows.dims.size(); d-- > 0;) {
      if (d == rows.lane_axis) continue;
      position[d] = rest % rows.dims[d];
      rest /= rows.dims[d];
    }
    for (size_t d = 0; d < rows.dims.size(); d++) base = base * rows.dims[d] + (d == rows.lane_axis ? 0 : position[d]);
    for (int64_t first = 0; first < rows.lanes(); first += kLanes) {
      const int n = static_cast<int>(std::min<int64_t>(kLanes, rows.lanes() - first));
      program.run<T>(position, first, n, block.data());
      for (int l = 0; l < n; l++) {
        const int64_t at = base + (first + l) * lane_stride;
        if constexpr (std::is_same_v<T, double>)
          store_double(out, rows.stage.element, at, block[static_cast<size_t>(l)]);
        else
          store_int(out, rows.stage.element, at, block[static_cast<size_t>(l)]);
      }
    }
  }
}

void run_part(const Rows& rows, std::span<const TensorView> inputs, int64_t begin, int64_t end, std::byte* out) {
  StageProgram program(rows.stage, inputs, rows.lane_axis);
  if (program.integer())
    run_rows<int64_t>(program, rows, begin, end, out);
  else
    run_rows<double>(program, rows, begin, end, out);
}

// Rows are independent: each thread takes a range of them, and has its own program.
void run_parallel(const Rows& rows, std::span<const TensorView> inputs, std::byte* out) {
  constexpr int64_t kElementsWorthAThread = 8192;
  const int64_t count = rows.count();
  const int64_t parts = std::min({count, static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency())),
                                  1 + element_count(rows.dims) / kElementsWorthAThread});
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  std::vector<std::thread> threads;
  auto part = [&](int64_t k) {
    try {
      run_part(rows, inputs, count * k / parts, count * (k + 1) / parts, out);
    } catch (...) {
      failures[static_cast<size_t>(k)] = std::current_exception();
    }
  };
  for (int64_t k = 1; k < parts; k++) threads.emplace_back(part, k);
  part(0);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

Status evaluate_stage(const Stage& stage, std::span<const TensorView> inputs, std::byte* out) {
  Rows rows{stage, {}, 0};
  for (const Index& e : stage.shape) {
    if (!e.is_constant()) return Error{"an extent, " + to_string(e) + ", is not known"};
    rows.dims.push_back(e.constant());
  }
  if (element_count(rows.dims) == 0) return Unit{};
  // The last axis carries the lanes, since it is contiguous; where it is short, the longest does.
  constexpr int64_t kLongEnough = 16;
  if (!rows.dims.empty()) rows.lane_axis = rows.dims.size() - 1;
  for (size_t d = 0; d < rows.dims.size(); d++)
    if (rows.dims.back() < kLongEnough && rows.dims[d] > rows.lanes()) rows.lane_axis = d;
  try {
    run_parallel(rows, inputs, out);
  } catch (const EvaluationError& e) {
    return Error{e.what()};
  }
  return Unit{};
}

}  // namespace gopt
