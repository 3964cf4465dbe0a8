#include "nearly.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "gopt/near_misses.h"
#include "gopt/onnx.h"
#include "model.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

constexpr size_t kMostCauses = 30;

std::string cause_of(const NearMiss& miss) { return fmt::format("{}, not {}", miss.found, miss.expected); }

// A row for each family, a column for each obstacle that is met.
void print_families(const std::vector<NearMiss>& misses) {
  std::map<Obstacle, int> totals;
  std::map<std::string, std::map<Obstacle, int>> families;
  for (const NearMiss& miss : misses) {
    totals[miss.obstacle]++;
    families[miss.family][miss.obstacle]++;
  }
  fmt::print("{:<28}{:>9}", "obstacle", "together");
  for (const auto& [family, counts] : families) fmt::print("  {}", family);
  fmt::print("\n");
  for (const auto& [obstacle, total] : totals) {
    fmt::print("  {:<26}{:>9}", name_of(obstacle), total);
    for (const auto& [family, counts] : families) {
      const auto count = counts.find(obstacle);
      fmt::print("  {:>{}}", count == counts.end() ? std::string("-") : std::to_string(count->second), family.size());
    }
    fmt::print("\n");
  }
}

// What is met most often, and in how many rules.
void print_causes(const std::vector<NearMiss>& misses) {
  struct Cause {
    int count = 0;
    std::set<std::string> rules;
  };
  std::map<std::pair<Obstacle, std::string>, Cause> causes;
  for (const NearMiss& miss : misses) {
    Cause& cause = causes[{miss.obstacle, cause_of(miss)}];
    cause.count++;
    cause.rules.insert(miss.rule);
  }
  std::vector<std::pair<std::pair<Obstacle, std::string>, Cause>> sorted(causes.begin(), causes.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  if (sorted.size() > kMostCauses) sorted.resize(kMostCauses);
  fmt::print("\n{:<20} {:>6} {:>6}  met, not expected\n", "obstacle", "times", "rules");
  for (const auto& [key, cause] : sorted)
    fmt::print("  {:<18} {:>6} {:>6}  {}\n", name_of(key.first), cause.count, cause.rules.size(), key.second);
}

void print_all(const std::vector<NearMiss>& misses) {
  fmt::print("\n{:<52} {:<24} {:<20} met, not expected\n", "rule", "node", "obstacle");
  for (const NearMiss& miss : misses)
    fmt::print("{:<52} {:<24} {:<20} {}\n", miss.rule, miss.node, name_of(miss.obstacle), cause_of(miss));
}

nlohmann::json json_of(const NearlyOptions& options, const NearMisses& found) {
  nlohmann::json rows = nlohmann::json::array(), counts = nlohmann::json::object();
  std::map<std::string_view, int> by_obstacle;
  for (const NearMiss& miss : found.misses) {
    by_obstacle[name_of(miss.obstacle)]++;
    rows.push_back({{"rule", miss.rule},
                    {"family", miss.family},
                    {"node", miss.node},
                    {"obstacle", name_of(miss.obstacle)},
                    {"expected", miss.expected},
                    {"found", miss.found}});
  }
  for (const auto& [name, count] : by_obstacle) counts[std::string(name)] = count;
  return {{"model", options.model}, {"matches", found.matches}, {"obstacles", counts}, {"near_misses", rows}};
}

}  // namespace

Status print_near_misses(const std::vector<RewriteRule>& rules, const NearlyOptions& options) {
  if (!options.json.empty()) GOPT_RETURN_IF_ERROR(check_writable(options.json, options.force));
  ImportOptions import;
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(options.shapes));
  GOPT_ASSIGN_OR_RETURN(const ImportedModel model, import_onnx(options.model, import));
  GOPT_RETURN_IF_ERROR(check_keeps(read_files(model.files), {options.json}));
  GOPT_ASSIGN_OR_RETURN(const NearMisses found,
                        find_near_misses(model.graph, rules, {.least_nodes = options.least_nodes}));
  int matches = 0;
  std::set<std::string> near;
  for (const auto& [rule, count] : found.matches) matches += count;
  for (const NearMiss& miss : found.misses) near.insert(miss.rule);
  fmt::print("{}: {} rules match, {} times; {} nearly match, {} times\n\n", options.model, found.matches.size(),
             matches, near.size(), found.misses.size());
  print_families(found.misses);
  print_causes(found.misses);
  if (options.lists_all) print_all(found.misses);
  if (options.json.empty()) return Unit{};
  return write_text(options.json, json_of(options, found).dump(1) + "\n", options.force);
}

}  // namespace gopt::cli
