// Evaluates one stage on concrete tensors, a block of elements ("lanes") along one axis at a time. See interpreter.cc
// for who stages a node and owns the tensors.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gopt/definition.h"

namespace gopt::ir {

// A tensor in memory that a stage reads.
struct TensorView {
  ElementType type = ElementType::Undefined;
  std::vector<int64_t> dims;
  const std::byte* data = nullptr;
};

// Fills `out`, which has room for the stage's elements. Errors: a read out of bounds (data-dependent indexes only,
// unless a definition is wrong), a shape that is not static.
Status evaluate_stage(const Stage& stage, std::span<const TensorView> inputs, std::byte* out);

}  // namespace gopt::ir
