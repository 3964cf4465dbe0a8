#include "composed_activation.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "cover.h"
#include "gopt/node_attributes.h"

namespace gopt::planner {
namespace {

// Of x, the constant first.
constexpr size_t kTerms = 4;
using Polynomial = std::array<double, kTerms>;

// scale f(argument) + shift
struct Gate {
  const Node* function = nullptr;
  Polynomial argument{};
  double scale = 1, shift = 0;
};

// factor x^power gate
struct Product {
  double factor = 1;
  int power = 0;
  std::optional<Gate> gate;
};

// Reads expressions of x, and remembers the nodes that it has read.
class ExpressionReader {
 public:
  explicit ExpressionReader(const Value& x) : x_(x) {}

  std::optional<Product> product_of(const Node& node) {
    if (!node.is(OpKind::Mul) && !node.is(OpKind::Div)) return std::nullopt;
    std::optional<Product> left = factor(node.inputs[0]);
    if (!left) return std::nullopt;
    if (node.is(OpKind::Div)) {
      const auto divisor = constant(node.inputs[1]);
      if (!divisor || *divisor == 0) return std::nullopt;
      left->factor /= *divisor;
      return left;
    }
    std::optional<Product> right = factor(node.inputs[1]);
    if (!right || (left->gate && right->gate)) return std::nullopt;
    if (right->gate) left->gate = right->gate;
    left->factor *= right->factor;
    left->power += right->power;
    return left;
  }

  const std::set<const Node*>& read() const { return read_; }

 private:
  static std::optional<double> constant(const Value& value) {
    if (!is_small_constant(value) || !is_floating(value.node->tensor.type())) return std::nullopt;
    return value.node->tensor.to_doubles()[0];
  }

  std::optional<Product> factor(const Value& value) {
    if (value == x_) return Product{.power = 1};
    if (!is_within_budget()) return std::nullopt;
    if (const auto number = constant(value)) return Product{.factor = *number};
    const Node& node = *value.node;
    if (node.is(OpKind::Mul) || node.is(OpKind::Div)) {
      auto product = product_of(node);
      if (product) read_.insert(&node);
      return product;
    }
    auto read = gate(value);
    return read ? std::optional(Product{.gate = read}) : std::nullopt;
  }

