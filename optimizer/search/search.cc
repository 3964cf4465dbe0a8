#include "search/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "matching/rewrite.h"
#include "search/rewrite_cost.h"
#include "search/search_run.h"
#include "search/trail.h"

namespace gopt::optimizer {
namespace {

// A graph that was taken from the queue, or is the best, and how it was reached.
struct Site {
  Graph graph;
  double cost_ms;
  std::shared_ptr<const Site> parent;
  std::vector<Binding> bindings;  // to the parent's graph
};
using SitePtr = std::shared_ptr<const Site>;

// What waits in the queue: bindings to be applied to a site (its graph is made again when taken, which is cheaper than
// to keep thousands of graphs), or the rest of a site's single bindings.
struct Entry {
  double cost_ms;
  bool is_rest;  // after fresh ones of the same cost
  long sequence;
  SitePtr site;
  std::vector<Binding> bindings;
  size_t next = 0;              // is_rest: first binding not tried yet
  bool is_improvement = false;  // was the best when found: rewritten everywhere
  bool is_seen = false;         // its graph was made once, and is known to be new

  bool operator<(const Entry& other) const {
    return std::tie(cost_ms, is_rest, sequence) < std::tie(other.cost_ms, other.is_rest, other.sequence);
  }
};

class Search : SearchRun {
 public:
  Search(const PatternSet& patterns, CostOracle& costs, const SearchOptions& options,
         const std::function<bool(const Binding&)>& wanted)
      : SearchRun(patterns, costs, options, wanted) {}

  Found run(const Graph& graph) {
    begin(graph);
    best_ = std::make_shared<Site>(Site{graph, found_.cost.time_ms, nullptr, {}});
    push({found_.cost.time_ms, false, sequence_++, best_, {}, 0, true, true});
    if (is_beam())
      run_generations();
    else
      run_queue();
    record_point();
    collect_rewrites();
    collect_trials();
    return finish();
  }

 private:
  void run_queue() {
    while (!queue_.empty() && !should_stop()) {
      Entry entry = std::move(queue_.extract(queue_.begin()).value());
      if (!is_kept(entry.cost_ms)) break;
      run_one(std::move(entry));
    }
  }

  // The cheapest graphs of a generation are rewritten in every way; what comes of that is the next.
  void run_generations() {
    while (!queue_.empty()) {
      std::set<Entry> generation = std::move(queue_);
      queue_.clear();
      for (int taken = 0; taken < std::max(options_.beam_width, 1) && !generation.empty() && !should_stop();)
        taken += run_one(std::move(generation.extract(generation.begin()).value()));
      if (should_stop()) return;
    }
  }

  // Whether the entry's graph is one that was not seen before, or the rest of one.
  bool run_one(Entry entry) {
    SitePtr site;
    if (!entry.is_rest && !(site = take(entry))) return false;
    found_.steps++;
    current_ms_ = entry.cost_ms;
    if (site)
      expand(entry, site);
    else
      try_singles(std::move(entry));
    report();
    return true;
  }

  bool is_beam() const { return options_.search == SearchKind::Beam; }
  bool is_greedy() const { return options_.search == SearchKind::Greedy; }
  bool is_better(double cost_ms) const { return cost_ms < found_.cost.time_ms * (1 - 1e-9); }
  bool is_kept(double cost_ms) const {
    return options_.search != SearchKind::Backtracking || cost_ms < options_.alpha * found_.cost.time_ms + 1e-12;
  }

  bool should_stop() {
    if (found_.stop_reason != StopReason::Saturated) return true;
    found_.stop_reason = limit().value_or(StopReason::Saturated);
    return found_.stop_reason != StopReason::Saturated;
  }
  bool is_out_of_time() {
    const bool was_last_step = found_.steps >= options_.max_steps;
    return was_last_step ? is_cut_short() : should_stop();
  }

  void push(Entry entry) {
    queue_.insert(std::move(entry));
    if (queue_.size() > static_cast<size_t>(std::max(options_.max_queue, 1))) queue_.erase(std::prev(queue_.end()));
  }

