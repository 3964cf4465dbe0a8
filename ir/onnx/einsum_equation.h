// The equation of an Einsum, read: a label for each axis of each input and of the result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/index.h"
#include "gopt/type.h"

namespace gopt::ir {

// Labels are one character an axis; axes of an ellipsis have characters that no equation can name, counted from the
// last. In an input a label may repeat (its diagonal); in the result none does, and each stands in an input, too.
struct EinsumEquation {
  std::vector<std::string> terms;  // by input
  std::string result;
};

// Without "->" the result is what stands once, in alphabetical order, after the ellipsis. Nothing where the equation
// does not fit inputs of these ranks, or names in the result what is none, or twice.
std::optional<EinsumEquation> read_einsum(std::string equation, const std::vector<size_t>& ranks);

// The result's extents, one an axis, from those of inputs of known shapes: all of one label agree but for those of 1,
// which broadcast. An axis is left out (nullopt) where extents of its label may or may not be one.
std::vector<std::optional<Index>> einsum_extents(const EinsumEquation& equation, const std::vector<Shape>& shapes);

}  // namespace gopt::ir
