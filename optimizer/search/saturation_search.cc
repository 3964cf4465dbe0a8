// Equality saturation: the graph's values are put in an e-graph that rules grow, and the cheapest graph is taken out of
// it. A plan's cost is no sum over nodes, so that none is solved for: from the graph as it was, what one application of
// a rule puts in place of what is there (with what that application itself rests on) is tried, in the order of a guess
// that is a sum, and kept where the graph's own cost says so, until nothing is. Then again from the graph that was
// found, whose e-graph has room for what did not fit in the first.
#include <fmt/core.h>

#include <algorithm>

#include "equality/justification.h"
#include "gopt/node_names.h"
#include "search/extraction.h"
#include "search/rewrite_cost.h"
#include "search/search_run.h"

namespace gopt::optimizer {
namespace {

// A choice by what it changes of another.
struct Alternative {
  std::vector<std::pair<EqualityId, EqualityId>> choices;  // class, application
  std::string rule;
  double guess_ms = 0;
};

// Every way to take something else out of the e-graph than `now` does: by each application of a rule, and for each
// class by each of its members.
class Alternatives {
 public:
  Alternatives(const GraphEqualities& graph, const Choice& now)
      : graph_(graph), equalities_(graph.equalities), now_(now) {}

  std::vector<Alternative> run() {
    for (size_t k = 0; k < graph_.joins.size(); k++) {
      Alternative move{{}, graph_.joins[k].pattern->rule_name};
      if (put(k, move, 0)) add(std::move(move));
    }
    for (EqualityId cls = 0; cls < now_.size(); cls++) {
      if (now_[cls] == kNoValue || equalities_.class_of(cls).is_weight) continue;
      for (EqualityId id : equalities_.class_of(cls).nodes)
        if (id != now_[cls]) add({{{cls, id}}, maker_of(id)});
    }
    return std::move(moves_);
  }

 private:
  static constexpr int kDeepest = 8;

  std::string maker_of(EqualityId id) const {
    const auto maker = graph_.maker.find(id);
    return maker == graph_.maker.end() ? std::string() : graph_.joins[maker->second].pattern->rule_name;
  }

  // What an application made in place of its roots. Roots that nothing uses now must first be put there by what made
  // them: a third sibling is joined with the product of the first two.
  bool put(size_t application, Alternative& move, int depth) {
    if (depth > kDeepest) return false;
    const Join& join = graph_.joins[application];
    for (EqualityId root : join.roots) {
      if (now_[equalities_.find(root)] != kNoValue) continue;
      const auto maker = graph_.maker.find(root);
      if (maker == graph_.maker.end() || maker->second == application || !put(maker->second, move, depth + 1))
        return false;
    }
    for (size_t k = 0; k < join.roots.size(); k++) set(move, join.roots[k], join.values[k]);
    for (const MatchedNode& node : graph_.applications[application].right)
      for (EqualityId id : node.outputs)
        if (id != kNoValue && now_[equalities_.find(id)] == kNoValue) set(move, id, id);
    return true;
  }

  void set(Alternative& move, EqualityId of, EqualityId to) const {
    move.choices.emplace_back(equalities_.find(of), to);
  }

  void add(Alternative move) {
    std::erase_if(move.choices, [&](const auto& choice) { return now_[choice.first] == choice.second; });
    if (!move.choices.empty() && known_.insert(move.choices).second) moves_.push_back(std::move(move));
  }

  const GraphEqualities& graph_;
  const EqualityGraph& equalities_;
  const Choice& now_;
  std::set<std::vector<std::pair<EqualityId, EqualityId>>> known_;
  std::vector<Alternative> moves_;
};

// What led from one graph to the other: the applications that their equality rests on.
class Account {
 public:
  Account(const GraphEqualities& graph, const Extracted& found) : graph_(graph), found_(found) {
    for (const auto& [value, id] : graph.ids)
      if (const auto now = found.values.find(graph.equalities.find(id)); now != found.values.end())
        step_.became[value] = now->second;
    for (const auto& [cls, value] : found.values) step_.became[value] = value;
    step_.before = graph.graph;
    step_.after = found.graph;
  }

