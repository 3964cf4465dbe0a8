// The report for programs; its fields are described in docs/report.md.
#pragma once

#include <nlohmann/json.hpp>

#include "report.h"

namespace gopt::cli {

nlohmann::json report_json(const OptimizationReport& report);

// As text. Names in a model may be any bytes: what is not UTF-8 among them is replaced by U+FFFD. `indent` below 0: on
// one line.
std::string json_text(const nlohmann::json& json, int indent);

}  // namespace gopt::cli
