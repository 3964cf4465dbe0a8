// One node: by the operator table where it has a row for it, else opaque.
#include <algorithm>

#include "constant_values.h"
#include "declarations.h"
#include "gopt/interpreter.h"
#include "gopt/wide_integers.h"
#include "inline_bodies.h"
#include "integer_values.h"
#include "lowering.h"
#include "opaque.h"
#include "ranges.h"
#include "rebatch.h"

namespace gopt::ir {
namespace {

constexpr int64_t kFoldIntegersBelow = 8192, kFoldFloatsBelow = 1024;  // elements; what is larger stays a node
constexpr int64_t kNewestOpset = 26;
const char* const kTrainingDomain = "ai.onnx.preview.training";

// ---- attributes ----

std::optional<AttributeValue> attribute_value(const onnx::AttributeProto& proto, AttributeKind kind,
                                              ImportState& state) {
  switch (kind) {
    case AttributeKind::Int: return Index(proto.i());
    case AttributeKind::Ints: return std::vector<Index>(proto.ints().begin(), proto.ints().end());
    case AttributeKind::Float: return static_cast<double>(proto.f());
    case AttributeKind::Floats: return std::vector<double>(proto.floats().begin(), proto.floats().end());
    case AttributeKind::String: return proto.s();
    case AttributeKind::Tensor: {
      TensorSource source{proto.t(), {}};
      auto tensor = take_tensor(source, state.file.external);
      return tensor.ok() ? std::optional<AttributeValue>(*std::move(tensor)) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool has_kind(const onnx::AttributeProto& proto, AttributeKind kind) {
  using P = onnx::AttributeProto;
  switch (kind) {
    case AttributeKind::Int: return proto.type() == P::INT || proto.has_i();
    case AttributeKind::Ints: return proto.type() == P::INTS || proto.ints_size() > 0;
    case AttributeKind::Float: return proto.type() == P::FLOAT || proto.has_f();
    case AttributeKind::Floats: return proto.type() == P::FLOATS || proto.floats_size() > 0;
    case AttributeKind::String: return proto.type() == P::STRING || proto.has_s();
    case AttributeKind::Tensor: return proto.has_t();
  }
  return false;
}

// Attributes that change nothing for the types that are computed with here.
bool is_ignorable(OpKind kind, const std::string& name) {
  return (kind == OpKind::Cast && (name == "saturate" || name == "round_mode"));
}

// The node's own attributes; nothing where one is not known to the table.
std::optional<Attributes> read_attributes(ImportState& state, const NodeView& view, const OpInfo& info) {
  Attributes attributes;
  for (const auto& proto : view.node.attribute()) {
    if (is_ignorable(info.kind, proto.name())) continue;
    const AttributeSchema* schema = info.find_attribute(proto.name());
    if (!schema || !has_kind(proto, schema->kind)) return std::nullopt;
    const auto is_input = [&](const OnnxInput& input) {
      return input.attribute == proto.name() && input.since_opset <= view.opset;
    };
    if (std::any_of(info.onnx_inputs.begin(), info.onnx_inputs.end(), is_input)) return std::nullopt;
    auto value = attribute_value(proto, schema->kind, state);
    if (!value) return std::nullopt;
    attributes[proto.name()] = *std::move(value);
  }
  return attributes;
}

// Other symbols are extents of some value in the middle, which a rewrite may remove: what needs them stays as it is.
bool is_over_inputs(const ImportState& state, const std::vector<Index>& entries) {
  std::set<AtomId> used;
  for (const Index& entry : entries) collect_symbols(entry, used);
  return std::includes(state.input_symbols.begin(), state.input_symbols.end(), used.begin(), used.end());
}

// An attribute that this opset passes as an input; nothing where that is not known.
std::optional<AttributeValue> input_attribute(ImportState& state, const Value& value, AttributeKind kind) {
  if (kind == AttributeKind::Ints || kind == AttributeKind::Int) {
    auto entries = known_integers(state, value);
    if (!entries && value.node->is(OpKind::Constant) && is_integer(value.type().element) &&
        value.type().shape->size() <= 1) {
      const std::vector<int64_t> numbers = value.node->tensor.to_ints();
      entries.emplace(numbers.begin(), numbers.end());
    }
    if (!entries || !is_over_inputs(state, *entries)) return std::nullopt;
    if (kind == AttributeKind::Ints) return *std::move(entries);
    return entries->size() == 1 ? std::optional<AttributeValue>((*entries)[0]) : std::nullopt;
  }
  if (kind != AttributeKind::Float || !value.node->is(OpKind::Constant)) return std::nullopt;
  if (!is_computable(value.type().element) || value.node->tensor.count() != 1) return std::nullopt;
  if (has_wide_integers(value.node->tensor)) return std::nullopt;
  return value.node->tensor.to_doubles()[0];
}

// Moves inputs that are attributes in the table from `inputs` to `attributes`. False where one is not known.
bool take_input_attributes(ImportState& state, const NodeView& view, const OpInfo& info, Values& inputs,
                           Attributes& attributes) {
  if (info.onnx_inputs.empty()) return true;
  size_t position = static_cast<size_t>(info.max_inputs);
  for (const OnnxInput& input : info.onnx_inputs) {
    if (input.since_opset > view.opset) break;
    const Value value = view.input(position++);
    if (!value || (info.kind == OpKind::Clip && is_end_of_type(value, input.attribute == "min"))) continue;
    auto attribute = input_attribute(state, value, info.find_attribute(input.attribute)->kind);
    if (!attribute) return false;
    attributes[input.attribute] = *std::move(attribute);
  }
  if (inputs.size() > position) return false;
  inputs.resize(std::min(inputs.size(), static_cast<size_t>(info.max_inputs)));
  return true;
}

// ---- known operators ----

bool has_known_types(const Values& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Value& value) {
    return !value || (is_computable(value.type().element) && value.type().shape);
  });
}

// The number of outputs to make; nothing where the table's row has fewer than the node uses.
std::optional<int> count_outputs(const NodeView& view, const OpInfo& info) {
  int count = view.node.output_size();
  if (info.outputs < 0) return count;
  for (int i = info.outputs; i < count; i++) {
    // Before opset 14 further outputs of BatchNormalization mean that it is training, used or not.
    const bool matters = info.kind == OpKind::BatchNormalization && !view.node.output(i).empty();
    if (view.output_used(i) || matters) return std::nullopt;
  }
  return std::min(count, info.outputs);
}

// True for extents that contradict each other. An empty reduction is none, which newer opsets give a meaning; neither
// is a window larger than what it slides over: of it runtimes make one place or none.
bool is_contradiction(const Error& error) {
  const auto says = [&](const char* text) { return error.message.find(text) != std::string::npos; };
  return error.message.ends_with("does not hold") && !says("not empty") && !says("fits the padded input");
}

bool is_symbolic(const AttributeValue& value) {
  if (const auto* number = std::get_if<Index>(&value)) return !number->is_constant();
  const auto* list = std::get_if<std::vector<Index>>(&value);
  return list && std::any_of(list->begin(), list->end(), [](const Index& entry) { return !entry.is_constant(); });
}

// Attributes that have come to depend on symbols (pads of SAME), but that ONNX has as numbers only.
bool has_unwritable_attribute(const Node& node, const OpInfo& info, int64_t opset) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
    const auto is_input = [&](const OnnxInput& input) {
      return input.attribute == attribute.first && input.since_opset <= opset;
    };
    return is_symbolic(attribute.second) && std::none_of(info.onnx_inputs.begin(), info.onnx_inputs.end(), is_input);
  });
}

