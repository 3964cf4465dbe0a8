#include "derivation/goal.h"

#include "matching/unify.h"

namespace gopt::optimizer {
namespace {

AttributeValue substituted(AttributeValue value, const Substitution& symbols) {
  if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, symbols);
  if (auto* list = std::get_if<std::vector<Index>>(&value))
    for (Index& index : *list) index = substitute(index, symbols);
  return value;
}

Result<Graph> substituted(const Graph& side, const std::vector<RuleVariable>& variables, const Substitution& symbols) {
  GraphBuilder builder;
  std::map<Value, Value> made;
  for (size_t i = 0; i < variables.size(); i++)
    made[side.inputs()[i]] = builder.input(variables[i].name, variables[i].type);
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant)) {
      made[{node, 0}] = builder.constant(node->tensor, node->name);
      continue;
    }
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? made.at(input) : Value{});
    Attributes attributes;
    for (const auto& [name, value] : node->attributes) attributes.emplace(name, substituted(value, symbols));
    GOPT_ASSIGN_OR_RETURN(const NodePtr copy,
                          builder.add(node->op, std::move(inputs), std::move(attributes),
                                      static_cast<int>(node->outputs.size()), node->name, node->output_names));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) made[{node, k}] = {copy, k};
  }
  for (const GraphOutput& output : side.outputs()) builder.output(output.name, made.at(output.value));
  return builder.build();
}

Result<RewriteRule> substituted(RewriteRule rule, const Substitution& symbols) {
  for (RuleVariable& variable : rule.variables)
    for (Index& extent : *variable.type.shape) extent = substitute(extent, symbols);
  rule.condition = substitute(rule.condition, symbols);
  GOPT_ASSIGN_OR_RETURN(rule.left, substituted(rule.left, rule.variables, symbols));
  GOPT_ASSIGN_OR_RETURN(rule.right, substituted(rule.right, rule.variables, symbols));
  return rule;
}

void add_facts_of(const Graph& side, Facts& facts) {
  for (const NodePtr& node : side.nodes()) {
    for (const TensorType& type : node->outputs)
      for (const Index& extent : *type.shape) facts.add_non_negative(extent);
    if (node->is(OpKind::Input) || node->is(OpKind::Constant)) continue;
    std::vector<TensorType> types;
    for (const Value& input : node->inputs) types.push_back(input ? input.type() : TensorType{});
    const auto inferred = infer_types(node->op, types, node->attributes, static_cast<int>(node->outputs.size()));
    if (!inferred.ok()) continue;
    for (const Requirement& requirement : inferred->requirements) facts.add(requirement.cond);
  }
}

Facts facts_of(const RewriteRule& rule) {
  Facts facts;
  for (const RuleVariable& variable : rule.variables) {
    std::set<AtomId> symbols;
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
    for (AtomId id : symbols) facts.add_non_negative(Index::from_atom(id));
  }
  facts.add(rule.condition);
  add_facts_of(rule.left, facts);
  add_facts_of(rule.right, facts);
  for (size_t output = 0; output < rule.left.outputs().size(); output++) {
    const Shape &left = *rule.left.outputs()[output].value.type().shape,
                &right = *rule.right.outputs()[output].value.type().shape;
    for (size_t axis = 0; axis < left.size(); axis++) facts.add(equal(left[axis], right[axis]));
  }
  return facts;
}

bool is_never_zero(const Index& index, const Facts& facts) {
  return index.is_constant() || facts.is_non_negative(index - Index(1)) || facts.is_non_negative(Index(-1) - index);
}

// A symbol that one of the equations gives in terms of others.
std::optional<std::pair<AtomId, Index>> solve_one(const Facts& facts) {
  for (const Index& zero : facts.zeros()) {
    std::set<AtomId> symbols;
    for (const Index::Term& term : zero.terms())
      for (AtomId id : term.atoms)
        if (atom(id).kind == AtomKind::Symbol) symbols.insert(id);
    for (AtomId id : symbols)
      if (const auto solved = solve_for_zero(zero, id); solved && is_never_zero(solved->factor, facts))
        return std::pair(id, solved->value);
  }
  return std::nullopt;
}

bool is_ranked(const Graph& side) {
  for (const NodePtr& node : side.nodes())
    for (const TensorType& type : node->outputs)
      if (!type.shape) return false;
  return true;
}

}  // namespace

Result<Goal> read_goal(const RewriteRule& rule) {
  if (rule.is_partial()) return Error{"a partial rule is no equation"};
  Goal goal;
  for (const RuleVariable& variable : rule.variables) goal.is_open.push_back(variable.has_prefix);
  GOPT_ASSIGN_OR_RETURN(goal.rule, with_prefix(rule, {}));
  constexpr int kMaxEquations = 50;
  for (int count = 0; count < kMaxEquations; count++) {
    if (!is_ranked(goal.rule.left) || !is_ranked(goal.rule.right)) return Error{"a value has no rank"};
    goal.facts = facts_of(goal.rule);
    const auto solved = solve_one(goal.facts);
    if (!solved) return goal;
    GOPT_ASSIGN_OR_RETURN(goal.rule, substituted(std::move(goal.rule), {{solved->first, solved->second}}));
  }
  return Error{"its condition holds too many equations"};
}

}  // namespace gopt::optimizer
