// The reference: runs definitions as they stand, in double (floats), int64 (integers, bool). Everything else is
// compared with it. Blocked over the innermost axis, so that small real models take seconds; where products are asked
// for in floats, large ones do, too.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

// Exact: as definitions stand. Floats: sums of products of floats, as in MatMul and Conv, are accumulated in floats,
// some hundred times as fast; as close to the others as a library's are.
enum class Products { Exact, Floats };

// Values of all graph outputs, in order. `inputs` are by input name. Errors: a missing input, one of another type or
// shape, an opaque node (named), an index out of bounds, an extent that is not static.
Result<std::vector<Tensor>> interpret(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                                      Products products = Products::Exact);

// The same for several sets of inputs at once: what depends on weights alone is computed once for all of them.
// Precondition: there is one.
Result<std::vector<std::vector<Tensor>>> interpret_all(const Graph& graph,
                                                       std::span<const std::map<std::string, Tensor>> inputs,
                                                       Products products = Products::Exact);

// One node on given inputs (empty tensors for inputs left out). Errors as above.
Result<std::vector<Tensor>> interpret_node(const Node& node, const std::vector<Tensor>& inputs,
                                           Products products = Products::Exact);

// What a recurrence's node (gopt/recurrence.h) gives, by its graph of a step, for inputs as that has them. Errors:
// those of interpret() for the step.
Result<std::vector<Tensor>> interpret_recurrence(const Recurrence& recurrence, const std::vector<Tensor>& inputs,
                                                 Products products);

// What a node that is a row's function (gopt/row_function.h) gives. Errors: rows with fewer elements than are taken.
Result<std::vector<Tensor>> interpret_row_function(const Node& node, const Tensor& input);

// The tensor of a value that depends on initializers alone. Errors as above.
Result<Tensor> evaluate_constant(const Value& value);

}  // namespace gopt