// Shapes that are computed from the input's own are those that ONNX can say in numbers.
void shorten_shape(const Value& input, Attributes& attributes) {
  const auto zero = attributes.find("allowzero");
  auto* shape = attributes.contains("shape") ? std::get_if<std::vector<Index>>(&attributes["shape"]) : nullptr;
  const bool keeps_zero = zero != attributes.end() && !(std::get<Index>(zero->second) == Index(0));
  if (shape && input && !keeps_zero) *shape = short_reshape(input.type(), *shape);
}

Result<MaybeValues> import_known(ImportState& state, const NodeView& view, OpKind kind) {
  const OpInfo& info = op_info(kind);
  const auto outputs = count_outputs(view, info);
  if (!outputs || !has_known_types(view.inputs)) return MaybeValues();
  if (form_of(view, kind) == Form::Special) return import_special(state, view, kind);
  auto attributes = read_attributes(state, view, info);
  Values inputs = view.inputs;
  if (!attributes || !take_input_attributes(state, view, info, inputs, *attributes)) return MaybeValues();
  if (kind == OpKind::Slice && !inputs.empty() && may_be_outside(inputs[0], *attributes)) return MaybeValues();
  if (kind == OpKind::Slice && !inputs.empty()) simplify_ranges(inputs[0], *attributes);
  if (kind == OpKind::Reshape && !inputs.empty()) shorten_shape(inputs[0], *attributes);
  if (state.original_types) GOPT_RETURN_IF_ERROR(rebatch_node(state, view, kind, inputs, *attributes));
  auto node = state.builder.add(kind, inputs, *attributes, *outputs, view.node.name(),
                                {view.node.output().begin(), view.node.output().end()});
  if (!node.ok()) {
    if (state.original_types) return Error{node.error().message + " (it holds extents that do not follow --shape)"};
    if (is_contradiction(node.error()) && kind != OpKind::Slice) return node.error();  // ranges are cut off, not wrong
    return MaybeValues();
  }
  if (has_unwritable_attribute(**node, info, view.opset)) return MaybeValues();
  if (may_clamp(**node)) {
    if (!state.options.ranges_fit) return MaybeValues();
    const auto own = kind == OpKind::Slice ? cut_off(**node, state.options.longest_whole_range) : std::nullopt;
    if (own) {
      auto cut = state.builder.add(kind, inputs, *own, *outputs, view.node.name(),
                                   {view.node.output().begin(), view.node.output().end()});
      if (cut.ok()) node = cut, state.has_cut_ranges = true;
    }
  }
  Values values;
  for (int i = 0; i < *outputs; i++) values.push_back({*node, i});
  return MaybeValues(std::move(values));
}