  std::optional<Gate> gate(const Value& value) {
    if (!is_within_budget()) return std::nullopt;
    const Node& node = *value.node;
    switch (node.op) {
      case OpKind::Sigmoid:
      case OpKind::HardSigmoid:
      case OpKind::Clip:
      case OpKind::Erf:
      case OpKind::Tanh: {
        const auto argument = polynomial(node.inputs[0]);
        if (!argument) return std::nullopt;
        read_.insert(&node);
        return Gate{.function = &node, .argument = *argument};
      }
      case OpKind::Add:
      case OpKind::Mul: {
        for (size_t side = 0; side < 2; side++)
          if (const auto number = constant(node.inputs[1 - side])) {
            auto inner = gate(node.inputs[side]);
            if (!inner) return std::nullopt;
            read_.insert(&node);
            if (node.is(OpKind::Add)) {
              inner->shift += *number;
            } else {
              inner->scale *= *number;
              inner->shift *= *number;
            }
            return inner;
          }
        return std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  std::optional<Polynomial> polynomial(const Value& value) {
    if (value == x_) return Polynomial{0, 1};
    if (!is_within_budget()) return std::nullopt;
    if (const auto number = constant(value)) return Polynomial{*number};
    const Node& node = *value.node;
    std::optional<Polynomial> result;
    switch (node.op) {
      case OpKind::Add: result = sum(node, 1); break;
      case OpKind::Sub: result = sum(node, -1); break;
      case OpKind::Mul: {
        const auto left = polynomial(node.inputs[0]);
        const auto right = left ? polynomial(node.inputs[1]) : std::nullopt;
        if (right) result = multiplied(*left, *right);
        break;
      }
      case OpKind::Div: {
        const auto divisor = constant(node.inputs[1]);
        if (divisor && *divisor != 0) result = polynomial(node.inputs[0]);
        if (result)
          for (double& term : *result) term /= *divisor;
        break;
      }
      case OpKind::Pow: {
        const auto base = polynomial(node.inputs[0]);
        const auto exponent = constant(node.inputs[1]);
        if (base && exponent) result = power(*base, *exponent);
        break;
      }
      default: break;
    }
    if (result) read_.insert(&node);
    return result;
  }

  std::optional<Polynomial> sum(const Node& node, double sign) {
    const auto left = polynomial(node.inputs[0]);
    const auto right = left ? polynomial(node.inputs[1]) : std::nullopt;
    if (!right) return std::nullopt;
    Polynomial result = *left;
    for (size_t i = 0; i < kTerms; i++) result[i] += sign * (*right)[i];
    return result;
  }

  static std::optional<Polynomial> multiplied(const Polynomial& left, const Polynomial& right) {
    Polynomial result{};
    for (size_t i = 0; i < kTerms; i++)
      for (size_t j = 0; j < kTerms; j++) {
        if (left[i] == 0 || right[j] == 0) continue;
        if (i + j >= kTerms) return std::nullopt;
        result[i + j] += left[i] * right[j];
      }
    return result;
  }

  static std::optional<Polynomial> power(const Polynomial& base, double exponent) {
    std::optional<Polynomial> result = Polynomial{1};
    double count = 0;
    for (; result && count < exponent && count < kTerms; count++) result = multiplied(*result, base);
    return count == exponent ? result : std::nullopt;
  }

  // What does not begin at x may go on for ever.
  bool is_within_budget() { return budget_-- > 0; }

  const Value& x_;
  std::set<const Node*> read_;
  int budget_ = 40;
};

// What rounding a constant to a type may change of it, relatively.
double tolerance_of(ElementType type) {
  switch (type) {
    case ElementType::Float16: return 1e-3;
    case ElementType::BFloat16: return 8e-3;
    default: return 1e-6;
  }
}

std::optional<Activation> activation_of(const Product& product, double tolerance) {
  if (!product.gate || product.power != 1) return std::nullopt;
  const auto is = [&](double value, double wanted) {
    return std::fabs(value - wanted) <= tolerance * std::fabs(wanted);
  };
  const Gate& gate = *product.gate;
  const double scale = product.factor * gate.scale, shift = product.factor * gate.shift;
  const auto [constant, slope, square, cube] = gate.argument;
  const bool is_scaled = constant == 0 && square == 0 && cube == 0;
  const Node& function = *gate.function;
  switch (function.op) {
    case OpKind::Sigmoid:
      if (is_scaled && slope != 0 && is(scale, 1) && shift == 0) return Activation{ActivationKind::Swish, slope};
      return std::nullopt;
    case OpKind::HardSigmoid: {
      const double alpha = real_or(function, "alpha", 0.2), beta = real_or(function, "beta", 0.5);
      if (is_scaled && is(slope * alpha, 1.0 / 6) && is(beta, 0.5) && is(scale, 1) && shift == 0)
        return Activation{ActivationKind::HardSwish};
      return std::nullopt;
    }
    case OpKind::Clip: {
      const double least = real_or(function, "min", -INFINITY), most = real_or(function, "max", INFINITY);
      if (square == 0 && cube == 0 && is(constant * scale, 0.5) && is(slope * scale, 1.0 / 6) && least == 0 &&
          is(most * scale, 1) && scale > 0 && shift == 0)
        return Activation{ActivationKind::HardSwish};
      return std::nullopt;
    }
    case OpKind::Erf:
      if (is_scaled && is(slope, 1 / std::numbers::sqrt2) && is(scale, 0.5) && is(shift, 0.5))
        return Activation{ActivationKind::GeluErf};
      return std::nullopt;
    case OpKind::Tanh: {
      constexpr double kCubic = 0.044715;
      const double wanted = std::sqrt(2 / std::numbers::pi);
      // The cube's factor is a product of two constants.
      const bool is_approximation = constant == 0 && square == 0 && is(slope, wanted) &&
                                    std::fabs(cube - wanted * kCubic) <= 3 * tolerance * wanted * kCubic;
      if (is_approximation && is(scale, 0.5) && is(shift, 0.5)) return Activation{ActivationKind::GeluTanh};
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace

bool is_of_libraries(const Activation& activation) {
  const auto [kind, a, b] = activation;
  if (kind == ActivationKind::Clip) return a <= b && a < INFINITY && b > -INFINITY;
  constexpr double kLargest = std::numeric_limits<float>::max();
  return std::fabs(a) <= kLargest && std::fabs(b) <= kLargest;
}

std::optional<ComposedActivation> composed_activation(const Value& x, const Node& last) {
  ExpressionReader reader(x);
  const auto product = reader.product_of(last);
  if (!product) return std::nullopt;
  const auto activation = activation_of(*product, tolerance_of(x.type().element));
  if (!activation || !is_of_libraries(*activation)) return std::nullopt;
  return ComposedActivation{*activation, reader.read()};
}

}  // namespace gopt::planner
