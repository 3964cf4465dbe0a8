// Elementwise operators: the output element at i from the input elements that broadcasting puts at i.
#include <cmath>

#include "context.h"
#include "gopt/wide_integers.h"

namespace gopt::ir {

Shape broadcast_shapes(DefineContext& c, const std::vector<const Shape*>& shapes) {
  size_t rank = 0;
  for (const Shape* s : shapes) rank = std::max(rank, s->size());
  Shape result(rank, Index(1));
  for (const Shape* s : shapes) {
    for (size_t k = 0; k < s->size(); k++) {
      const Index& extent = (*s)[k];
      Index& known = result[k + rank - s->size()];
      if (extent == Index(1) || extent == known) continue;
      if (known != Index(1))
        c.require(equal(known, extent), "extents " + to_string(known) + " and " + to_string(extent) + " are equal",
                  true);
      // A number says more than a symbol that must equal it.
      if (known == Index(1) || extent.is_constant()) known = extent;
    }
  }
  return result;
}

Expr broadcast_at(const TensorExpr& t, const std::vector<Index>& subscripts) {
  std::vector<Index> own;
  const size_t skipped = subscripts.size() - t.shape.size();
  for (size_t k = 0; k < t.shape.size(); k++)
    own.push_back(t.shape[k] == Index(1) ? Index(0) : subscripts[k + skipped]);
  return t.at(own);
}

namespace {

void unary(DefineContext& c, const std::function<Expr(const Expr&)>& f, ElementType element = ElementType::Undefined) {
  const TensorExpr& x = c.input(0);
  c.output(element == ElementType::Undefined ? x.element : element, x.shape,
           [x, f](const std::vector<Index>& i) { return f(x.at(i)); });
}
void function(DefineContext& c, Function f) {
  unary(c, [f](const Expr& x) { return call(f, {x}); });
}

// Folds all inputs, left to right, with f; `finish` sees the result.
void fold(DefineContext& c, const std::function<Expr(const Expr&, const Expr&)>& f,
          ElementType element = ElementType::Undefined, const std::function<Expr(const Expr&)>& finish = {}) {
  std::vector<TensorExpr> inputs;
  std::vector<const Shape*> shapes;
  for (size_t i = 0; i < c.input_count(); i++) inputs.push_back(c.input(i));
  for (const TensorExpr& t : inputs) {
    shapes.push_back(&t.shape);
    if (t.element != inputs[0].element) c.fail("element types differ");
  }
  Shape shape = broadcast_shapes(c, shapes);
  if (element == ElementType::Undefined) element = inputs[0].element;
  c.output(element, std::move(shape), [inputs, f, finish](const std::vector<Index>& i) {
    Expr r = broadcast_at(inputs[0], i);
    for (size_t k = 1; k < inputs.size(); k++) r = f(r, broadcast_at(inputs[k], i));
    return finish ? finish(r) : r;
  });
}

Expr negative(const Expr& x) { return constant(0) - x; }
Expr logical_not(const Expr& x) { return is_equal(x, constant(0)); }
Expr sigmoid(const Expr& x) { return constant(1) / (constant(1) + call(Function::Exp, {negative(x)})); }
Expr absolute(const Expr& x) { return maximum(x, negative(x)); }
// max(x,0) + ln(1 + e^-|x|): the form that does not overflow.
Expr softplus(const Expr& x) {
  return maximum(x, constant(0)) + call(Function::Log, {constant(1) + call(Function::Exp, {negative(absolute(x))})});
}
Expr exp_minus_one(const Expr& x) { return call(Function::Exp, {x}) - constant(1); }
bool integral(const TensorExpr& t) { return !is_floating(t.element); }

}  // namespace

void define_Neg(DefineContext& c) { unary(c, negative); }
void define_Abs(DefineContext& c) {
  if (has_no_sign(c.input(0).element)) return unary(c, [](const Expr& x) { return x; });
  unary(c, absolute);
}
void define_Exp(DefineContext& c) { function(c, Function::Exp); }
void define_Log(DefineContext& c) { function(c, Function::Log); }
void define_Sqrt(DefineContext& c) { function(c, Function::Sqrt); }
void define_Sin(DefineContext& c) { function(c, Function::Sin); }
void define_Cos(DefineContext& c) { function(c, Function::Cos); }
void define_Tan(DefineContext& c) { function(c, Function::Tan); }
void define_Asin(DefineContext& c) { function(c, Function::Asin); }
void define_Acos(DefineContext& c) { function(c, Function::Acos); }
void define_Atan(DefineContext& c) { function(c, Function::Atan); }
void define_Sinh(DefineContext& c) { function(c, Function::Sinh); }
void define_Cosh(DefineContext& c) { function(c, Function::Cosh); }
void define_Asinh(DefineContext& c) { function(c, Function::Asinh); }
void define_Acosh(DefineContext& c) { function(c, Function::Acosh); }
void define_Atanh(DefineContext& c) { function(c, Function::Atanh); }
void define_Tanh(DefineContext& c) { function(c, Function::Tanh); }
void define_Erf(DefineContext& c) { function(c, Function::Erf); }
void define_Reciprocal(DefineContext& c) {
  unary(c, [](const Expr& x) { return constant(1) / x; });
}
void define_Sigmoid(DefineContext& c) { unary(c, sigmoid); }
void define_Softplus(DefineContext& c) { unary(c, softplus); }
void define_Softsign(DefineContext& c) {
  unary(c, [](const Expr& x) { return x / (constant(1) + absolute(x)); });
}
void define_Gelu(DefineContext& c) {
  const std::string approximate = c.text("approximate");
  if (approximate == "none")
    return unary(c, [](const Expr& x) {
      return constant(0.5) * x * (constant(1) + call(Function::Erf, {x / call(Function::Sqrt, {constant(2)})}));
    });
  if (approximate != "tanh") c.fail("approximate is \"none\" or \"tanh\", not \"" + approximate + "\"");
  unary(c, [](const Expr& x) {
    const Expr root = call(Function::Sqrt, {constant(2) / constant(M_PI)});
    return constant(0.5) * x * (constant(1) + call(Function::Tanh, {root * (x + constant(0.044715) * x * x * x)}));
  });
}
void define_Relu(DefineContext& c) {
  unary(c, [](const Expr& x) { return maximum(x, constant(0)); });
}
void define_LeakyRelu(DefineContext& c) {
  const Expr alpha = c.real("alpha");
  unary(c, [alpha](const Expr& x) { return choose(is_less(x, constant(0)), alpha * x, x); });
}
void define_Elu(DefineContext& c) {
  const Expr alpha = c.real("alpha");
  unary(c, [alpha](const Expr& x) { return choose(is_less(x, constant(0)), alpha * exp_minus_one(x), x); });
}
void define_Selu(DefineContext& c) {
  const Expr alpha = c.real("alpha"), gamma = c.real("gamma");
  unary(c,
        [alpha, gamma](const Expr& x) { return gamma * choose(is_less(constant(0), x), x, alpha * exp_minus_one(x)); });
}
void define_Celu(DefineContext& c) {
  const Expr alpha = c.real("alpha");
  unary(c, [alpha](const Expr& x) {
    return maximum(x, constant(0)) + minimum(constant(0), alpha * exp_minus_one(x / alpha));
  });
}
void define_ThresholdedRelu(DefineContext& c) {
  const Expr alpha = c.real("alpha");
  unary(c, [alpha](const Expr& x) { return choose(is_less(alpha, x), x, constant(0)); });
}
void define_Clip(DefineContext& c) {
  const Expr low = c.has("min") ? c.real("min") : Expr(), high = c.has("max") ? c.real("max") : Expr();
  unary(c, [low, high](const Expr& x) {
    const Expr raised = low ? maximum(x, low) : x;
    return high ? minimum(raised, high) : raised;
  });
}
void define_HardSigmoid(DefineContext& c) {
  const Expr alpha = c.real("alpha"), beta = c.real("beta");
  unary(c, [alpha, beta](const Expr& x) { return maximum(constant(0), minimum(constant(1), alpha * x + beta)); });
}
void define_HardSwish(DefineContext& c) {
  unary(c,
        [](const Expr& x) { return x * maximum(constant(0), minimum(constant(1), x / constant(6) + constant(0.5))); });
}
void define_Mish(DefineContext& c) {
  unary(c, [](const Expr& x) { return x * call(Function::Tanh, {softplus(x)}); });
}
void define_Floor(DefineContext& c) { function(c, Function::Floor); }
void define_Ceil(DefineContext& c) { function(c, Function::Ceil); }
void define_Round(DefineContext& c) { function(c, Function::Round); }
void define_Sign(DefineContext& c) {
  unary(c, [](const Expr& x) {
    const Expr sign = is_less(constant(0), x) - is_less(x, constant(0));
    return choose(is_equal(x, x), sign, x);  // of no number: none
  });
}
void define_Not(DefineContext& c) { unary(c, logical_not); }
void define_IsNaN(DefineContext& c) {
  unary(
      c, [](const Expr& x) { return call(Function::IsNan, {x}); }, ElementType::Bool);
}
void define_Identity(DefineContext& c) {
  unary(c, [](const Expr& x) { return x; });
}

void define_Cast(DefineContext& c) {
  const auto to = static_cast<ElementType>(c.number("to"));
  const ElementType from = c.input(0).element;
  if (!is_computable(to) || !is_computable(from))
    c.fail("no conversion from " + to_string(from) + " to " + to_string(to));
  // Widening is exact, so it is the identity over the reals.
  const bool widens = is_floating(from) && is_floating(to) &&
                      (to == ElementType::Float64 || (to == ElementType::Float32 && from != ElementType::Float64));
  if (from == to || widens)
    return unary(
        c, [](const Expr& x) { return x; }, to);
  unary(
      c, [to](const Expr& x) { return convert(to, x); }, to);
}

void define_Add(DefineContext& c) {
  fold(c, [](const Expr& a, const Expr& b) { return a + b; });
}
void define_Sub(DefineContext& c) {
  fold(c, [](const Expr& a, const Expr& b) { return a - b; });
}
void define_Mul(DefineContext& c) {
  fold(c, [](const Expr& a, const Expr& b) { return a * b; });
}
void define_Div(DefineContext& c) {
  fold(c, [](const Expr& a, const Expr& b) { return a / b; });
}

// Small constant exponents are products, which have laws; any other power is a named function.
void define_Pow(DefineContext& c) {
  const TensorExpr base = c.input(0), exponent = c.input(1);
  Shape shape = broadcast_shapes(c, {&base.shape, &exponent.shape});
  double known = NAN;
  if (exponent.data && exponent.data->count() == 1)
    known = load_double(exponent.data->bytes().data(), exponent.element, 0);
  const bool integer_base = integral(base), mixed = integral(base) != integral(exponent);
  c.output(base.element, std::move(shape), [=](const std::vector<Index>& i) {
    const Expr x = broadcast_at(base, i);
    if (known == 1) return x;
    if (known == 2) return x * x;
    if (known == 3) return x * x * x;
    if (known == 0.5 && !integer_base) return call(Function::Sqrt, {x});
    // A number has no type of its own: beside an integer it would be one.
    const Expr y = broadcast_at(exponent, i);
    const bool are_types_apart = exponent.element != base.element;
    const auto in_doubles = [&](const Expr& value, const Expr& beside) {
      const bool is_beside_number = beside->kind == ExprKind::Constant && value->kind != ExprKind::Constant;
      return are_types_apart && is_beside_number ? convert(ElementType::Float64, value) : value;
    };
    const Expr power = call(Function::Pow, {in_doubles(x, y), in_doubles(y, x)});
    return mixed && integer_base ? convert(base.element, power) : power;
  });
}

void define_Mod(DefineContext& c) {
  if (c.number("fmod") != 0) return fold(c, [](const Expr& a, const Expr& b) { return call(Function::Fmod, {a, b}); });
  fold(c, [](const Expr& a, const Expr& b) {
    // Their signs, not their product's: that may be beyond 64 bits.
    const Expr r = call(Function::Fmod, {a, b});
    const Expr r_by_sign = choose(is_less(b, constant(0)), constant(0) - r, r);
    return choose(is_less(r_by_sign, constant(0)), r + b, r);
  });
}
void define_Max(DefineContext& c) { fold(c, maximum); }
void define_Min(DefineContext& c) { fold(c, minimum); }
void define_Sum(DefineContext& c) {
  fold(c, [](const Expr& a, const Expr& b) { return a + b; });
}
void define_Mean(DefineContext& c) {
  const double count = static_cast<double>(c.input_count());
  fold(
      c, [](const Expr& a, const Expr& b) { return a + b; }, ElementType::Undefined,
      [count](const Expr& sum) { return sum / constant(count); });
}
void define_PRelu(DefineContext& c) {
  fold(c, [](const Expr& x, const Expr& slope) { return choose(is_less(x, constant(0)), slope * x, x); });
}
void define_Equal(DefineContext& c) { fold(c, is_equal, ElementType::Bool); }
void define_Less(DefineContext& c) { fold(c, is_less, ElementType::Bool); }
void define_Greater(DefineContext& c) {
  fold(
      c, [](const Expr& a, const Expr& b) { return is_less(b, a); }, ElementType::Bool);
}
// As "less or equal", not "not greater": the two differ on NaN.
void define_GreaterOrEqual(DefineContext& c) {
  fold(
      c, [](const Expr& a, const Expr& b) { return maximum(is_less(b, a), is_equal(a, b)); }, ElementType::Bool);
}
void define_LessOrEqual(DefineContext& c) {
  fold(
      c, [](const Expr& a, const Expr& b) { return maximum(is_less(a, b), is_equal(a, b)); }, ElementType::Bool);
}
void define_And(DefineContext& c) { fold(c, minimum, ElementType::Bool); }
void define_Or(DefineContext& c) { fold(c, maximum, ElementType::Bool); }
void define_Xor(DefineContext& c) {
  fold(
      c, [](const Expr& a, const Expr& b) { return logical_not(is_equal(a, b)); }, ElementType::Bool);
}

void define_Where(DefineContext& c) {
  const TensorExpr test = c.input(0), a = c.input(1), b = c.input(2);
  if (a.element != b.element) c.fail("element types differ");
  c.output(a.element, broadcast_shapes(c, {&test.shape, &a.shape, &b.shape}), [=](const std::vector<Index>& i) {
    return choose(broadcast_at(test, i), broadcast_at(a, i), broadcast_at(b, i));
  });
}

}  // namespace gopt::ir
