// Random inputs beside those of gopt/driver.h: of graphs with open extents, and of one tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gopt/driver.h"

namespace gopt::driver {

// draw_inputs (gopt/driver.h) for a graph whose extents are symbols: each is a small number of its own, as the
// interpreter takes them from its inputs. Errors: also an extent of which that makes a negative one.
Result<std::map<std::string, Tensor>> draw_inputs_of_any_extent(const Graph& graph, uint64_t seed);
// The same with numbers that are given.
Result<std::map<std::string, Tensor>> draw_inputs_at(const Graph& graph, uint64_t seed, const Substitution& extents);
bool has_symbolic_inputs(const Graph& graph);
// Whether elements of the value, moved or cast, are places that something reads or writes at.
bool names_places(const Graph& graph, const Value& value);

// One tensor; integers are drawn from [0, limit).
Result<Tensor> draw_tensor(const std::string& name, const TensorType& type, int64_t limit, uint64_t seed);

}  // namespace gopt::driver
