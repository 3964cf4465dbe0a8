#include "naive_evaluator.h"

#include <cmath>
#include <stdexcept>

namespace gopt {
namespace {

double apply_function(Function f, double x, double y) {
  using T = double;
  switch (f) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return numeric;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return y;
}

class Evaluator {
 public:
  Evaluator(Environment environment, const std::vector<Tensor>& inputs)
      : environment_(std::move(environment)), inputs_(inputs) {
    for (const Tensor& t : inputs) types_.push_back(t.type());
  }

  double operator()(const Expr& e) {
    auto arg = [&](size_t k) { return (*this)(e->args[k]); };
    switch (e->kind) {
      case ExprKind::Constant: return e->value;
      case ExprKind::Size: return static_cast<double>(value(e->index));
      case ExprKind::Read: return read(e->input, e->subscripts);
      case ExprKind::Add: return arg(0) + arg(1);
      case ExprKind::Subtract: return arg(0) - arg(1);
      case ExprKind::Multiply: return arg(0) * arg(1);
      case ExprKind::Divide: return divide(e, arg(0), arg(1));
      case ExprKind::Maximum: return larger(arg(0), arg(1));
      case ExprKind::Minimum: return -larger(-arg(0), -arg(1));
      case ExprKind::Less: return arg(0) < arg(1);
      case ExprKind::Equal: return arg(0) == arg(1);
      case ExprKind::Call: return call(e);
      case ExprKind::Select: return *evaluate(e->cond, environment_, load()) ? arg(0) : arg(1);
      case ExprKind::Choose: return arg(0) != 0 ? arg(1) : arg(2);
      case ExprKind::Convert: return converted(e->type, arg(0));
      case ExprKind::Reduce: return reduced(e);
    }
    return NAN;
  }

 private:
  static double larger(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }

  double divide(const Expr& e, double a, double b) {
    if (domain_of(e, types_) != Domain::Integer) return a / b;
    return b == 0 ? 0 : std::trunc(a / b);
  }

  double call(const Expr& e) {
    const double x = (*this)(e->args[0]), y = e->args.size() > 1 ? (*this)(e->args[1]) : 0;
    const bool divides_by_none = e->function == Function::Fmod && y == 0 && domain_of(e, types_) == Domain::Integer;
    return divides_by_none ? 0 : apply_function(e->function, x, y);
  }

  static double converted(ElementType type, double value) {
    std::byte cell[8];
    store_double(cell, type, 0, value);
    return load_double(cell, type, 0);
  }

  LoadFunction load() {
    return [this](int input, std::span<const int64_t> at) {
      const Tensor& t = inputs_.at(static_cast<size_t>(input));
      return load_int(t.bytes().data(), t.type(), flat_position(t, at));
    };
  }
  int64_t value(const Index& index) { return evaluate(index, environment_, load()).value(); }

  double read(int input, const std::vector<Index>& subscripts) {
    const Tensor& t = inputs_.at(static_cast<size_t>(input));
    std::vector<int64_t> at;
    for (const Index& s : subscripts) at.push_back(value(s));
    return load_double(t.bytes().data(), t.type(), flat_position(t, at));
  }

  double reduced(const Expr& e) {
    double total = e->reduce == ReduceKind::Sum       ? 0
                   : e->reduce == ReduceKind::Product ? 1
                   : e->reduce == ReduceKind::Max     ? -INFINITY
                                                      : INFINITY;
    const Environment outside = environment_;
    accumulate(e, 0, total);
    environment_ = outside;
    return total;
  }
  void accumulate(const Expr& e, size_t binder, double& total) {
    if (binder < e->binders.size()) {
      const int64_t extent = value(e->binders[binder].extent);
      for (int64_t k = 0; k < extent; k++) {
        environment_[e->binders[binder].symbol] = k;
        accumulate(e, binder + 1, total);
      }
      return;
    }
    const Environment outside = environment_;
    const double term = (*this)(e->args[0]);
    environment_ = outside;
    switch (e->reduce) {
      case ReduceKind::Sum: total += term; return;
      case ReduceKind::Product: total *= term; return;
      case ReduceKind::Max: total = larger(total, term); return;
      case ReduceKind::Min: total = -larger(-total, -term); return;
    }
  }

  Environment environment_;
  const std::vector<Tensor>& inputs_;
  std::vector<ElementType> types_;
};

}  // namespace

int64_t flat_position(const Tensor& tensor, std::span<const int64_t> subscripts) {
  if (subscripts.size() != tensor.dims().size()) throw std::out_of_range("a read of another rank");
  int64_t position = 0;
  for (size_t axis = 0; axis < subscripts.size(); axis++) {
    if (subscripts[axis] < 0 || subscripts[axis] >= tensor.dims()[axis])
      throw std::out_of_range("a read out of bounds");
    position = position * tensor.dims()[axis] + subscripts[axis];
  }
  return position;
}

double evaluate_naively(const Expr& expr, Environment environment, const std::vector<Tensor>& inputs) {
  return Evaluator(std::move(environment), inputs)(expr);
}

Tensor evaluate_naively(const TensorExpr& output, const std::vector<Tensor>& inputs) {
  const std::vector<int64_t> dims = TensorType{output.element, output.shape}.static_shape();
  std::vector<Index> subscripts;
  std::vector<AtomId> axes;
  for (size_t axis = 0; axis < dims.size(); axis++) {
    axes.push_back(symbol_atom("axis" + std::to_string(axis)));
    subscripts.push_back(Index::from_atom(axes.back()));
  }
  const Expr element = output.at(subscripts);
  std::vector<double> values;
  for (int64_t position = 0; position < element_count(dims); position++) {
    Environment environment;
    int64_t rest = position;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) environment[axes[axis]] = rest % dims[axis];
    values.push_back(evaluate_naively(element, environment, inputs));
  }
  return Tensor::from_values(output.element, dims, values);
}

}  // namespace gopt