  void tell(double before_ms, double after_ms, Found& all) && {
    const auto number = static_cast<int>(all.rewrites.size());
    for (uint32_t k : rests_on()) {
      const Pattern& pattern = *graph_.joins[k].pattern;
      AppliedRule applied{pattern.rule_name, pattern.rule_hash, {}};
      applied.step = number;
      applied.cost_before_ms = before_ms;
      applied.cost_after_ms = after_ms;
      RuleUse use;
      for (EqualityId id : matched_by(k)) add(graph_.originals[id].node, use.matched);
      for (EqualityId cls : made_by(k)) add(found_.values.at(cls).node, use.made);
      for (const NodePtr& node : use.matched) applied.matched_nodes.push_back(name_of_node(*node));
      all.applied.push_back(std::move(applied));
      step_.uses.push_back(std::move(use));
    }
    all.rewrites.push_back(std::move(step_));
  }

 private:
  static void add(const NodePtr& node, std::vector<NodePtr>& to) {
    if (!node->is(OpKind::Constant) && std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }

  std::set<uint32_t> rests_on() const {
    const EqualityGraph& equalities = graph_.equalities;
    Justification why(equalities, graph_.applications);
    for (const GraphOutput& output : graph_.graph.outputs()) {
      const EqualityId id = graph_.ids.at(output.value);
      why.add(id, found_.choice[equalities.find(id)]);
    }
    for (const auto& [cls, value] : found_.values)
      for (EqualityId input : equalities.node(found_.choice[cls]).inputs)
        if (input != kNoValue) why.add(input, found_.choice[equalities.find(input)]);
    return why.applications();
  }

  // Nodes of the graph before that it matched, or that what it matched was made of.
  const std::set<EqualityId>& matched_by(size_t application) {
    const auto [entry, is_new] = matched_.try_emplace(application);
    if (!is_new) return entry->second;
    std::set<EqualityId> matched;
    for (const MatchedNode& node : graph_.applications[application].left) {
      for (EqualityId id : node.outputs) {
        if (graph_.is_original(id)) {
          matched.insert(id);
        } else if (const auto maker = graph_.maker.find(id); maker != graph_.maker.end()) {
          const std::set<EqualityId>& below = matched_by(maker->second);
          matched.insert(below.begin(), below.end());
        }
      }
    }
    return matched_[application] = std::move(matched);
  }

  // Classes of the graph after where something stands that it made, or that was made of what it made.
  std::set<EqualityId> made_by(size_t application) const {
    std::set<EqualityId> made;
    for (const auto& [cls, value] : found_.values) {
      const auto maker = graph_.maker.find(found_.choice[cls]);
      if (maker != graph_.maker.end() && rests_on_it(maker->second, application)) made.insert(cls);
    }
    if (!made.empty()) return made;
    // A variable that is all of its right side.
    for (EqualityId id : graph_.joins[application].values)
      if (found_.values.contains(graph_.equalities.find(id))) made.insert(graph_.equalities.find(id));
    return made;
  }

  bool rests_on_it(size_t application, size_t on) const {
    if (application == on) return true;
    if (application < on) return false;
    for (const MatchedNode& node : graph_.applications[application].left)
      for (EqualityId id : node.outputs)
        if (const auto maker = graph_.maker.find(id); maker != graph_.maker.end() && rests_on_it(maker->second, on))
          return true;
    return false;
  }

  const GraphEqualities& graph_;
  const Extracted& found_;
  RewriteStep step_;
  std::map<size_t, std::set<EqualityId>> matched_;
};

class SaturationSearch : SearchRun {
 public:
  SaturationSearch(const PatternSet& patterns, CostOracle& costs, const SearchOptions& options,
                   const std::function<bool(const Binding&)>& wanted)
      : SearchRun(patterns, costs, options, wanted) {}

  Found run(const Graph& graph) {
    begin(graph);
    found_.trail.reset();  // what is extracted is not a chain of matches
    // Matches are wanted or not in the graph that was given alone.
    while (run_once() && !wanted_ && !should_stop()) {
    }
    record_point();
    found_.trials = std::move(counts_.trials);
    found_.rules_tried = counts_.tried;
    return finish();
  }

 private:
  bool should_stop() {
    const auto reached = limit();
    if (reached) found_.stop_reason = *reached;
    return reached.has_value();
  }

