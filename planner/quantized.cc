// Products of floats by weights of 8 bits or fewer under Dequantize, each scale of which is one of a part of a column:
// what a kernel on the CPU multiplies by as they are (codegen/cpu/runtime/gopt_quantized.h).
#include <algorithm>

#include "cover.h"
#include "gopt/node_attributes.h"

namespace gopt::planner {
namespace {

constexpr int64_t kGroup = 8;  // rows of the weights that blocks are multiples of

// A scale or zero point of blocks along an axis of the weights: what `places`, one for each of the axis, choose from.
struct Blocks {
  Value values;
  int64_t block = 0;  // 0: all along the axis have one
};

const Tensor* constant_of(const Value& value) {
  return value.node->is(OpKind::Constant) ? &value.node->tensor : nullptr;
}

// Where places are 0, 0, ..., 1, 1, ...: how often each.
std::optional<int64_t> block_of(const std::vector<int64_t>& places) {
  const int64_t block = std::ranges::find_if(places, [](int64_t place) { return place != 0; }) - places.begin();
  for (size_t k = 0; k < places.size(); k++)
    if (places[k] != static_cast<int64_t>(k) / block) return std::nullopt;
  return block;
}

class QuantizedOperand {
 public:
  QuantizedOperand(const Cover& cover, const Node& product) : cover_(cover), weights_(product.inputs[1]) {
    if (product.is(OpKind::Gemm)) is_transposed_ = int_or(product, "transB", 0) != 0;
  }

  std::optional<QuantizedCover> find() {
    if (weights_.node->is(OpKind::Transpose) && cover_.of(weights_).dims.size() == 2) {
      if (ints_or(*weights_.node, "perm", {1, 0}) != std::vector<int64_t>{1, 0}) return std::nullopt;
      is_transposed_ = !is_transposed_;
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
    const int64_t block = scale->block != 0 ? scale->block : zero->block;
    if (zero->block != 0 && zero->block != block) return std::nullopt;
    if (block % kGroup != 0) return std::nullopt;
    const bool is_small = is_of_four_bits(*numbers) && is_of_four_bits(*constant_of(zero->values));
    return QuantizedCover{made.inputs[0],
                          scale->values,
                          zero->values,
                          {is_small ? 4 : 8, block != 0 ? block : numbers->dims()[axis()], is_transposed_, -1, -1}};
  }

 private:
  size_t axis() const { return is_transposed_ ? 1 : 0; }

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

  static bool is_of_four_bits(const Tensor& tensor) {
    constexpr int kLeast = -8, kMost = 7;
    const std::span<const std::byte> bytes = tensor.bytes();
    if (tensor.type() == ElementType::UInt8)
      return std::ranges::all_of(bytes, [](std::byte b) { return static_cast<uint8_t>(b) <= kMost - kLeast; });
    return std::ranges::all_of(bytes, [](std::byte b) {
      const int number = static_cast<int8_t>(b);
      return number >= kLeast && number <= kMost;
    });
  }

  const Cover& cover_;
  Value weights_;
  bool is_transposed_ = false;
};

}  // namespace

std::optional<QuantizedCover> quantized_weights(const Cover& cover, const Node& product) {
  const Target& target = cover.options.target;
  if (target.kind != TargetKind::Cpu || target.without.contains("kernel:quantized") ||
      cover.of(product.inputs[0]).element != ElementType::Float32)
    return std::nullopt;
  if (product.is(OpKind::Gemm) && int_or(product, "transA", 0) != 0) return std::nullopt;
  return QuantizedOperand(cover, product).find();
}

}  // namespace gopt::planner
