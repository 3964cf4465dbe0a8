#include "known_searches.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "gopt/kernel_spec.h"
#include "search_hash.h"

namespace gopt::driver {
namespace {

using nlohmann::json;

// Every option is named, so that a new one does not compile until it is decided whether it counts.
std::string text_of(const SearchOptions& options) {
  const auto& [search, alpha, beam_width, saturation, max_steps, patience, budget_seconds, max_queue, workers, disabled,
               enabled, marks, passes, trail, stop, confirm, progress, improved] = options;
  const auto& [nodes, iterations, joined_iterations, matches] = saturation;
  std::string text = to_string(search);
  for (const double number : {alpha, budget_seconds}) text += " " + std::to_string(number);
  for (const int number : {beam_width, max_steps, patience, max_queue, iterations, joined_iterations})
    text += " " + std::to_string(number);
  for (const size_t number : {nodes, matches}) text += " " + std::to_string(number);
  text += to_string(marks);
  for (const auto* names : {&disabled, &enabled, &passes}) {
    text += ";";
    for (const std::string& name : *names) text += " " + name;
  }
  return text;
}

// The graph's signature leaves large ones out. Passes and rules look at them: x + 0 is x.
std::string numbers_of_weights(const Graph& graph) {
  std::string text;
  for (const NodePtr& node : graph.nodes()) {
    if (!node->is(OpKind::Constant)) continue;
    const std::span<const std::byte> bytes = node->tensor.bytes();
    text += " " + to_string(hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return text;
}

json to_json(const TrailMatch& match) { return {match.rule, match.nodes, match.choice}; }

json to_json(const TrailWindow& window) {
  json steps = json::array();
  for (const TrailStep& step : window.steps) {
    json matches = json::array();
    for (const TrailMatch& match : step.matches) matches.push_back(to_json(match));
    steps.push_back({matches, step.before_ms, step.after_ms});
  }
  return {window.sweep, window.window, steps};
}

// What is no whole number from `least` on, or beyond what a graph has of anything, is an error.
int whole(const json& value, int least = 0) {
  constexpr int kMost = 100'000'000;
  const bool is_in_range = value.is_number_unsigned() ? value.get<uint64_t>() <= kMost
                                                      : value.is_number_integer() && value.get<int64_t>() >= least &&
                                                            value.get<int64_t>() <= kMost;
  if (!is_in_range) throw std::out_of_range("a number of a search");
  return value.get<int>();
}
std::vector<uint32_t> places(const json& values) {
  std::vector<uint32_t> all;
  for (const json& value : values) all.push_back(static_cast<uint32_t>(whole(value)));
  return all;
}

TrailWindow window_from(const json& value) {
  TrailWindow window{whole(value.at(0), -1), whole(value.at(1), -1), {}};
  for (const json& step : value.at(2)) {
    window.steps.push_back({{}, step.at(1).get<double>(), step.at(2).get<double>()});
    for (const json& match : step.at(0))
      window.steps.back().matches.push_back({match.at(0).get<std::string>(), places(match.at(1)), whole(match.at(2))});
  }
  return window;
}

}  // namespace

std::string search_signature(const Graph& graph, const Target& target, CostModel costs,
                             const std::vector<RewriteRule>& rules, const SearchOptions& options) {
  std::string text = "search " GOPT_SEARCH_HASH " " + graph_signature(graph, target) + numbers_of_weights(graph) +
                     (costs == CostModel::Sum ? " sum " : " plan ") + text_of(options);
  for (const RewriteRule& rule : rules) text += " " + rule.name + " " + rule.content_hash();
  return to_string(hash_bytes(text));
}

std::string to_text(const KnownSearch& search) {
  json passes = json::array(), windows = json::array();
  for (const PassChoice& choice : search.trail.passes) passes.push_back({choice.pass, choice.kept});
  for (const TrailWindow& window : search.trail.windows) windows.push_back(to_json(window));
  return json{
      {"passes", passes}, {"before_ms", search.trail.before_ms}, {"windows", windows}, {"result", search.result}}
      .dump(-1, ' ', false, json::error_handler_t::replace);  // a name may be any bytes
}

std::optional<KnownSearch> parse_known_search(const std::string& text) try {
  const json value = json::parse(text);
  KnownSearch search;
  search.result = value.at("result").get<std::string>();
  std::set<std::string> rules;
  search.trail.before_ms = value.at("before_ms").get<double>();
  for (const json& choice : value.at("passes"))
    search.trail.passes.push_back({choice.at(0).get<std::string>(), places(choice.at(1))});
  for (const json& window : value.at("windows")) {
    search.trail.windows.push_back(window_from(window));
    for (const TrailStep& step : search.trail.windows.back().steps)
      for (const TrailMatch& match : step.matches) rules.insert(match.rule);
  }
  search.rules = {rules.begin(), rules.end()};
  return search;
} catch (const std::exception&) {  // of the parser, or out of range
  return std::nullopt;
}

}  // namespace gopt::driver
