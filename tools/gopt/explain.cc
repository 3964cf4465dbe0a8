// gopt explain: prints what driver/explain_node found of one node.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "gopt/node_explanation.h"
#include "gopt/node_names.h"
#include "search_flags.h"

namespace gopt::cli {
namespace {

struct ExplainOptions {
  SearchFlags flags;
  std::string node;
  bool as_json = false, lists_all = false;
};

constexpr size_t kMostOptions = 8, kMostRules = 20;

std::string option_text(const KernelOption& o) {
  const std::string how = o.implementation.empty() ? "" : ", " + o.implementation;
  return fmt::format("{:.4g} ms  {}{}, of {}", o.time_ms, to_string(o.layout), how, fmt::join(o.covers, ", "));
}

std::string time_text(const FusionOption& o) {
  if (std::isinf(o.time_ms)) return "not known, since such a kernel was never timed";
  return fmt::format("{}{:.4g} ms of all kernels that it concerns", o.is_least ? "more than " : "", o.time_ms);
}

std::string role_text(const NodePlan& plan) {
  switch (plan.role) {
    case NodeRole::Input: return "an input of the model";
    case NodeRole::Folded: return "it depends on weights alone, and is computed once, when code is made";
    case NodeRole::View: return "no kernel: its result lies inside another value";
    case NodeRole::Library: return "a library kernel";
    case NodeRole::Epilogue: return "a step of a library kernel, done before the result is stored";
    case NodeRole::Inlined: return "computed inside the kernels of what uses it";
    case NodeRole::Own: return "a generated kernel ends in it";
    case NodeRole::Unplanned:
      return "there is no kernel for it; emitted code may call a function of the caller's (gopt_register)";
  }
  return "";
}

void print_node_plan(const NodePlan& plan, bool lists_all) {
  fmt::print("  {}\n", role_text(plan));
  if (plan.limit != FusionLimit::None)
    fmt::print("  {} is stored: {}\n", plan.role == NodeRole::Epilogue ? "the kernel's result" : "its result",
               to_string(plan.limit));
  for (const std::string& kernel : plan.kernels) fmt::print("  kernel {}", kernel);
  size_t shown = 0;
  for (const KernelOption& option : plan.options) {
    if (!lists_all && shown++ == kMostOptions) {
      fmt::print("    and {} more; --all lists them\n", plan.options.size() - kMostOptions);
      break;
    }
    fmt::print("    {} {}\n", option.is_chosen ? "chosen " : "instead", option_text(option));
  }
  for (const FusionOption& o : plan.fusion)
    fmt::print("    {} {}: {}\n", o.is_chosen ? "fused  " : "instead", o.way, time_text(o));
  for (const ConversionOption& c : plan.conversions)
    fmt::print("    to convert `{}` from {} to {}: {:.4g} ms\n", c.value, to_string(c.from), to_string(c.to),
               c.time_ms);
  if (plan.plans.size() < 2) return;
  fmt::print("  the whole graph:");
  for (const PlanOption& p : plan.plans)
    fmt::print(" {}{} {:.4g} ms", p.layouts, p.is_chosen ? " (chosen)" : "", p.time_ms);
  fmt::print("\n");
}

std::string fate_text(const RuleAtNode& rule, StopReason stopped) {
  switch (rule.fate) {
    case RuleFate::Applied: return "applied";
    case RuleFate::NotAllowed: {
      std::string text = "not allowed:";
      for (const MarkInfo& mark : all_marks())
        if (rule.match.not_allowed.*(mark.flag)) text += fmt::format(" --allow {} would let it", mark.name);
      return text;
    }
    case RuleFate::Disabled: return "switched off by --enable or --disable";
    case RuleFate::DoesNotFit: return "its right side does not fit the types or constants here";
    case RuleFate::NoGain:
      return rule.match.uncertain_ms > 0
                 ? fmt::format("no gain beyond what costs are uncertain by ({:.2g} ms)", rule.match.uncertain_ms)
                 : "no gain";
    case RuleFate::NotProved: return "not proved: " + rule.why;
    case RuleFate::Overtaken:
      return fmt::format("gains by itself, but the result was found without it (search: {})", to_string(stopped));
  }
  return "";
}

void print_rules(const NodeExplanation& e, bool lists_all) {
  if (!e.taken_by.empty()) {
    fmt::print("rules\n  none: the pass {} takes the node away before the search\n", e.taken_by);
    return;
  }
  fmt::print("rules that match at it ({:.4g} ms before any is applied){}\n", e.searched_ms,
             e.rules.empty() ? ": none" : "");
  for (size_t k = 0; k < e.rules.size(); k++) {
    if (!lists_all && k == kMostRules) {
      fmt::print("  and {} more; --all lists them\n", e.rules.size() - kMostRules);
      return;
    }
    const RuleMatch& m = e.rules[k].match;
    if (m.can_apply)
      fmt::print("  {} -> {:.4g} ms ({:+.3g} ms)\n", m.rule, m.after_ms, -m.gain_ms);
    else
      fmt::print("  {}\n", m.rule);
    fmt::print("    of {}; {}\n", fmt::join(m.nodes, ", "), fate_text(e.rules[k], e.stop_reason));
  }
}

void print_near_misses(const NodeExplanation& e, bool lists_all) {
  if (e.near_misses.empty()) return;
  fmt::print("rules that would match, ending in it, but for one thing\n");
  for (size_t k = 0; k < e.near_misses.size(); k++) {
    if (!lists_all && k == kMostRules) {
      fmt::print("  and {} more; --all lists them\n", e.near_misses.size() - kMostRules);
      return;
    }
    const NearMiss& m = e.near_misses[k];
    fmt::print("  {}: {}: {}, not {}\n", m.rule, name_of(m.obstacle), m.found, m.expected);
  }
}

void print_explanation(const NodeExplanation& e, bool lists_all) {
  fmt::print("node `{}` ({})\n", e.name, e.op);
  fmt::print("in the model, {:.4g} ms\n", e.original_ms);
  print_node_plan(e.original, lists_all);
  fmt::print("rewrites that took it:{}\n", e.applied.empty() ? " none" : "");
  for (const AppliedRule& a : e.applied)
    fmt::print("  {}: {:.4g} -> {:.4g} ms, of {}\n", a.rule, a.cost_before_ms, a.cost_after_ms,
               fmt::join(a.matched_nodes, ", "));
  fmt::print("in the result, {:.4g} ms{}\n", e.result_ms, e.result.empty() ? ": it is not there" : "");
  for (const NodeOfResult& node : e.result) {
    if (node.name != e.name || node.op != e.op) fmt::print("  `{}` ({})\n", node.name, node.op);
    if (node.plan.kernels == e.original.kernels && node.plan.role == e.original.role)
      fmt::print("  as in the model\n");
    else
      print_node_plan(node.plan, lists_all);
  }
  print_rules(e, lists_all);
  print_near_misses(e, lists_all);
}

nlohmann::json json_of(const NodePlan& plan) {
  using nlohmann::json;
  json options = json::array(), conversions = json::array(), plans = json::array(), fusion = json::array();
  for (const KernelOption& o : plan.options)
    options.push_back({{"covers", o.covers},
                       {"layout", to_string(o.layout)},
                       {"implementation", o.implementation},
                       {"ms", o.time_ms},
                       {"chosen", o.is_chosen}});
  for (const FusionOption& o : plan.fusion)
    fusion.push_back({{"way", o.way}, {"ms", o.time_ms}, {"is_least", o.is_least}, {"chosen", o.is_chosen}});
  for (const ConversionOption& c : plan.conversions)
    conversions.push_back(
        {{"value", c.value}, {"from", to_string(c.from)}, {"to", to_string(c.to)}, {"ms", c.time_ms}});
  for (const PlanOption& p : plan.plans)
    plans.push_back({{"layouts", p.layouts}, {"ms", p.time_ms}, {"chosen", p.is_chosen}});
  return {{"role", to_string(plan.role)},
          {"stored_because", to_string(plan.limit)},
          {"kernels", plan.kernels},
          {"options", options},
          {"fusion", fusion},
          {"conversions", conversions},
          {"plans", plans}};
}

nlohmann::json json_of(const NodeExplanation& e) {
  using nlohmann::json;
  json rules = json::array(), applied = json::array(), result = json::array(), near = json::array();
  for (const NearMiss& m : e.near_misses)
    near.push_back({{"rule", m.rule}, {"obstacle", name_of(m.obstacle)}, {"expected", m.expected}, {"found", m.found}});
  for (const RuleAtNode& r : e.rules)
    rules.push_back({{"rule", r.match.rule},
                     {"nodes", r.match.nodes},
                     {"fate", to_string(r.fate)},
                     {"why", fate_text(r, e.stop_reason)},
                     {"can_apply", r.match.can_apply},
                     {"after_ms", r.match.after_ms},
                     {"gain_ms", r.match.gain_ms},
                     {"uncertain_ms", r.match.uncertain_ms}});
  for (const AppliedRule& a : e.applied)
    applied.push_back({{"rule", a.rule},
                       {"nodes", a.matched_nodes},
                       {"cost_before_ms", a.cost_before_ms},
                       {"cost_after_ms", a.cost_after_ms}});
  for (const NodeOfResult& node : e.result)
    result.push_back({{"node", node.name}, {"operator", node.op}, {"plan", json_of(node.plan)}});
  return {{"node", e.name},
          {"operator", e.op},
          {"original", {{"ms", e.original_ms}, {"plan", json_of(e.original)}}},
          {"applied", applied},
          {"result", {{"ms", e.result_ms}, {"nodes", result}}},
          {"taken_by", e.taken_by},
          {"searched_ms", e.searched_ms},
          {"stop_reason", to_string(e.stop_reason)},
          {"rules", rules},
          {"near_misses", near}};
}

// ---- nodes of the file that are others here ----

// By its name, else by that of a value that it makes; where the graph has a node of that name, it is meant.
const FileNode* find_changed(const ImportedModel& model, const std::string& name) {
  if (find_node(model.graph, name).ok()) return nullptr;
  const auto named = std::ranges::find(model.changed, name, &FileNode::name);
  if (named != model.changed.end() && !name.empty()) return &*named;
  const auto makes = [&](const FileNode& node) { return std::ranges::count(node.outputs, name) > 0; };
  const auto made = std::ranges::find_if(model.changed, makes);
  return made != model.changed.end() && !name.empty() ? &*made : nullptr;
}

// The node that makes the value that was asked for, else the first that the model's outputs depend on.
NodePtr node_of_result(const Graph& graph, const FileNode& node, const std::string& asked) {
  NodePtr found;
  for (size_t k = 0; k < node.results.size(); k++) {
    const Value& value = node.results[k];
    if (!value || !graph.contains(value.node)) continue;
    if (k < node.outputs.size() && node.outputs[k] == asked) return value.node;
    if (!found) found = value.node;
  }
  return found;
}

std::string fate_of(const FileNode& node) {
  const auto is_constant = [](const Value& v) { return !v || v.node->is(OpKind::Constant); };
  if (std::ranges::all_of(node.results, is_constant)) return "it depends on constants alone, and is one";
  if (node.made.empty()) return "no node of its own: what it gives is there already, as a value or by an equal node";
  std::vector<std::string> parts;
  for (const auto& [op, count] : node.made) parts.push_back(fmt::format("{} {}", count, op));
  return fmt::format("taken apart: {}", fmt::join(parts, ", "));
}

void print_file_node(const FileNode& node, const NodePtr& result) {
  fmt::print("node `{}` ({}) of the file\n  {}\n", node.name.empty() ? node.outputs[0] : node.name, node.op,
             fate_of(node));
  if (!result) fmt::print("  no output of the model depends on it\n");
}

nlohmann::json json_of(const FileNode& node) {
  return {{"node", node.name},
          {"operator", node.op},
          {"outputs", node.outputs},
          {"became", node.made},
          {"fate", fate_of(node)}};
}

Status explain(const ExplainOptions& o) {
  GOPT_ASSIGN_OR_RETURN(DriverOptions options, driver_options(o.flags));
  GOPT_ASSIGN_OR_RETURN(const ModelAndRules loaded, load_model_and_rules(o.flags));
  GOPT_RETURN_IF_ERROR(complete_options(o.flags, loaded.rules, loaded.model.graph, options));
  const Graph& graph = loaded.model.graph;
  const FileNode* changed = find_changed(loaded.model, o.node);
  const NodePtr result = changed ? node_of_result(graph, *changed, o.node) : nullptr;
  if (changed && !o.as_json) print_file_node(*changed, result);
  if (changed && (!result || result->is(OpKind::Constant))) {
    if (o.as_json) fmt::print("{}\n", nlohmann::json{{"file_node", json_of(*changed)}}.dump(1));
    return Unit{};
  }
  options.search.progress = progress_line();
  const InterruptStops stops;
  const auto found =
      result ? explain_node(graph, result, loaded.rules, options) : explain_node(graph, o.node, loaded.rules, options);
  clear_progress_line();
  if (!found.ok()) return found.error();
  for (const std::string& note : found->notes) fmt::print(stderr, "gopt: warning: {}\n", note);
  if (o.as_json) {
    nlohmann::json json = json_of(*found);
    if (changed) json["file_node"] = json_of(*changed);
    fmt::print("{}\n", json.dump(1));
    return Unit{};
  }
  if (changed) fmt::print("what makes its result:\n");
  print_explanation(*found, o.lists_all);
  return Unit{};
}

}  // namespace

Action add_explain(CLI::App& app) {
  auto o = std::make_shared<ExplainOptions>();
  add_search_flags(app, o->flags, {"cpu", "cuda"});
  app.add_option("node", o->node, "the name of a node, or of a value that it makes")->required();
  app.add_flag("--json", o->as_json, "print JSON");
  app.add_flag("--all", o->lists_all, "every kernel that was priced, and every rule that matches");
  return [o] { return explain(*o); };
}

}  // namespace gopt::cli