  // Queues what bindings make of a site if it is cheap enough. What may be the best is made at once; the rest when it
  // has its turn, which few ever have.
  void consider(const SitePtr& site, const std::vector<Binding>& bindings, const RewriteGain& expected) {
    found_.rules_tried += static_cast<long>(bindings.size());
    RuleTrials& trials = trials_of(bindings.front());
    trials.tried++;
    const double expected_ms = site->cost_ms - expected.gain_ms;
    const auto beats_best = [&](double cost_ms, bool simpler) {
      return (is_better(cost_ms) && cost_ms < found_.cost.time_ms - expected.uncertain_ms) ||
             (simpler && cost_ms <= found_.cost.time_ms + expected.uncertain_ms);
    };
    const bool may_beat = beats_best(expected_ms, expected.is_simpler);
    if (is_greedy() ? !may_beat : !is_kept(expected_ms)) return void(trials.too_dear++);
    if (!may_beat) {
      trials.kept++;
      return push({expected_ms, false, sequence_++, site, bindings});
    }
    const auto rewritten = apply_bindings(site->graph, bindings);
    if (!rewritten.ok() || rewritten->applied.empty()) return void(trials.did_not_fit++);
    const Rewritten& applied = *rewritten;
    if (!seen_.insert(applied.graph.hash()).second) return void(trials.known++);
    const Cost cost = estimate(applied.graph);
    const bool improves = beats_best(cost.time_ms, is_simpler(cost, found_.cost));
    if (improves) adopt(site, bindings, applied, cost);
    const bool keeps = improves || (!is_greedy() && is_kept(cost.time_ms));
    trials.improved += improves;
    (keeps ? trials.kept : trials.too_dear)++;
    if (keeps) push({cost.time_ms, false, sequence_++, site, bindings, 0, improves, true});
  }

  // As the best so far.
  void adopt(const SitePtr& site, const std::vector<Binding>& bindings, const Rewritten& rewritten, const Cost& cost) {
    announce(*site, rewritten, cost.time_ms);
    found_.graph = rewritten.graph;
    found_.cost = cost;
    note_gain();
    best_ = std::make_shared<Site>(Site{rewritten.graph, cost.time_ms, site, bindings});
    record_point();
    if (is_greedy()) queue_.clear();
  }

  // By what the rewrite makes of the cost of the nodes around it. Nothing where it cannot be applied.
  std::optional<RewriteGain> price(const Site& site, const Binding& binding) {
    return price_binding(site.graph, binding, costs_.uncertainty(),
                         [this](const Graph& part) { return estimate_part(part); });
  }

  // The graph that has its turn. Null where it is not new, or cannot be made.
  SitePtr take(const Entry& entry) {
    region_.reset();
    if (entry.bindings.empty()) return entry.site;
    const auto rewritten = apply_bindings(entry.site->graph, entry.bindings);
    RuleTrials& trials = trials_of(entry.bindings.front());
    if (!rewritten.ok() || rewritten->applied.empty()) {
      GOPT_CHECK(!entry.is_seen, "a rewrite that worked before");
      trials.kept--;
      trials.did_not_fit++;
      return nullptr;
    }
    if (!entry.is_seen && !seen_.insert(rewritten->graph.hash()).second) {
      trials.kept--;
      trials.known++;
      return nullptr;
    }
    if (!entry.is_improvement) region_ = region_around(rewritten->graph, positions(*rewritten), patterns_.depth());
    return std::make_shared<Site>(Site{rewritten->graph, entry.cost_ms, entry.site, entry.bindings});
  }

  // Rewrites a graph everywhere when it was the best, else near what made it.
  void expand(const Entry& entry, const SitePtr& site) {
    const MatchIndex index(site->graph);
    const MatchRegion* region = region_ ? &*region_ : nullptr;
    Entry rest{entry.cost_ms, true, 0, site, {}, 0, false};
    for (const Pattern* pattern : patterns_.patterns_for(index)) {
      if (is_out_of_time()) return;
      std::vector<Binding> bindings = find_bindings(index, *pattern, region);
      if (wanted_ && entry.bindings.empty())
        std::erase_if(bindings, [this](const Binding& binding) { return !wanted_(binding); });
      if (!region && bindings.size() > 1) try_together(site, bindings);
      if (entry.bindings.empty() && bindings.size() > 1) try_everywhere(site, bindings);
      std::move(bindings.begin(), bindings.end(), std::back_inserter(rest.bindings));
    }
    if (rest.bindings.empty()) return;
    // Fresh graphs that are better go first; where none is, there is no reason to wait.
    if (!is_beam() && !queue_.empty() && queue_.begin()->cost_ms < entry.cost_ms) {
      rest.sequence = sequence_++;
      push(std::move(rest));
    } else {
      try_singles(std::move(rest));
    }
  }

  std::vector<NodeId> positions(const Rewritten& applied) const {
    std::unordered_set<Hash128, HashOfHash128> made;
    for (const std::vector<NodePtr>& side : applied.made)
      for (const NodePtr& node : side) made.insert(node->hash);
    std::vector<NodeId> ids;
    for (size_t i = 0; i < applied.graph.nodes().size(); i++)
      if (made.count(applied.graph.nodes()[i]->hash)) ids.push_back(static_cast<NodeId>(i));
    return ids;
  }

  // Bindings of one rule that each gain something, all at once.
  void try_together(const SitePtr& site, const std::vector<Binding>& bindings) {
    std::vector<Binding> helpful;
    RewriteGain together{0, 0};
    for (const Binding& binding : bindings) {
      if (is_out_of_time()) return;
      const auto difference = price(*site, binding);
      if (!difference || !difference->is_gain()) continue;
      helpful.push_back(binding);
      together.is_simpler |= difference->is_simpler;
      together.gain_ms += difference->gain_ms;
      together.uncertain_ms = std::max(together.uncertain_ms, difference->uncertain_ms);
    }
    if (helpful.size() > 1) consider(site, helpful, together);
  }

