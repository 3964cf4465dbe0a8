// Operators of com.microsoft that ONNX Runtime's optimizer writes into the models it saves: several of ONNX's in one.
// One of the same origin that stands in ONNX's own domain is here, too.
#include <algorithm>
#include <array>
#include <cmath>

#include "fused_values.h"

namespace gopt::ir {

Value sum_of(Lowering& l, const Values& terms) {
  Value sum = terms.at(0);
  for (size_t i = 1; i < terms.size(); i++)
    if (terms[i]) sum = l.add(sum, terms[i]);
  return sum;
}

namespace {

// ---- activations ----

Value times(Lowering& l, const Value& x, double factor) { return l.mul(x, l.scalar(type_of(x), factor)); }

// x times the normal distribution function.
Value gelu(Lowering& l, const Value& x) {
  Lowering::require(is_floating(type_of(x)));
  if (l.opset() >= op_info(OpKind::Gelu).since_opset) return l.op(OpKind::Gelu, {x});
  const Value erf = l.op(OpKind::Erf, {times(l, x, std::sqrt(0.5))});
  return times(l, l.mul(x, l.add(erf, l.scalar(type_of(x), 1))), 0.5);
}
Value fast_gelu(Lowering& l, const Value& x) {
  Lowering::require(is_floating(type_of(x)));
  if (l.opset() >= op_info(OpKind::Gelu).since_opset)
    return l.op(OpKind::Gelu, {x}, {{"approximate", std::string("tanh")}});
  constexpr double kOfCube = 0.044715;
  const double root = std::sqrt(2 / M_PI);
  const Value inner = l.mul(x, l.add(times(l, l.mul(x, x), root * kOfCube), l.scalar(type_of(x), root)));
  return times(l, l.mul(x, l.add(l.op(OpKind::Tanh, {inner}), l.scalar(type_of(x), 1))), 0.5);
}

Values lower_gelu(Lowering& l) { return {gelu(l, l.input(0))}; }
Values lower_bias_gelu(Lowering& l) { return {gelu(l, l.add(l.input(0), l.input(1)))}; }
Values lower_fast_gelu(Lowering& l) { return {fast_gelu(l, sum_of(l, {l.input(0), optional_input(l, 1)}))}; }
Values lower_quick_gelu(Lowering& l) {
  const Value x = l.input(0);
  return {l.mul(x, l.op(OpKind::Sigmoid, {times(l, x, l.real("alpha", 1.702))}))};
}

// What follows a convolution or a product; `parameters` in the order of its own attributes.
Value activated(Lowering& l, const Value& x, const std::string& name, const std::vector<double>& parameters) {
  struct Row {
    const char* name;
    OpKind kind;
    std::array<const char*, 2> attributes;  // null: none
  };
  constexpr Row kRows[] = {{"Relu", OpKind::Relu, {}},
                           {"Sigmoid", OpKind::Sigmoid, {}},
                           {"Tanh", OpKind::Tanh, {}},
                           {"Softplus", OpKind::Softplus, {}},
                           {"Softsign", OpKind::Softsign, {}},
                           {"LeakyRelu", OpKind::LeakyRelu, {"alpha"}},
                           {"Elu", OpKind::Elu, {"alpha"}},
                           {"HardSigmoid", OpKind::HardSigmoid, {"alpha", "beta"}},
                           {"Clip", OpKind::Clip, {"min", "max"}}};
  if (name.empty()) return x;
  for (const Row& row : kRows) {
    if (name != row.name) continue;
    Attributes attributes;
    for (size_t i = 0; i < row.attributes.size() && row.attributes[i]; i++) {
      Lowering::require(i < parameters.size());
      attributes[row.attributes[i]] = parameters[i];
    }
    return l.op(row.kind, {x}, attributes);
  }
  Lowering::leave();
}

// ---- products and convolutions ----

// With its lines, or its first axis, and its last axis brought to where a product has them.
Value turned_operand(Lowering& l, const Value& x, bool is_turned, bool is_batch_turned) {
  const auto rank = static_cast<int64_t>(rank_of(x));
  Lowering::require(!is_batch_turned || rank > 2);
  if (rank < 2) return x;
  std::vector<int64_t> perm;
  for (int64_t k = is_batch_turned ? 1 : 0; k < rank - (is_batch_turned ? 1 : 2); k++) perm.push_back(k);
  perm.push_back(is_batch_turned ? 0 : rank - 2);
  perm.push_back(rank - 1);
  if (is_turned) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return l.transpose(x, perm);
}
Values lower_fused_product(Lowering& l) {
  const auto is = [&](const char* name) { return l.integer(name, 0) != 0; };
  const Value a = turned_operand(l, l.input(0), is("transA"), is("transBatchA")),
              b = turned_operand(l, l.input(1), is("transB"), is("transBatchB"));
  const double alpha = l.real("alpha", 1);
  const Value product = l.op(OpKind::MatMul, {a, b});
  return {alpha == 1 ? product : times(l, product, alpha)};
}

Values lower_fused_gemm(Lowering& l) {
  Values inputs{l.input(0), l.input(1)};
  if (l.has(2)) inputs.push_back(l.input(2));
  const Value y = l.op(OpKind::Gemm, inputs,
                       {{"alpha", l.real("alpha", 1)},
                        {"beta", l.real("beta", 1)},
                        {"transA", Index(l.integer("transA", 0))},
                        {"transB", Index(l.integer("transB", 0))}});
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (l.has_attribute(name)) parameters.push_back(l.real(name, 0));
  return {activated(l, y, l.text("activation", ""), parameters)};
}

Values lower_fused_convolution(Lowering& l) {
  Values inputs{l.input(0), l.input(1)};
  if (l.has(2)) inputs.push_back(l.input(2));
  const Value convolved =
                  l.op(OpKind::Conv, inputs, window_attributes(l, {"dilations", "kernel_shape", "pads", "strides"})),
              added = optional_input(l, 3);
  Lowering::require(!added || shape_of(added) == shape_of(convolved));
  const Value y = sum_of(l, {convolved, added});
  const std::vector<double> parameters =
      l.has_attribute("activation_params") ? l.floats("activation_params") : std::vector<double>();
  return {activated(l, y, l.text("activation", ""), parameters)};
}

// ---- normalization ----

// Of floats, over the last axes from `axis` on: with the mean taken off, or as it is.
Value normalized(Lowering& l, const Value& x, int64_t axis, double epsilon, bool is_centered, const Value& scale,
                 const Value& bias) {
  if (is_centered && l.opset() >= op_info(OpKind::LayerNormalization).since_opset) {
    Values inputs{x, scale};
    if (bias) inputs.push_back(bias);
    return l.op(OpKind::LayerNormalization, inputs, {{"axis", Index(axis)}, {"epsilon", epsilon}});
  }
  std::vector<Index> axes;
  for (int64_t k = axis; k < static_cast<int64_t>(rank_of(x)); k++) axes.emplace_back(k);
  const Value moved = is_centered ? l.sub(x, l.reduce(OpKind::ReduceMean, x, axes)) : x;
  const Value square = l.reduce(OpKind::ReduceMean, l.mul(moved, moved), axes);
  const Value root = l.op(OpKind::Sqrt, {l.add(square, l.scalar(type_of(x), epsilon))});
  return sum_of(l, {l.mul(l.div(moved, root), scale), bias});
}

// 16 bits are summed up and normalized as floats.
class Widened {
 public:
  Widened(Lowering& l, ElementType given) : l_(l), given_(given) { Lowering::require(is_floating(given)); }
  Value in(const Value& x) { return x ? l_.cast(x, is_half(given_) ? ElementType::Float32 : given_) : Value{}; }
  Value out(const Value& x) { return l_.cast(x, given_); }

