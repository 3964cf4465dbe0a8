#include "proof_task.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "equality/gathered_indices.h"

namespace gopt::verifier {
namespace {

// Names made by the proof (of positions and of binders) are no plain names, so that no symbol of a rule is one of them.
bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

// Samples evaluate whole tensors, which takes minutes where numbers in the rule make one huge at any sizes. Returns
// what to say then, or nothing.
std::string too_large_for_samples(const RewriteRule& rule) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  Environment least;
  for (AtomId id : rule_symbols(rule)) least[id] = 1;
  for (const Graph* side : {&rule.left, &rule.right}) {
    for (const NodePtr& node : side->nodes()) {
      for (const TensorType& type : node->outputs) {
        int64_t count = 1;
        for (const Index& extent : *type.shape) {
          const auto value = evaluate(extent, least);
          if (!value || *value <= 0) break;
          if (*value > kMostElements / count)
            return (node->is(OpKind::Input) ? "the variable " + quoted(node->name)
                                            : "what " + op_info(node->op).name + " gives") +
                   " has more than the " + std::to_string(kMostElements) +
                   " elements that samples evaluate; with symbols for its sizes the rule says more";
          count *= *value;
        }
      }
    }
  }
  return "";
}

// An element is written out with all that it is made of, what is used twice twice: x + x, and that of itself, and so
// on, becomes too long for anybody. Returns what to say then, or nothing.
std::string too_long_for_a_proof(const RewriteRule& rule) {
  constexpr double kMostNodes = 1 << 14;
  for (const Graph* side : {&rule.left, &rule.right}) {
    std::map<const Node*, double> nodes;
    for (const NodePtr& node : side->nodes()) {
      double& own = nodes[node.get()];
      own = 1;
      for (const Value& input : node->inputs)
        if (input) own += nodes[input.node.get()];
      if (own > kMostNodes)
        return "an element of what " + std::string(op_info(node->op).name) + " gives is made of more than " +
               std::to_string(static_cast<int64_t>(kMostNodes)) +
               " others, since values are used by several nodes that come together again";
    }
  }
  return "";
}

}  // namespace

Verification unknown_verdict(const std::string& reason) {
  Verification v;
  v.reason = reason;
  return v;
}
Verification refuted_verdict(const std::string& reason, const std::optional<Counterexample>& counterexample) {
  Verification v;
  v.verdict = Verdict::Refuted;
  v.reason = reason;
  v.counterexample = counterexample;
  return v;
}

std::optional<Verification> objection_to(const RewriteRule& rule) {
  if (Status status = check_rule(rule); !status) return unknown_verdict(status.error().message);
  for (AtomId id : rule_symbols(rule))
    if (!is_plain_name(atom(id).name))
      return unknown_verdict("the symbol " + quoted(atom(id).name) + " is no plain name");
  if (const std::string why = too_large_for_samples(rule); !why.empty()) return unknown_verdict(why);
  if (const std::string why = too_long_for_a_proof(rule); !why.empty()) return unknown_verdict(why);
  if (const std::string indices = gathered_on_right_alone(rule); !indices.empty())
    return unknown_verdict("the right side may gather at elements of " + quoted(indices) +
                           " at which the left side does not, and which may lie outside");
  return std::nullopt;
}

bool computes_with_integers(const Graph& graph) {
  for (const NodePtr& node : graph.nodes()) {
    const OpInfo& info = op_info(node->op);
    if (info.has(kDataMovement) || info.has(kShapeOnly) || node->is(OpKind::Identity)) continue;
    for (const Value& v : node->inputs)
      if (v && is_integer(v.type().element)) return true;
  }
  return false;
}

Cond ProofTask::context(const Cond& condition) const {
  Cond all = variable_domain(rule) && condition;
  for (const Requirement& r : left.requirements) all = all && r.cond;
  return all;
}

Cond ProofTask::interior() const {
  Cond all;
  for (const RuleVariable& v : rule.variables)
    for (const Index& extent : *v.type.shape)
      if (!extent.is_constant()) all = all && at_least(extent, Index(1));
  return all;
}

Cond ProofTask::some_output_has_elements() const {
  Cond any = Cond::never();
  for (const TensorExpr& output : left.outputs) {
    Cond all;
    for (const Index& extent : output.shape) all = all && at_least(extent, Index(1));
    any = any || all;
  }
  return any;
}

std::vector<std::pair<std::string, Cond>> ProofTask::requirements() const {
  std::vector<std::pair<std::string, Cond>> all;
  for (const Requirement& r : right.requirements) all.emplace_back(r.what, r.cond);
  for (size_t o = 0; o < left.outputs.size(); o++)
    for (size_t axis = 0; axis < left.outputs[o].shape.size(); axis++)
      all.emplace_back("shapes agree", equal(left.outputs[o].shape[axis], right.outputs[o].shape[axis]));
  return all;
}

}  // namespace gopt::verifier
