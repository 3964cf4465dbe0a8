// Attention as one kernel: softmax(scale query key + mask) value for each matrix of a batch, with what moves elements
// before and after it done by the steps through memory at which it reads and writes. Scores may also be chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/index.h"

namespace gopt {

// Matrices inside a tensor, by steps in elements.
struct StridedMatrices {
  Index offset;
  std::vector<Index> batch;     // along each axis of the batch; 0: the same matrix again
  Index line = 0, element = 1;  // from one line to the next, and within a line
};

// Scores that are replaced by a number: those whose truth value in a tensor of Bool, which has a line of one for each
// key, is not `kept`.
struct AttentionChoice {
  StridedMatrices at;
  bool kept = true;
  double otherwise = 0;
  bool is_first = true;  // before the mask and the bias are added, else after
};

// A line of `query` and `key` has `depth` elements, one of `value` and `result` `value_depth`. There are `rows` lines
// of query and result, `keys` of key and value. A line of the mask, and of the bias, has an element for each key.
struct Attention {
  std::vector<Index> batch;  // how many matrices along each axis: at most three
  Index rows = 0, keys = 0;
  int64_t depth = 0, value_depth = 0;
  double scale = 1;
  StridedMatrices query, key, value, result;
  std::optional<StridedMatrices> mask, bias;  // are both added to the scores; a bias only beside a mask
  std::optional<AttentionChoice> choice;      // of the scores times the scale
  bool nan_is_zero = false;  // a line whose scores have no softmax (all of them masked, or one not a number) is zero
};

// Elements of a line of any operand as a kernel holds them: whole fragments of the tensor cores.
int64_t padded_depth(const Attention& attention);

// Its implementations, as Target::without names them.
constexpr const char* kAttention = "kernel:attention";

// The implementations on a CPU: lines of the query side by side (codegen/cpu/runtime/gopt_attention_rows.h); and on
// matrix tiles, floats as sums of so many terms, or bfloat16 (gopt_attention_tiles.h).
constexpr const char* kAttentionRows = "attention";
constexpr const char *kAttentionOfSix = "attention-x6", *kAttentionOfThree = "attention-x3",
                     *kAttentionOfHalves = "attention-bf16";

// How a kernel for CUDA divides it: a block makes `rows` lines of the result, `key_warps` warps share the keys of a
// line, and `split` blocks, each of which has so many warps.
struct AttentionTile {
  int rows = 0, key_warps = 1, split = 1;
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};
// As Kernel::implementation names it: "attention:16x4", "attention:16x8:4" where blocks share keys.
std::string to_string(const AttentionTile& tile);
// The inverse; none: another's name.
std::optional<AttentionTile> parse_attention_tile(std::string_view implementation);

}  // namespace gopt
