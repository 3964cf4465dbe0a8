#include "algebra.h"

#include <map>

#include "gopt/scheme.h"
#include "gopt/text_reader.h"

namespace gopt::cli {
namespace {

// Terms of one side. A node whose outputs are used more than once gets a name, unless it is a variable.
class SideText {
 public:
  SideText(const Graph& side, size_t& names) : names_(names) {
    for (const NodePtr& node : side.nodes())
      for (const Value& input : node->inputs)
        if (input) uses_[input.node.get()]++;
    for (const GraphOutput& output : side.outputs()) uses_[output.value.node.get()]++;
  }

  std::string operator()(const Value& value) {
    if (!value) return "_";
    const Node& node = *value.node;
    const std::string port = node.outputs.size() > 1 ? "." + std::to_string(value.output) : "";
    if (node.is(OpKind::Input)) return node.name;
    if (uses_[&node] < 2 || node.is(OpKind::Constant)) return application(node) + port;
    auto known = shared_.find(&node);
    if (known == shared_.end()) {
      const std::string text = application(node);
      known = shared_.emplace(&node, "t" + std::to_string(++names_)).first;
      definitions_.push_back(known->second + " = " + text);
    }
    return known->second + port;
  }
  const std::vector<std::string>& definitions() const { return definitions_; }

 private:
  std::string application(const Node& node) {
    if (node.is(OpKind::Constant)) return tensor_text(node.tensor);
    std::string text = op_info(node.op).name + "(";
    for (size_t i = 0; i < node.inputs.size(); i++) text += (i ? ", " : "") + (*this)(node.inputs[i]);
    const std::string attributes = attributes_text(node);
    return text + ")" + attributes;
  }

  size_t& names_;
  std::map<const Node*, int> uses_;
  std::map<const Node*, std::string> shared_;
  std::vector<std::string> definitions_;
};

}  // namespace

std::string algebra_text(const RewriteRule& rule) {
  if (rule.scheme) {
    std::string text = print_scheme(*rule.scheme);
    for (const SchemeCondition& condition : rule.scheme->conditions)
      text += "  when " + to_string(condition.cond) + "\n";
    return text;
  }
  size_t names = 0;
  SideText left(rule.left, names), right(rule.right, names);
  std::string text;
  for (size_t o = 0; o < rule.left.outputs().size(); o++)
    text += "  " + left(rule.left.outputs()[o].value) + " = " + right(rule.right.outputs()[o].value) + "\n";
  for (const SideText* side : {&left, &right})
    for (const std::string& definition : side->definitions()) text += "  where " + definition + "\n";
  text += "  for all ";
  for (size_t i = 0; i < rule.variables.size(); i++) {
    const RuleVariable& v = rule.variables[i];
    std::string type = to_string(v.type);
    if (v.has_prefix) type.insert(type.find('[') + 1, v.type.shape->empty() ? "..." : "...,");
    text += (i ? ", " : "") + v.name + ": " + type + (v.kind == VariableKind::Weight ? " weight" : "");
  }
  text += "\n";
  if (!rule.condition.is_true()) text += "  if " + to_string(rule.condition) + "\n";
  return text;
}

std::string terms_text(const Graph& graph) {
  size_t names = 0;
  SideText side(graph, names);
  std::string text;
  for (const GraphOutput& output : graph.outputs()) text += (text.empty() ? "" : ", ") + side(output.value);
  for (size_t i = 0; i < side.definitions().size(); i++) text += (i ? ", " : " where ") + side.definitions()[i];
  return text;
}

}  // namespace gopt::cli
