// Kernels that only move floats or numbers of bf16, from one to the other, too, and read across the order in which they
// write: in squares, by the runtime's gopt_transpose.h.
#pragma once

#include <optional>
#include <string>

#include "../lower.h"

namespace gopt::codegen {

// The loops of such a body, whose iterations threads share where `parallel`; nothing where it is none.
std::optional<std::string> print_transposition(const KernelBody& body, bool parallel);

}  // namespace gopt::codegen
