// Functions of rows whose definition by elements would look at a whole row for each of them: running sums and products,
// and what is largest, in order. For code, operators over longer rows are read as nodes of these, which are opaque to
// passes and rules; the interpreter computes them one element after another, and the code's kernels are checked against
// that.
#pragma once

#include "gopt/graph.h"

namespace gopt {

struct RowFunction {
  // Sum, Product: of a row's elements up to each. Top: its largest, as many as the results' last extent says, largest
  // first, and their places in the row; of equal ones the first comes first, and a NaN is above all numbers.
  enum class Kind { Sum, Product, Top };

  Kind kind;
  int64_t axis = 0;           // that rows lie along, from 0 on; for Top the input's last
  bool is_reversed = false;   // Sum, Product: from the last element to the first
  bool is_exclusive = false;  // Sum, Product: without the element itself
  bool is_largest = true;     // Top: else the smallest first
};
// A node's one input has elements of 32 or 64 bits, floats or signed integers. Its outputs: of Sum and Product one like
// the input (floats are accumulated in 64 bits, integers wrap around); of Top the values and, int64, their places.

const char* to_string(RowFunction::Kind kind);  // "Sum"

// All that it is, as a name: of equal texts they are equal.
std::string to_string(const RowFunction& function);

// How many elements a node takes that is a Top: rows have no fewer.
const Index& taken_by(const Node& node);

// The extents of [outer, row, inner] that a tensor of this shape is to it.
struct RowExtents {
  Index outer, row, inner;
};
RowExtents extents_of(const RowFunction& function, const Shape& shape);

}  // namespace gopt
