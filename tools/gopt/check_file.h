// --check FILE.npz: inputs that a result is checked on, and outputs that are expected on them.
#pragma once

#include <string>

#include "gopt/driver.h"

namespace gopt::cli {

bool is_check_file(const std::string& check);  // else the name of a way to check
// Tensors by the names of the graph's inputs and outputs. Errors: those of reading, a name that is neither, a tensor of
// another type than the graph says.
Status read_check_file(const std::string& path, const Graph& graph, CheckOptions& check);

}  // namespace gopt::cli
