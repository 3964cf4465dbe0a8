#include "derivation/reversal.h"

#include <algorithm>
#include <set>

namespace gopt::optimizer {
namespace {

bool is_partial(Function function) {
  switch (function) {
    case Function::Log:
    case Function::Sqrt:
    case Function::Tan:
    case Function::Asin:
    case Function::Acos:
    case Function::Acosh:
    case Function::Atanh:
    case Function::Pow:
    case Function::Fmod: return true;
    default: return false;
  }
}

bool has_read(const Expr& expr) {
  return expr->kind == ExprKind::Read || std::any_of(expr->args.begin(), expr->args.end(), has_read);
}

bool is_never_zero(const Value& value) {
  if (!value.node->is(OpKind::Constant) || !is_computable(value.node->tensor.type())) return false;
  const std::vector<double> numbers = value.node->tensor.to_doubles();
  return std::find(numbers.begin(), numbers.end(), 0.0) == numbers.end();
}

// Texts of what a side demands: that the elements of a value are divisors, or arguments of a partial function. What
// is no plain element of an input is told by the whole application.
class Demands {
 public:
  explicit Demands(const Graph& side) {
    for (const NodePtr& node : side.nodes())
      if (!node->is(OpKind::Input) && !node->is(OpKind::Constant)) add(*node);
  }
  const std::set<std::string>& texts() const { return texts_; }
  bool are_known() const { return are_known_; }

 private:
  void add(const Node& node) {
    std::vector<TensorExpr> inputs;
    for (size_t i = 0; i < node.inputs.size(); i++)
      inputs.push_back(node.inputs[i] ? input_tensor(static_cast<int>(i), node.inputs[i].type()) : TensorExpr{});
    const auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    if (!definition.ok()) {
      are_known_ = false;
      return;
    }
    for (const TensorExpr& output : definition->outputs) {
      std::vector<Index> subscripts;
      for (size_t axis = 0; axis < output.shape.size(); axis++)
        subscripts.push_back(symbol("?at" + std::to_string(axis)));
      visit(node, output.at(subscripts));
    }
  }

  void visit(const Node& node, const Expr& expr) {
    if (expr->kind == ExprKind::Divide) demand(node, "divisor", expr->args[1]);
    if (expr->kind == ExprKind::Call && is_partial(expr->function))
      demand(node, std::string(function_text(expr->function)), expr->args[0]);
    for (const Expr& arg : expr->args) visit(node, arg);
  }

  void demand(const Node& node, const std::string& what, const Expr& argument) {
    if (argument->kind == ExprKind::Constant && argument->value > 0) return;
    std::string text = what + " ";
    if (argument->kind == ExprKind::Read) {
      const Value& value = node.inputs[static_cast<size_t>(argument->input)];
      if (what == "divisor" && is_never_zero(value)) return;
      text += to_string(value.node->hash) + "." + std::to_string(value.output);
    } else if (!has_read(argument)) {
      text += to_string(argument);
    } else {
      text += to_string(node.hash);
    }
    texts_.insert(std::move(text));
  }

  std::set<std::string> texts_;
  bool are_known_ = true;
};

}  // namespace

std::optional<RewriteRule> reversed(const RewriteRule& rule) {
  const Demands left(rule.left), right(rule.right);
  if (!left.are_known() || !right.are_known()) return std::nullopt;
  if (!std::includes(right.texts().begin(), right.texts().end(), left.texts().begin(), left.texts().end()))
    return std::nullopt;
  RewriteRule turned = rule;
  turned.scheme = nullptr;
  std::swap(turned.left, turned.right);
  return turned;
}

}  // namespace gopt::optimizer
