// What is particular to a result that is an ONNX file: by which cost it is searched, when a rule pays there, and the
// runtime's own times.
#pragma once

#include "gopt/cost.h"
#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// For TargetKind::Onnx the cost of a runtime, else that of the cheapest plan.
std::unique_ptr<CostOracle> make_oracle(const Target& target, const CostSource& costs, double unknown_factor);

// Whether a graph that took a rule to reach is worth it beside the one without. Of ONNX nodes there are no more than
// there were unless these are paid for by a clear gain.
bool pays(const Target& target, const Cost& with, const Cost& without);

// Names of the rules whose right side has an operator that the file's opset lacks and the left side has not, on other
// than weights: it would be written in pieces, which runtimes do not take for what it was.
std::vector<std::string> rules_beyond_opset(const Graph& graph, const std::vector<RewriteRule>& rules);

// Whether the file is of another graph than the code: DriverOptions::file_graph, where that differs.
bool has_own_file_graph(const Graph& graph, const DriverOptions& options);
// Where code and an ONNX file are both wanted: whether both are of one graph, and the code's, `outcome.result`, is no
// dearer to a runtime than the original; else, or where the runtime judges, the file is of a search by the runtime's
// cost (`outcome.onnx`), which is the one that is made where the file alone is wanted.
Status choose_onnx(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options,
                   Outcome& outcome);

}  // namespace gopt::driver