// ---- folding ----

bool is_foldable(const Node& node) {
  // Weights of integers stay what they are: products are computed on them.
  if (node.is(OpKind::Dequantize)) return false;
  if (node.is(OpKind::Constant) || node.is(OpKind::Input) || node.is(OpKind::Opaque)) return false;
  for (const Value& input : node.inputs)
    if (input && !input.node->is(OpKind::Constant)) return false;
  return std::all_of(node.outputs.begin(), node.outputs.end(), [](const TensorType& type) {
    if (!type.has_static_shape() || !is_computable(type.element)) return false;
    return element_count(type.static_shape()) <= (is_floating(type.element) ? kFoldFloatsBelow : kFoldIntegersBelow);
  });
}

// Small values of constants alone, and integers that are known to be numbers, become constants.
void fold_values(ImportState& state, const NodeView& view, Values& values) {
  const auto name = [&](size_t i) {
    return static_cast<int>(i) < view.node.output_size() ? view.node.output(static_cast<int>(i)) : "";
  };
  for (size_t i = 0; i < values.size(); i++) {
    if (!values[i]) continue;
    learn_integers(state, values[i]);
    const auto it = state.integers.find(values[i]);
    if (it == state.integers.end()) continue;
    std::vector<int64_t> numbers;
    for (const Index& entry : it->second)
      if (entry.is_constant()) numbers.push_back(entry.constant());
    const TensorType& type = values[i].type();
    if (numbers.size() == it->second.size())
      values[i] = state.builder.constant(Tensor::from_values(type.element, type.static_shape(), numbers), name(i));
  }
  if (values.empty() || !values[0] || !is_foldable(*values[0].node)) return;
  const NodePtr node = values[0].node;
  std::vector<Tensor> inputs;
  for (const Value& input : node->inputs) inputs.push_back(input ? input.node->tensor : Tensor());
  auto tensors = interpret_node(*node, inputs);
  if (!tensors.ok()) return;  // it stays a node, and fails when it runs, if it ever does
  for (size_t i = 0; i < values.size(); i++)
    if (values[i] && values[i].node == node)
      values[i] = state.builder.constant(std::move((*tensors)[static_cast<size_t>(values[i].output)]), name(i));
}

// ---- the whole ----

// What the node says beside what it computes: documentation, and fields of newer versions of the format.
std::string annotations_of(onnx::NodeProto& node) {
  google::protobuf::RepeatedPtrField<onnx::AttributeProto> attributes;  // may hold much
  attributes.Swap(node.mutable_attribute());
  onnx::NodeProto rest = node;
  attributes.Swap(node.mutable_attribute());
  rest.clear_input();
  rest.clear_output();
  rest.clear_name();
  rest.clear_op_type();
  rest.clear_domain();
  return rest.SerializeAsString();
}

// An operator without a row, by a lowering of ours or the function that ONNX gives for it. What a lowering warned of
// while it failed is of nodes that are none.
Result<MaybeValues> lower_whole(ImportState& state, const NodeView& view) {
  const bool takes_4_bits = view.node.op_type() == "DequantizeLinear";  // of constants
  if (!has_known_types(view.inputs) && !takes_4_bits) return MaybeValues();
  const size_t warnings = state.warnings.size();
  GOPT_ASSIGN_OR_RETURN(MaybeValues values, lower_operator(state, view));
  if (!values) {
    GOPT_ASSIGN_OR_RETURN(values, inline_schema_function(state, view));
  }
  if (!values) state.warnings.resize(warnings);
  return values;
}

