#include "lowering.h"

#include <algorithm>
#include <stdexcept>

#include "constant_values.h"
#include "gopt/recurrence.h"
#include "gopt/row_function.h"
#include "integer_values.h"

namespace gopt::ir {

Value optional_input(const Lowering& l, size_t i) { return l.has(i) ? l.input(i) : Value{}; }
Attributes window_attributes(const Lowering& l, std::initializer_list<const char*> lists) {
  Attributes attributes{{"auto_pad", l.text("auto_pad", "NOTSET")}, {"group", Index(l.integer("group", 1))}};
  for (const char* name : lists) {
    const std::vector<int64_t> list = l.integers(name, {});
    if (!list.empty()) attributes[name] = std::vector<Index>(list.begin(), list.end());
  }
  return attributes;
}
const Shape& shape_of(const Value& x) {
  Lowering::require(x && x.type().shape.has_value());
  return *x.type().shape;
}
ElementType type_of(const Value& x) { return x.type().element; }
size_t rank_of(const Value& x) { return shape_of(x).size(); }
const Index& open_extent_of(const Value& x, int64_t axis) {
  Lowering::require(axis >= 0 && axis < static_cast<int64_t>(rank_of(x)));
  return shape_of(x)[static_cast<size_t>(axis)];
}
int64_t extent_of(const Value& x, int64_t axis) {
  const Index& extent = open_extent_of(x, axis);
  Lowering::require(extent.is_constant());
  return extent.constant();
}

Value Lowering::input(size_t i) const {
  const Value value = view_.input(i);
  require(value && is_computable(value.type().element) && value.type().shape.has_value());
  return value;
}
std::vector<Index> Lowering::indexes(size_t i) const {
  const auto known = known_integers(state_, input(i));
  require(known.has_value());
  return *known;
}
std::vector<int64_t> Lowering::numbers(size_t i) const {
  const Value value = input(i);
  if (value.node->is(OpKind::Constant)) return value.node->tensor.to_ints();
  std::vector<int64_t> numbers;
  for (const Index& entry : indexes(i)) {
    require(entry.is_constant());
    numbers.push_back(entry.constant());
  }
  return numbers;
}
std::vector<double> Lowering::reals(size_t i) const {
  const Value value = input(i);
  require(value.node->is(OpKind::Constant));
  return value.node->tensor.to_doubles();
}

const onnx::AttributeProto* Lowering::find(const std::string& name) const {
  asked_.insert(name);
  return view_.find(name);
}
bool Lowering::knows_all_attributes() const {
  static const std::set<std::string> without_meaning = {"hidden_size", "consumed_inputs", "stash_type", "saturate",
                                                        "sorted",      "ratio",           "seed",       "momentum"};
  return std::all_of(view_.node.attribute().begin(), view_.node.attribute().end(), [&](const auto& attribute) {
    return asked_.contains(attribute.name()) || without_meaning.contains(attribute.name());
  });
}
int64_t Lowering::integer(const std::string& name, int64_t otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  return attribute ? attribute->i() : otherwise;
}
double Lowering::real(const std::string& name, double otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  return attribute ? static_cast<double>(attribute->f()) : otherwise;
}
std::string Lowering::text(const std::string& name, const std::string& otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  return attribute ? attribute->s() : otherwise;
}
std::vector<int64_t> Lowering::integers(const std::string& name, std::vector<int64_t> otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  return attribute ? std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end()) : otherwise;
}
std::vector<double> Lowering::floats(const std::string& name) const {
  const onnx::AttributeProto* attribute = find(name);
  require(attribute);
  return {attribute->floats().begin(), attribute->floats().end()};
}
std::vector<std::string> Lowering::texts(const std::string& name) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}
Values Lowering::body(const std::string& name, const Values& inputs) {
  constexpr int kDeepestBody = 32;
  const onnx::AttributeProto* attribute = find(name);
  require(attribute && attribute->has_g() && view_.scope.depth < kDeepestBody);
  onnx::GraphProto graph = attribute->g();  // reading takes its tensors
  require(graph.input_size() == static_cast<int>(inputs.size()));
  NameScope scope{&view_.scope, view_.scope.opsets, {}, {}, view_.scope.depth + 1};
  for (size_t i = 0; i < inputs.size(); i++) scope.values[graph.input(static_cast<int>(i)).name()] = inputs[i];
  for (const auto& output : graph.output()) scope.used.insert(output.name());
  const long opaque_before = state_.opaque_count;
  require(import_initializers(state_, graph, scope).ok());
  require(import_nodes(state_, *graph.mutable_node(), scope).ok() && state_.opaque_count == opaque_before);
  Values outputs;
  for (const auto& output : graph.output()) {
    const Value* value = scope.find(output.name());
    require(value && *value);
    outputs.push_back(*value);
  }
  return outputs;
}
int64_t Lowering::axis(int64_t given, size_t rank) const {
  const auto axes = static_cast<int64_t>(rank);
  require(given >= -axes && given < axes);
  return given < 0 ? given + axes : given;
}

