// Inputs that a result is checked on beside ordinary ones: large, tiny and shifted numbers, masked rows, and numbers
// around the constants that a rewrite removed. What overflows, vanishes or cancels after a rewrite shows there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/driver.h"

namespace gopt::driver {

enum class InputKind { Ordinary, Large, Tiny, Shifted, Masked, NearConstants };
std::string_view to_string(InputKind kind);
constexpr InputKind kInputKinds[] = {InputKind::Ordinary, InputKind::Large,  InputKind::Tiny,
                                     InputKind::Shifted,  InputKind::Masked, InputKind::NearConstants};

// How far results may be apart on such inputs, where `tolerance` is that of ordinary ones.
Tolerance tolerance_for(InputKind kind, Tolerance tolerance);
// Adds to the report how far the outputs of two models, of `original`'s names, are apart on one draw.
void add_draw(CheckReport& report, const Graph& original, InputKind kind, const std::vector<Tensor>& reference,
              const std::vector<Tensor>& other, const Tolerance& tolerance);

// Numbers that the first graph's nodes hold, as small tensors or attributes, and the second's do not.
std::vector<double> removed_constants(const Graph& original, const Graph& optimized);

// Ordinary inputs made into others of that kind; what is no floating-point tensor stays as it is.
std::map<std::string, Tensor> inputs_of_kind(const std::map<std::string, Tensor>& ordinary, InputKind kind,
                                             const std::vector<double>& constants, uint64_t seed);

}  // namespace gopt::driver
