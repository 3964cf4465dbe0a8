#include "search/trail.h"

#include <algorithm>

namespace gopt::optimizer {
namespace {

std::vector<uint32_t> places_of(const Binding& binding) {
  std::vector<uint32_t> places;
  for (const NodeId id : binding.nodes) places.push_back(static_cast<uint32_t>(id));
  return places;
}

// Of a rule of that name, in one order whatever else the set has.
std::vector<Binding> bindings_of(const PatternSet& patterns, const MatchIndex& index, const std::string& rule) {
  std::vector<Binding> all;
  for (const Pattern* pattern : patterns.patterns_for(index)) {
    if (pattern->rule_name != rule) continue;
    std::ranges::move(find_bindings(index, *pattern), std::back_inserter(all));
  }
  return all;
}

// Bindings of the rules that a step names, each rule looked for once.
class BindingsOfStep {
 public:
  BindingsOfStep(const PatternSet& patterns, const Graph& graph) : patterns_(patterns), index_(graph) {}

  std::vector<const Binding*> at(const std::string& rule, const std::vector<uint32_t>& nodes) {
    const auto [own, is_new] = of_rule_.try_emplace(rule);
    if (is_new) own->second = bindings_of(patterns_, index_, rule);
    std::vector<const Binding*> found;
    for (const Binding& binding : own->second)
      if (places_of(binding) == nodes) found.push_back(&binding);
    return found;
  }

 private:
  const PatternSet& patterns_;
  MatchIndex index_;
  std::map<std::string, std::vector<Binding>> of_rule_;
};

// Nothing where it is not found again.
std::optional<std::vector<TrailMatch>> trail_step(const PatternSet& patterns, const Graph& graph,
                                                  const std::vector<const Binding*>& bindings) {
  BindingsOfStep known(patterns, graph);
  std::vector<TrailMatch> step;
  for (const Binding* binding : bindings) {
    TrailMatch match{binding->pattern->rule_name, places_of(*binding)};
    const std::vector<const Binding*> same = known.at(match.rule, match.nodes);
    const auto own = std::ranges::find_if(same, [&](const Binding* other) {
      return other->pattern == binding->pattern && other->variables == binding->variables;
    });
    if (own == same.end()) return std::nullopt;
    match.choice = static_cast<int>(own - same.begin());
    step.push_back(std::move(match));
  }
  return step;
}

// Nothing where one is not there.
std::optional<std::vector<Binding>> bindings_along(const PatternSet& patterns, const Graph& graph,
                                                   const std::vector<TrailMatch>& step) {
  BindingsOfStep known(patterns, graph);
  std::vector<Binding> bindings;
  for (const TrailMatch& match : step) {
    const std::vector<const Binding*> same = known.at(match.rule, match.nodes);
    if (match.choice < 0 || static_cast<size_t>(match.choice) >= same.size()) return std::nullopt;
    bindings.push_back(*same[static_cast<size_t>(match.choice)]);
  }
  return bindings;
}

void append_applied(const Graph& before, double before_ms, Rewritten rewritten, double after_ms, Found& found) {
  RewriteStep step{before, rewritten.graph, std::move(rewritten.became), {}};
  for (size_t i = 0; i < rewritten.applied.size(); i++) {
    const Binding& binding = *rewritten.applied[i];
    AppliedRule applied{binding.pattern->rule_name, binding.pattern->rule_hash, matched_names(before, binding)};
    applied.step = static_cast<int>(found.rewrites.size());
    applied.cost_before_ms = before_ms;
    applied.cost_after_ms = after_ms;
    found.applied.push_back(std::move(applied));
    step.uses.push_back({matched_nodes(before, binding), std::move(rewritten.made[i])});
  }
  found.rewrites.push_back(std::move(step));
}

}  // namespace

void append_rewrite(const PatternSet& patterns, const Graph& before, double before_ms,
                    const std::vector<Binding>& bindings, double after_ms, Found& found) {
  auto rewritten = apply_bindings(before, bindings);
  GOPT_CHECK(rewritten.ok(), "a rewrite that worked before");
  if (found.trail) {
    auto step = trail_step(patterns, before, rewritten->applied);
    if (found.trail->windows.empty()) found.trail->windows.emplace_back();
    if (step)
      found.trail->windows.front().steps.push_back({*std::move(step), before_ms, after_ms});
    else
      found.trail.reset();
  }
  append_applied(before, before_ms, *std::move(rewritten), after_ms, found);
}

Found follow_steps(const Graph& graph, const PatternSet& patterns, const TrailWindow& window) {
  Found found;
  found.graph = graph;
  found.stop_reason = StopReason::Followed;
  if (!window.steps.empty()) found.trail->windows.push_back(window);
  for (const TrailStep& step : window.steps) {
    const auto bindings = bindings_along(patterns, found.graph, step.matches);
    auto rewritten = bindings ? apply_bindings(found.graph, *bindings) : Error{"it is not there"};
    if (!rewritten.ok() || rewritten->applied.size() != step.matches.size()) {
      found.trail.reset();
      return found;
    }
    const Graph before = found.graph;
    found.graph = rewritten->graph;
    append_applied(before, step.before_ms, *std::move(rewritten), step.after_ms, found);
    found.cost.time_ms = step.after_ms;
    found.steps++;
  }
  return found;
}

}  // namespace gopt::optimizer
