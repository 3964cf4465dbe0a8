#include "search/saturation.h"

#include <algorithm>
#include <set>

#include "matching/cancelling_constants.h"
#include "matching/compensation.h"

namespace gopt::optimizer {
namespace {

Facts facts_of(const Graph& graph) {
  Facts facts;
  for (AtomId symbol : input_symbols(graph)) facts.add_non_negative(Index::from_atom(symbol));
  return facts;
}

int rank_of(const TensorType& type) { return type.shape ? static_cast<int>(type.shape->size()) : -1; }

class Saturator {
 public:
  Saturator(GraphEqualities& graph, const PatternSet& patterns, EqualityPatterns& compiled,
            const SaturationLimits& limits, const std::function<bool(const Binding&)>& wanted,
            const std::function<bool()>& should_stop, SaturationCounts& counts)
      : graph_(graph),
        equalities_(graph.equalities),
        patterns_(patterns),
        compiled_(compiled),
        limits_(limits),
        wanted_(wanted),
        should_stop_(should_stop),
        counts_(counts) {
    builder_.set_broadcast_unknown(true);
    builder_.adopt(graph.graph);
    const std::vector<bool> compensated = compensated_nodes(graph.graph);
    for (size_t i = 0; i < compensated.size(); i++)
      if (compensated[i])
        for (int k = 0; k < static_cast<int>(graph.graph.nodes()[i]->outputs.size()); k++)
          compensated_.push_back(graph.ids.at({graph.graph.nodes()[i], k}));
  }

  void run() {
    equalities_.restore_congruence();
    for (int iteration = 0; iteration < limits_.iterations; iteration++) {
      is_resting_ = false;
      auto found = matches_of(iteration);
      if (!found) return;
      const size_t nodes = equalities_.node_count(), classes = equalities_.class_count();
      for (auto& [pattern, matches] : *found)
        for (const EqualityMatch& match : matches) {
          if (equalities_.node_count() > limits_.nodes) break;
          apply(*pattern, match);
        }
      equalities_.restore_congruence();
      if (equalities_.node_count() > limits_.nodes || should_stop_()) return;
      if (nodes == equalities_.node_count() && classes == equalities_.class_count() && !is_resting_) {
        graph_.is_saturated = true;
        return;
      }
    }
  }

 private:
  using Matches = std::vector<std::pair<const EqualityPattern*, std::vector<EqualityMatch>>>;

  // Of each pattern, those that were not applied yet. Nothing where it is to stop.
  std::optional<Matches> matches_of(int iteration) {
    compensated_classes_.clear();
    for (EqualityId id : compensated_) compensated_classes_.insert(equalities_.find(id));
    Matches found;
    for (const Pattern* pattern : patterns_.patterns_for(operators())) {
      if (should_stop_()) return std::nullopt;
      PatternSchedule& schedule = schedules_.try_emplace(pattern, compiled_.of(*pattern)).first->second;
      if (schedule.pattern().is_joined() && iteration >= limits_.joined_iterations) continue;
      std::vector<EqualityMatch> matches;
      if (schedule.is_resting(iteration))
        is_resting_ = true;
      else
        matches = schedule.new_matches(equalities_, iteration, limits_.matches, false);
      is_resting_ = is_resting_ || schedule.is_resting(iteration + 1);
      std::erase_if(matches, [&](const EqualityMatch& match) { return !is_allowed(*pattern, match); });
      if (!matches.empty()) found.emplace_back(&schedule.pattern(), std::move(matches));
    }
    return found;
  }

  RankedOperators operators() const {
    RankedOperators there;
    std::set<std::pair<OpKind, int>> ranked;
    for (EqualityId id = 0; id < equalities_.node_count(); id++) {
      const EqualityNode& node = equalities_.node(id);
      if (node.is_duplicate || node.output != 0) continue;
      there.operators.insert(node.op);
      ranked.emplace(node.op, rank_of(equalities_.type(id)));
    }
    there.has = [ranked = std::move(ranked)](OpKind op, int rank) { return ranked.contains({op, rank}); };
    return there;
  }

  bool is_allowed(const Pattern& pattern, const EqualityMatch& match) const {
    // What depends on weights alone is computed once, when code is made: rewriting it gains nothing.
    const auto is_free = [&](EqualityId id) { return equalities_.class_of(id).is_weight; };
    if (std::all_of(match.roots.begin(), match.roots.end(), is_free)) return false;
    if (pattern.keeps_rounding && has_aliases(match)) return false;
    if (pattern.keeps_compensation && !compensated_classes_.empty() && is_compensated(match)) return false;
    if (!wanted_) return true;
    const auto binding = binding_of(pattern, match);
    return !binding || wanted_(*binding);
  }

  // Whether one floating-point value stands for two of the rule's variables.
  bool has_aliases(const EqualityMatch& match) const {
    std::set<EqualityId> values;
    for (const MatchedNode& node : match.nodes)
      for (EqualityId output : node.outputs) values.insert(equalities_.find(output));
    return std::any_of(match.variables.begin(), match.variables.end(), [&](EqualityId variable) {
      return is_floating(equalities_.type(variable).element) && !values.insert(equalities_.find(variable)).second;
    });
  }

  bool is_compensated(const EqualityMatch& match) const {
    return std::any_of(match.nodes.begin(), match.nodes.end(), [&](const MatchedNode& node) {
      return std::any_of(node.outputs.begin(), node.outputs.end(),
                         [&](EqualityId id) { return compensated_classes_.contains(equalities_.find(id)); });
    });
  }

