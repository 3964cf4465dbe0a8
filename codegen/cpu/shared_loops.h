// Loops whose turns threads share: one loop over all turns, of which each part of the kernel has a run, and the places
// of the loops worked out from a turn's number.
#pragma once

#include <string>
#include <vector>

namespace gopt::codegen {

// A loop as text: `name` from low to below high, in steps.
struct LoopHeader {
  std::string name, low, high, step = "1";
};

// What opens each loop in turn, or, shared, all of them by one brace; closing_of() has as many.
std::string opening_of(const std::vector<LoopHeader>& loops, bool is_shared);
std::string closing_of(const std::vector<LoopHeader>& loops, bool is_shared);

// A function's body that has `loops` run by threads, in a part of its turns each. `parameters`: those of the function,
// as declared; `threads`: how many, as text. Within the loops, `part` and `parts` are numbers.
std::string shared_body(const std::string& parameters, const std::string& loops, const std::string& threads);

}  // namespace gopt::codegen
