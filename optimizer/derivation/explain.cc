#include "derivation/explain.h"

#include <algorithm>

namespace gopt::optimizer {

Value Explainer::term(EqualityId id) {
  if (const auto known = terms_.find(id); known != terms_.end()) return known->second;
  std::vector<Value> arguments;
  for (EqualityId input : graph_.node(id).inputs) arguments.push_back(input == kNoValue ? Value{} : term(input));
  return terms_.emplace(id, apply(id, arguments)).first->second;
}

Value Explainer::apply(EqualityId id, const std::vector<Value>& arguments) {
  const EqualityNode& node = graph_.node(id);
  if (node.op == OpKind::Input) return inputs_.at(graph_.input_name(id));
  if (node.op == OpKind::Constant) return builder_.constant(graph_.tensor(id));
  const auto made = builder_.add(node.op, arguments, graph_.attributes(id), static_cast<int>(node.output_count));
  GOPT_CHECK(made.ok(), "a term of the e-graph is not defined: " + made.error().message);
  return {*made, static_cast<int>(node.output)};
}

bool Explainer::extend(Chain& chain, const Chain& more) const {
  chain.moves.insert(chain.moves.end(), more.moves.begin(), more.moves.end());
  return chain.moves.size() <= max_moves_;
}

Chain Explainer::turned(const Chain& chain) {
  Chain back{chain.end(), {}};
  for (size_t i = chain.moves.size(); i-- > 0;) {
    const Value& before = i == 0 ? chain.start : chain.moves[i - 1].after;
    back.moves.push_back({before, chain.moves[i].rule, !chain.moves[i].is_reversed});
  }
  return back;
}

std::optional<Chain> Explainer::explain(EqualityId from, EqualityId to) {
  if (from == to) return Chain{term(from), {}};
  if (const auto known = known_.find({from, to}); known != known_.end()) return known->second;
  const auto paths = graph_.paths_between(from, to);
  const auto &up = paths.up, &down = paths.down;
  const auto found = [&]() -> std::optional<Chain> {
    Chain chain{term(from), {}};
    for (EqualityId id : up) {
      const auto part = explain_link(id);
      if (!part || !extend(chain, *part)) return std::nullopt;
    }
    for (size_t i = down.size(); i-- > 0;) {
      const auto part = explain_link(down[i]);
      if (!part || !extend(chain, turned(*part))) return std::nullopt;
    }
    return chain;
  }();
  return known_[{from, to}] = found;
}

// From an id to the next on the way to the root of its tree.
std::optional<Chain> Explainer::explain_link(EqualityId from) {
  const EqualityGraph::Link& link = graph_.link(from);
  const EqualityId first = link.is_forward ? from : link.to, second = link.is_forward ? link.to : from;
  const auto found = [&]() -> std::optional<Chain> {
    if (link.reason.application == kCongruence) return explain_congruence(first, second, link.reason.order);
    if (link.reason.application == kCopy) return explain_copy(first, second);
    if (link.reason.application == kArithmetic) return explain_arithmetic(first, second, link.reason.numbers);
    const PatternApplication& a = applications_[link.reason.application];
    const Pattern& pattern = a.pattern->pattern();
    auto chain = align(a, pattern.left, a.left, pattern.left.outputs[link.reason.output], first);
    const auto rest = align(a, pattern.right, a.right, pattern.right.outputs[link.reason.output], second);
    if (!chain || !rest) return std::nullopt;
    const Chain back = turned(*rest);
    chain->moves.push_back({back.start, a.rule, a.is_reversed});
    if (!extend(*chain, back)) return std::nullopt;
    return chain;
  }();
  if (!found || link.is_forward) return found;
  return turned(*found);
}

std::optional<Chain> Explainer::explain_copy(EqualityId copy, EqualityId original) {
  const EqualityId argument = graph_.node(copy).inputs.front();
  Chain chain{term(copy), {{term(argument), kCopyMove, false}}};
  const auto rest = explain(argument, original);
  if (!rest || !extend(chain, *rest)) return std::nullopt;
  return chain;
}

std::optional<Chain> Explainer::explain_arithmetic(EqualityId from, EqualityId to,
                                                   const std::vector<EqualityId>& numbers) {
  std::vector<Chain> arguments;
  for (size_t i = 0; i < numbers.size(); i++) {
    auto chain = explain(graph_.node(from).inputs[i], numbers[i]);
    if (!chain) return std::nullopt;
    arguments.push_back(*std::move(chain));
  }
  auto chain = lift(from, arguments);
  if (chain) chain->moves.push_back({term(to), kArithmeticMove, false});
  return chain;
}

std::optional<Chain> Explainer::explain_congruence(EqualityId from, EqualityId to, const std::vector<uint8_t>& order) {
  const auto &first = graph_.node(from).inputs, &second = graph_.node(to).inputs;
  std::vector<Chain> arguments;
  for (size_t i = 0; i < first.size(); i++) {
    if (first[i] == kNoValue) {
      arguments.push_back({});
      continue;
    }
    auto chain = explain(first[i], second[order[i]]);
    if (!chain) return std::nullopt;
    arguments.push_back(*std::move(chain));
  }
  return lift(from, arguments);
}

std::optional<Chain> Explainer::align(const PatternApplication& application, const PatternSide& side,
                                      const std::vector<MatchedNode>& nodes, const PatternValue& value, EqualityId id) {
  if (value.variable >= 0) return explain(id, application.variables[value.variable]);
  const MatchedNode& matched = nodes[value.node];
  const EqualityId own = matched.outputs[value.output];
  auto chain = explain(id, own);
  if (!chain || graph_.node(own).inputs.empty()) return chain;
  std::vector<Chain> arguments(matched.order.size());
  for (size_t i = 0; i < matched.order.size(); i++) {
    const PatternValue& input = side.nodes[value.node].inputs[i];
    if (input.node < 0 && input.variable < 0) continue;
    auto argument = align(application, side, nodes, input, graph_.node(own).inputs[matched.order[i]]);
    if (!argument) return std::nullopt;
    arguments[matched.order[i]] = *std::move(argument);
  }
  const auto lifted = lift(own, arguments);
  if (!lifted || !extend(*chain, *lifted)) return std::nullopt;
  return chain;
}

std::optional<Chain> Explainer::lift(EqualityId id, const std::vector<Chain>& arguments) {
  std::vector<Value> now;
  for (const Chain& argument : arguments) now.push_back(argument.start);
  Chain chain{apply(id, now), {}};
  std::vector<bool> done(arguments.size());
  for (size_t i = 0; i < arguments.size(); i++) {
    if (done[i]) continue;
    // Arguments that are one value and become one value do so together.
    std::vector<size_t> together;
    for (size_t j = i; j < arguments.size(); j++)
      if (!done[j] && arguments[j].start == arguments[i].start && arguments[j].end() == arguments[i].end())
        together.push_back(j);
    for (const Move& move : arguments[i].moves) {
      for (size_t j : together) now[j] = move.after;
      chain.moves.push_back({apply(id, now), move.rule, move.is_reversed});
    }
    for (size_t j : together) done[j] = true;
    if (chain.moves.size() > max_moves_) return std::nullopt;
  }
  return chain;
}

}  // namespace gopt::optimizer
