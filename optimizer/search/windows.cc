#include "search/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "gopt/clock.h"
#include "gopt/excerpt.h"
#include "gopt/parallel.h"
#include "matching/compensation.h"
#include "search/trail.h"

namespace gopt::optimizer {
namespace {

constexpr size_t kFewestNodes = 40, kMostNodes = 72;  // of a window, but for the last one
constexpr size_t kReach = 16;                         // of a window around a border, to either side
constexpr size_t kWholeNodes = 96;                    // a graph of no more is searched as it is

uint32_t position(NodeId id) { return static_cast<uint32_t>(id); }

// Nodes that run, by their distance from the inputs: those that share an operand lie close together.
std::vector<NodeId> in_levels(const Graph& graph) {
  std::vector<int> level(graph.nodes().size(), 0);
  std::vector<NodeId> order;
  for (size_t k = 0; k < graph.nodes().size(); k++) {
    const NodeId id{static_cast<uint32_t>(k)};
    if (graph.depends_on_weights_only(id) || graph.node(id)->is(OpKind::Input)) continue;
    for (const Value& input : graph.node(id)->inputs)
      if (input) level[k] = std::max(level[k], level[position(graph.id_of(input.node))] + 1);
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return level[position(a)] < level[position(b)]; });
  return order;
}

// How many nodes before each place of the order are used behind it.
std::vector<int> crossings(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<size_t> place(graph.nodes().size(), 0);
  for (size_t k = 0; k < order.size(); k++) place[position(order[k])] = k;
  std::vector<int> change(order.size() + 2, 0);
  for (size_t k = 0; k < order.size(); k++) {
    size_t last = k;
    for (NodeId user : graph.users()[position(order[k])]) last = std::max(last, place[position(user)]);
    change[k + 1]++;
    change[last + 1]--;
  }
  for (size_t k = 1; k < change.size(); k++) change[k] += change[k - 1];
  return change;
}

// Where windows begin, and the end of the last one.
std::vector<size_t> cuts_of(const Graph& graph, const std::vector<NodeId>& order) {
  const std::vector<int> crossing = crossings(graph, order);
  std::vector<size_t> cuts{0};
  while (order.size() - cuts.back() > kMostNodes) {
    const auto first = crossing.begin() + static_cast<std::ptrdiff_t>(cuts.back() + kFewestNodes);
    const auto last = crossing.begin() + static_cast<std::ptrdiff_t>(cuts.back() + kMostNodes);
    cuts.push_back(static_cast<size_t>(std::min_element(first, last) - crossing.begin()));
  }
  if (cuts.back() < order.size()) cuts.push_back(order.size());
  return cuts;
}

std::vector<NodeId> between(const std::vector<NodeId>& order, size_t begin, size_t end) {
  return {order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

std::vector<std::vector<NodeId>> windows_of(const Graph& graph) {
  const std::vector<NodeId> order = in_levels(graph);
  const std::vector<size_t> cuts = cuts_of(graph, order);
  std::vector<std::vector<NodeId>> windows;
  for (size_t k = 0; k + 1 < cuts.size(); k++) windows.push_back(between(order, cuts[k], cuts[k + 1]));
  return windows;
}

std::vector<std::vector<NodeId>> windows_around_borders(const Graph& graph) {
  const std::vector<NodeId> order = in_levels(graph);
  const std::vector<size_t> cuts = cuts_of(graph, order);
  std::vector<std::vector<NodeId>> windows;
  for (size_t k = 1; k + 1 < cuts.size(); k++)
    windows.push_back(between(order, cuts[k] - kReach, std::min(order.size(), cuts[k] + kReach)));
  return windows;
}

namespace {

// A window lies free: what it is handed comes as its nodes want it.
class WindowCosts : public CostOracle {
 public:
  explicit WindowCosts(CostOracle& costs) : costs_(costs) {}
  Cost estimate(const Graph& graph) override { return costs_.estimate_part(graph); }
  Cost estimate_part(const Graph& part) override { return costs_.estimate_part(part); }
  double uncertainty() const override { return costs_.uncertainty(); }

 private:
  CostOracle& costs_;
};

class WindowedSearch {
 public:
  WindowedSearch(const Graph& graph, const PatternSet& patterns, CostOracle& costs, const SearchOptions& options)
      : patterns_(patterns), costs_(costs), options_(options), started_(Clock::now()) {
    all_.graph = graph;
    if (options.trail)
      all_.cost.time_ms = options.trail->before_ms;
    else
      all_.cost = costs.estimate(graph);
    all_.trail->before_ms = all_.cost.time_ms;
    patterns_.patterns_for(MatchIndex(graph));  // compiled in one order, whatever thread asks first
    record_point();
    announce(all_.cost.time_ms);
    steps_left_ = options.max_steps;
  }

  // Until neither the windows nor those around their borders gain anything.
  Found run() {
    int idle = 0;
    for (; idle < 2 && !should_stop(); sweep_++) idle = sweep(places()) ? 0 : idle + 1;
    search_across();
    record_point();
    return std::move(all_);
  }

  // The same again.
  Found follow(const std::vector<TrailWindow>& trail) {
    all_.stop_reason = StopReason::Followed;
    for (auto next = trail.begin(); next != trail.end() && next->sweep >= 0 && all_.trail; sweep_++) {
      if (next->sweep < sweep_) all_.trail.reset();
      sweep_ = next->sweep;  // those between changed nothing
      const auto end = std::find_if(next, trail.end(), [&](const TrailWindow& w) { return w.sweep != sweep_; });
      if (all_.trail) follow_sweep({next, end});
      next = end;
    }
    if (!trail.empty() && trail.back().sweep < 0 && all_.trail)
      put_across(follow_steps(all_.graph, patterns_, trail.back()));
    record_point();
    return std::move(all_);
  }

 private:
  struct Window {
    int number = 0;  // in its sweep
    Excerpt excerpt;
    Cost before;
    Found found;
    // A simpler window may be dearer by what costs are uncertain by.
    double dearer_ms() const { return std::max(0.0, found.cost.time_ms - before.time_ms); }
  };

  std::vector<std::vector<NodeId>> places() const {
    return sweep_ % 2 == 1 ? windows_around_borders(all_.graph) : windows_of(all_.graph);
  }
  double seconds() const { return seconds_since(started_); }
  double seconds_left() const { return options_.budget_seconds - seconds(); }
  bool should_stop() {
    if (options_.stop && options_.stop->load())
      all_.stop_reason = StopReason::Interrupted;
    else if (seconds_left() <= 0)
      all_.stop_reason = StopReason::TimeLimit;
    else if (steps_left_ <= 0)
      all_.stop_reason = StopReason::StepLimit;
    else
      return false;
    return true;
  }

  // In vain, in an earlier sweep.
  bool is_searched(const Graph& window) const { return searched_.contains(window.hash()); }

  // Half of the steps that are left, in equal shares; of the time what the others leave.
  SearchOptions options_for_one_of(size_t windows) {
    SearchOptions own = options_;
    own.max_steps = std::max(1, steps_left_ / 2 / static_cast<int>(windows));
    own.patience = std::max(1, options_.patience / 4);
    own.budget_seconds = seconds_left();
    if (options_.progress) own.progress = [this, windows](const std::string&) { show_progress(windows); };
    own.improved = improved_at(true);
    return own;
  }

  void show_progress(size_t windows) {
    const std::lock_guard lock(progress_);
    options_.progress(fmt::format("step {}: best {:.4f} ms, {} rules tried, {:.0f} s left, searching in {} windows",
                                  ++steps_shown_, all_.cost.time_ms, all_.rules_tried, std::max(0.0, seconds_left()),
                                  windows));
  }

  // Improvements of a search within this one; where that begins is nothing new.
  std::function<void(const Improvement&)> improved_at(bool is_in_window) {
    if (!options_.improved) return {};
    return [this, is_in_window](Improvement found) {
      if (found.step == 0) return;
      const std::lock_guard lock(progress_);
      found.seconds = seconds();
      found.is_in_window = is_in_window;
      options_.improved(found);
    };
  }

  // What windows gained, put together, is as good as that.
  void announce(double before_ms) {
    if (options_.improved)
      options_.improved(
          {.step = all_.steps, .seconds = seconds(), .before_ms = before_ms, .after_ms = all_.cost.time_ms});
  }

  std::vector<Window> search_each(const std::vector<std::vector<NodeId>>& places) {
    std::vector<Window> windows(places.size());
    const SearchOptions own = options_for_one_of(places.size());
    WindowCosts costs(costs_);
    parallel_for(options_.workers, places.size(), [&](int, size_t k) {
      windows[k].number = static_cast<int>(k);
      windows[k].excerpt = excerpt_of(all_.graph, {places[k].begin(), places[k].end()});
      windows[k].found.graph = windows[k].excerpt.graph;
      if (is_searched(windows[k].excerpt.graph)) return;
      windows[k].before = costs.estimate(windows[k].excerpt.graph);
      SearchOptions in_time = own;
      in_time.budget_seconds = std::min(own.budget_seconds, seconds_left());
      windows[k].found = search_rewrites(windows[k].excerpt.graph, patterns_, costs, in_time);
    });
    return windows;
  }

  // Whether something was gained.
  bool sweep(const std::vector<std::vector<NodeId>>& places) {
    if (places.empty()) return false;  // what is left is one window
    const std::vector<Window> windows = search_each(places);
    std::vector<const Window*> changed;
    all_.stop_reason = StopReason::Saturated;
    for (const Window& window : windows) {
      count(window.found);
      searched_.insert(window.excerpt.graph.hash());
      if (is_exhausted(window.found.stop_reason)) searched_.insert(window.found.graph.hash());
      if (!window.found.graph.same_as(window.excerpt.graph)) changed.push_back(&window);
    }
    if (changed.empty()) return false;
    if (take(changed)) return true;
    // Together they are no better, for what lies across their borders: one by one, then.
    bool gained = false;
    if (changed.size() > 1 && !should_stop()) gained = take_first_that_gains(changed);
    return gained;
  }

  // Each is of the graph as it was: where one is taken, the others are searched again.
  bool take_first_that_gains(const std::vector<const Window*>& windows) {
    return std::any_of(windows.begin(), windows.end(), [&](const Window* window) { return take({window}); });
  }

  // Windows of one sweep, which were taken together.
  void follow_sweep(const std::vector<TrailWindow>& trail) {
    const std::vector<std::vector<NodeId>> all = places();
    std::vector<Window> windows(trail.size());
    for (size_t k = 0; k < trail.size(); k++) {
      const auto number = static_cast<size_t>(trail[k].window);
      if (number >= all.size() || (k > 0 && trail[k].window <= trail[k - 1].window)) return all_.trail.reset();
      windows[k].number = trail[k].window;
      windows[k].excerpt = excerpt_of(all_.graph, {all[number].begin(), all[number].end()});
      windows[k].found = follow_steps(windows[k].excerpt.graph, patterns_, trail[k]);
      if (!windows[k].found.trail) return all_.trail.reset();
      count(windows[k].found);
    }
    std::vector<const Window*> pointers;
    for (const Window& window : windows) pointers.push_back(&window);
    auto replaced = replaced_by(pointers);
    if (!replaced.ok()) return all_.trail.reset();
    append_rewrites(pointers, *std::move(replaced));
    if (!all_.applied.empty()) all_.cost.time_ms = all_.applied.back().cost_after_ms;
  }

  void count(const Found& found) {
    all_.steps += found.steps;
    steps_left_ -= found.steps;
    all_.rules_tried += found.rules_tried;
    all_.graphs_seen += found.graphs_seen;
    for (const auto& [rule, trials] : found.trials) {
      all_.trials[rule].rule = rule;
      all_.trials[rule] += trials;
    }
    if (found.stop_reason != StopReason::Saturated) all_.stop_reason = found.stop_reason;
  }

  Result<Replaced> replaced_by(const std::vector<const Window*>& windows) const {
    std::vector<Replacement> replacements;
    for (const Window* window : windows) replacements.push_back({&window->excerpt, &window->found.graph});
    return with_replaced(all_.graph, replacements);
  }

  bool take(const std::vector<const Window*>& windows) {
    auto replaced = replaced_by(windows);
    if (!replaced.ok()) return false;
    const Cost cost = costs_.estimate(replaced->graph);
    const bool is_faster = cost.time_ms < all_.cost.time_ms * (1 - 1e-9);
    double most_ms = all_.cost.time_ms * (1 + 1e-9);
    for (const Window* window : windows) most_ms += window->dearer_ms();
    const bool is_simpler = cost.time_ms <= most_ms && cost.operations <= all_.cost.operations &&
                            cost.kernels <= all_.cost.kernels && cost.bytes <= all_.cost.bytes;
    if (!is_faster && !is_simpler) return false;
    adopt(windows, *std::move(replaced), cost);
    return true;
  }

  void adopt(const std::vector<const Window*>& windows, Replaced replaced, const Cost& cost) {
    append_rewrites(windows, std::move(replaced));
    const double before_ms = all_.cost.time_ms;
    all_.cost = cost;
    record_point();
    announce(before_ms);
  }

  void record_point() { all_.trajectory.push_back({all_.steps, seconds(), all_.graphs_seen, all_.cost.time_ms}); }

  // All that was done in windows, as one step of the whole graph.
  void append_rewrites(const std::vector<const Window*>& windows, Replaced replaced) {
    RewriteStep step{all_.graph, replaced.graph, std::move(replaced.became), {}};
    for (size_t k = 0; k < windows.size(); k++) {
      append_uses(*windows[k], replaced.built[k], step);
      append_changes(windows[k]->found.applied);
      append_trail(windows[k]->found.trail, sweep_, windows[k]->number);
    }
    all_.graph = replaced.graph;
    all_.rewrites.push_back(std::move(step));
  }

  // What became of a window's nodes, said of the whole's.
  static void append_uses(const Window& window, const ValueMap& built, RewriteStep& step) {
    Lineage lineage(window.excerpt.graph);
    for (const RewriteStep& own : window.found.rewrites) lineage.follow(own);
    std::unordered_map<const Node*, NodePtr> whole;
    for (const auto& [node, copy] : window.excerpt.copies) whole[copy.get()] = node;
    auto before = [&](NodeId id, std::vector<NodePtr>& nodes) {
      const auto it = whole.find(window.excerpt.graph.node(id).get());
      if (it != whole.end()) nodes.push_back(it->second);
    };
    auto after = [&](NodeId id, std::vector<NodePtr>& nodes) {
      const auto it = built.find({window.found.graph.node(id), 0});
      if (it != built.end()) nodes.push_back(it->second.node);
    };
    for (size_t use = 0; use < window.found.applied.size(); use++) {
      step.uses.emplace_back();
      for (NodeId id : lineage.replaced(use)) before(id, step.uses.back().matched);
      for (NodeId id : lineage.made(use)) after(id, step.uses.back().made);
    }
    const auto origins = lineage.origins();
    for (uint32_t id = 0; id < origins.size(); id++) {
      step.others.emplace_back();
      for (NodeId origin : origins[id]) before(origin, step.others.back().matched);
      after(NodeId{id}, step.others.back().made);
    }
  }

  void append_trail(const std::optional<SearchTrail>& trail, int sweep, int window) {
    if (!trail) return all_.trail.reset();
    if (!all_.trail) return;
    for (const TrailWindow& own : trail->windows) all_.trail->windows.push_back({sweep, window, own.steps});
  }

  // What a step changed of its window's cost, as a change of the whole's. Rewrites of one step have the same costs.
  void append_changes(const std::vector<AppliedRule>& applied) {
    double now = all_.applied.empty() ? all_.cost.time_ms : all_.applied.back().cost_after_ms;
    const int first_step = all_.applied.empty() ? 0 : all_.applied.back().step + 1;
    for (size_t k = 0; k < applied.size(); k++) {
      const double change = applied[k].cost_after_ms - applied[k].cost_before_ms;
      if (k == 0 || applied[k].step != applied[k - 1].step) now += change;
      all_.applied.push_back(applied[k]);
      all_.applied.back().step += first_step;
      all_.applied.back().cost_before_ms = now - change;
      all_.applied.back().cost_after_ms = now;
    }
  }

  // What lies in no window: a match whose nodes are far apart.
  void search_across() {
    if (should_stop()) return;
    SearchOptions own = options_;
    own.max_steps = steps_left_;
    own.patience = std::max(1, options_.patience / 4);
    own.budget_seconds = seconds_left();
    own.improved = improved_at(false);
    const std::vector<std::vector<int>> window_of = {numbered(windows_of(all_.graph)),
                                                     numbered(windows_around_borders(all_.graph))};
    const auto is_across = [&](const Binding& binding) {
      return std::none_of(window_of.begin(), window_of.end(),
                          [&](const std::vector<int>& window) { return is_within_one(binding, window); });
    };
    put_across(search_rewrites(all_.graph, patterns_, costs_, own, is_across));
  }

  void put_across(const Found& found) {
    const StopReason in_windows = all_.stop_reason;
    count(found);
    if (found.stop_reason == StopReason::NoGain || found.stop_reason == StopReason::EGraphLimit)
      all_.stop_reason = in_windows;
    if (found.graph.same_as(all_.graph)) return;
    append_changes(found.applied);
    append_trail(found.trail, -1, -1);
    all_.rewrites.insert(all_.rewrites.end(), found.rewrites.begin(), found.rewrites.end());
    all_.graph = found.graph;
    all_.cost = found.cost;
    record_point();
  }

  // By node, the number of its window; -1: of none.
  std::vector<int> numbered(const std::vector<std::vector<NodeId>>& windows) const {
    std::vector<int> number(all_.graph.nodes().size(), -1);
    for (size_t k = 0; k < windows.size(); k++)
      for (NodeId id : windows[k]) number[position(id)] = static_cast<int>(k);
    return number;
  }
  bool is_within_one(const Binding& binding, const std::vector<int>& window) const {
    int found = -1;
    for (NodeId id : binding.nodes) {
      if (all_.graph.depends_on_weights_only(id)) continue;
      const int own = window[position(id)];
      if (own < 0 || (found >= 0 && own != found)) return false;
      found = own;
    }
    return true;
  }

  const PatternSet& patterns_;
  CostOracle& costs_;
  const SearchOptions& options_;
  const Clock::time_point started_;
  Found all_;
  int steps_left_ = 0;
  int sweep_ = 0;
  std::set<Hash128> searched_;
  std::mutex progress_;
  long steps_shown_ = 0;
};

}  // namespace

Found search_in_windows(const Graph& graph, const PatternSet& patterns, CostOracle& costs,
                        const SearchOptions& options) {
  const std::vector<bool> compensated = compensated_nodes(graph);
  // A window might cut through a compensated sum, which would then not be seen.
  const bool is_compensated = std::find(compensated.begin(), compensated.end(), true) != compensated.end();
  const bool is_whole = in_levels(graph).size() <= kWholeNodes || is_compensated;
  if (options.trail && is_whole) {
    const auto& windows = options.trail->windows;
    return follow_steps(graph, patterns, windows.empty() ? TrailWindow() : windows.front());
  }
  if (is_whole) return search_rewrites(graph, patterns, costs, options);
  WindowedSearch search(graph, patterns, costs, options);
  return options.trail ? search.follow(options.trail->windows) : search.run();
}

}  // namespace gopt::optimizer
