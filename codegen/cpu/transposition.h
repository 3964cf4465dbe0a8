// Kernels of floats, of numbers of bf16 or of 8 bits, from one to the other, too, that read one input across the order
// in which they write: in squares, by the runtime's gopt_transpose.h. What they compute on it beside moving it is
// computed on a tile of it that is turned over first.
#pragma once

#include <optional>
#include <string>

#include "../lower.h"

namespace gopt::codegen {

// The loops of such a body, whose iterations threads share where `parallel`; nothing where it is none.
std::optional<std::string> print_transposition(const KernelBody& body, bool parallel);

}  // namespace gopt::codegen
