#include "compiled_expr.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "function_value.h"

namespace gopt::verifier {
namespace {

struct IndexTerm {
  int64_t coefficient;
  std::vector<int> atoms;
};
struct IndexCode {
  int64_t constant = 0;
  std::vector<IndexTerm> terms;
};
struct AtomCode {
  AtomKind kind = AtomKind::Symbol;
  IndexCode numerator, denominator;  // FloorDiv
  int input = 0;                     // Load
  std::vector<IndexCode> subscripts;
};
struct CondCode {
  CondKind kind = CondKind::True;
  IndexCode index;
  std::vector<CondCode> parts;
};
struct ExprCode {
  const Expr::Node* node = nullptr;
  IndexCode index;
  std::vector<IndexCode> subscripts;
  std::vector<ExprCode> args;
  CondCode cond;
  std::vector<int> binders;
  std::vector<IndexCode> extents;
  // Of a reduction inside another: the symbols that it depends on, and its number among these.
  std::vector<int> symbols;
  int invariant = -1;
};

// The arithmetic of doubles; that of bounded numbers has the same names (bounded.h). NaN passes through maxima and
// minima.
double largest(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smallest(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double is_less(double a, double b) { return a < b ? 1 : 0; }
double is_equal(double a, double b) { return a == b ? 1 : 0; }
double call_function(Function function, double x, double y) { return function_value<double>(function, x, y); }
double round_to_float(double value) { return static_cast<double>(static_cast<float>(value)); }
Bounded round_to_float(const Bounded& value) { return call_function(Function::Narrow, value, 0); }
using verifier::rounded_to;  // of doubles
Bounded rounded_to(ElementType type, const Bounded& value) {
  const auto exact = static_cast<double>(value.value);
  if (value.error != 0 || static_cast<long double>(exact) != value.value) return Bounded::unknown();
  return rounded_to(type, exact);
}
Magnitude round_to_float(const Magnitude& value) { return {round_to_float(value.value), value.size}; }
Magnitude rounded_to(ElementType type, const Magnitude& value) { return {rounded_to(type, value.value), value.size}; }
Magnitude truncated(const Magnitude& value) { return std::trunc(value.value); }
bool is_zero(const Magnitude& value, bool*) { return value.value == 0; }
double truncated(double value) { return std::trunc(value); }
Bounded truncated(const Bounded& value) { return call_function(Function::Trunc, value, 0); }
bool is_zero(double value, bool*) { return value == 0; }
bool is_zero(const Bounded& value, bool* is_known) {
  const Bounded same = is_equal(value, 0);
  *is_known = same.is_known();
  return same.value != 0;
}

}  // namespace

double rounded_to(ElementType type, double value) {
  std::byte stored[sizeof(double)];
  store_double(stored, type, 0, value);
  return load_double(stored, type, 0);
}

struct CompiledExpr::Program {
  Expr source;  // keeps nodes alive
  ExprCode root;
  std::vector<AtomCode> atoms;
  std::map<AtomId, int> numbers;
  int invariants = 0;

  int number_of(AtomId id) {
    if (auto it = numbers.find(id); it != numbers.end()) return it->second;
    const Atom& a = atom(id);
    AtomCode code;
    code.kind = a.kind;
    if (a.kind == AtomKind::FloorDiv) {
      code.numerator = compile(a.numerator);
      code.denominator = compile(a.denominator);
    } else if (a.kind == AtomKind::Load) {
      code.input = a.input;
      for (const Index& s : a.subscripts) code.subscripts.push_back(compile(s));
    }
    atoms.push_back(std::move(code));
    return numbers[id] = static_cast<int>(atoms.size()) - 1;
  }
  IndexCode compile(const Index& index) {
    IndexCode code{index.constant(), {}};
    for (const Index::Term& term : index.terms()) {
      IndexTerm t{term.coefficient, {}};
      for (AtomId id : term.atoms) t.atoms.push_back(number_of(id));
      code.terms.push_back(std::move(t));
    }
    return code;
  }
  CondCode compile(const Cond& cond) {
    CondCode code{cond.kind(), compile(cond.index()), {}};
    for (const Cond& part : cond.parts()) code.parts.push_back(compile(part));
    return code;
  }
  ExprCode compile(const Expr& e) {
    ExprCode code;
    code.node = e.get();
    code.index = compile(e->index);
    for (const Index& s : e->subscripts) code.subscripts.push_back(compile(s));
    for (const Expr& a : e->args) code.args.push_back(compile(a));
    if (e->kind == ExprKind::Select) code.cond = compile(e->cond);
    for (const Binder& b : e->binders) {
      code.binders.push_back(number_of(b.symbol));
      code.extents.push_back(compile(b.extent));
    }
    return code;
  }
  // Reductions inside others are marked, so that their values are kept while others' binders alone change: a sum of all
  // elements inside a maximum over them.
  void mark_invariants(ExprCode& code, bool is_inside, std::set<int>& symbols) {
    std::set<int> own;
    const bool is_reduction = code.node->kind == ExprKind::Reduce;
    for (ExprCode& a : code.args) mark_invariants(a, is_inside || is_reduction, own);
    collect(code.index, own);
    collect(code.cond, own);
    for (const IndexCode& s : code.subscripts) collect(s, own);
    for (const IndexCode& e : code.extents) collect(e, own);
    for (const int binder : code.binders) own.erase(binder);
    if (is_reduction && is_inside) {
      code.symbols.assign(own.begin(), own.end());
      code.invariant = invariants++;
    }
    symbols.insert(own.begin(), own.end());
  }
  void collect(const IndexCode& index, std::set<int>& out) const {
    for (const IndexTerm& term : index.terms) {
      for (const int number : term.atoms) {
        const AtomCode& a = atoms[static_cast<size_t>(number)];
        if (a.kind == AtomKind::Symbol) out.insert(number);
        collect(a.numerator, out);
        collect(a.denominator, out);
        for (const IndexCode& s : a.subscripts) collect(s, out);
      }
    }
  }
  void collect(const CondCode& cond, std::set<int>& out) const {
    collect(cond.index, out);
    for (const CondCode& part : cond.parts) collect(part, out);
  }

  std::vector<int64_t> values_in(const Environment& environment) const {
    std::vector<int64_t> values(atoms.size(), 0);
    for (const auto& [id, number] : numbers)
      if (auto it = environment.find(id); it != environment.end()) values[static_cast<size_t>(number)] = it->second;
    return values;
  }
};

namespace {

// By numbers of type T: doubles, bounded ones, or ones with the size of their terms.
template <class T>
class Evaluation {
 public:
  Evaluation(const std::vector<AtomCode>& atoms, int invariants, std::vector<int64_t> values,
             const SampleInputs& inputs, const CompiledExpr::Options& options)
      : atoms_(atoms),
        known_(static_cast<size_t>(invariants)),
        values_(std::move(values)),
        inputs_(inputs),
        options_(options) {}

  T operator()(const ExprCode& code) {
    const T value = evaluate(code);
    return options_.round_to_float ? round_to_float(value) : value;
  }

 private:
  int64_t index(const IndexCode& code) {
    int64_t sum = code.constant;
    for (const IndexTerm& term : code.terms) {
      int64_t product = term.coefficient;
      for (int a : term.atoms) product *= atom_value(a);
      sum += product;
    }
    return sum;
  }
  int64_t atom_value(int number) {
    const AtomCode& code = atoms_[static_cast<size_t>(number)];
    switch (code.kind) {
      case AtomKind::Symbol: return values_[static_cast<size_t>(number)];
      case AtomKind::FloorDiv: {
        const int64_t n = index(code.numerator), d = index(code.denominator);
        return d < 1 ? 0 : n / d - (n % d < 0 ? 1 : 0);
      }
      case AtomKind::Load: {
        const double value = element(code.input, code.subscripts);
        return std::isnan(value) ? -1 : static_cast<int64_t>(value);
      }
    }
    return 0;
  }
  bool holds(const CondCode& code) {
    switch (code.kind) {
      case CondKind::True: return true;
      case CondKind::False: return false;
      case CondKind::NonNegative: return index(code.index) >= 0;
      case CondKind::And:
        for (const CondCode& part : code.parts)
          if (!holds(part)) return false;
        return true;
      case CondKind::Or:
        for (const CondCode& part : code.parts)
          if (holds(part)) return true;
        return false;
    }
    return false;
  }
  double element(int input, const std::vector<IndexCode>& subscripts) {
    auto it = inputs_.find(input);
    if (it == inputs_.end()) return std::nan("");
    const SampleTensor& tensor = it->second;
    int64_t position = 0;
    for (size_t k = 0; k < subscripts.size(); k++) {
      const int64_t s = index(subscripts[k]);
      if (s < 0 || s >= tensor.dims[k]) return std::nan("");
      position = position * tensor.dims[k] + s;
    }
    return tensor.values[static_cast<size_t>(position)];
  }

  T evaluate(const ExprCode& code) {
    auto arg = [&](size_t i) { return (*this)(code.args[i]); };
    switch (code.node->kind) {
      case ExprKind::Constant: return code.node->value;
      case ExprKind::Size: return static_cast<double>(index(code.index));
      case ExprKind::Read: return element(code.node->input, code.subscripts);
      case ExprKind::Add: return arg(0) + arg(1);
      case ExprKind::Subtract: return arg(0) - arg(1);
      case ExprKind::Multiply: return arg(0) * arg(1);
      case ExprKind::Divide: return options_.truncating_division ? truncated(arg(0) / arg(1)) : arg(0) / arg(1);
      case ExprKind::Maximum: return largest(arg(0), arg(1));
      case ExprKind::Minimum: return smallest(arg(0), arg(1));
      case ExprKind::Less: return is_less(arg(0), arg(1));
      case ExprKind::Equal: return is_equal(arg(0), arg(1));
      case ExprKind::Call: return call_function(code.node->function, arg(0), code.args.size() > 1 ? arg(1) : T(0));
      case ExprKind::Select: return holds(code.cond) ? arg(0) : arg(1);
      case ExprKind::Choose: return chosen(code);
      case ExprKind::Convert: return converted(code.node->type, arg(0));
      case ExprKind::Reduce: return code.invariant < 0 ? reduced(code) : reduced_once(code);
    }
    return std::nan("");
  }

  // Not again where nothing that it depends on has changed.
  T reduced_once(const ExprCode& code) {
    std::vector<int64_t> at;
    for (const int symbol : code.symbols) at.push_back(values_[static_cast<size_t>(symbol)]);
    const auto number = static_cast<size_t>(code.invariant);
    if (known_[number] && known_[number]->first == at) return known_[number]->second;
    const T value = reduced(code);
    known_[number].emplace(std::move(at), value);
    return value;
  }

  T chosen(const ExprCode& code) {
    bool is_known = true;
    const bool otherwise = is_zero((*this)(code.args[0]), &is_known);
    return is_known ? (*this)(code.args[otherwise ? 2 : 1]) : unknown();
  }
  static T unknown() {
    if constexpr (std::is_same_v<T, Bounded>) return Bounded::unknown();
    return std::nan("");
  }

  static T converted(ElementType type, const T& value) {
    if (type == ElementType::Bool) return T(1) - is_equal(value, T(0));
    if (is_integer(type)) return truncated(value);
    if (type == ElementType::Float16 || type == ElementType::BFloat16) return rounded_to(type, value);
    return type == ElementType::Float64 ? value : round_to_float(value);
  }

  T reduced(const ExprCode& code) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    T result = 0;
    switch (code.node->reduce) {
      case ReduceKind::Sum: result = 0; break;
      case ReduceKind::Product: result = 1; break;
      case ReduceKind::Max: result = -kInfinity; break;
      case ReduceKind::Min: result = kInfinity; break;
    }
    std::function<void(size_t)> loop = [&](size_t k) {
      if (k == code.binders.size()) {
        result = combined(code.node->reduce, result, (*this)(code.args[0]));
        if (options_.round_to_float) result = round_to_float(result);
        return;
      }
      const int64_t extent = index(code.extents[k]);
      for (int64_t i = 0; i < extent; i++) {
        values_[static_cast<size_t>(code.binders[k])] = i;
        loop(k + 1);
      }
    };
    loop(0);
    return result;
  }
  static T combined(ReduceKind kind, const T& a, const T& b) {
    switch (kind) {
      case ReduceKind::Sum: return a + b;
      case ReduceKind::Product: return a * b;
      case ReduceKind::Max: return largest(a, b);
      case ReduceKind::Min: return smallest(a, b);
    }
    return a;
  }

  const std::vector<AtomCode>& atoms_;
  std::vector<std::optional<std::pair<std::vector<int64_t>, T>>> known_;  // the last value of each invariant, and where
  std::vector<int64_t> values_;
  const SampleInputs& inputs_;
  const CompiledExpr::Options& options_;
};

}  // namespace

CompiledExpr::CompiledExpr(const Expr& expr) : program_(std::make_unique<Program>()) {
  program_->source = expr;
  program_->root = program_->compile(expr);
  std::set<int> symbols;
  program_->mark_invariants(program_->root, false, symbols);
}
CompiledExpr::~CompiledExpr() = default;
CompiledExpr::CompiledExpr(CompiledExpr&&) noexcept = default;

double CompiledExpr::operator()(const Environment& environment, const SampleInputs& inputs,
                                const Options& options) const {
  return Evaluation<double>(program_->atoms, program_->invariants, program_->values_in(environment), inputs,
                            options)(program_->root);
}
Magnitude CompiledExpr::magnitude(const Environment& environment, const SampleInputs& inputs) const {
  return Evaluation<Magnitude>(program_->atoms, program_->invariants, program_->values_in(environment), inputs,
                               {})(program_->root);
}
Bounded CompiledExpr::enclose(const Environment& environment, const SampleInputs& inputs,
                              const Options& options) const {
  return Evaluation<Bounded>(program_->atoms, program_->invariants, program_->values_in(environment), inputs,
                             options)(program_->root);
}

}  // namespace gopt::verifier
