#include "tape.h"

#include <map>

namespace gopt::generator {

namespace {

// What a tape cannot hold; caught in Tape::make.
struct NotATape {
  std::string what;
};

}  // namespace

class TapeCompiler {
 public:
  TapeCompiler(Tape& tape, const std::vector<TensorType>& inputs) : tape_(tape) {
    for (const TensorType& type : inputs)
      input_dims_.push_back(type.has_static_shape() ? type.static_shape() : std::vector<int64_t>{});
  }

  void compile(const TensorExpr& output) {
    std::vector<Index> subscripts;
    std::vector<AtomId> axes;
    for (const Index& extent : output.shape) {
      tape_.dims_.push_back(extent.constant());
      axes.push_back(fresh_symbol());
      subscripts.push_back(Index::from_atom(axes.back()));
    }
    const Expr element = output.at(subscripts);
    const int64_t count = element_count(tape_.dims_);
    for (int64_t flat = 0; flat < count; flat++) {
      int64_t rest = flat;
      for (size_t axis = axes.size(); axis-- > 0; rest /= tape_.dims_[axis])
        environment_[axes[axis]] = rest % tape_.dims_[axis];
      tape_.outputs_.push_back(emit(element));
    }
    for (AtomId axis : axes) release_symbol(axis);
  }

 private:
  using Operand = Tape::Operand;

  Operand emit(const Expr& expr) {
    switch (expr->kind) {
      case ExprKind::Constant: return constant(expr->value);
      case ExprKind::Size: return constant(static_cast<double>(number(expr->index)));
      case ExprKind::Read: return read(*expr);
      case ExprKind::Select: return emit(expr->args[holds(expr->cond) ? 0 : 1]);
      case ExprKind::Convert:
        if (!is_floating(expr->type)) throw NotATape{"a conversion to integers"};
        return emit(expr->args[0]);
      case ExprKind::Reduce: return reduce(*expr, 0);
      default: break;
    }
    std::vector<Operand> args;
    for (const Expr& arg : expr->args) args.push_back(emit(arg));
    args.resize(3, Operand{Tape::Place::Constant, 0, zero()});
    return append(expr->kind, args[0], args[1], args[2], expr->function);
  }

  // All values of the binders from number `binder` on, combined.
  Operand reduce(const Expr::Node& node, size_t binder) {
    if (binder == node.binders.size()) return emit(node.args[0]);
    const auto [symbol, extent] = node.binders[binder];
    const int64_t count = number(extent);
    std::optional<Operand> total;
    for (int64_t k = 0; k < count; k++) {
      environment_[symbol] = k;
      const Operand part = reduce(node, binder + 1);
      total = total ? append(combining(node.reduce), *total, part) : part;
    }
    if (total) return *total;
    if (node.reduce == ReduceKind::Max || node.reduce == ReduceKind::Min) throw NotATape{"the largest of nothing"};
    return constant(node.reduce == ReduceKind::Product ? 1 : 0);
  }

  static ExprKind combining(ReduceKind kind) {
    switch (kind) {
      case ReduceKind::Sum: return ExprKind::Add;
      case ReduceKind::Max: return ExprKind::Maximum;
      case ReduceKind::Min: return ExprKind::Minimum;
      case ReduceKind::Product: return ExprKind::Multiply;
    }
    return ExprKind::Add;
  }

  Operand append(ExprKind kind, Operand a, Operand b, Operand c = {}, Function function = Function::Exp) {
    tape_.code_.push_back({kind, function, a, b, c});
    return {Tape::Place::Register, 0, static_cast<uint32_t>(tape_.code_.size() - 1)};
  }

  Operand read(const Expr::Node& node) {
    const std::vector<int64_t>& dims = input_dims_.at(static_cast<size_t>(node.input));
    int64_t position = 0;
    for (size_t axis = 0; axis < dims.size(); axis++) {
      const int64_t at = number(node.subscripts[axis]);
      if (at < 0 || at >= dims[axis]) throw NotATape{"a read out of bounds"};
      position = position * dims[axis] + at;
    }
    return {Tape::Place::Input, static_cast<uint8_t>(node.input), static_cast<uint32_t>(position)};
  }

  Operand constant(double value) {
    const auto [entry, is_new] = constants_.try_emplace(value, static_cast<uint32_t>(tape_.constants_.size()));
    if (is_new) tape_.constants_.push_back(scalar_from_double(value));
    return {Tape::Place::Constant, 0, entry->second};
  }
  uint32_t zero() { return constant(0).position; }

  int64_t number(const Index& index) const {
    const auto value = evaluate(index, environment_);
    if (!value) throw NotATape{"an index that depends on data"};
    return *value;
  }
  bool holds(const Cond& cond) const {
    const auto value = evaluate(cond, environment_);
    if (!value) throw NotATape{"a guard that depends on data"};
    return *value;
  }

  Tape& tape_;
  std::vector<std::vector<int64_t>> input_dims_;
  Environment environment_;
  std::map<double, uint32_t> constants_;
};

Result<Tape> Tape::make(OpKind kind, const std::vector<TensorType>& inputs, const Attributes& attributes, int output,
                        int output_count) {
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) tensors.push_back(input_tensor(static_cast<int>(i), inputs[i]));
  GOPT_ASSIGN_OR_RETURN(const Definition definition, define(kind, tensors, attributes, output_count));
  if (!definition.requirements.empty()) return Error{definition.requirements.front().what + " is undecided"};
  const TensorExpr& tensor = definition.outputs[static_cast<size_t>(output)];
  if (!TensorType{tensor.element, tensor.shape}.has_static_shape()) return Error{"an extent is not static"};
  Tape tape;
  try {
    TapeCompiler(tape, inputs).compile(tensor);
  } catch (const NotATape& reason) {
    return Error{reason.what};
  }
  return tape;
}

const Scalar& Tape::value(const Operand& operand, const std::vector<const Values*>& inputs,
                          const Values& registers) const {
  switch (operand.place) {
    case Place::Input: return (*inputs[operand.input])[operand.position];
    case Place::Constant: return constants_[operand.position];
    case Place::Register: return registers[operand.position];
  }
  return constants_.front();
}

std::optional<Values> Tape::run(const std::vector<const Values*>& inputs) const {
  Values registers(code_.size());
  bool ok = true;
  for (size_t i = 0; i < code_.size() && ok; i++) {
    const Instruction& at = code_[i];
    const Scalar& a = value(at.a, inputs, registers);
    const Scalar& b = value(at.b, inputs, registers);
    Scalar& result = registers[i];
    switch (at.kind) {
      case ExprKind::Add: result = add(a, b); break;
      case ExprKind::Subtract: result = subtract(a, b); break;
      case ExprKind::Multiply: result = multiply(a, b); break;
      case ExprKind::Divide: result = divide(a, b, ok); break;
      case ExprKind::Maximum: result = maximum(a, b, ok); break;
      case ExprKind::Minimum: result = minimum(a, b, ok); break;
      case ExprKind::Less: result = is_less(a, b, ok); break;
      case ExprKind::Equal: result = is_equal(a, b); break;
      case ExprKind::Choose: result = choose(a, b, value(at.c, inputs, registers)); break;
      case ExprKind::Call: result = call(at.function, a, b, ok); break;
      default: GOPT_CHECK(false, "an expression that the compiler resolves");
    }
  }
  if (!ok) return std::nullopt;
  Values result;
  result.reserve(outputs_.size());
  for (const Operand& operand : outputs_) result.push_back(value(operand, inputs, registers));
  return result;
}

}  // namespace gopt::generator
