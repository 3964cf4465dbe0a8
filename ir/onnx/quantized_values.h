// What is quantized and dequantized where a model is read, for lower_quantized.cc and lower_microsoft.cc.
#pragma once

#include "lowering.h"

namespace gopt::ir {

bool is_quantized_type(ElementType type);  // integers of 8 and 16 bits

// A scale or zero point of a tensor of `rank` axes: of the whole tensor, or one for each place along the axis.
Value along_axis(Lowering& l, const Value& v, int64_t axis, size_t rank);

// Scales or zero points of blocks of so many places along an axis of x, one for each element. Errors: Unlowered where
// there are not as many.
Value spread_blocks(Lowering& l, const Value& of_blocks, const Value& x, int64_t axis, int64_t block);

// Scale and zero point broadcast; no zero point is zero.
Value quantize(Lowering& l, const Value& x, const Value& scale, const Value& zero);
Value dequantize(Lowering& l, const Value& x, const Value& scale, const Value& zero);

// Sums of products of integers less their zero points (null: 0), which are of the whole or of a line or column.
Value integer_product(Lowering& l, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero);

// What sums of products of integers are to be multiplied by: a scale, or one for each channel.
Value scale_product(Lowering& l, const Value& a, const Value& b, double factor = 1);

}  // namespace gopt::ir
