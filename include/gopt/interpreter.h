// The reference: runs definitions as they stand, in double (floats), int64 (integers, bool). Everything else is
// compared with it. Blocked over the innermost axis, so that small real models take seconds, but nothing more is done
// for speed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

// Values of all graph outputs, in order. `inputs` are by input name. Errors: a missing input, one of another type or
// shape, an opaque node (named), an index out of bounds, an extent that is not static.
Result<std::vector<Tensor>> interpret(const Graph& graph, const std::map<std::string, Tensor>& inputs);

// One node on given inputs (empty tensors for inputs left out). Errors as above.
Result<std::vector<Tensor>> interpret_node(const Node& node, const std::vector<Tensor>& inputs);

// The tensor of a value that depends on initializers alone. Errors as above.
Result<Tensor> evaluate_constant(const Value& value);

}  // namespace gopt
