#include "log_terms.h"

#include <map>

namespace gopt::checker {
namespace {

Index atom_of(const Sexpr& text) {
  if (!text.is_list) return symbol(text.word);
  if (text.head() == "//" && text.size() == 3) return floor_div(index_of(text.at(1)), index_of(text.at(2)));
  if (text.head() != "load") throw Fault("'" + text.head() + "' is no index");
  std::vector<Index> subscripts;
  for (size_t i = 2; i < text.size(); i++) subscripts.push_back(index_of(text.at(i)));
  return load_index(static_cast<int>(text.at(1).integer()), std::move(subscripts));
}

bool is_number(const Sexpr& text) {
  return !text.is_list && text.word.find_first_not_of("-0123456789") == std::string::npos;
}

Function function_of(const std::string& name) {
  static const std::map<std::string, Function, std::less<>> functions = {
#define GOPT_FUNCTION(name, arity, text, numeric) {text, Function::name},
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  };
  const auto found = functions.find(name);
  if (found == functions.end()) throw Fault("'" + name + "' is no function");
  return found->second;
}

const std::map<std::string, ExprKind, std::less<>>& expression_kinds() {
  static const std::map<std::string, ExprKind, std::less<>> kinds = {
      {"const", ExprKind::Constant}, {"size", ExprKind::Size},     {"read", ExprKind::Read},
      {"+", ExprKind::Add},          {"-", ExprKind::Subtract},    {"*", ExprKind::Multiply},
      {"/", ExprKind::Divide},       {"max", ExprKind::Maximum},   {"min", ExprKind::Minimum},
      {"<", ExprKind::Less},         {"=", ExprKind::Equal},       {"call", ExprKind::Call},
      {"if", ExprKind::Select},      {"choose", ExprKind::Choose}, {"convert", ExprKind::Convert},
      {"reduce", ExprKind::Reduce},
  };
  return kinds;
}

ReduceKind reduction_of(const std::string& name) {
  if (name == "sum") return ReduceKind::Sum;
  if (name == "max") return ReduceKind::Max;
  if (name == "min") return ReduceKind::Min;
  if (name == "product") return ReduceKind::Product;
  throw Fault("'" + name + "' is no reduction");
}

std::vector<Binder> binders_of(const Sexpr& text) {
  std::vector<Binder> binders;
  for (const Sexpr& binder : text.items) {
    const auto own = index_of(binder.at(0)).as_atom();
    if (!own || atom(*own).kind != AtomKind::Symbol) throw Fault("a binder is no symbol");
    binders.push_back({*own, index_of(binder.at(1))});
  }
  return binders;
}

// How many items of the list come before the expression's arguments; what they say goes into the node.
size_t read_own(const Sexpr& text, Expr::Node& node) {
  switch (node.kind) {
    case ExprKind::Constant: node.value = text.at(1).number(); return 2;
    case ExprKind::Size: node.index = index_of(text.at(1)); return 2;
    case ExprKind::Read:
      node.input = static_cast<int>(text.at(1).integer());
      for (size_t i = 2; i < text.size(); i++) node.subscripts.push_back(index_of(text.at(i)));
      return text.size();
    case ExprKind::Call: node.function = function_of(text.at(1).word); return 2;
    case ExprKind::Convert: node.type = static_cast<ElementType>(text.at(1).integer()); return 2;
    case ExprKind::Select: node.cond = condition_of(text.at(1)); return 2;
    case ExprKind::Reduce:
      node.reduce = reduction_of(text.at(1).word);
      node.binders = binders_of(text.at(2));
      return 3;
    case ExprKind::Add:
    case ExprKind::Subtract:
    case ExprKind::Multiply:
    case ExprKind::Divide:
    case ExprKind::Maximum:
    case ExprKind::Minimum:
    case ExprKind::Less:
    case ExprKind::Equal:
    case ExprKind::Choose: return 1;
  }
  return 1;
}

}  // namespace

Index index_of(const Sexpr& text) {
  if (is_number(text)) return text.integer();
  if (!text.is_list || text.head() != "+") return atom_of(text);
  Index sum;
  for (size_t i = 1; i < text.size(); i++) {
    const Sexpr& term = text.at(i);
    if (!term.is_list || term.head() != "*") {
      sum += index_of(term);
      continue;
    }
    Index product = term.at(1).integer();
    for (size_t k = 2; k < term.size(); k++) product = product * atom_of(term.at(k));
    sum += product;
  }
  return sum;
}

Cond condition_of(const Sexpr& text) {
  if (!text.is_list && text.word == "true") return {};
  if (!text.is_list && text.word == "false") return Cond::never();
  const std::string& head = text.head();
  if (head == ">=") return at_least(index_of(text.at(1)), Index(0));
  if (head != "and" && head != "or") throw Fault("'" + head + "' is no condition");
  Cond all = head == "and" ? Cond() : Cond::never();
  for (size_t i = 1; i < text.size(); i++)
    all = head == "and" ? all && condition_of(text.at(i)) : all || condition_of(text.at(i));
  return all;
}

Expr expression_of(const Sexpr& text) {
  const auto kind = expression_kinds().find(text.head());
  if (kind == expression_kinds().end()) throw Fault("'" + text.head() + "' is no expression");
  Expr::Node node{.kind = kind->second};
  for (size_t i = read_own(text, node); i < text.size(); i++) node.args.push_back(expression_of(text.at(i)));
  return Expr::make(std::move(node));
}

std::vector<Cond> parts_of(const Cond& condition) {
  if (condition.is_true()) return {};
  if (condition.kind() == CondKind::And) return condition.parts();
  return {condition};
}

}  // namespace gopt::checker
