#include "equality/justification.h"

namespace gopt::optimizer {

void Justification::add(EqualityId a, EqualityId b) {
  open_.emplace_back(a, b);
  while (!open_.empty()) {
    const auto [from, to] = open_.back();
    open_.pop_back();
    if (from == to) continue;
    const auto [up, down] = graph_.paths_between(from, to);
    for (EqualityId id : up) follow(id);
    for (EqualityId id : down) follow(id);
  }
}

void Justification::follow(EqualityId from) {
  if (!followed_.insert(from).second) return;
  const EqualityGraph::Link& link = graph_.link(from);
  const uint32_t reason = link.reason.application;
  if (reason == kCopy || reason == kArithmetic) return;
  if (reason != kCongruence) {
    if (found_.insert(reason).second) take(applications_[reason]);
    return;
  }
  const EqualityId first = link.is_forward ? from : link.to, second = link.is_forward ? link.to : from;
  const auto &inputs = graph_.node(first).inputs, &others = graph_.node(second).inputs;
  for (size_t i = 0; i < inputs.size(); i++)
    if (inputs[i] != kNoValue) open_.emplace_back(inputs[i], others[link.reason.order[i]]);
}

void Justification::take(const PatternApplication& application) {
  const Pattern& pattern = application.pattern->pattern();
  align(pattern.left, application.left, application);
  align(pattern.right, application.right, application);
}

// A node of an instance is as it was made, whose arguments need not be those that the instance has, but equal ones.
void Justification::align(const PatternSide& side, const std::vector<MatchedNode>& nodes,
                          const PatternApplication& application) {
  for (size_t i = 0; i < nodes.size(); i++) {
    const EqualityId own = nodes[i].outputs.empty() ? kNoValue : nodes[i].any();
    if (own == kNoValue) continue;
    for (size_t slot = 0; slot < side.nodes[i].inputs.size(); slot++) {
      const PatternValue& value = side.nodes[i].inputs[slot];
      const EqualityId wanted = value.variable >= 0 ? application.variables[value.variable]
                                : value.node >= 0   ? nodes[value.node].outputs[value.output]
                                                    : kNoValue;
      const EqualityId actual = graph_.node(own).inputs[nodes[i].order[slot]];
      if (wanted != kNoValue && actual != kNoValue) open_.emplace_back(actual, wanted);
    }
  }
}

}  // namespace gopt::optimizer
