#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "gopt/definition.h"
#include "gopt/operation_weight.h"
#include "gopt/wide_integers.h"

namespace gopt {

Domain domain_of(const Expr& e, const std::vector<ElementType>& types) {
  auto of_type = [](ElementType t) { return is_floating(t) ? Domain::Real : Domain::Integer; };
  switch (e->kind) {
    case ExprKind::Constant:
      return e->value == std::nearbyint(e->value) && std::fabs(e->value) < 9e15 ? Domain::Either : Domain::Real;
    case ExprKind::Size: return Domain::Either;
    case ExprKind::Read: return of_type(types.at(static_cast<size_t>(e->input)));
    case ExprKind::Call:
      if (e->function == Function::Fmod) break;  // of integers it is one
      return e->function == Function::IsNan ? Domain::Integer : Domain::Real;
    case ExprKind::Convert: return of_type(e->type);
    case ExprKind::Less:
    case ExprKind::Equal: return Domain::Integer;
    default: break;
  }
  Domain result = Domain::Either;
  for (size_t k = e->kind == ExprKind::Choose ? 1 : 0; k < e->args.size(); k++) {
    const Domain d = domain_of(e->args[k], types);
    if (d == Domain::Real) return Domain::Real;
    if (d == Domain::Integer) result = Domain::Integer;
  }
  return result;
}

namespace {

class Stager {
 public:
  Stager(const TensorExpr& output, const std::vector<ElementType>& types, bool narrow)
      : types_(types), narrow_(narrow) {
    for (const Index& extent : output.shape) {
      axes_.push_back(symbol_atom("@" + std::to_string(axes_.size())));  // by position, so that no symbol is used up
      extents_[axes_.back()] = extent;
    }
  }

  std::vector<Stage> run(const TensorExpr& output) {
    std::vector<Index> subscripts;
    for (AtomId a : axes_) subscripts.push_back(Index::from_atom(a));
    Expr value = hoist(output.at(subscripts), axes_, {}, false);
    stages_.push_back({output.element, output.shape, axes_, std::move(value)});
    return std::move(stages_);
  }

 private:
  // Rewrites e, an expression over `axes` and the binders of reductions around it.
  Expr hoist(const Expr& e, const std::vector<AtomId>& axes, const std::set<AtomId>& binders, bool nested) {
    if (e->height == 0) return e;
    if (e->kind != ExprKind::Reduce) return with_args(e, axes, binders, nested);
    std::set<AtomId> free;
    collect_symbols(e, free);
    const bool bound = std::any_of(free.begin(), free.end(), [&](AtomId s) { return binders.contains(s); });
    std::vector<AtomId> needed;
    for (AtomId a : axes)
      if (free.contains(a)) needed.push_back(a);
    const bool everywhere =
        std::all_of(axes.begin(), axes.end(), [&](AtomId a) { return free.contains(a) || extents_[a] == Index(1); });
    if (!bound && (nested || !everywhere)) return staged(e, needed);
    std::set<AtomId> inner = binders;
    for (const Binder& b : e->binders) inner.insert(b.symbol);
    return with_args(e, axes, inner, true);
  }

  Expr with_args(const Expr& e, const std::vector<AtomId>& axes, const std::set<AtomId>& binders, bool nested) {
    Expr::Node node = *e;
    node.height = 0;
    for (Expr& a : node.args) a = hoist(a, axes, binders, nested);
    return Expr::make(std::move(node));
  }

  // A read of the stage that computes e over `axes`.
  Expr staged(const Expr& e, const std::vector<AtomId>& axes) {
    std::vector<Index> subscripts;
    for (AtomId a : axes) subscripts.push_back(Index::from_atom(a));
    for (const auto& [known, slot] : known_)
      if (known == e) return read(slot, subscripts);
    std::set<AtomId> binders;
    for (const Binder& b : e->binders) binders.insert(b.symbol);
    Shape shape;
    for (AtomId a : axes) shape.push_back(extents_[a]);
    Expr value = with_args(e, axes, binders, true);
    const bool integer = domain_of(e, types_) == Domain::Integer;
    const ElementType element = integer   ? is_unsigned(e, types_) ? ElementType::UInt64 : ElementType::Int64
                                : narrow_ ? ElementType::Float32
                                          : ElementType::Float64;
    const int slot = static_cast<int>(types_.size());
    types_.push_back(element);
    stages_.push_back({element, shape, axes, std::move(value)});
    known_.emplace_back(e, slot);
    return read(slot, subscripts);
  }

  std::vector<ElementType> types_;  // of inputs, then of stages
  bool narrow_;
  std::vector<AtomId> axes_;
  std::map<AtomId, Index> extents_;
  std::vector<Stage> stages_;
  std::vector<std::pair<Expr, int>> known_;
};

}  // namespace

std::vector<Stage> stage(const TensorExpr& output, const std::vector<ElementType>& input_types, bool narrow) {
  return Stager(output, input_types, narrow).run(output);
}

namespace {

double constant_extent(const Index& extent) {
  return static_cast<double>(std::max<int64_t>(0, extent.as_constant().value_or(1)));
}

// As processors have them: some are an instruction, others a polynomial of about that degree.
double function_weight(Function function) {
  switch (function) {
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
    case Function::Trunc:
    case Function::Narrow:
    case Function::IsNan: return 1;
    case Function::Sqrt: return 3;
    default: return 10;
  }
}

// A function of numbers is a number, as in the root of two.
bool is_constant(const Expr& call) {
  return std::all_of(call->args.begin(), call->args.end(), [](const Expr& a) { return a->kind == ExprKind::Constant; });
}

// Operations of one evaluation of e; reads of each input are noted.
double operations(const Expr& e, std::set<int>& inputs) {
  if (e->kind == ExprKind::Read) inputs.insert(e->input);
  double factor = 1;
  if (e->kind == ExprKind::Reduce)
    for (const Binder& b : e->binders) factor *= constant_extent(b.extent);
  double sum = operation_weight(e);
  for (const Expr& a : e->args) sum += operations(a, inputs);
  return factor * sum;
}

}  // namespace

double operation_weight(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::Constant:
    case ExprKind::Size:
    case ExprKind::Read: return 0;
    case ExprKind::Divide: return 3;
    case ExprKind::Call: return is_constant(expr) ? 0 : function_weight(expr->function);
    default: return 1;
  }
}

Work estimate_work(const TensorExpr& output) {
  // Types matter to stages' storage only.
  const std::vector<ElementType> types(64, ElementType::Float32);
  Work work;
  std::set<int> inputs;
  for (const Stage& s : stage(output, types, true)) {
    double elements = 1;
    for (const Index& e : s.shape) elements *= constant_extent(e);
    work.operations += elements * operations(s.value, inputs);
  }
  work.elements_written = 1;
  for (const Index& e : output.shape) work.elements_written *= constant_extent(e);
  work.elements_read = static_cast<double>(inputs.size()) * work.elements_written;
  return work;
}

}  // namespace gopt
