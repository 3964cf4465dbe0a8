// Rules as JSON, in the form that `rulegen verify --format taso-json` reads (docs/grammar.md).
#pragma once

#include <ostream>
#include <vector>

#include "graph.h"

namespace taso_generator {

void write(const std::vector<Rule>& rules, const std::vector<Operator>& operators, std::ostream& out);

}  // namespace taso_generator