  // The match as one in the graph; nothing where a node is none of the graph's.
  std::optional<Binding> binding_of(const Pattern& pattern, const EqualityMatch& match) const {
    Binding binding;
    binding.pattern = &pattern;
    for (const MatchedNode& node : match.nodes) {
      if (!graph_.is_original(node.any())) return std::nullopt;
      binding.nodes.push_back(graph_.graph.id_of(graph_.originals[node.any()].node));
    }
    return binding;
  }

  void apply(const EqualityPattern& compiled, const EqualityMatch& match) {
    const Pattern& pattern = compiled.pattern();
    counts_.tried++;
    RuleTrials& trials = counts_.trials[pattern.rule_name];
    trials.rule = pattern.rule_name;
    trials.tried++;
    const size_t first_new = equalities_.node_count();
    auto made = instantiate(equalities_, pattern, match, false);
    if (!made || !fits(pattern, match, *made)) return void(trials.did_not_fit++);
    const auto number = static_cast<uint32_t>(graph_.applications.size());
    bool is_new = false;
    for (uint32_t output = 0; output < match.roots.size(); output++)
      is_new = equalities_.merge(match.roots[output], made->outputs[output], {number, output, {}, {}}) || is_new;
    if (!is_new) return void(trials.known++);
    trials.kept++;
    for (size_t id = first_new; id < equalities_.node_count(); id++)
      graph_.maker.emplace(static_cast<EqualityId>(id), number);
    graph_.applications.push_back({&compiled, number, false, match.nodes, std::move(made->nodes), match.variables});
    graph_.joins.push_back({&pattern, match.roots, std::move(made->outputs)});
  }

  bool fits(const Pattern& pattern, const EqualityMatch& match, const EqualityInstance& made) {
    for (size_t output = 0; output < match.roots.size(); output++)
      if (!equalities_.can_merge(match.roots[output], made.outputs[output])) return false;
    if (!pattern.keeps_constants) return true;
    return std::none_of(made.nodes.begin(), made.nodes.end(), [&](const MatchedNode& node) {
      return !node.outputs.empty() && equalities_.class_of(node.any()).is_weight &&
             loses_constants(*term(node.any()).node);
    });
  }

  // The value as it was made, of what depends on weights alone.
  Value term(EqualityId id) {
    if (graph_.is_original(id)) return graph_.originals[id];
    if (const auto known = terms_.find(id); known != terms_.end()) return known->second;
    const EqualityNode& node = equalities_.node(id);
    Value value;
    if (node.op == OpKind::Constant) {
      value = builder_.constant(equalities_.tensor(id));
    } else {
      std::vector<Value> inputs;
      for (EqualityId input : node.inputs) inputs.push_back(input == kNoValue ? Value{} : term(input));
      const auto made =
          builder_.add(node.op, std::move(inputs), equalities_.attributes(id), static_cast<int>(node.output_count));
      GOPT_CHECK(made.ok(), "a term of the e-graph is not defined: " + made.error().message);
      value = {*made, static_cast<int>(node.output)};
    }
    return terms_[id] = value;
  }

  GraphEqualities& graph_;
  EqualityGraph& equalities_;
  const PatternSet& patterns_;
  EqualityPatterns& compiled_;
  const SaturationLimits& limits_;
  const std::function<bool(const Binding&)>& wanted_;
  const std::function<bool()>& should_stop_;
  SaturationCounts& counts_;
  std::unordered_map<const Pattern*, PatternSchedule> schedules_;
  std::vector<EqualityId> compensated_;
  std::set<EqualityId> compensated_classes_;
  GraphBuilder builder_;
  std::unordered_map<EqualityId, Value> terms_;
  bool is_resting_ = false;
};

}  // namespace

const EqualityPattern& EqualityPatterns::of(const Pattern& pattern) {
  const auto known = patterns_.find(&pattern);
  return known != patterns_.end() ? known->second : patterns_.emplace(&pattern, EqualityPattern(pattern)).first->second;
}

GraphEqualities::GraphEqualities(const Graph& given)
    : graph(given), facts(facts_of(given)), equalities(facts, ModelTerms{input_symbols(given)}) {
  const auto keep = [&](const Value& value, EqualityId id) {
    ids[value] = id;
    if (originals.size() <= id) originals.resize(id + 1);
    if (!originals[id]) originals[id] = value;
  };
  for (const NodePtr& node : graph.nodes()) {
    if (node->is(OpKind::Input)) {
      keep({node, 0}, equalities.add_input(node->name, node->outputs.front(), false, false));
      continue;
    }
    if (node->is(OpKind::Constant)) {
      keep({node, 0}, equalities.add_constant(node->tensor));
      continue;
    }
    std::vector<EqualityId> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? ids.at(input) : kNoValue);
    const auto count = static_cast<uint32_t>(node->outputs.size());
    std::optional<std::vector<EqualityId>> outputs;
    if (!node->is(OpKind::Opaque) && equalities.types_of(node->op, inputs, node->attributes, count) == node->outputs)
      outputs = equalities.add(node->op, inputs, node->attributes, count, false);
    if (!outputs) outputs = equalities.add_opaque(inputs, node->outputs);
    for (uint32_t k = 0; k < count; k++) keep({node, static_cast<int>(k)}, (*outputs)[k]);
  }
}

void saturate(GraphEqualities& graph, const PatternSet& patterns, EqualityPatterns& compiled,
              const SaturationLimits& limits, const std::function<bool(const Binding&)>& wanted,
              const std::function<bool()>& should_stop, SaturationCounts& counts) {
  Saturator(graph, patterns, compiled, limits, wanted, should_stop, counts).run();
}

}  // namespace gopt::optimizer