NodePtr Lowering::node(OpKind kind, Values inputs, Attributes attributes, int output_count) {
  require(op_info(kind).since_opset <= view_.opset || op_info(kind).since_opset <= 8);
  auto node = state_.builder.add(kind, std::move(inputs), std::move(attributes), output_count);
  require(node.ok());
  return *node;
}
NodePtr Lowering::recurrence(std::shared_ptr<const Recurrence> recurrence, Values inputs,
                             std::vector<TensorType> outputs) {
  auto op = std::make_shared<OpaqueOp>();
  op->op_type = view_.node.op_type();
  op->payload = std::string(to_string(recurrence->cell)) + (recurrence->is_reversed ? " reversed" : "");
  op->recurrence = std::move(recurrence);
  return state_.builder.opaque(std::move(op), std::move(inputs), std::move(outputs));
}
std::optional<Value> Lowering::whole_rows(const Value& x, int64_t axis, bool has_other_nodes) {
  constexpr int64_t kShort = 16, kFolded = 4096;
  const Index& row = open_extent_of(x, axis);
  const auto is_within = [&](int64_t most) { return row.is_constant() && row.constant() <= most; };
  require(!row.is_constant() || is_within(INT32_MAX));
  if (has_other_nodes && (is_within(kShort) || (is_within(kFolded) && is_of_constants(x)))) return std::nullopt;
  switch (type_of(x)) {
    case ElementType::Float16:
    case ElementType::BFloat16: return cast(x, ElementType::Float32);
    case ElementType::Int8:
    case ElementType::Int16:
    case ElementType::UInt8:
    case ElementType::UInt16: return cast(x, ElementType::Int32);
    case ElementType::UInt32: return cast(x, ElementType::Int64);
    case ElementType::Float32:
    case ElementType::Float64:
    case ElementType::Int32:
    case ElementType::Int64: return x;
    default: return std::nullopt;
  }
}
NodePtr Lowering::row_function(RowFunction function, const Value& x, const Index& taken) {
  auto op = std::make_shared<OpaqueOp>();
  op->op_type = view_.node.op_type();
  op->payload = to_string(function);
  std::vector<TensorType> outputs{x.type()};
  if (function.kind == RowFunction::Kind::Top) {
    outputs[0].shape->back() = taken;
    outputs.push_back({ElementType::Int64, outputs[0].shape});
  }
  op->row_function = std::make_shared<const RowFunction>(function);
  return state_.builder.opaque(std::move(op), {x}, std::move(outputs), view_.node.name());
}
Value Lowering::op(OpKind kind, Values inputs, Attributes attributes) {
  return {node(kind, std::move(inputs), std::move(attributes), 1), 0};
}
Value Lowering::scalar(ElementType type, double value) {
  if (is_floating(type)) return constant(Tensor::from_values<double>(type, {}, {value}));
  return constant(Tensor::from_values<int64_t>(type, {}, {static_cast<int64_t>(value)}));
}
Value Lowering::cast(const Value& x, ElementType to) {
  return type_of(x) == to ? x : op(OpKind::Cast, {x}, {{"to", Index(static_cast<int64_t>(to))}});
}
Value Lowering::reshape(const Value& x, const Shape& shape) {
  constexpr int64_t kHasAllowzero = 14;
  if (shape_of(x) == shape) return x;
  // Before that, 0 means the input's extent, computed or not.
  const bool may_be_empty =
      std::ranges::any_of(shape, [](const Index& e) { return !e.is_constant() || e == Index(0); });
  Attributes attributes{{"shape", shape}};
  if (may_be_empty && opset() >= kHasAllowzero) attributes["allowzero"] = Index(1);
  return op(OpKind::Reshape, {x}, std::move(attributes));
}
Value Lowering::transpose(const Value& x, const std::vector<int64_t>& perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return op(OpKind::Transpose, {x}, {{"perm", std::vector<Index>(perm.begin(), perm.end())}});
}
Value Lowering::slice(const Value& x, int64_t axis, const Index& start, const Index& end, int64_t step) {
  return op(OpKind::Slice, {x},
            {{"starts", std::vector<Index>{start}},
             {"ends", std::vector<Index>{end}},
             {"axes", std::vector<Index>{axis}},
             {"steps", std::vector<Index>{step}}});
}
Value Lowering::reduce(OpKind kind, const Value& x, const std::vector<Index>& axes, bool keep) {
  return op(kind, {x}, {{"axes", axes}, {"keepdims", Index(keep ? 1 : 0)}});
}
Value Lowering::elements_at(const Value& x, const Value& places, int64_t axis) {
  if (opset() >= 11) return op(OpKind::GatherElements, {x, places}, {{"axis", Index(axis)}});
  Value flat;
  int64_t stride = 1;
  for (auto k = static_cast<int64_t>(rank_of(x)) - 1; k >= 0; k--) {
    const Value at = k == axis ? places : range(extent_of(x, k), k, rank_of(x));
    const Value part = mul(at, scalar(ElementType::Int64, static_cast<double>(stride)));
    flat = flat ? add(flat, part) : part;
    stride *= extent_of(x, k);
  }
  return op(OpKind::Gather, {reshape(x, {Index(stride)}), flat}, {{"axis", Index(0)}});
}
Value Lowering::along(const std::vector<double>& values, int64_t axis, size_t rank, ElementType type) {
  std::vector<int64_t> dims(rank, 1);
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(values.size());
  if (is_floating(type)) return constant(Tensor::from_values(type, dims, values));
  return constant(Tensor::from_values(type, dims, std::vector<int64_t>(values.begin(), values.end())));
}
Value Lowering::range(const Index& count, int64_t axis, size_t rank, ElementType type) {
  if (!count.is_constant()) {
    Shape shape(rank, Index(1));
    shape[static_cast<size_t>(axis)] = count;
    return cast(reshape(reduce(OpKind::ReduceSum, triangle(count, -1, false), {Index(1)}, false), shape), type);
  }
  require(count.constant() >= 0 && count.constant() < (int64_t{1} << 24));
  std::vector<double> values;
  for (int64_t i = 0; i < count.constant(); i++) values.push_back(static_cast<double>(i));
  return along(values, axis, rank, type);
}
Value Lowering::triangle(const Index& count, int64_t k, bool upper) {
  const Value ones = op(OpKind::ConstantOfShape, {},
                        {{"shape", std::vector<Index>{count, count}}, {"value", Tensor::vector_i64({1})}});
  return op(OpKind::Trilu, {ones}, {{"k", Index(k)}, {"upper", Index(upper ? 1 : 0)}});
}