// An operator without a row on constants alone is what its lowering computes of them, where that is small or no larger
// than they are.
Result<MaybeValues> compute_whole(ImportState& state, const NodeView& view) {
  constexpr size_t kAlwaysSmall = 4096;  // bytes
  const auto is_known = [](const Value& value) { return !value || value.node->is(OpKind::Constant); };
  if (view.inputs.empty() || !std::all_of(view.inputs.begin(), view.inputs.end(), is_known)) return MaybeValues();
  size_t given = 0;
  for (const Value& value : view.inputs)
    if (value) given += value.node->tensor.bytes().size();
  GOPT_ASSIGN_OR_RETURN(MaybeValues values, lower_whole(state, view));
  if (!values) return values;
  for (size_t i = 0; i < values->size(); i++) {
    Value& value = (*values)[i];
    if (!value || value.node->is(OpKind::Constant)) continue;
    const TensorType& type = value.type();
    if (!is_computable(type.element) || !type.has_static_shape() || !is_of_constants(value)) return MaybeValues();
    const auto bytes = tensor_bytes(type.element, type.static_shape());
    if (!bytes || *bytes > std::max(kAlwaysSmall, given)) return MaybeValues();
    auto tensor = evaluate_constant(value);
    if (!tensor.ok()) return MaybeValues();
    const int place = static_cast<int>(i);
    value = state.builder.constant(*std::move(tensor), place < view.node.output_size() ? view.node.output(place) : "");
  }
  return values;
}

Result<MaybeValues> import_by_meaning(ImportState& state, onnx::NodeProto& node, const NodeView& view) {
  const auto function = state.functions.find({normal_domain(node.domain()), node.op_type()});
  if (function != state.functions.end() && !function->second) return MaybeValues();
  if (function != state.functions.end()) return inline_function(state, view, *function->second);
  const std::string domain = normal_domain(node.domain());
  if (state.options.lower && domain == kTrainingDomain) {  // a model may import no other
    return lower_whole(state, {node, view.inputs, view.scope, view.opset > 0 ? view.opset : kNewestOpset});
  }
  if (state.options.lower && is_of_microsoft(node) && has_known_types(view.inputs)) return lower_microsoft(state, view);
  if (!domain.empty()) return MaybeValues();
  const bool is_dropout = node.op_type() == "Dropout" && view.opset >= 7;
  if (node.op_type() == "If" || is_dropout) {
    GOPT_ASSIGN_OR_RETURN(MaybeValues values, is_dropout ? import_dropout(state, view) : inline_if(state, node, view));
    if (values || !state.options.lower) return values;
  }
  if (node.op_type() == "Identity" && view.has(0)) return MaybeValues({view.input(0)});
  const auto kind = find_op(node.op_type());
  if (!kind) {
    const bool is_one_for_one = node.op_type() == "CastLike";  // a Cast, since types are known
    // A runtime multiplies integers where it sees that they are: as floats they would take four times the room, too.
    if (node.op_type() == "DequantizeLinear" && !state.options.lower) return MaybeValues();
    GOPT_ASSIGN_OR_RETURN(MaybeValues lowered, state.options.lower || is_one_for_one ? lower_whole(state, view)
                                                                                     : compute_whole(state, view));
    if (lowered) return lowered;
  }
  const bool is_old = kind && !op_info(*kind).has(kInternal) && !has_table_form(*kind, view.opset);
  if (state.options.lower && is_old && has_known_types(view.inputs)) return lower_operator(state, view);
  if (!kind || op_info(*kind).has(kInternal) || is_old) {
    if (view.opset > kNewestOpset)
      state.warn("operator " + node.op_type() + " of opset " + std::to_string(view.opset) +
                 " is not known and is kept as it is");
    return MaybeValues();
  }
  GOPT_ASSIGN_OR_RETURN(MaybeValues values, import_known(state, view, *kind));
  return values || !state.options.lower ? values : lower_operator(state, view);
}

}  // namespace

Result<std::vector<Value>> import_node(ImportState& state, onnx::NodeProto& node, int position, NameScope& scope) {
  NodeView view{node, {}, scope, scope.opset()};
  for (const std::string& name : node.input()) {
    const Value* value = name.empty() ? nullptr : scope.find(name);
    // What a node has fewer of than the file says it has.
    if (!name.empty() && !value) return Error{"reads '" + name + "', which the node that should give it does not"};
    view.inputs.push_back(value ? *value : Value{});
  }
  if (node.op_type() == "Constant" && normal_domain(node.domain()).empty()) {
    GOPT_ASSIGN_OR_RETURN(const Value value, import_constant_node(state, node, position, scope));
    return std::vector<Value>{value};
  }
  Values opaque_inputs = view.inputs;
  state.builder.annotate(annotations_of(node));
  while (!view.inputs.empty() && !view.inputs.back()) view.inputs.pop_back();
  GOPT_ASSIGN_OR_RETURN(MaybeValues values, import_by_meaning(state, node, view));
  if (values) {
    fold_values(state, view, *values);
    return *std::move(values);
  }
  if (state.original_types)
    state.warn("operator " + node.op_type() + " is kept as it is and may hold extents that --shape changes");
  GOPT_ASSIGN_OR_RETURN(const NodePtr opaque, import_opaque(state, node, opaque_inputs, scope));
  Values outputs;
  for (int i = 0; i < node.output_size(); i++) outputs.push_back({opaque, i});
  return outputs;
}

}  // namespace gopt::ir
