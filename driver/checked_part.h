// What of a graph and its rewritten form can be run side by side: all but nodes without definition, and what hangs on
// outputs of theirs whose types nobody knows. Such nodes are cut out: what they give is drawn, what they take is
// compared. Symbols become numbers.
#pragma once

#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt::driver {

// Whether the graph is run as it is: no node without definition, no symbolic extent.
bool is_whole(const Graph& graph);
// Operators that run: no inputs, constants, or what is folded.
int count_operators(const Graph& graph);

struct CheckedPart {
  Graph original, optimized;  // of the same outputs, in the same order; static
  int nodes_checked = 0;      // operators of the original that an output of the part depends on
  std::vector<std::string> left_out;
  std::string extents;
  std::vector<std::string> cut;  // names of the original's nodes that are cut out, in its order
  size_t choice = 0;             // of choices_of_extents()
};
// Extents at which the original's types follow and the optimized graph's do not: the original there, and why not.
struct LostExtents {
  Graph original;
  std::string why;
};
// The part's input that is what such a node gives, and its output that is what the node takes.
std::string given_by(const std::string& cut, size_t output);
std::string taken_by(const std::string& cut, size_t input);

// By the first choice of extents from `first` on that both graphs fit. Errors: extents that no choice of numbers fits,
// nothing that can be compared. `lost`, where it is given, has the choices before that which only the original fits.
Result<CheckedPart> part_to_check(const Graph& original, const Graph& optimized,
                                  const std::map<std::string, Tensor>& given = {}, size_t first = 0,
                                  std::vector<LostExtents>* lost = nullptr);

// Numbers to try for the symbols of a graph's inputs and of its nodes without definition, the likeliest first: small
// ones that differ, then the same one for all, up to what images need; where inputs are given, their extents.
std::vector<Substitution> choices_of_extents(const Graph& graph, const std::map<std::string, Tensor>& given = {});
// Extents of the graph's values that are numbers, from 2 to 1024: a symbol may have to be one of them.
std::vector<int64_t> extents_in_numbers(const Graph& graph);
std::string print_extents(const Substitution& extents);

}  // namespace gopt::driver
