// Attributes of nodes as plain numbers. Precondition of all: where the attribute is there, it holds numbers.
#pragma once

#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

// Whether every attribute that is an integer, or a list of them, holds numbers.
bool has_number_attributes(const Node& node);
std::vector<int64_t> ints_or(const Node& node, const char* name, std::vector<int64_t> otherwise);
int64_t int_or(const Node& node, const char* name, int64_t otherwise);
// Of a transposition: for each axis of the result the one of its input.
std::vector<size_t> transposed_order(const Node& transpose, size_t rank);
double real_or(const Node& node, const char* name, double otherwise);  // the operator's default comes first

}  // namespace gopt
