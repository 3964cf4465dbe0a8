// What the planner knows of products of a few rows (gopt_rows.h), and, as this file goes out with the model, these.
#pragma once

#include <cstdint>

namespace gopt_runtime {

// As many rows as there are registers for.
constexpr int64_t kMostRows = 16;

// Rows of quantized weights that blocks with a scale of their own are multiples of (gopt_quantized.h).
constexpr int64_t kQuantizedRows = 8;

}  // namespace gopt_runtime
