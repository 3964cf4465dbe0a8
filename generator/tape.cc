#include "tape.h"

#include <cmath>
#include <map>

#include "exponent.h"

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
    args.resize(3, Operand{Tape::kConstants, zero()});
    return append(expr->kind, args[0], args[1], args[2], expr->function);
  }

  // All values of the binders from number `binder` on, combined.
  Operand reduce(const Expr::Node& node, size_t binder) {
    if (node.reduce == ReduceKind::Sum) return sum_of_products(node);
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
    if (node.reduce != ReduceKind::Max && node.reduce != ReduceKind::Min)
      return constant(node.reduce == ReduceKind::Product ? 1 : 0);
    tape_.needs_infinity_ = true;
    return constant(node.reduce == ReduceKind::Max ? -INFINITY : INFINITY);
  }

  Operand sum_of_products(const Expr::Node& node) {
    std::vector<std::pair<Operand, Operand>> parts;
    bool has_product = false;
    collect_parts(node, 0, parts, has_product);
    if (parts.empty()) return constant(0);
    if (!has_product) {
      Operand total = parts.front().first;
      for (size_t i = 1; i < parts.size(); i++) total = append(ExprKind::Add, total, parts[i].first);
      return total;
    }
    const auto begin = static_cast<uint32_t>(tape_.products_.size());
    tape_.products_.insert(tape_.products_.end(), parts.begin(), parts.end());
    tape_.operations_ += 2 * static_cast<double>(parts.size()) - 2;
    return append(ExprKind::Reduce, {0, begin}, {0, static_cast<uint32_t>(tape_.products_.size())});
  }

  // The summands that are not 0, each as a product (by 1 where it is none).
  void collect_parts(const Expr::Node& node, size_t binder, std::vector<std::pair<Operand, Operand>>& parts,
                     bool& has_product) {
    if (binder < node.binders.size()) {
      const auto [symbol, extent] = node.binders[binder];
      const int64_t count = number(extent);
      for (int64_t k = 0; k < count; k++) {
        environment_[symbol] = k;
        collect_parts(node, binder + 1, parts, has_product);
      }
      return;
    }
    const Expr* body = &node.args[0];
    while ((*body)->kind == ExprKind::Select) body = &(*body)->args[holds((*body)->cond) ? 0 : 1];
    const bool is_product = (*body)->kind == ExprKind::Multiply;
    const Operand a = emit(is_product ? (*body)->args[0] : *body);
    if (is_zero(a)) return;
    const Operand b = is_product ? emit((*body)->args[1]) : constant(1);
    if (is_zero(b)) return;
    has_product = has_product || is_product;
    parts.emplace_back(a, b);
  }
  bool is_zero(const Operand& operand) { return operand.source == Tape::kConstants && operand.position == zero(); }

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
    tape_.operations_ += 1;
    return {Tape::kRegisters, static_cast<uint32_t>(tape_.code_.size() - 1)};
  }

  Operand read(const Expr::Node& node) {
    const std::vector<int64_t>& dims = input_dims_.at(static_cast<size_t>(node.input));
    int64_t position = 0;
    for (size_t axis = 0; axis < dims.size(); axis++) {
      const int64_t at = number(node.subscripts[axis]);
      if (at < 0 || at >= dims[axis]) throw NotATape{"a read out of bounds"};
      position = position * dims[axis] + at;
    }
    return {static_cast<uint32_t>(node.input), static_cast<uint32_t>(position)};
  }

  Operand constant(double value) {
    const auto [entry, is_new] = constants_.try_emplace(value, static_cast<uint32_t>(tape_.constants_.size()));
    if (is_new) {
      tape_.constants_.push_back(scalar_from_double(value));
      tape_.real_constants_.push_back(reals_from_double(value));
    }
    return {Tape::kConstants, entry->second};
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

Result<Tape> Tape::make(const AlphabetOp& op, const std::vector<TensorType>& inputs, int output,
                        bool follows_exponents) {
  if (inputs.size() > kMaxInputs) return Error{"more inputs than a tape reads"};
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) tensors.push_back(input_tensor(static_cast<int>(i), inputs[i]));
  GOPT_ASSIGN_OR_RETURN(const Definition definition, define(op, tensors));
  if (!definition.requirements.empty()) return Error{definition.requirements.front().what + " is undecided"};
  const TensorExpr& tensor = definition.outputs[static_cast<size_t>(output)];
  if (!TensorType{tensor.element, tensor.shape}.has_static_shape()) return Error{"an extent is not static"};
  Tape tape;
  tape.input_count_ = inputs.size();
  tape.follows_exponents_ = follows_exponents;
  try {
    TapeCompiler(tape, inputs).compile(tensor);
  } catch (const NotATape& reason) {
    return Error{reason.what};
  }
  return tape;
}