 private:
  Lowering& l_;
  ElementType given_;
};

// Of x's shape, or the same for all of its batch.
bool is_skip(const Shape& skip, const Shape& x) {
  if (skip == x) return true;
  if (x.size() != 3 || skip.size() < 2 || (skip.size() == 3 && skip[0] != Index(1))) return false;
  return std::equal(skip.end() - 2, skip.end(), x.end() - 2, x.end());
}
// input + skip + bias, and that normalized over the last axis.
Values lower_skip(Lowering& l, bool is_centered) {
  const Value x = l.input(0), skip = l.input(1), scale = l.input(2);
  const Value shift = is_centered ? optional_input(l, 3) : Value{}, bias = optional_input(l, is_centered ? 4 : 3);
  Lowering::require(rank_of(x) >= 2 && rank_of(scale) == 1 && is_skip(shape_of(skip), shape_of(x)));
  Widened wide(l, type_of(x));
  const Value sum = sum_of(l, {wide.in(x), wide.in(skip), wide.in(bias)});
  const Value y = normalized(l, sum, static_cast<int64_t>(rank_of(x)) - 1, l.real("epsilon", 1e-12), is_centered,
                             wide.in(scale), wide.in(shift));
  return {wide.out(y), {}, {}, l.output_used(3) ? wide.out(sum) : Value{}};
}
Values lower_skip_layer(Lowering& l) { return lower_skip(l, true); }
Values lower_skip_simplified(Lowering& l) { return lower_skip(l, false); }

Values lower_simplified(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1);
  Widened wide(l, type_of(x));
  const int64_t axis = l.axis(l.integer("axis", -1), rank_of(x));
  const Value y = normalized(l, wide.in(x), axis, l.real("epsilon", 1e-5), false, wide.in(scale), {});
  return {l.cast(y, type_of(scale))};
}
// The rows that words, positions and segments have in tables, summed up and normalized; and of how many words of each
// sequence the mask says that they count.
Values lower_embedding(Lowering& l) {
  const Value words = l.input(0);
  Lowering::require(rank_of(words) == 2 && l.integer("mask_index_type", 1) <= 1);
  const auto rows = [&](size_t table, const Value& places) {
    return l.op(OpKind::Gather, {l.input(table), places}, {{"axis", Index(0)}});
  };
  Widened wide(l, type_of(l.input(2)));
  const Value positions = l.has(8) ? l.input(8) : l.range(shape_of(words)[1], 1, 2);
  Lowering::require(l.has(1) == l.has(4));
  const Value sum = sum_of(
      l, {wide.in(rows(2, words)), wide.in(rows(3, positions)), l.has(1) ? wide.in(rows(4, l.input(1))) : Value{}});
  const Value y = normalized(l, sum, 2, l.real("epsilon", 1e-12), true, wide.in(l.input(5)), wide.in(l.input(6)));
  Value counts;
  if (l.output_used(1)) {
    Lowering::require(l.has(7) && type_of(l.input(7)) == ElementType::Int32);
    const Value is_one = l.op(OpKind::Equal, {l.input(7), l.scalar(ElementType::Int32, 1)});
    counts = l.reduce(OpKind::ReduceSum, l.cast(is_one, ElementType::Int32), {Index(1)}, false);
  }
  return {wide.out(y), counts, l.output_used(2) ? wide.out(sum) : Value{}};
}

constexpr LoweredOperator kFused[] = {{"Gelu", lower_gelu},
                                      {"BiasGelu", lower_bias_gelu},
                                      {"FastGelu", lower_fast_gelu},
                                      {"QuickGelu", lower_quick_gelu},
                                      {"FusedMatMul", lower_fused_product},
                                      {"TransposeMatMul", lower_fused_product},
                                      {"FusedGemm", lower_fused_gemm},
                                      {"FusedConv", lower_fused_convolution},
                                      {"SkipLayerNormalization", lower_skip_layer},
                                      {"SkipSimplifiedLayerNormalization", lower_skip_simplified},
                                      {"EmbedLayerNormalization", lower_embedding}};
constexpr LoweredOperator kInOnnxDomain[] = {{"SimplifiedLayerNormalization", lower_simplified}};

}  // namespace

std::span<const LoweredOperator> lowered_fused() { return kFused; }
std::span<const LoweredOperator> lowered_fused_in_onnx() { return kInOnnxDomain; }

}  // namespace gopt::ir
