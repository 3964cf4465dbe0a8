// The passes around the search, as passes.def has them.
#pragma once

#include <span>

#include "passes/replace_each.h"

namespace gopt::optimizer {

#define GOPT_PASS(function, name, when, price) Replacements function(const Graph& graph);
#include "passes/passes.def"
#undef GOPT_PASS

// Whether the node copies its one input.
bool is_copy(const Node& node);
// The value that the node's only output is equal to, by its definition and the constants among its inputs (x + 0, x *
// 1), or as the second of two Casts that lose nothing: what drop_identities puts in its place.
std::optional<Value> copied_value(const Node& node);

enum class PassTime { Before, BeforeAndAfter };  // the search
enum class PassPrice { Free, NotDearer };
struct Pass {
  const char* name;
  Replacements (*run)(const Graph&);
  PassTime when;
  PassPrice price;
};
// In order.
std::span<const Pass> passes();

}  // namespace gopt::optimizer
