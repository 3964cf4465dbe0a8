// Rewrites a graph with proved rules: TASO's backtracking search (SOSP'19, section 5) or equality saturation (egg,
// POPL'21; Tensat, MLSys'21), led by a cost, kept within a budget.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gopt/cost.h"
#include "gopt/graph.h"
#include "gopt/rule.h"

namespace gopt {

enum class SearchKind { Backtracking, Greedy, Beam, Saturation, None };
// As flags and reports have it.
std::string to_string(SearchKind kind);

// A graph that was better than all before it, when it was found; at step 0 the one that a search begins with.
struct Improvement {
  int step = 0;
  double seconds = 0;              // since the search began
  std::string rule;                // empty: the search begins, or what was found in windows is put together
  int times = 0;                   // that it was applied at once
  std::vector<std::string> nodes;  // that it replaced
  double before_ms = 0, after_ms = 0;
  bool is_in_window = false;  // a part of the graph: its step and costs are that part's
};

// How far an e-graph grows before the best of it is taken. Counts, so that what is found does not depend on the
// machine.
struct SaturationLimits {
  size_t nodes = 4000;  // applications, those of the graph among them
  int iterations = 8;
  int joined_iterations = 3;  // the first of them, in which rules with several outputs are applied
  size_t matches = 200;       // of one rule in an iteration, before it rests
};

// Where a rule was applied: its name, and the nodes that it matched, by their places in the graph it was applied to.
struct TrailMatch {
  std::string rule;
  std::vector<uint32_t> nodes;
  int choice = 0;  // of the matches of these nodes, which a commutative operator has several of
};
// Matches that are rewritten together, and what the graph cost then, for reports.
struct TrailStep {
  std::vector<TrailMatch> matches;
  double before_ms = 0, after_ms = 0;
};
// What a search did to one graph.
struct TrailWindow {
  int sweep = -1, window = -1;  // a piece of the graph, of the search that cuts it into such; -1: the whole
  std::vector<TrailStep> steps;
};
// Of a pass's replacements those that were kept, by their places, where costs decided that.
struct PassChoice {
  std::string pass;
  std::vector<uint32_t> kept;
};
// What the passes and the search did, by which the same is done again without one. It is not relied on: rules are
// matched, proved and applied as in a search.
struct SearchTrail {
  std::vector<PassChoice> passes;  // in the order in which they ran
  double before_ms = 0;            // what the graph cost when the search began
  std::vector<TrailWindow> windows;
};

struct SearchOptions {
  SearchKind search = SearchKind::Backtracking;
  double alpha = 1.05;  // backtracking: keep graphs below alpha x best
  int beam_width = 8;   // beam: graphs of a generation that are rewritten, the cheapest, whatever they cost
  SaturationLimits saturation;
  int max_steps = 10000;  // graphs taken from the queue; of an e-graph, graphs that were priced
  int patience = 200;     // of them, since the last that was better than all before
  double budget_seconds = 60;
  int max_queue = 2000;
  int workers = 1;                          // threads; what is found does not depend on them
  std::vector<std::string> disabled_rules;  // by name; unknown names are an error
  std::vector<std::string> enabled_rules;   // when not empty: only these, whatever their marks
  // Marks that are not safe (rule.h) and that rules may have all the same. With drops_rounding, terms that cancel
  // within a match may be taken away, too.
  RuleMarks allowed_marks;
  std::vector<std::string> disabled_passes;
  const SearchTrail* trail = nullptr;       // of the same search of the same graph, which is followed instead
  const std::atomic<bool>* stop = nullptr;  // set on Ctrl-C: the best so far is returned
  // Asked about every rule that the result would rest on: why it is not to be relied on, or nothing. A rule that is
  // refused is left out and the graph searched again, within a budget as before, so that the result is the one without
  // it. Empty: rules are taken at their word.
  std::function<std::optional<std::string>(const RewriteRule&)> confirm;
  std::function<void(const std::string&)> progress;
  std::function<void(const Improvement&)> improved;  // not by two threads at once
};

struct AppliedRule {
  std::string rule;                        // name, found in the database
  std::string content_hash;                // of the rule
  std::vector<std::string> matched_nodes;  // names of the nodes it replaced
  double cost_before_ms = 0, cost_after_ms = 0;
  int step = 0;                  // rules applied together have the same one
  std::vector<NodeId> replaced;  // nodes of the original graph whose place it took
  std::vector<NodeId> made;      // nodes of the result that have come of what it put there
};

// A best graph of a search, and when it was found; first the graph it began with, last its end.
struct SearchPoint {
  int step = 0;
  double seconds = 0;    // since the search began
  long graphs_seen = 0;  // by then
  double best_ms = 0;
};

struct RefusedRule {
  std::string rule, why;
};

// What became of the rewrites by one rule that a search tried.
struct RuleTrials {
  std::string rule;
  long tried = 0;
  long did_not_fit = 0;  // the right side could not be put there
  long too_dear = 0;     // dropped: no longer below alpha times the best cost
  long known = 0;        // dropped: the graph was seen before
  long kept = 0;         // to be rewritten further
  long improved = 0;     // of those: better than all before

  RuleTrials& operator+=(const RuleTrials& other);
};

enum class StopReason { Saturated, StepLimit, NoGain, EGraphLimit, TimeLimit, Interrupted, Followed, Off };
std::string to_string(StopReason reason);

struct PassNote {
  std::string pass;
  bool changed = false;
  double seconds = 0;
};

struct OptimizeResult {
  Graph graph;
  Cost before, after;
  std::vector<AppliedRule> applied;  // in order
  // By node of the graph: the nodes of the original whose values it gives, or in whose place a rule put it.
  std::vector<std::vector<NodeId>> origins;
  std::vector<SearchPoint> trajectory;  // empty where nothing was searched
  std::vector<RefusedRule> refused;     // by SearchOptions::confirm, as they were met
  std::vector<PassNote> passes;
  std::vector<RuleTrials> trials;    // rules that were tried, by name
  std::optional<SearchTrail> trail;  // none: of saturation
  StopReason stop_reason = StopReason::Saturated;
  int steps = 0;
  long rules_tried = 0, graphs_seen = 0;
  double seconds = 0;
};

// Names of the passes around the search, in order; disabled_passes takes them.
const std::vector<std::string>& pass_names();

// Errors: an unknown rule or pass name in the options, a trail that does not fit.
Result<OptimizeResult> optimize(const Graph& graph, const std::vector<RewriteRule>& rules, CostOracle& costs,
                                const SearchOptions& options = {});

}  // namespace gopt
