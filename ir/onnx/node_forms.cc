#include "node_forms.h"

#include <algorithm>
#include <cmath>

#include "declarations.h"
#include "gopt/wide_integers.h"

namespace gopt::ir {
namespace {

bool is_constant_one(const Index& extent) { return extent == Index(1); }

int64_t int_attribute(const NodeView& view, const std::string& name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = view.find(name);
  return attribute ? attribute->i() : otherwise;
}

// A node of one output that takes the names of the one it stands for.
Result<Value> apply_named(ImportState& state, const NodeView& view, OpKind kind, Values inputs, Attributes attributes) {
  GOPT_ASSIGN_OR_RETURN(NodePtr node,
                        state.builder.add(kind, std::move(inputs), std::move(attributes), 1, view.node.name(),
                                          {view.node.output().begin(), view.node.output().end()}));
  return Value{std::move(node), 0};
}

// Softmax and LogSoftmax before opset 13 normalize over all axes from `axis` on together.
Result<MaybeValues> import_old_softmax(ImportState& state, const NodeView& view, OpKind kind) {
  const Value x = view.input(0);
  if (!x || !x.type().shape) return MaybeValues();
  const Shape& shape = *x.type().shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = int_attribute(view, "axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank || rank == 0) return MaybeValues();
  std::vector<int64_t> wide;
  for (int64_t i = axis; i < rank; i++)
    if (!is_constant_one(shape[static_cast<size_t>(i)])) wide.push_back(i);
  GraphBuilder& builder = state.builder;
  if (wide.size() <= 1 && axis < rank) {
    const int64_t only = wide.empty() ? axis : wide[0];
    GOPT_ASSIGN_OR_RETURN(const Value y, apply_named(state, view, kind, {x}, {{"axis", Index(only)}}));
    return MaybeValues({y});
  }
  const bool empty = std::find(shape.begin(), shape.end(), Index(0)) != shape.end();
  auto flat = builder.apply(OpKind::Flatten, {x}, {{"axis", Index(axis)}});
  if (!flat.ok()) return MaybeValues();
  auto soft = builder.apply(kind, {*flat}, {{"axis", Index(1)}});
  if (!soft.ok()) return MaybeValues();
  const Attributes attributes{{"shape", short_reshape(soft->type(), shape)}, {"allowzero", Index(empty ? 1 : 0)}};
  auto y = apply_named(state, view, OpKind::Reshape, {*soft}, attributes);
  if (!y.ok()) return MaybeValues();
  return MaybeValues({*y});
}

// Clip whose bounds are computed.
Result<MaybeValues> import_computed_clip(ImportState& state, const NodeView& view) {
  Value y = view.input(0);
  for (const auto& [position, kind] : {std::pair<size_t, OpKind>{1, OpKind::Max}, {2, OpKind::Min}}) {
    if (!view.has(position)) continue;
    const bool last = position == 2 || !view.has(2);
    auto bounded = last ? apply_named(state, view, kind, {y, view.input(position)}, {})
                        : state.builder.apply(kind, {y, view.input(position)});
    if (!bounded.ok() || !(bounded->type() == view.input(0).type())) return MaybeValues();
    y = *bounded;
  }
  return MaybeValues({y});
}

// A bound that a double holds exactly, or that bounds nothing.
bool is_plain_bound(const Value& value, bool is_lower) {
  if (!value || is_end_of_type(value, is_lower)) return true;
  return value.node->is(OpKind::Constant) && is_computable(value.type().element) && value.node->tensor.count() == 1 &&
         !has_wide_integers(value.node->tensor);
}

template <class Field>
std::vector<int64_t> one_axis(const Field& field) {
  return {static_cast<int64_t>(field.size())};
}

}  // namespace

bool is_end_of_type(const Value& bound, bool is_lower) {
  const ElementType type = bound.type().element;
  if (type != ElementType::Int64 && type != ElementType::UInt64) return false;
  if (!bound.node->is(OpKind::Constant) || bound.node->tensor.count() != 1) return false;
  const int64_t number = bound.node->tensor.to_ints()[0];
  if (type == ElementType::Int64) return number == (is_lower ? INT64_MIN : INT64_MAX);
  return number == (is_lower ? 0 : -1);  // all bits
}

const onnx::AttributeProto* NodeView::find(const std::string& name) const {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

bool NodeView::output_used(int i) const {
  if (i >= node.output_size() || node.output(i).empty()) return false;
  return scope.is_used(node.output(i));
}

bool has_table_form(OpKind kind, int64_t opset) {
  constexpr int64_t kOldestOpset = 7;
  if (opset >= kOldestOpset) return true;
  // Operators that opset 7 left as they were, with the opset that made them so.
  static const std::map<OpKind, int64_t> since = {{OpKind::Abs, 6},
                                                  {OpKind::AveragePool, 1},
                                                  {OpKind::Ceil, 6},
                                                  {OpKind::Clip, 6},
                                                  {OpKind::Concat, 4},
                                                  {OpKind::Conv, 1},
                                                  {OpKind::ConvTranspose, 1},
                                                  {OpKind::Elu, 6},
                                                  {OpKind::Exp, 6},
                                                  {OpKind::Flatten, 1},
                                                  {OpKind::Floor, 6},
                                                  {OpKind::Gather, 1},
                                                  {OpKind::GlobalAveragePool, 1},
                                                  {OpKind::GlobalMaxPool, 1},
                                                  {OpKind::HardSigmoid, 6},
                                                  {OpKind::InstanceNormalization, 6},
                                                  {OpKind::LeakyRelu, 6},
                                                  {OpKind::Log, 6},
                                                  {OpKind::LogSoftmax, 1},
                                                  {OpKind::MatMul, 1},
                                                  {OpKind::MaxPool, 1},
                                                  {OpKind::Neg, 6},
                                                  {OpKind::Not, 1},
                                                  {OpKind::Pad, 2},
                                                  {OpKind::Reciprocal, 6},
                                                  {OpKind::ReduceL1, 1},
                                                  {OpKind::ReduceL2, 1},
                                                  {OpKind::ReduceLogSum, 1},
                                                  {OpKind::ReduceLogSumExp, 1},
                                                  {OpKind::ReduceMax, 1},
                                                  {OpKind::ReduceMean, 1},
                                                  {OpKind::ReduceMin, 1},
                                                  {OpKind::ReduceProd, 1},
                                                  {OpKind::ReduceSum, 1},
                                                  {OpKind::ReduceSumSquare, 1},
                                                  {OpKind::Relu, 6},
                                                  {OpKind::Reshape, 5},
                                                  {OpKind::Selu, 6},
                                                  {OpKind::Shape, 1},
                                                  {OpKind::Sigmoid, 6},
                                                  {OpKind::Size, 1},
                                                  {OpKind::Slice, 1},
                                                  {OpKind::Softmax, 1},
                                                  {OpKind::Softplus, 1},
                                                  {OpKind::Softsign, 1},
                                                  {OpKind::Split, 2},
                                                  {OpKind::Sqrt, 6},
                                                  {OpKind::Squeeze, 1},
                                                  {OpKind::Tanh, 6},
                                                  {OpKind::Tile, 6},
                                                  {OpKind::Transpose, 1},
                                                  {OpKind::Unsqueeze, 1}};
  const auto it = since.find(kind);
  return it != since.end() && opset >= it->second;
}

Form form_of(const NodeView& view, OpKind kind) {
  switch (kind) {
    case OpKind::Softmax:
    case OpKind::LogSoftmax: return view.opset < 13 ? Form::Special : Form::Plain;
    case OpKind::Clip:
      return view.opset >= 11 && !(is_plain_bound(view.input(1), true) && is_plain_bound(view.input(2), false))
                 ? Form::Special
                 : Form::Plain;
    default: return Form::Plain;
  }
}

Result<MaybeValues> import_special(ImportState& state, const NodeView& view, OpKind kind) {
  return kind == OpKind::Clip ? import_computed_clip(state, view) : import_old_softmax(state, view, kind);
}

Result<MaybeValues> import_dropout(ImportState&, const NodeView& view) {
  if (!view.has(0) || view.output_used(1)) return MaybeValues();
  if (const Value training = view.input(2); view.opset >= 12 && training) {
    const bool known = training.node->is(OpKind::Constant) && training.node->tensor.count() == 1;
    if (!known || training.node->tensor.to_ints()[0] != 0) return MaybeValues();
  }
  return MaybeValues({view.input(0)});
}

Result<Value> import_constant_node(ImportState& state, onnx::NodeProto& node, int position, const NameScope& scope) {
  const std::string name = node.output_size() > 0 ? node.output(0) : "";
  if (const auto it = state.file.node_values.find(position); scope.depth == 0 && it != state.file.node_values.end()) {
    GOPT_ASSIGN_OR_RETURN(Tensor tensor, take_tensor(it->second, state.file.external));
    return state.builder.constant(std::move(tensor), name);
  }
  if (node.attribute_size() != 1) return Error{"needs exactly one value, has " + std::to_string(node.attribute_size())};
  onnx::AttributeProto& value = *node.mutable_attribute(0);
  const std::string& kind = value.name();
  Tensor tensor;
  if (kind == "value" && value.has_t()) {
    TensorSource source{std::move(*value.mutable_t()), {}};
    GOPT_ASSIGN_OR_RETURN(tensor, take_tensor(source, state.file.external));
  } else if (kind == "sparse_value") {
    GOPT_ASSIGN_OR_RETURN(tensor, take_sparse_tensor(*value.mutable_sparse_tensor(), state.file.external));
  } else if (kind == "value_float") {
    tensor = Tensor::scalar_f32(value.f());
  } else if (kind == "value_floats") {
    const std::vector<double> values(value.floats().begin(), value.floats().end());
    tensor = Tensor::from_values(ElementType::Float32, one_axis(value.floats()), values);
  } else if (kind == "value_int") {
    tensor = Tensor::from_values<int64_t>(ElementType::Int64, {}, {value.i()});
  } else if (kind == "value_ints") {
    tensor = Tensor::vector_i64({value.ints().begin(), value.ints().end()});
  } else if (kind == "value_string") {
    tensor = Tensor::from_strings({}, {value.s()});
  } else if (kind == "value_strings") {
    tensor = Tensor::from_strings(one_axis(value.strings()), {value.strings().begin(), value.strings().end()});
  } else {
    return Error{"has no value of a known kind ('" + kind + "')"};
  }
  return state.builder.constant(std::move(tensor), name);
}

}  // namespace gopt::ir
