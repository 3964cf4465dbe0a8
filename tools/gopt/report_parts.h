// Graphs, rules and plans as JSON; nodes are numbered by their places in their graph.
#pragma once

#include <nlohmann/json.hpp>

#include "gopt/plan.h"
#include "gopt/rule.h"

namespace gopt::cli {

nlohmann::json graph_json(const Graph& graph);
nlohmann::json rule_json(const RewriteRule& rule);
nlohmann::json plan_json(const Plan& plan);

}  // namespace gopt::cli
