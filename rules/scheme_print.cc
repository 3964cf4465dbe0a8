#include <algorithm>

#include "gopt/scheme.h"
#include "gopt/text_reader.h"

namespace gopt {
namespace {

std::string items_text(const SchemeItems& items) {
  std::string text;
  for (const SchemeItem& item : items)
    text += (text.empty() ? "" : ",") + to_string(item.value) + (item.domain.empty() ? "" : "...");
  return "[" + text + "]";
}

bool is_default(const SchemeNode& node, const std::string& name, const SchemeAttribute& value) {
  const AttributeSchema* schema = op_info(node.op).find_attribute(name);
  const auto* plain = std::get_if<AttributeValue>(&value);
  return schema && plain && schema->default_value && equal(*schema->default_value, *plain);
}

std::string node_text(const SchemeNode& node) {
  std::string outputs, inputs, attributes;
  for (const std::string& name : node.outputs) outputs += (outputs.empty() ? "" : ", ") + name_text(name);
  if (node.op == OpKind::Constant) return "constant " + outputs + " = " + tensor_text(node.tensor);
  for (const std::string& name : node.inputs)
    inputs += (inputs.empty() ? "" : ", ") + (name.empty() ? "_" : name_text(name));
  for (const auto& [name, value] : node.attributes) {
    if (is_default(node, name, value)) continue;
    const auto* items = std::get_if<SchemeItems>(&value);
    attributes += (attributes.empty() ? "" : ", ") + name + "=" +
                  (items ? items_text(*items) : to_string(std::get<AttributeValue>(value)));
  }
  return outputs + " = " + op_info(node.op).name + "(" + inputs + ")" +
         (attributes.empty() ? "" : " {" + attributes + "}");
}

std::string side_text(const SchemeSide& side) {
  std::string text, returned;
  for (const SchemeNode& node : side.nodes) text += "    " + node_text(node) + "\n";
  for (const std::string& name : side.outputs) returned += (returned.empty() ? "" : ", ") + name_text(name);
  return text + "    return " + returned + "\n";
}

std::string symbols_text(const Scheme& scheme, AxisSymbolKind kind, const std::string& keyword) {
  std::string text;
  for (const std::string& list : scheme.lists) {
    std::string names;
    for (const AxisSymbol& symbol : scheme.symbols)
      if (symbol.list == list && symbol.kind == kind) names += " " + name_text(symbol.name);
    if (!names.empty()) text += "  " + keyword + names + " of " + name_text(list) + "\n";
  }
  return text;
}

std::string variables_text(const Scheme& scheme) {
  std::string text;
  for (const SchemeVariable& variable : scheme.variables)
    text += "  var " + name_text(variable.name) + " " + to_string(variable.element) + items_text(variable.shape) +
            (variable.kind == VariableKind::Weight ? " weight" : "") + "\n";
  return text;
}

std::string floats_text(const Scheme& scheme) {
  std::map<int, std::string> slots;
  for (const SchemeNode& node : scheme.left.nodes)
    for (const auto& [name, value] : node.attributes)
      if (const auto* plain = std::get_if<AttributeValue>(&value))
        if (const auto* variable = std::get_if<FloatVariable>(plain)) slots[variable->slot] = variable->name;
  std::string text;
  for (const auto& [slot, name] : slots) text += "  float " + name_text(name) + "\n";
  return text;
}

}  // namespace

std::string print_scheme(const Scheme& scheme) {
  std::string lists;
  for (const std::string& list : scheme.lists) lists += " " + name_text(list);
  return "  axes" + lists + "\n" + symbols_text(scheme, AxisSymbolKind::Integers, "integers") +
         symbols_text(scheme, AxisSymbolKind::Permutation, "permutation") +
         symbols_text(scheme, AxisSymbolKind::Subset, "subset") + variables_text(scheme) + floats_text(scheme) +
         "  left\n" + side_text(scheme.left) + "  right\n" + side_text(scheme.right);
}

}  // namespace gopt
