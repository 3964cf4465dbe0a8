#include "inline_bodies.h"

#include <onnx/defs/function.h>
#include <onnx/defs/schema.h>

#include "opaque.h"
#include "wire.h"

namespace gopt::ir {
namespace {

constexpr int kDeepestBody = 32;  // functions that call themselves have no meaning in ONNX, but may be written

constexpr int64_t kMostNodes =
    1'000'000;  // of functions that call each other twice, a few dozen are as many as one likes

using AttributeMap = std::map<std::string, onnx::AttributeProto>;

// What the function says of attributes that a call leaves out (attribute_proto, since IR 8), which the message classes
// may be too old to know. Errors: a damaged message.
Result<AttributeMap> default_attributes(const onnx::FunctionProto& function) {
  constexpr int kAttributeProto = 11;
  AttributeMap defaults;
  const std::string text = function.SerializeAsString();
  WireReader reader(std::as_bytes(std::span(text.data(), text.size())));
  while (true) {
    GOPT_ASSIGN_OR_RETURN(const auto field, reader.next());
    if (!field) return defaults;
    if (field->number != kAttributeProto || field->type != WireType::Length) continue;
    onnx::AttributeProto attribute;
    if (!attribute.ParseFromArray(field->payload.data(), static_cast<int>(field->payload.size())))
      return Error{"function '" + function.name() + "' has a damaged default of an attribute"};
    defaults[attribute.name()] = std::move(attribute);
  }
}

// Puts attributes, the call's or the function's defaults, where the body refers to them, within subgraphs, too.
void fill_attributes(onnx::NodeProto& node, const AttributeMap& given) {
  onnx::NodeProto filled = node;
  filled.clear_attribute();
  for (const auto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      onnx::AttributeProto& copy = *filled.add_attribute();
      copy = attribute;
      if (copy.has_g())
        for (onnx::NodeProto& inner : *copy.mutable_g()->mutable_node()) fill_attributes(inner, given);
      for (onnx::GraphProto& graph : *copy.mutable_graphs())
        for (onnx::NodeProto& inner : *graph.mutable_node()) fill_attributes(inner, given);
      continue;
    }
    const auto it = given.find(attribute.ref_attr_name());
    if (it == given.end()) continue;  // absent here too, as the function says of optional attributes
    onnx::AttributeProto& copy = *filled.add_attribute();
    copy = it->second;
    copy.set_name(attribute.name());
  }
  node = filled;
}

}  // namespace

Result<MaybeValues> inline_if(ImportState& state, onnx::NodeProto& node, const NodeView& view) {
  const Value condition = view.input(0);
  const bool known = condition && condition.node->is(OpKind::Constant) && condition.node->tensor.count() == 1 &&
                     is_computable(condition.type().element);
  if (!known) return MaybeValues();
  const std::string branch = condition.node->tensor.to_ints()[0] != 0 ? "then_branch" : "else_branch";
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.name() != branch || !attribute.has_g()) continue;
    onnx::GraphProto& body = *attribute.mutable_g();
    NameScope scope{&view.scope, view.scope.opsets, {}, {}, view.scope.depth + 1};
    GOPT_RETURN_IF_ERROR(import_initializers(state, body, scope));
    for (const auto& output : body.output()) scope.used.insert(output.name());
    GOPT_RETURN_IF_ERROR(import_nodes(state, *body.mutable_node(), scope));
    Values outputs;
    for (const auto& output : body.output()) {
      const Value* value = scope.find(output.name());
      if (!value) return Error{branch + " gives '" + output.name() + "', which nothing defines"};
      outputs.push_back(*value);
    }
    return MaybeValues(std::move(outputs));
  }
  return Error{"has no " + branch};
}

namespace {

// The body over the call's inputs, attributes filled in from `given`.
Result<MaybeValues> inline_body(ImportState& state, const NodeView& view, const onnx::FunctionProto& function,
                                const AttributeMap& given) {
  Opsets opsets = view.scope.opsets;
  for (const auto& opset : function.opset_import()) opsets[normal_domain(opset.domain())] = opset.version();
  auto nodes = function.node();
  for (auto& node : nodes) fill_attributes(node, given);
  if (view.scope.depth >= kDeepestBody) return Error{"function calls are nested deeper than 32"};
  state.nodes_of_functions += function.node_size();
  if (state.nodes_of_functions > kMostNodes) return Error{"function calls come to more than a million nodes"};
  NameScope scope{nullptr, opsets, {}, {}, view.scope.depth + 1};
  for (int i = 0; i < function.input_size(); i++) scope.values[function.input(i)] = view.input(static_cast<size_t>(i));
  scope.used.insert(function.output().begin(), function.output().end());
  const long opaque_before = state.opaque_count;
  GOPT_RETURN_IF_ERROR(import_nodes(state, nodes, scope));
  if (state.opaque_count != opaque_before) return MaybeValues();  // it may be of another opset, and the call says more
  Values outputs;
  for (const std::string& name : function.output()) {
    const Value* value = scope.find(name);
    if (!value) return Error{"function '" + function.name() + "' gives '" + name + "', which nothing defines"};
    outputs.push_back(*value);
  }
  return MaybeValues(std::move(outputs));
}

// The function that the operator's schema gives for this node; nothing where it gives none.
std::optional<onnx::FunctionProto> schema_function(const NodeView& view, const onnx::OpSchema& schema) {
  if (schema.HasFunction()) return *schema.GetFunction();
  if (!schema.HasContextDependentFunction()) return std::nullopt;
  std::vector<onnx::TypeProto> types;
  for (const Value& input : view.inputs) {
    onnx::TypeProto& type = types.emplace_back();
    if (input) type.mutable_tensor_type()->set_elem_type(static_cast<int>(input.type().element));
  }
  onnx::FunctionProto function;
  const onnx::FunctionBodyBuildContextImpl context(view.node, types);
  if (!schema.BuildContextDependentFunction(context, function)) return std::nullopt;
  return function;
}

}  // namespace

Result<MaybeValues> inline_function(ImportState& state, const NodeView& view, const onnx::FunctionProto& function) {
  GOPT_ASSIGN_OR_RETURN(AttributeMap given, default_attributes(function));
  for (const auto& attribute : view.node.attribute()) given[attribute.name()] = attribute;
  return inline_body(state, view, function, given);
}

Result<MaybeValues> inline_schema_function(ImportState& state, const NodeView& view) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(view.node.op_type(), static_cast<int>(view.opset), "");
  if (!schema) return MaybeValues();
  std::optional<onnx::FunctionProto> function;
  try {
    function = schema_function(view, *schema);
  } catch (const std::exception&) {  // attributes or types that no function is made for
  }
  if (!function) return MaybeValues();
  // A body that is made for the node lacks outputs that the node leaves out.
  while (function->output_size() > view.node.output_size()) function->mutable_output()->RemoveLast();
  AttributeMap given;
  for (const auto& [name, attribute] : schema->attributes())
    if (attribute.default_value.type() != onnx::AttributeProto::UNDEFINED) given[name] = attribute.default_value;
  for (const auto& attribute : view.node.attribute()) given[attribute.name()] = attribute;
  auto values = inline_body(state, view, *function, given);
  return values.ok() ? values : MaybeValues();  // what the body does not take, it may be that others do
}

}  // namespace gopt::ir
