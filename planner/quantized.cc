// Products of floats by weights of 8 bits or fewer under Dequantize, each scale of which is one of a part of a column:
// what kernels multiply by as they are (codegen/cpu/runtime/gopt_quantized.h, codegen/cuda/runtime/
// gopt_quantized_vectors.cuh).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "access.h"
#include "cover.h"
#include "gopt/node_attributes.h"
#include "gopt/runtime/gopt_few_rows.h"
#include "gopt/runtime/gopt_quantized_chunk.h"
#include "gopt/vector_product.h"

namespace gopt::planner {
namespace {

// A scale or zero point of blocks along an axis of the weights: what `places`, one for each of the axis, choose from.
struct Blocks {
  Value values;
  int64_t block = 0;  // 0: all along the axis have one
};

const Tensor* constant_of(const Value& value) {
  return value.node->is(OpKind::Constant) ? &value.node->tensor : nullptr;
}

// Where places are 0, 0, ..., 1, 1, ...: how often each; 0 where all are 0.
std::optional<int64_t> block_of(const std::vector<int64_t>& places) {
  const auto block = std::ranges::find_if(places, [](int64_t place) { return place != 0; }) - places.begin();
  if (block == static_cast<int64_t>(places.size())) return 0;
  if (block == 0) return std::nullopt;
  for (size_t k = 0; k < places.size(); k++)
    if (places[k] != static_cast<int64_t>(k) / block) return std::nullopt;
  return block;
}

// The least and the greatest of integers of 8 bits, many at a time: weights are gigabytes.
using Range = std::pair<int, int>;
template <class Number>
Range range_of(std::span<const std::byte> bytes) {
  Number least = std::numeric_limits<Number>::max(), greatest = std::numeric_limits<Number>::min();
  for (const std::byte byte : bytes) {
    const auto number = static_cast<Number>(byte);
    least = number < least ? number : least;
    greatest = number > greatest ? number : greatest;
  }
  return {least, greatest};
}
Range range_of(const Tensor& tensor) {
  return tensor.type() == ElementType::UInt8 ? range_of<uint8_t>(tensor.bytes()) : range_of<int8_t>(tensor.bytes());
}

// Whether floats are halves: none lacks a digit or is too small or too large.
bool are_halves(const Tensor& tensor) {
  constexpr uint32_t kSign = uint32_t{1} << 31, kDigitsBeyond = 0x1fff;
  constexpr float kLeast = 6.103515625e-5F, kMost = 65504;
  const uint32_t least = std::bit_cast<uint32_t>(kLeast), range = std::bit_cast<uint32_t>(kMost) - least;
  uint32_t others = 0;
  for (int64_t i = 0; i < tensor.count(); i++) {
    uint32_t bits = 0;
    std::memcpy(&bits, tensor.bytes().data() + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    const uint32_t size = bits & ~kSign;
    others |= (bits & kDigitsBeyond) | static_cast<uint32_t>(size != 0 && size - least > range);
  }
  return others == 0;
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.count(); i++) {
    const double size = std::abs(load_double(tensor.bytes().data(), tensor.type(), i));
    if (std::isnan(size)) return size;
    largest = std::max(largest, size);
  }
  return largest;
}

class QuantizedOperand {
 public:
  QuantizedOperand(const Cover& cover, const Node& product)
      : cover_(cover), weights_(product.inputs[1]), is_for_cuda_(cover.options.target.kind == TargetKind::Cuda) {
    if (product.is(OpKind::Gemm)) is_transposed_ = int_or(product, "transB", 0) != 0;
  }

  std::optional<QuantizedCover> find() {
    const ElementType type = cover_.of(weights_).element;
    while (is_transpose(*weights_.node) || (is_for_cuda_ && narrows(*weights_.node))) {
      if (is_transpose(*weights_.node)) is_transposed_ = !is_transposed_;
      weights_ = weights_.node->inputs[0];
    }
    const Node& made = *weights_.node;
    if (!made.is(OpKind::Dequantize) || cover_.of(weights_).dims.size() != 2) return std::nullopt;
    const Tensor* numbers = constant_of(made.inputs[0]);
    if (!numbers || (numbers->type() != ElementType::UInt8 && numbers->type() != ElementType::Int8))
      return std::nullopt;
    if (numbers->dims() != cover_.of(weights_).dims) return std::nullopt;
    const std::optional<Blocks> scale = blocks(made.inputs[1]), zero = blocks(made.inputs[2]);
    if (!scale || !zero) return std::nullopt;
    const Range zeros = range_of(*constant_of(zero->values));
    const bool is_one_zero = zeros.first == zeros.second;
    const int64_t block_of_zeros = is_one_zero ? 0 : zero->block;
    const int64_t block = scale->block != 0 ? scale->block : block_of_zeros;
    if (block_of_zeros != 0 && block_of_zeros != block) return std::nullopt;
    if (block % gopt_runtime::kQuantizedRows != 0) return std::nullopt;
    const bool has_signs = numbers->type() == ElementType::Int8;
    QuantizedOperands operands{has_four_bits(zeros, has_signs) && has_four_bits(range_of(*numbers), has_signs) ? 4 : 8,
                               block != 0 ? block : numbers->dims()[axis()], is_transposed_};
    if (is_one_zero) operands.zero_of_all = zeros.first;
    QuantizedCover found{made.inputs[0], scale->values, is_one_zero ? Value{} : zero->values, operands};
    if (is_for_cuda_ && !describe_words(type, found)) return std::nullopt;
    return found;
  }

