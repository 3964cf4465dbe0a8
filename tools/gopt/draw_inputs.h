// Random inputs in valid ranges: standard normal floats; integers that index a tensor stay within its extents.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gopt/graph.h"

namespace gopt::cli {

// Errors: an input whose extents are not static (say --shape), or of a type that cannot be drawn (strings).
Result<std::map<std::string, Tensor>> draw_inputs(const Graph& graph, uint64_t seed);
// The same for a graph whose extents are symbols: each is a small number of its own, as the interpreter takes them from
// its inputs. Errors: also an extent of which that makes a negative one.
Result<std::map<std::string, Tensor>> draw_inputs_of_any_extent(const Graph& graph, uint64_t seed);
bool has_symbolic_inputs(const Graph& graph);

// One tensor; integers are drawn from [0, limit).
Result<Tensor> draw_tensor(const std::string& name, const TensorType& type, int64_t limit, uint64_t seed);

}  // namespace gopt::cli
