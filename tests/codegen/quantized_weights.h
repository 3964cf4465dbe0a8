// Graphs of products by quantized weights, as text.
#pragma once

#include <cstdint>
#include <string>

namespace gopt {

template <class Number>
std::string listed(int64_t count, const Number& number) {
  std::string text = "{";
  for (int64_t k = 0; k < count; k++) text += (k ? ", " : "") + std::to_string(number(k));
  return text + "}";
}
// Of a scale or zero point in blocks of so many: which a place has. Declares `places`.
std::string places(int64_t extent, int64_t block);

struct QuantizedWeights {
  int64_t depth, columns;
  int bits;
  std::string type;            // i8 or u8
  int64_t block;               // 0: a scale for each column; -1: one for all
  bool has_zeros = true;       // of blocks; else one for all
  bool is_transposed = false;  // [columns, depth]
};

// Declares the weights `dw`, drawn.
std::string text_of(const QuantizedWeights& weights, uint64_t seed);
// A graph of `x` of so many rows, the weights, and steps that make `y` of both.
std::string product_of(const std::string& rows, const QuantizedWeights& weights, const std::string& steps,
                       uint64_t seed);

}  // namespace gopt
