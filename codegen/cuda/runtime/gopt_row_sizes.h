#pragma once

#include <cstdint>

namespace gopt_runtime {
namespace rows {

// A tensor of [outer, row, inner] elements.
struct RowSizes {
  int64_t outer, row, inner;
};

}  // namespace rows
}  // namespace gopt_runtime
