#include "candidate.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "trial_draws.h"

namespace gopt::generator {
namespace {

// By name, so that pairs share the tapes of the sizes drawn.
Substitution random_sizes(const Family& family, uint64_t draw) {
  Substitution sizes;
  for (const Size& size : family.sizes)
    sizes[size.symbol] = size.low + static_cast<int64_t>(mix(symbol_key(size.symbol, draw)) %
                                                         static_cast<uint64_t>(size.high - size.low + 1));
  return sizes;
}

const std::vector<std::string>& names_for(VariableKind kind) {
  static const std::vector<std::string> activations{"x", "y", "z", "t"}, weights{"w", "u", "v", "s"};
  return kind == VariableKind::Activation ? activations : weights;
}

// One side as a graph over the named variables.
class SideWriter {
 public:
  SideWriter(const TermStore& terms, const std::vector<std::pair<int, int>>& variables,
             const std::vector<RuleVariable>& names)
      : terms_(terms) {
    for (size_t i = 0; i < variables.size(); i++) inputs_[variables[i]] = builder_.input(names[i].name, names[i].type);
  }

  Result<Graph> write(const std::vector<TermId>& roots) {
    for (size_t i = 0; i < roots.size(); i++) {
      GOPT_ASSIGN_OR_RETURN(Value value, add(roots[i]));
      builder_.output(i == 0 ? "out" : fmt::format("out{}", i), std::move(value));
    }
    return builder_.build();
  }

 private:
  Result<Value> add(TermId id) {
    const Term& term = terms_.term(id);
    if (term.is_variable()) return inputs_.at({term.variable_class, term.variable_number});
    if (!term.is_application()) return constant(term.constant);
    std::vector<Value> inputs;
    for (TermId arg : term.args) {
      GOPT_ASSIGN_OR_RETURN(Value input, add(arg));
      inputs.push_back(std::move(input));
    }
    const AlphabetOp& op = terms_.op(term.op);
    if (!op.steps.empty()) return add_steps(op, inputs);
    GOPT_ASSIGN_OR_RETURN(NodePtr node, builder_.add(op.kind, std::move(inputs), op.attributes, op.outputs));
    return Value{std::move(node), term.output};
  }

  Result<Value> add_steps(const AlphabetOp& op, const std::vector<Value>& inputs) {
    std::vector<Value> made;
    for (const CompositeStep& step : op.steps) {
      std::vector<Value> args;
      for (const CompositeStep::Argument& arg : step.args)
        args.push_back(arg.from == CompositeStep::From::Input  ? inputs[arg.number]
                       : arg.from == CompositeStep::From::Step ? made[arg.number]
                                                               : constant(arg.constant));
      GOPT_ASSIGN_OR_RETURN(NodePtr node, builder_.add(step.kind, std::move(args), step.attributes, 1));
      made.push_back({std::move(node), 0});
    }
    return made.back();
  }
  Value constant(double value) { return builder_.constant(Tensor::scalar_f32(static_cast<float>(value))); }

  const TermStore& terms_;
  GraphBuilder builder_;
  std::map<std::pair<int, int>, Value> inputs_;
};

// Operators of both sides in order, for a name that says what the rule is about.
void collect_ops(const TermStore& terms, TermId id, std::set<std::pair<int, std::vector<TermId>>>& seen,
                 std::string& text) {
  const Term& term = terms.term(id);
  if (!term.is_application() || !seen.insert({term.op, term.args}).second) return;
  if (!text.empty()) text += '-';
  for (char c : terms.op(term.op).name()) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (TermId arg : term.args) collect_ops(terms, arg, seen, text);
}

std::string ops_of(const TermStore& terms, const std::vector<TermId>& roots) {
  std::set<std::pair<int, std::vector<TermId>>> seen;
  std::string text;
  for (TermId root : roots) collect_ops(terms, root, seen, text);
  return text.empty() ? "operand" : text;
}

bool have_equal_values(World& world, TermId left, TermId right) {
  const auto a = world.value(left, true), b = world.value(right, true);
  if (!a || !b) return !a && !b;
  Fingerprint own, other;
  world.add_to(own, *a);
  world.add_to(other, *b);
  return own == other;
}

}  // namespace

std::vector<std::pair<int, int>> variables_of(const TermStore& terms, const std::vector<TermId>& roots) {
  std::vector<std::pair<int, int>> all;
  for (TermId root : roots)
    for (const auto& name : terms.variables_of(root))
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  return all;
}

bool holds_in_fresh_worlds(const TermStore& terms, const TermPair& pair, bool with_prefix, uint64_t seed,
                           TapeCache& tapes, int trials) {
  int fitting = 0;
  for (uint64_t attempt = 0; attempt < 40 * static_cast<uint64_t>(trials) && fitting < trials; attempt++) {
    std::vector<int64_t> prefix;
    if (with_prefix) prefix.assign(1 + attempt % 2, 2);
    const uint64_t draw = mix(seed) + attempt;
    World world(terms, random_sizes(terms.family(), draw), prefix, mix(draw), tapes);
    const bool fits = std::all_of(pair.left.begin(), pair.left.end(), [&](TermId id) { return world.value(id, true); });
    if (!fits) continue;
    for (size_t i = 0; i < pair.left.size(); i++)
      if (!have_equal_values(world, pair.left[i], pair.right[i])) return false;
    fitting++;
  }
  return fitting == trials;
}

Result<RewriteRule> make_candidate(const TermStore& terms, const TermPair& pair, bool with_prefix,
                                   const std::string& origin) {
  RewriteRule rule;
  const auto variables = variables_of(terms, pair.left);
  std::map<VariableKind, size_t> used;
  for (const auto& [variable_class, number] : variables) {
    const VariableClass& description = terms.family().classes[static_cast<size_t>(variable_class)];
    const size_t at = used[description.kind]++;
    const auto& names = names_for(description.kind);
    rule.variables.push_back({at < names.size() ? names[at] : fmt::format("{}{}", names.front(), at), description.kind,
                              description.type, with_prefix && description.has_prefix});
  }
  GOPT_ASSIGN_OR_RETURN(rule.left, SideWriter(terms, variables, rule.variables).write(pair.left));
  GOPT_ASSIGN_OR_RETURN(rule.right, SideWriter(terms, variables, rule.variables).write(pair.right));
  rule.origin = origin;
  rule.name = ops_of(terms, pair.left) + "-to-" + ops_of(terms, pair.right);
  return rule;
}

void complete_name(RewriteRule& rule) { rule.name += "-" + rule.content_hash().substr(0, 6); }

}  // namespace gopt::generator