namespace {

// Products are below 2^122, so that as many fit into 128 bits.
constexpr uint32_t kProductsAtOnce = 32;

// The sum of products [begin, end); `factors` gives both of one.
template <class Factors>
void sum_products(uint32_t begin, uint32_t end, const Factors& factors, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++) {
    unsigned __int128 total = 0;
    double approximate = 0;
    for (uint32_t at = begin; at < end; at++) {
      const std::pair<const Scalar&, const Scalar&> own = factors(at);
      total += static_cast<unsigned __int128>(own.first.residue[lane]) * own.second.residue[lane];
      approximate += own.first.approximate[lane] * own.second.approximate[lane];
      if ((at - begin) % kProductsAtOnce == kProductsAtOnce - 1) total = reduced(total);
    }
    result.residue[lane] = reduced(total);
    result.approximate[lane] = approximate;
  }
}
template <class Factors>
void sum_exponents(uint32_t begin, uint32_t end, const Factors& factors, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++) {
    uint64_t total = 0;
    for (uint32_t at = begin; at < end; at++) {
      const std::pair<const Scalar&, const Scalar&> own = factors(at);
      total += uint32_t{own.first.exponent[lane]} * own.second.exponent[lane];
    }
    result.exponent[lane] = static_cast<uint16_t>(total % kExponentOrder);
  }
}
template <class Factors>
void sum_products(uint32_t begin, uint32_t end, const Factors& factors, Reals& result) {
  Reals total = reals_from_double(0);
  for (uint32_t at = begin; at < end; at++) {
    const std::pair<const Reals&, const Reals&> own = factors(at);
    for (size_t draw = 0; draw < kDraws; draw++) total.draws[draw] += own.first.draws[draw] * own.second.draws[draw];
  }
  result = total;
}

}  // namespace

template <class Number>
bool Tape::run(const Number* const* inputs, Number* output, std::vector<Number>& registers) const {
  if constexpr (std::is_same_v<Number, Scalar>)
    if (follows_exponents_) return run_code<Number, true>(inputs, output, registers);
  return run_code<Number, false>(inputs, output, registers);
}

template <class Number, bool kFollowsExponents>
bool Tape::run_code(const Number* const* inputs, Number* output, std::vector<Number>& registers) const {
  constexpr bool is_scalar = std::is_same_v<Number, Scalar>;
  if (is_scalar && needs_infinity_) return false;
  if (registers.size() < code_.size()) registers.resize(code_.size());
  std::array<const Number*, kRegisters + 1> sources{};
  for (size_t i = 0; i < input_count_; i++) sources[i] = inputs[i];
  if constexpr (is_scalar)
    sources[kConstants] = constants_.data();
  else
    sources[kConstants] = real_constants_.data();
  sources[kRegisters] = registers.data();
  const auto value = [&](const Operand& operand) -> const Number& { return sources[operand.source][operand.position]; };
  const auto factors = [&](uint32_t at) -> std::pair<const Number&, const Number&> {
    return {value(products_[at].first), value(products_[at].second)};
  };
  bool ok = true;
  for (size_t i = 0; i < code_.size() && ok; i++) {
    const Instruction& at = code_[i];
    Number& result = registers[i];
    switch (at.kind) {
      case ExprKind::Add: result = add(value(at.a), value(at.b)); break;
      case ExprKind::Subtract: result = subtract(value(at.a), value(at.b)); break;
      case ExprKind::Multiply: result = multiply(value(at.a), value(at.b)); break;
      case ExprKind::Divide: result = divide(value(at.a), value(at.b), ok); break;
      case ExprKind::Maximum: result = maximum(value(at.a), value(at.b), ok); break;
      case ExprKind::Minimum: result = minimum(value(at.a), value(at.b), ok); break;
      case ExprKind::Less: result = is_less(value(at.a), value(at.b), ok); break;
      case ExprKind::Equal: result = is_equal(value(at.a), value(at.b)); break;
      case ExprKind::Choose: result = choose(value(at.a), value(at.b), value(at.c)); break;
      case ExprKind::Call: result = call(at.function, value(at.a), value(at.b), ok); break;
      case ExprKind::Reduce: sum_products(at.a.position, at.b.position, factors, result); break;
      default: GOPT_CHECK(false, "an expression that the compiler resolves");
    }
    if constexpr (kFollowsExponents) {
      switch (at.kind) {
        case ExprKind::Add: set_exponents_of_sum(value(at.a), value(at.b), result); break;
        case ExprKind::Subtract: set_exponents_of_difference(value(at.a), value(at.b), result); break;
        case ExprKind::Multiply: set_exponents_of_product(value(at.a), value(at.b), result); break;
        case ExprKind::Divide: set_exponents_of_quotient(value(at.a), value(at.b), result); break;
        case ExprKind::Call: set_exponents_of_call(at.function, value(at.a), result); break;
        case ExprKind::Reduce: sum_exponents(at.a.position, at.b.position, factors, result); break;
        default: break;  // what picks one of its arguments has that one's
      }
    }
  }
  if (!ok) return false;
  for (size_t i = 0; i < outputs_.size(); i++) output[i] = value(outputs_[i]);
  return true;
}

template <class Number>
std::optional<std::vector<Number>> Tape::run(const std::vector<const std::vector<Number>*>& inputs) const {
  std::vector<const Number*> starts;
  for (const auto* input : inputs) starts.push_back(input->data());
  std::vector<Number> result(size()), registers;
  if (!run(starts.data(), result.data(), registers)) return std::nullopt;
  return result;
}

template bool Tape::run(const Scalar* const*, Scalar*, std::vector<Scalar>&) const;
template bool Tape::run(const Reals* const*, Reals*, std::vector<Reals>&) const;
template std::optional<Values> Tape::run(const std::vector<const Values*>&) const;
template std::optional<std::vector<Reals>> Tape::run(const std::vector<const std::vector<Reals>*>&) const;

}  // namespace gopt::generator
