// Convolutions and products of integers: those whose operands are of 8 bits under Dequantize, products of 32 bits of
// what was cast from 8, and convolutions of 64 bits whose sums are cast to 32. What Dequantize or Cast makes of the
// operands is nowhere in memory then.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cover.h"
#include "gopt/node_attributes.h"

namespace gopt::planner {
namespace {

bool is_of_8_bits(ElementType type) { return type == ElementType::UInt8 || type == ElementType::Int8; }

double number_of(const Value& constant) { return constant.node->tensor.to_doubles()[0]; }

class IntegerChooser {
 public:
  explicit IntegerChooser(Cover& cover) : cover_(cover) {}

  void run() {
    if (cover_.options.target.kind != TargetKind::Cpu) return;
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) {
      if (cover_.nodes[id].role != Role::Generated) continue;
      if (const auto convolution = convolution_of(id)) {
        take(id, Role::Convolution, *convolution);
        if (is_of_sums(id)) take_step(id, {Epilogue::Kind::Cast, made_by(id).uses[0].node});
      }
      if (const auto product = product_of(id)) take(id, Role::MatrixProduct, *product);
    }
    if (cover_.options.target.without.contains(kEpilogues)) return;
    for (uint32_t id = 0; id < cover_.nodes.size(); id++)
      if (cover_.nodes[id].integers) cover_.nodes[id].limit = extend(id);
  }

 private:
  bool is_weight(const Value& value) const { return cover_.nodes[cover_.id_of(value.node.get())].weight_only; }
  const ValueCover& result(uint32_t id) const { return cover_.values[cover_.nodes[id].first_value]; }

  // Sums of so many products stay within 32 bits.
  static bool is_summed_in_32_bits(int64_t depth) {
    constexpr int64_t kMost = 255 * 255;
    return depth > 0 && depth <= std::numeric_limits<int32_t>::max() / kMost;
  }

  // Of the left operand scale and zero point are numbers; of the right one, one or one for each of `count` places along
  // the axis.
  std::optional<IntegerCover> operands(const Node& node, size_t axis, int64_t count) const {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Value& operand = node.inputs[i];
      if (!operand.node->is(OpKind::Dequantize) || !is_of_8_bits(cover_.of(operand.node->inputs[0]).element))
        return std::nullopt;
      if (cover_.of(operand.node->inputs[0]).shape != cover_.of(operand).shape || cover_.of(operand).is_empty())
        return std::nullopt;
    }
    const Node &left = *node.inputs[0].node, &right = *node.inputs[1].node;
    if (is_weight(node.inputs[0]) || !is_small_constant(left.inputs[1])) return std::nullopt;
    const double scale = number_of(left.inputs[1]);
    if (!std::isfinite(scale)) return std::nullopt;
    for (const size_t i : {size_t{1}, size_t{2}})
      if (!is_weight(right.inputs[i]) ||
          !lies_along(cover_.of(right.inputs[i]), cover_.of(node.inputs[1]), axis, count))
        return std::nullopt;
    IntegerCover found{left.inputs[0], right.inputs[0], right.inputs[1], right.inputs[2], {}, {scale}};
    const bool is_number = is_small_constant(left.inputs[2]);
    if (is_number) found.operands.zero = static_cast<int64_t>(number_of(left.inputs[2]));
    if (cover_.of(node.inputs[0]).element != ElementType::Float64)
      return is_number ? std::optional(found) : std::nullopt;
    // Sums alone.
    const bool has_scales = scale != 1 || !is_small_constant(right.inputs[1]) || number_of(right.inputs[1]) != 1;
    if (has_scales || cover_.of(left.inputs[2]).count() != 1) return std::nullopt;
    found.right_scale = {};
    if (!is_number) found.left_zero = left.inputs[2];
    return found;
  }
  static bool lies_along(const ValueCover& value, const ValueCover& matrix, size_t axis, int64_t count) {
    if (value.count() == 1) return true;
    const size_t skipped = matrix.dims.size() - value.dims.size();
    return axis >= skipped && value.dims[axis - skipped] == count && value.count() == count;
  }