namespace {

// By one row; nothing where it does not apply.
MaybeValues lower_by(const LoweredOperator& row, ImportState& state, const NodeView& view, bool is_for_types) {
  try {
    Lowering lowering(state, view, is_for_types);
    Values values = row.lower(lowering);
    if (!lowering.knows_all_attributes()) return {};
    for (size_t i = values.size(); i < static_cast<size_t>(std::max(0, view.node.output_size())); i++)
      values.emplace_back();
    return values;
  } catch (const Unlowered&) {
    return {};
  } catch (const std::out_of_range&) {  // lists shorter than the axes that they are of
    return {};
  }
}

Result<MaybeValues> lower_by_groups(std::span<const std::span<const LoweredOperator>> groups, ImportState& state,
                                    const NodeView& view, bool is_for_types = false) {
  for (const auto& group : groups)
    for (const LoweredOperator& row : group) {
      if (view.node.op_type() != row.name) continue;
      MaybeValues values = lower_by(row, state, view, is_for_types);
      if (!values) continue;
      for (size_t i = 0; i < values->size(); i++)
        if (!(*values)[i] && view.output_used(static_cast<int>(i))) return MaybeValues();
      return values;
    }
  return MaybeValues();
}

}  // namespace

bool is_of_microsoft(const onnx::NodeProto& node) { return normal_domain(node.domain()) == "com.microsoft"; }

Result<MaybeValues> lower_operator(ImportState& state, const NodeView& view) {
  const std::span<const LoweredOperator> groups[] = {
      lowered_counting(), lowered_normalization(), lowered_quantized(), lowered_sampling(),  lowered_grids(),
      lowered_products(), lowered_recurrent(),     lowered_scatter(),   lowered_selection(), lowered_control(),
      lowered_spectral(), lowered_training(),      lowered_regions(),   lowered_old(),       lowered_attention(),
      lowered_bits(),     lowered_fused_in_onnx()};
  return lower_by_groups(groups, state, view);
}

namespace {

Result<MaybeValues> lower_microsoft(ImportState& state, const NodeView& view, bool is_for_types) {
  const std::string& name = view.node.op_type();
  const bool is_of_onnx = name == "QuantizeLinear" || name == "DequantizeLinear";
  const std::span<const LoweredOperator> of_onnx[] = {lowered_quantized()},
                                         own[] = {lowered_microsoft(), lowered_fused(), lowered_fused_attention()};
  return is_of_onnx ? lower_by_groups(of_onnx, state, view, is_for_types)
                    : lower_by_groups(own, state, view, is_for_types);
}

}  // namespace

Result<MaybeValues> lower_microsoft(ImportState& state, const NodeView& view) {
  return lower_microsoft(state, view, false);
}

std::vector<TensorType> types_if_lowered(ImportState& state, const NodeView& view) {
  const std::span<const LoweredOperator> groups[] = {lowered_fused_in_onnx()};
  const bool is_microsoft = is_of_microsoft(view.node);
  if (!is_microsoft && !normal_domain(view.node.domain()).empty()) return {};
  const Aside aside(state);
  const size_t warnings = state.warnings.size();
  const auto values = is_microsoft ? lower_microsoft(state, view, true) : lower_by_groups(groups, state, view, true);
  state.warnings.resize(warnings);
  std::vector<TensorType> types;
  if (values.ok() && *values)
    for (const Value& value : **values) types.push_back(value ? value.type() : TensorType{});
  return types;
}

}  // namespace gopt::ir