 private:
  size_t axis() const { return is_transposed_ ? 1 : 0; }

  bool is_transpose(const Node& node) const {
    return node.is(OpKind::Transpose) && cover_.of(weights_).dims.size() == 2 &&
           ints_or(node, "perm", {1, 0}) == std::vector<int64_t>{1, 0};
  }

  // A cast of floats to 16 bits, which the kernel has no need of. Others may change the numbers.
  bool narrows(const Node& node) const {
    return node.is(OpKind::Cast) && cover_.of(node.inputs[0]).element == ElementType::Float32 &&
           is_half(cover_.of(weights_).element);
  }

  // On CUDA numbers are read by groups of words, of which a block has a power of two; what halves hold is halves.
  bool describe_words(ElementType type, QuantizedCover& found) const {
    constexpr int kGreatest = 255;
    constexpr double kLargestHalf = 65504;
    const Tensor& scales = *constant_of(found.scale);
    const int64_t depth = constant_of(found.numbers)->dims()[axis()],
                  chunk = gopt_runtime::numbers_of_chunk(found.operands.bits);
    const int64_t block = found.operands.block, of_group = chunk / gopt_runtime::kGroupsOfChunk;
    const bool has_blocks = block % of_group == 0 && std::has_single_bit(static_cast<uint64_t>(block / of_group));
    if (depth % chunk != 0 || (block != depth && !has_blocks)) return false;
    if (scales.type() != ElementType::Float32) return false;
    // What the cast would make infinite.
    if (type == ElementType::Float16 && !(largest_of(scales) * kGreatest < kLargestHalf)) return false;
    found.scale_type = are_halves(scales) ? ElementType::Float16 : ElementType::Float32;
    return true;
  }

  std::optional<Blocks> blocks(const Value& value) const {
    const Node& node = *value.node;
    if (node.is(OpKind::Gather)) {
      const auto rank = static_cast<int64_t>(cover_.of(node.inputs[0]).dims.size());
      const int64_t along = int_or(node, "axis", 0);
      const Tensor* places = constant_of(node.inputs[1]);
      const bool is_along = rank == 2 && (along < 0 ? along + rank : along) == static_cast<int64_t>(axis());
      if (!is_along || !places || places->dims().size() != 1 || !constant_of(node.inputs[0])) return std::nullopt;
      const auto block = block_of(places->to_ints());
      return block ? std::optional(Blocks{node.inputs[0], *block}) : std::nullopt;
    }
    if (!constant_of(value)) return std::nullopt;
    // One for each column, or for all.
    const std::vector<int64_t>& dims = cover_.of(value).dims;
    const bool has_axis = dims.size() + axis() >= 2;
    if (dims.size() > 2 || (has_axis && dims[dims.size() - 2 + axis()] != 1)) return std::nullopt;
    return Blocks{value, 0};
  }

  static bool has_four_bits(const Range& range, bool has_signs) {
    constexpr int kLeast = -8, kMost = 7;
    return has_signs ? range.first >= kLeast && range.second <= kMost : range.second <= kMost - kLeast;
  }

  const Cover& cover_;
  Value weights_;
  bool is_for_cuda_;
  bool is_transposed_ = false;
};

// Of a few rows reading weights is what takes time. How many there are of more is known where a plan is for one size:
// products of floats are faster there, or as fast. Columns are what threads share.
bool is_for_integers(const Cover& cover, const Node& product) {
  constexpr int64_t kColumnsOfThread = 64, kFewestOnCuda = int64_t{1} << 17;
  const ValueCover &x = cover.of(product.inputs[0]), &w = cover.of(product.inputs[1]);
  const Index rows = product_of(Shape(x.shape.begin(), x.shape.end() - 1));
  // On CUDA few weights are read while the kernel before ends, as floats, too.
  if (cover.options.target.kind == TargetKind::Cuda)
    return rows.is_constant() && rows.constant() <= kMostQuantizedLines && w.count() >= kFewestOnCuda;
  const bool has_few = !rows.is_constant() || rows.constant() <= gopt_runtime::kMostRows;
  return has_few && w.count() / std::max<int64_t>(1, x.dims.back()) >= kColumnsOfThread * cover.options.target.threads;
}

}  // namespace

std::optional<QuantizedCover> quantized_weights(const Cover& cover, const Node& product) {
  const Target& target = cover.options.target;
  if (target.kind == TargetKind::Onnx || target.without.contains(kQuantized)) return std::nullopt;
  if (target.kind == TargetKind::Cpu && cover.of(product.inputs[0]).element != ElementType::Float32)
    return std::nullopt;
  if (product.is(OpKind::Gemm) && int_or(product, "transA", 0) != 0) return std::nullopt;
  return is_for_integers(cover, product) ? QuantizedOperand(cover, product).find() : std::nullopt;
}

}  // namespace gopt::planner