  // Whether something was gained.
  bool run_once() {
    const Graph before = found_.graph;
    const double before_ms = found_.cost.time_ms;
    GraphEqualities graph(before);
    saturate(
        graph, patterns_, compiled_, options_.saturation, wanted_, [this] { return is_cut_short(); }, counts_);
    found_.stop_reason = graph.is_saturated ? StopReason::Saturated : StopReason::EGraphLimit;
    if (should_stop()) return false;
    const std::function<double(const Graph&)> price = [this](const Graph& part) { return estimate_part(part).time_ms; };
    Extractor extraction(graph, price);
    std::optional<Extracted> best;
    auto now = extraction.extract(extraction.original());
    if (!now) return false;
    last_gain_ = found_.steps;
    try_graph(*now, 0, "", best);
    while (climb(graph, extraction, *now, best)) {
    }
    if (!best) return false;
    Account(graph, *best).tell(before_ms, found_.cost.time_ms, found_);
    return true;
  }

  // Each move from here, the best by its guess first; where one is kept the others go on from there.
  bool climb(const GraphEqualities& graph, Extractor& extraction, Extracted& now, std::optional<Extracted>& best) {
    std::vector<Alternative> moves = Alternatives(graph, now.choice).run();
    std::vector<Alternative> possible;
    for (Alternative& move : moves) {
      if (is_cut_short()) break;
      const auto guess = extraction.guess(after(now.choice, move));
      if (!guess) continue;
      move.guess_ms = *guess;
      possible.push_back(std::move(move));
    }
    std::stable_sort(possible.begin(), possible.end(),
                     [](const Alternative& a, const Alternative& b) { return a.guess_ms < b.guess_ms; });
    bool gained = false;
    for (const Alternative& move : possible) {
      if (should_stop()) break;
      auto next = extraction.extract(after(now.choice, move));
      if (!next || !try_graph(*next, extraction.changed_ms(now, *next), move.rule, best)) continue;
      now = *std::move(next);
      gained = true;
    }
    return gained && !should_stop();
  }

  static Choice after(Choice choice, const Alternative& move) {
    for (const auto& [cls, id] : move.choices) choice[cls] = id;
    return choice;
  }

  // Whether it is better than all before, by more than the cost of what was changed is uncertain by.
  bool try_graph(const Extracted& extracted, double changed_ms, const std::string& rule,
                 std::optional<Extracted>& best) {
    if (!seen_.insert(extracted.graph.hash()).second) return false;
    found_.steps++;
    const Cost cost = estimate(extracted.graph);
    report(cost.time_ms);
    const double uncertain_ms = costs_.uncertainty() * changed_ms;
    const double gain_ms = found_.cost.time_ms - cost.time_ms;
    const bool is_better = gain_ms > found_.cost.time_ms * 1e-9 && gain_ms > uncertain_ms;
    if (!is_better && !(is_simpler(cost, found_.cost) && gain_ms >= -uncertain_ms)) return false;
    announce(rule, cost.time_ms);
    if (!rule.empty()) counts_.trials[rule].improved++;
    found_.graph = extracted.graph;
    found_.cost = cost;
    best = extracted;
    note_gain();
    record_point();
    return true;
  }

  void report(double current_ms) const {
    if (!options_.progress) return;
    options_.progress(fmt::format("step {}: current {:.4f} ms, best {:.4f} ms, {} rules tried, {:.0f} s left",
                                  found_.steps, current_ms, found_.cost.time_ms, counts_.tried,
                                  std::max(0.0, options_.budget_seconds - seconds())));
  }

  void announce(const std::string& rule, double cost_ms) const {
    if (!options_.improved) return;
    Improvement improvement = improvement_to(cost_ms, rule);
    improvement.times = rule.empty() ? 0 : 1;
    options_.improved(improvement);
  }

  EqualityPatterns compiled_;
  SaturationCounts counts_;
};

}  // namespace

Found search_by_saturation(const Graph& graph, const PatternSet& patterns, CostOracle& costs,
                           const SearchOptions& options, const std::function<bool(const Binding&)>& wanted) {
  return SaturationSearch(patterns, costs, options, wanted).run(graph);
}

}  // namespace gopt::optimizer
