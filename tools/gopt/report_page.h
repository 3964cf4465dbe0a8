// The report for a browser: one page that holds all it needs, style, script and data, and asks no network for anything.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gopt::cli {

// Of what report_json gives. Names in it come from models: they are data to the page, never markup.
std::string report_page(const nlohmann::json& report);

}  // namespace gopt::cli
