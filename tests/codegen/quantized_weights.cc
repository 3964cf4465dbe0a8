#include "quantized_weights.h"

#include <random>

namespace gopt {

std::string places(int64_t extent, int64_t block) {
  return "constant places = i64[" + std::to_string(extent) + "] " +
         listed(extent, [&](int64_t k) { return k / block; }) + "\n";
}

std::string text_of(const QuantizedWeights& w, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t least = w.type == "i8" ? -(1 << (w.bits - 1)) : 0;
  const auto number = [&](int64_t) {
    return least + static_cast<int64_t>(random() % (uint64_t{1} << static_cast<unsigned>(w.bits)));
  };
  const auto scale = [&](int64_t) { return 0.01 + 0.001 * static_cast<double>(random() % 100); };
  const auto shape = [&](int64_t depth) {
    const int64_t columns = w.block < 0 ? 1 : w.columns;
    return w.is_transposed ? std::to_string(columns) + "," + std::to_string(depth)
                           : std::to_string(depth) + "," + std::to_string(columns);
  };
  const std::string dims = w.is_transposed ? std::to_string(w.columns) + "," + std::to_string(w.depth)
                                           : std::to_string(w.depth) + "," + std::to_string(w.columns);
  const int64_t blocks = w.block > 0 ? (w.depth + w.block - 1) / w.block : 1;
  const int64_t scales = blocks * (w.block < 0 ? 1 : w.columns);
  std::string text = "constant numbers = " + w.type + "[" + dims + "] " + listed(w.depth * w.columns, number) + "\n" +
                     "constant scales = f32[" + shape(blocks) + "] " + listed(scales, scale) + "\n";
  text += w.has_zeros ? "constant zeros = " + w.type + "[" + shape(blocks) + "] " + listed(scales, number) + "\n"
                      : "constant zeros = " + w.type + "[] {" + std::to_string(least + 3) + "}\n";
  if (w.block <= 0) return text + "dw = Dequantize(numbers, scales, zeros)\n";
  const std::string axis = w.is_transposed ? "1" : "0";
  text += places(w.depth, w.block) + "s = Gather(scales, places) {axis=" + axis + "}\n";
  if (w.has_zeros) text += "z = Gather(zeros, places) {axis=" + axis + "}\n";
  return text + "dw = Dequantize(numbers, s, " + (w.has_zeros ? "z" : "zeros") + ")\n";
}

std::string product_of(const std::string& rows, const QuantizedWeights& w, const std::string& steps, uint64_t seed) {
  return "input x : f32[" + rows + "," + std::to_string(w.depth) + "]\n" + text_of(w, seed) + steps + "output y = y";
}

}  // namespace gopt