  // Of a product in integers: both as they are.
  std::optional<IntegerCover> cast_operands(const Node& node) const {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Value& operand = node.inputs[i];
      if (!operand.node->is(OpKind::Cast) || !is_of_8_bits(cover_.of(operand.node->inputs[0]).element) ||
          cover_.of(operand).is_empty())
        return std::nullopt;
    }
    if (is_weight(node.inputs[0])) return std::nullopt;
    return IntegerCover{node.inputs[0].node->inputs[0], node.inputs[1].node->inputs[0], {}, {}, {}, {}};
  }

  // One or two axes, by weights.
  std::optional<IntegerCover> convolution_of(uint32_t id) const {
    const Node& node = cover_.node(id);
    if (!node.is(OpKind::Conv) || !has_number_attributes(node) || !is_weight(node.inputs[1])) return std::nullopt;
    const std::vector<int64_t>& w = cover_.of(node.inputs[1]).dims;
    if (w.size() < 3 || w.size() > 4 || result(id).is_empty()) return std::nullopt;
    if (!is_summed_in_32_bits(element_count(w) / std::max<int64_t>(1, w[0]))) return std::nullopt;
    if (node.inputs.size() > 2 && node.inputs[2] && !is_bias(node.inputs[2], w[0])) return std::nullopt;
    if (result(id).element == ElementType::Float64 && !is_of_sums(id)) return std::nullopt;
    return operands(node, 0, w[0]);
  }
  // What was summed up in 64 bits, and is stored in 32.
  bool is_of_sums(uint32_t id) const {
    const auto use = result(id).element == ElementType::Float64 ? only_use(id) : std::nullopt;
    return use && cover_.node(use->node).is(OpKind::Cast) && made_by(use->node).element == ElementType::Int32;
  }

  std::optional<IntegerCover> product_of(uint32_t id) const {
    const Node& node = cover_.node(id);
    if (!(node.is(OpKind::MatMul) || node.is(OpKind::Gemm)) || result(id).is_empty()) return std::nullopt;
    if (result(id).element == ElementType::Float64) return std::nullopt;
    const ValueCover &a = cover_.of(node.inputs[0]), &b = cover_.of(node.inputs[1]);
    if (a.dims.size() < 2 || b.dims.size() < 2) return std::nullopt;
    const bool is_batched = b.dims.size() > 2 && a.shape.size() == b.shape.size() &&
                            std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
    if (!(b.dims.size() == 2 || is_batched)) return std::nullopt;
    const Index &depth = a.shape.back(), &width = result(id).shape.back();
    if (!depth.is_constant() || !width.is_constant() || !is_summed_in_32_bits(depth.constant())) return std::nullopt;
    const bool is_transposed = node.is(OpKind::Gemm) && int_or(node, "transB", 0) != 0;
    if (node.is(OpKind::Gemm) && !is_plain_gemm(node, width)) return std::nullopt;
    if (result(id).element == ElementType::Int32) return cast_operands(node);
    return operands(node, b.dims.size() - (is_transposed ? 2 : 1), width.constant());
  }
  bool is_plain_gemm(const Node& node, const Index& width) const {
    if (!has_number_attributes(node) || int_or(node, "transA", 0) != 0) return false;
    if (real_or(node, "alpha", 1) != 1 || real_or(node, "beta", 1) != 1) return false;
    return node.inputs.size() < 3 || !node.inputs[2] || is_bias(node.inputs[2], width);
  }
  bool is_bias(const Value& value, const Index& width) const {
    const ValueCover& v = cover_.of(value);
    return is_weight(value) && v.element == ElementType::Float32 && !v.shape.empty() && v.shape.back() == width &&
           v.elements() == width;
  }

  // ---- what is done before the result is stored ----

  const ValueCover& made_by(uint32_t node) const { return cover_.values[cover_.nodes[node].first_value]; }
  // The generated node that alone uses what this one makes.
  std::optional<Use> only_use(uint32_t node) const {
    const ValueCover& value = made_by(node);
    if (value.is_output || value.uses.size() != 1) return std::nullopt;
    const Use use = value.uses[0];
    const bool is_alike = made_by(use.node).shape == value.shape && cover_.nodes[use.node].role == Role::Generated;
    return is_alike ? std::optional(use) : std::nullopt;
  }
  FusionLimit end_after(uint32_t node) const {
    const ValueCover& value = made_by(node);
    if (value.is_output) return FusionLimit::Output;
    return value.uses.empty()       ? FusionLimit::Unused
           : value.uses.size() != 1 ? FusionLimit::SeveralUsers
                                    : FusionLimit::UserNoEpilogue;
  }

  // A bias, bounds, and what makes 8 bits of it again, in this order; then what is added to that.
  FusionLimit extend(uint32_t id) {
    if (!cover_.nodes[id].epilogues.empty()) return end_after(cover_.nodes[id].epilogues[0].node);
    if (result(id).element == ElementType::Int32) return end_after(id);
    const bool is_product = cover_.nodes[id].role == Role::MatrixProduct;
    const bool is_biased = cover_.node(id).inputs.size() > 2 && cover_.node(id).inputs[2];
    std::vector<EpilogueStep> steps;
    uint32_t last = id;
    if (const auto use = only_use(last); use && is_product && !is_biased) {
      if (is_bias_of(*use)) {
        steps.push_back({Epilogue::Kind::Bias, use->node, 1 - use->position});
        last = use->node;
      }
    }
    last = add_bounds(last, steps);
    bool is_rounded = false;
    if (const auto use = only_use(last); use && use->position == 0 && is_library_quantize(cover_.node(use->node))) {
      steps.push_back({Epilogue::Kind::Quantize, use->node});
      last = use->node;
      is_rounded = true;
    }
    for (const EpilogueStep& step : steps) take_step(id, step);
    if (is_rounded) add_second(id, last);
    return is_rounded ? FusionLimit::ActivationLast : end_after(last);
  }
  bool is_bias_of(const Use& use) const {
    const Node& node = cover_.node(use.node);
    return node.is(OpKind::Add) &&
           is_bias(node.inputs[static_cast<size_t>(1 - use.position)], made_by(use.node).shape.back());
  }
  // Relu or Clip.
  uint32_t add_bounds(uint32_t last, std::vector<EpilogueStep>& steps) const {
    const auto use = only_use(last);
    if (!use) return last;
    const auto activation = library_activation(cover_.node(use->node));
    const bool has_bounds =
        activation && (activation->kind == ActivationKind::Relu || activation->kind == ActivationKind::Clip);
    if (!has_bounds) return last;
    steps.push_back({Epilogue::Kind::Activation, use->node, -1, {}, *activation});
    return use->node;
  }

  // What was rounded as a float again, a bias or another tensor of 8 bits that is added, bounds, and 8 bits again.
  // Once: a kernel stores what it rounds for the second time.
  void add_second(uint32_t id, uint32_t quantized) {
    const auto back = only_use(quantized);
    if (!back || back->position != 0 || !is_dequantized_alike(cover_.node(back->node))) return;
    const auto sum = only_use(back->node);
    if (!sum || !cover_.node(sum->node).is(OpKind::Add)) return;
    EpilogueStep step{Epilogue::Kind::Bias, sum->node, 1 - sum->position, {back->node}};
    const Value& other = cover_.node(sum->node).inputs[static_cast<size_t>(step.operand)];
    const bool is_product = cover_.nodes[id].role == Role::MatrixProduct;
    if (!is_product || !is_bias_of(*sum)) {
      if (!is_addend(other, made_by(sum->node))) return;
      step.kind = Epilogue::Kind::AddTensor;
    }
    std::vector<EpilogueStep> steps{step};
    const uint32_t last = add_bounds(sum->node, steps);
    const auto end = only_use(last);
    if (!end || end->position != 0 || !is_library_quantize(cover_.node(end->node))) return;
    steps.push_back({Epilogue::Kind::Quantize, end->node});
    if (step.kind == Epilogue::Kind::AddTensor) read_instead(sum->node, step.operand, other.node->inputs[0], id);
    for (const EpilogueStep& each : steps) take_step(id, each);
  }
  // Of one constant scale and zero point, 8 bits.
  bool is_dequantized_alike(const Node& node) const {
    return node.is(OpKind::Dequantize) && is_of_8_bits(node.inputs[0].type().element) &&
           is_small_constant(node.inputs[1]) && is_small_constant(node.inputs[2]) &&
           std::isfinite(number_of(node.inputs[1])) &&
           cover_.of(node.inputs[0]).shape == cover_.of({cover_.graph.nodes()[cover_.id_of(&node)], 0}).shape;
  }
  bool is_addend(const Value& value, const ValueCover& sum) const {
    return is_dequantized_alike(*value.node) && !is_weight(value) && cover_.of(value).shape == sum.shape &&
           cover_.nodes[cover_.id_of(value.node.get())].role == Role::Generated;
  }

  void take_step(uint32_t id, const EpilogueStep& step) {
    cover_.nodes[id].epilogues.push_back(step);
    std::vector<uint32_t> nodes = step.inner;
    nodes.push_back(step.node);
    for (const uint32_t node : nodes) {
      cover_.nodes[node].role = Role::Epilogue;
      cover_.nodes[node].owner = id;
    }
  }

  void take(uint32_t id, Role role, const IntegerCover& integers) {
    cover_.nodes[id].role = role;
    cover_.nodes[id].integers = integers;
    read_instead(id, 0, integers.left, id);
    read_instead(id, 1, integers.right, id);
    if (integers.left_zero) cover_.values[cover_.index_of(integers.left_zero)].uses.push_back({id, 0});
  }

  // What Dequantize makes of the value is read by nobody then, unless others do.
  void read_instead(uint32_t id, int position, const Value& value, uint32_t owner) {
    const Value& operand = cover_.node(id).inputs[static_cast<size_t>(position)];
    remove_use(operand, id, position);
    cover_.values[cover_.index_of(value)].uses.push_back({id, position});
    const uint32_t maker = cover_.id_of(operand.node.get());
    const ValueCover& own = cover_.of(operand);
    if (cover_.nodes[maker].role != Role::Generated || !own.uses.empty() || own.is_output) return;
    cover_.nodes[maker].role = Role::Covered;
    cover_.nodes[maker].owner = owner;
    for (size_t i = 0; i < operand.node->inputs.size(); i++)
      remove_use(operand.node->inputs[i], maker, static_cast<int>(i));
  }
  void remove_use(const Value& value, uint32_t node, int position) {
    std::erase_if(cover_.values[cover_.index_of(value)].uses,
                  [&](const Use& use) { return use.node == node && use.position == position; });
  }

  Cover& cover_;
};

}  // namespace

void choose_integer_kernels(Cover& cover) { IntegerChooser(cover).run(); }

const IntegerCover* integers_of(const Cover& cover, uint32_t id) {
  const NodeCover& own = cover.nodes[id];
  const NodeCover& maker = own.role == Role::Epilogue ? cover.nodes[own.owner] : own;
  return maker.integers ? &*maker.integers : nullptr;
}

bool is_library_quantize(const Node& node) {
  if (!node.is(OpKind::Quantize) || !is_small_constant(node.inputs[1]) || !is_small_constant(node.inputs[2]))
    return false;
  const double scale = number_of(node.inputs[1]);
  return is_of_8_bits(node.outputs[0].element) && node.outputs[0].shape == node.inputs[0].type().shape && scale > 0 &&
         std::isfinite(scale);
}

}  // namespace gopt::planner
