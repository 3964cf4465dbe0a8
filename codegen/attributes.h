// Attributes of nodes as plain numbers, and numbers as C++ text: what printers of library calls need on every target.
#pragma once

#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt::codegen {

std::vector<int64_t> ints_or(const Node& node, const char* name, std::vector<int64_t> otherwise);
int64_t int_or(const Node& node, const char* name, int64_t otherwise);
double real_or(const Node& node, const char* name, double otherwise);  // the operator's default comes first

std::string list(const std::vector<int64_t>& numbers);  // "{1, 2}"
std::string number(double value);                       // "0.5f"; infinite: the largest float

}  // namespace gopt::codegen