  // One rule wherever it applies, and again in what comes of that, as one step: many siblings merged two by two pay
  // only when all are, and each step before costs. A gain has to exceed what the whole's costs are uncertain by.
  void try_everywhere(SitePtr site, std::vector<Binding> bindings) {
    constexpr int kMostRounds = 6;
    const Pattern& pattern = *bindings.front().pattern;
    const size_t most_nodes = 2 * site->graph.nodes().size();
    for (int round = 0; round < kMostRounds && !bindings.empty() && !is_out_of_time(); round++) {
      found_.rules_tried += static_cast<long>(bindings.size());
      const auto rewritten = apply_bindings(site->graph, bindings);
      if (!rewritten.ok() || rewritten->applied.empty() || rewritten->graph.nodes().size() > most_nodes) return;
      const Cost cost = estimate(rewritten->graph);
      const auto next = std::make_shared<Site>(Site{rewritten->graph, cost.time_ms, site, bindings});
      const double needed_ms = costs_.uncertainty() * found_.cost.time_ms;
      if (cost.time_ms < found_.cost.time_ms - needed_ms && is_better(cost.time_ms) &&
          seen_.insert(rewritten->graph.hash()).second) {
        adopt(site, bindings, *rewritten, cost);
        trials_of(bindings.front()).improved++;
        push({cost.time_ms, false, sequence_++, site, bindings, 0, true, true});
      }
      bindings = find_bindings(MatchIndex(next->graph), pattern, nullptr);
      site = next;
    }
  }

  // One binding at a time; after an improvement that one has its turn first.
  void try_singles(Entry rest) {
    while (rest.next < rest.bindings.size()) {
      if (is_out_of_time()) return;
      const double best_before = found_.cost.time_ms;
      const Binding& binding = rest.bindings[rest.next++];
      if (const auto difference = price(*rest.site, binding)) {
        consider(rest.site, {binding}, *difference);
      } else {
        trials_of(binding).tried++;
        trials_of(binding).did_not_fit++;
      }
      if (!is_beam() && found_.cost.time_ms < best_before) break;
    }
    if (rest.next == rest.bindings.size() || !is_kept(rest.cost_ms) || is_greedy()) return;
    rest.is_rest = true;
    rest.sequence = sequence_++;
    push(std::move(rest));
  }

  void report() {
    if (!options_.progress) return;
    options_.progress(fmt::format(
        "step {}: current {:.4f} ms, best {:.4f} ms, {} rules tried, {:.0f} s left, {} graphs seen, {} waiting",
        found_.steps, current_ms_, found_.cost.time_ms, found_.rules_tried,
        std::max(0.0, options_.budget_seconds - seconds()), seen_.size(), queue_.size()));
  }

  // Of the cost that was the best until now.
  void announce(const Site& site, const Rewritten& rewritten, double cost_ms) const {
    if (!options_.improved) return;
    Improvement improvement = improvement_to(cost_ms, rewritten.applied.front()->pattern->rule_name);
    improvement.times = static_cast<int>(rewritten.applied.size());
    for (const Binding* binding : rewritten.applied)
      for (const std::string& name : matched_names(site.graph, *binding)) improvement.nodes.push_back(name);
    options_.improved(improvement);
  }

  RuleTrials& trials_of(const Binding& binding) { return trials_[binding.pattern]; }
  void collect_trials() {
    for (const auto& [pattern, own] : trials_) {
      RuleTrials& trials = found_.trials[pattern->rule_name];
      trials.rule = pattern->rule_name;
      trials += own;
    }
  }

  // Graphs on the way are made again: nothing is kept of them but what the search itself needs.
  void collect_rewrites() {
    std::vector<const Site*> path;
    for (const Site* site = best_.get(); site->parent; site = site->parent.get()) path.push_back(site);
    for (size_t i = path.size(); i-- > 0;)
      append_rewrite(patterns_, path[i]->parent->graph, path[i]->parent->cost_ms, path[i]->bindings, path[i]->cost_ms,
                     found_);
  }

  std::unordered_map<const Pattern*, RuleTrials> trials_;
  std::optional<MatchRegion> region_;  // of the graph that has its turn: where it differs from what was seen before
  double current_ms_ = 0;              // of the graph that has its turn
  long sequence_ = 0;
  SitePtr best_;
  std::set<Entry> queue_;
};

}  // namespace

Found search_rewrites(const Graph& graph, const PatternSet& patterns, CostOracle& costs, const SearchOptions& options,
                      const std::function<bool(const Binding&)>& wanted) {
  if (options.search == SearchKind::Saturation) return search_by_saturation(graph, patterns, costs, options, wanted);
  return Search(patterns, costs, options, wanted).run(graph);
}

}  // namespace gopt::optimizer
