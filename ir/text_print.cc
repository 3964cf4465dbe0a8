#include <set>

#include "gopt/text.h"
#include "gopt/text_reader.h"

namespace gopt {

std::string tensor_text(const Tensor& tensor) { return to_string(AttributeValue(tensor)); }

std::string attributes_text(const Node& node) {
  std::string s;
  for (const auto& [name, value] : node.attributes) {
    const AttributeSchema* schema = op_info(node.op).find_attribute(name);
    if (schema && schema->default_value && equal(*schema->default_value, value)) continue;
    s += (s.empty() ? "" : ", ") + name + "=" + to_string(value);
  }
  return s.empty() ? "" : " {" + s + "}";
}

namespace {

constexpr int64_t kInlineElements = 64;

class GraphPrinter {
 public:
  explicit GraphPrinter(const Graph& graph) : graph_(graph) {}

  std::string print() {
    std::string s = "graph " + name_text(graph_.metadata().name.empty() ? "main" : graph_.metadata().name) + "\n";
    for (const Value& v : graph_.inputs()) s += "  input " + name_text(assign(v)) + " : " + to_string(v.type()) + "\n";
    for (const NodePtr& node : graph_.nodes()) s += line(node);
    for (const GraphOutput& o : graph_.outputs())
      s += "  output " + name_text(o.name) + " = " + name_text(names_.at(o.value)) + "\n";
    return s + "end\n";
  }

 private:
  // The value's own name where it has one that is free, else a number.
  const std::string& assign(const Value& v) {
    std::string name = v.node->output_names.empty() ? "" : v.node->output_names[static_cast<size_t>(v.output)];
    while (name.empty() || used_.contains(name)) name = "v" + std::to_string(count_++);
    used_.insert(name);
    return names_[v] = name;
  }

  std::string line(const NodePtr& node) {
    if (node->is(OpKind::Input)) return "";
    std::string outputs, inputs;
    for (size_t k = 0; k < node->outputs.size(); k++)
      outputs += (k ? ", " : "") + name_text(assign({node, static_cast<int>(k)}));
    if (node->is(OpKind::Constant)) {
      const bool small = node->tensor.count() <= kInlineElements && is_computable(node->tensor.type());
      return small ? "  constant " + outputs + " = " + tensor_text(node->tensor) + "\n"
                   : "  weight " + outputs + " : " + to_string(node->outputs[0]) + "\n";
    }
    for (const Value& v : node->inputs) inputs += (inputs.empty() ? "" : ", ") + (v ? name_text(names_.at(v)) : "_");
    if (!node->is(OpKind::Opaque))
      return "  " + outputs + " = " + op_info(node->op).name + "(" + inputs + ")" + attributes_text(*node) + "\n";
    std::string types;
    for (const TensorType& t : node->outputs) types += (types.empty() ? "" : ", ") + to_string(t);
    return "  " + outputs + " = opaque " + to_string(AttributeValue(node->opaque->domain)) + " " +
           to_string(AttributeValue(node->opaque->op_type)) + "(" + inputs + ") : " + types + "\n";
  }

  const Graph& graph_;
  std::map<Value, std::string> names_;
  std::set<std::string> used_;
  int count_ = 0;
};

}  // namespace

std::string print_graph(const Graph& graph) { return GraphPrinter(graph).print(); }

}  // namespace gopt
