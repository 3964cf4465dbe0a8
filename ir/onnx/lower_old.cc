// Forms that operators had before opset 7: one input broadcast where an attribute says so, and from which axis; shapes
// and pads as attributes.
#include <algorithm>

#include "lowering.h"

namespace gopt::ir {
namespace {

// The second input's axes are some of the first one's, in their order, from `axis` on; by default the last ones.
Value at_axis(Lowering& l, const Value& small, const Value& large) {
  const size_t rank = rank_of(large), own = rank_of(small);
  Lowering::require(own <= rank);
  const int64_t axis = l.has_attribute("axis") ? l.axis(l.integer("axis", 0), rank) : static_cast<int64_t>(rank - own);
  Lowering::require(axis + static_cast<int64_t>(own) <= static_cast<int64_t>(rank));
  Shape shape(rank, Index(1));
  std::copy(shape_of(small).begin(), shape_of(small).end(), shape.begin() + axis);
  return l.reshape(small, shape);
}

Values lower_old_binary(Lowering& l, OpKind kind) {
  Lowering::require(l.opset() < 7);
  const Value a = l.input(0), b = l.input(1);
  if (l.integer("broadcast", 0) != 0) return {l.op(kind, {a, at_axis(l, b, a)})};
  Lowering::require(shape_of(a) == shape_of(b));
  return {l.op(kind, {a, b})};
}
template <OpKind kind>
Values lower_old_binary(Lowering& l) {
  return lower_old_binary(l, kind);
}

// Of equal shapes.
template <OpKind kind>
Values lower_old_list(Lowering& l) {
  Lowering::require(l.opset() < 8 && l.input_count() > 0);
  Values inputs;
  for (int k = 0; k < l.input_count(); k++) {
    inputs.push_back(l.input(static_cast<size_t>(k)));
    Lowering::require(shape_of(inputs.back()) == shape_of(inputs[0]));
  }
  return {l.op(kind, inputs)};
}

// A slope for all, or one for each channel.
Values lower_old_prelu(Lowering& l) {
  Lowering::require(l.opset() < 7);
  const Value x = l.input(0), slope = l.input(1);
  Lowering::require(rank_of(slope) == 1 && (rank_of(x) >= 2 || shape_of(slope)[0] == Index(1)));
  if (shape_of(slope)[0] == Index(1)) return {l.op(OpKind::PRelu, {x, slope})};
  Shape shape(rank_of(x) - 1, Index(1));
  shape[0] = shape_of(slope)[0];
  return {l.op(OpKind::PRelu, {x, l.reshape(slope, shape)})};
}

Values lower_old_gemm(Lowering& l) {
  Lowering::require(l.opset() < 7);
  const Value a = l.input(0), b = l.input(1), c = l.input(2);
  Attributes attributes{{"alpha", l.real("alpha", 1)}, {"beta", l.real("beta", 1)}};
  for (const char* name : {"transA", "transB"}) attributes[name] = Index(l.integer(name, 0));
  const Value y = l.op(OpKind::Gemm, {a, b, c}, attributes);
  Lowering::require(l.integer("broadcast", 0) != 0 || shape_of(y) == shape_of(c));
  return {y};
}

Values lower_old_batch_normalization(Lowering& l) {
  Lowering::require(l.opset() < 7 && l.integer("is_test", 0) != 0 && l.integer("spatial", 1) != 0);
  Values inputs;
  for (size_t k = 0; k < 5; k++) inputs.push_back(l.input(k));
  return {l.op(OpKind::BatchNormalization, inputs, {{"epsilon", l.real("epsilon", 1e-5)}})};
}

// Before opset 6 a node said which inputs it may overwrite, which changes nothing.
template <OpKind kind>
Values lower_old_unary(Lowering& l) {
  Lowering::require(l.opset() < 6);
  Attributes attributes;
  for (const AttributeSchema& schema : op_info(kind).attributes)
    if (l.has_attribute(schema.name)) attributes[schema.name] = l.real(schema.name, 0);
  return {l.op(kind, {l.input(0)}, attributes)};
}

// Its defaults had fewer digits.
Values lower_old_selu(Lowering& l) {
  Lowering::require(l.opset() < 6);
  return {l.op(OpKind::Selu, {l.input(0)}, {{"alpha", l.real("alpha", 1.6732f)}, {"gamma", l.real("gamma", 1.0507f)}})};
}

Values lower_old_instance_normalization(Lowering& l) {
  Lowering::require(l.opset() < 6);
  return {l.op(OpKind::InstanceNormalization, {l.input(0), l.input(1), l.input(2)},
               {{"epsilon", l.real("epsilon", 1e-5)}})};
}

Values lower_old_dropout(Lowering& l) {
  Lowering::require(l.opset() < 7 && l.integer("is_test", 0) != 0);
  return {l.input(0)};
}

Values lower_old_reshape(Lowering& l) {
  Lowering::require(l.opset() < 5);
  const std::vector<int64_t> shape = l.integers("shape", {});
  return {l.op(OpKind::Reshape, {l.input(0)}, {{"shape", std::vector<Index>(shape.begin(), shape.end())}})};
}

Values lower_old_pad(Lowering& l) {
  Lowering::require(l.opset() < 2);
  const std::vector<int64_t> pads = l.integers("paddings", {});
  return {l.op(OpKind::Pad, {l.input(0)},
               {{"pads", std::vector<Index>(pads.begin(), pads.end())},
                {"mode", l.text("mode", "constant")},
                {"value", l.real("value", 0)}})};
}

Values lower_old_concat(Lowering& l) {
  Lowering::require(l.opset() < 4);
  Values parts;
  for (int k = 0; k < l.input_count(); k++) parts.push_back(l.input(static_cast<size_t>(k)));
  return {l.concat(parts, l.integer("axis", 1))};
}

constexpr LoweredOperator kOld[] = {{"Add", lower_old_binary<OpKind::Add>},
                                    {"Sub", lower_old_binary<OpKind::Sub>},
                                    {"Mul", lower_old_binary<OpKind::Mul>},
                                    {"Div", lower_old_binary<OpKind::Div>},
                                    {"Pow", lower_old_binary<OpKind::Pow>},
                                    {"And", lower_old_binary<OpKind::And>},
                                    {"Or", lower_old_binary<OpKind::Or>},
                                    {"Xor", lower_old_binary<OpKind::Xor>},
                                    {"Equal", lower_old_binary<OpKind::Equal>},
                                    {"Less", lower_old_binary<OpKind::Less>},
                                    {"Greater", lower_old_binary<OpKind::Greater>},
                                    {"Max", lower_old_list<OpKind::Max>},
                                    {"Min", lower_old_list<OpKind::Min>},
                                    {"Sum", lower_old_list<OpKind::Sum>},
                                    {"Mean", lower_old_list<OpKind::Mean>},
                                    {"PRelu", lower_old_prelu},
                                    {"Gemm", lower_old_gemm},
                                    {"BatchNormalization", lower_old_batch_normalization},
                                    {"InstanceNormalization", lower_old_instance_normalization},
                                    {"Dropout", lower_old_dropout},
                                    {"Reshape", lower_old_reshape},
                                    {"Pad", lower_old_pad},
                                    {"Concat", lower_old_concat},
                                    {"Selu", lower_old_selu},
                                    {"Abs", lower_old_unary<OpKind::Abs>},
                                    {"Ceil", lower_old_unary<OpKind::Ceil>},
                                    {"Clip", lower_old_unary<OpKind::Clip>},
                                    {"Elu", lower_old_unary<OpKind::Elu>},
                                    {"Exp", lower_old_unary<OpKind::Exp>},
                                    {"Floor", lower_old_unary<OpKind::Floor>},
                                    {"HardSigmoid", lower_old_unary<OpKind::HardSigmoid>},
                                    {"LeakyRelu", lower_old_unary<OpKind::LeakyRelu>},
                                    {"Log", lower_old_unary<OpKind::Log>},
                                    {"Neg", lower_old_unary<OpKind::Neg>},
                                    {"Reciprocal", lower_old_unary<OpKind::Reciprocal>},
                                    {"Relu", lower_old_unary<OpKind::Relu>},
                                    {"Sigmoid", lower_old_unary<OpKind::Sigmoid>},
                                    {"Sqrt", lower_old_unary<OpKind::Sqrt>},
                                    {"Tanh", lower_old_unary<OpKind::Tanh>}};

}  // namespace

std::span<const LoweredOperator> lowered_old() { return kOld; }

}  // namespace gopt::ir
