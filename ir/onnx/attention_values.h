// Heads and rotations, for lower_attention.cc and lower_fused_attention.cc.
#pragma once

#include "lowering.h"

namespace gopt::ir {

// [batch, length, heads x size] as [batch, heads, length, size]; of four axes it is x.
Value split_heads(Lowering& l, const Value& x, int64_t heads);
// The other way round.
Value joined_heads(Lowering& l, const Value& x);
// Pairs of the first `turned` places of each head of x [batch, heads, length, size] turned by angles [batch, 1, length,
// turned / 2]: halves, or neighbours where they are interleaved.
Value rotated(Lowering& l, const Value& x, const Value& cosine, const Value& sine, int64_t turned, bool interleaved);

}  // namespace gopt::ir
