// Floats as sums of two bfloat16: x = high + low, where what is left out is below 2^-17 of x. Then
//   x w = high(x) high(w) + low(x) high(w) + high(x) low(w)
// up to low(x) low(w), which is below 2^-17 of it: a product over three times the depth, whose operands are bfloat16
// and whose sums are floats. The parts lie one after another: of the left operand high, low, high, of the right one
// high, high, low. A number that is not finite has itself as its first part, and zeros: infinities stay what they are.
#pragma once

#include <cstdint>
#include <vector>

namespace gopt_runtime {

enum class Side { Left, Right };

// From `runs` runs of `length` floats to runs of three times as many bfloat16, by so many threads.
void split(Side side, const float* from, uint16_t* to, int64_t runs, int64_t length, int threads);
// The same as floats that bfloat16 holds: weights, which are reordered on.
std::vector<float> split(Side side, const float* from, int64_t runs, int64_t length);

}  // namespace gopt_runtime
