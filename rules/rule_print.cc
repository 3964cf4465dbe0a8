#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "gopt/rule.h"
#include "gopt/scheme.h"
#include "gopt/text_reader.h"

namespace gopt {
namespace {

std::string variable_text(const RuleVariable& variable) {
  std::string extents = to_string(*variable.type.shape);
  if (variable.has_prefix) extents.insert(1, extents == "[]" ? "..." : "...,");
  return "  var " + name_text(variable.name) + " " + to_string(variable.type.element) + extents +
         (variable.kind == VariableKind::Weight ? " weight" : "") + "\n";
}

// Node lines of one side. Values keep their names where those are free, and are numbered otherwise.
class SidePrinter {
 public:
  explicit SidePrinter(const Graph& side) : side_(side) {}

  std::string print() {
    std::string text;
    for (const Value& v : side_.inputs()) names_[v] = take(v.node->name);
    for (const NodePtr& node : side_.nodes())
      if (!node->is(OpKind::Input)) text += "    " + line(node) + "\n";
    std::string returned;
    for (const GraphOutput& o : side_.outputs())
      returned += (returned.empty() ? "" : ", ") + name_text(names_.at(o.value));
    return text + "    return " + returned + "\n";
  }

 private:
  std::string take(std::string name) {
    while (name.empty() || used_.contains(name)) name = "v" + std::to_string(count_++);
    used_.insert(name);
    return name;
  }

  std::string line(const NodePtr& node) {
    std::string outputs, inputs;
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) {
      const std::string name = take(node->output_names.empty() ? "" : node->output_names[static_cast<size_t>(k)]);
      names_[{node, k}] = name;
      outputs += (k ? ", " : "") + name_text(name);
    }
    if (node->is(OpKind::Constant)) return "constant " + outputs + " = " + tensor_text(node->tensor);
    for (const Value& v : node->inputs) inputs += (inputs.empty() ? "" : ", ") + (v ? name_text(names_.at(v)) : "_");
    return outputs + " = " + op_info(node->op).name + "(" + inputs + ")" + attributes_text(*node);
  }

  const Graph& side_;
  std::map<Value, std::string> names_;
  std::set<std::string> used_;
  int count_ = 0;
};

std::string types_text(const std::vector<ElementType>& types) {
  std::string text;
  for (ElementType type : types) text += " " + to_string(type);
  return text.empty() ? "" : "  types" + text + "\n";
}

std::string marks_text(const RuleMarks& marks) {
  const std::string text = to_string(marks);
  return text.empty() ? "" : "  marks" + text + "\n";
}

std::string quoted(const std::string& text) { return to_string(AttributeValue(text)); }

// The lines that a verification writes.
std::string verified_text(const RewriteRule& rule) {
  std::string text;
  if (rule.scheme)
    for (const SchemeCondition& condition : rule.scheme->conditions)
      text += "  when " + to_string(condition.cond) + "\n";
  else if (!rule.condition.is_true())
    text += "  when " + to_string(rule.condition) + "\n";
  text += types_text(rule.real_types) + marks_text(rule.marks);
  if (rule.proof)
    text += "  proof definitions=" + quoted(rule.proof->definitions) +
            " obligations=" + std::to_string(rule.proof->obligations) + " solver=" + quoted(rule.proof->solver) +
            " digest=" + quoted(rule.proof->digest) + " rule=" + quoted(rule.proof->rule) + "\n";
  return text;
}

// What starts the lines that a verification writes.
constexpr const char* kVerified[] = {"when", "types", "marks", "proof"};

// Whether a line of a stanza starts with this keyword (and is no node line whose value has that name).
bool is_statement(std::string_view line, std::string_view keyword) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line.substr(begin, keyword.size()) != keyword) return false;
  const std::string_view rest = line.substr(begin + keyword.size());
  if (!rest.empty() && !std::isspace(static_cast<unsigned char>(rest[0]))) return false;
  const size_t next = rest.find_first_not_of(" \t");
  return next == std::string_view::npos || (rest[next] != '=' && rest[next] != ',');
}

}  // namespace

std::string update_rules_text(std::string_view text, const std::vector<RewriteRule>& rules) {
  std::map<std::string, const RewriteRule*> by_name;
  for (const RewriteRule& rule : rules) by_name[rule.name] = &rule;
  std::string result;
  const RewriteRule* current = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (is_statement(line, "rule")) {
      std::string_view name = line.substr(line.find("rule") + 4);
      name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
      auto it = by_name.find(std::string(name.substr(0, name.find_first_of(" \t\r\n#"))));
      current = it == by_name.end() ? nullptr : it->second;
    }
    if (current && std::any_of(std::begin(kVerified), std::end(kVerified),
                               [&](const char* keyword) { return is_statement(line, keyword); }))
      continue;
    if (current && is_statement(line, "end")) {
      result += verified_text(*current);
      current = nullptr;
    }
    result += line;
  }
  return result;
}

namespace {

std::string sides_text(const RewriteRule& rule) {
  std::string text;
  for (const RuleVariable& variable : rule.variables) text += variable_text(variable);
  for (const std::string& name : float_variables(rule)) text += "  float " + name_text(name) + "\n";
  text += "  left\n" + SidePrinter(rule.left).print();
  return text + "  right\n" + SidePrinter(rule.right).print();
}

}  // namespace

std::string print_rule(const RewriteRule& rule) {
  std::string text = "rule " + rule.name + "\n" + (rule.scheme ? print_scheme(*rule.scheme) : sides_text(rule));
  for (size_t o = 0; o < rule.regions.size(); o++)
    for (const Box& box : rule.regions[o]) text += "  region " + std::to_string(o) + " " + to_string(box) + "\n";
  if (!rule.origin.empty()) text += "  origin " + rule.origin + "\n";
  text += verified_text(rule);
  return text + "end\n";
}

std::string print_rules(const std::vector<RewriteRule>& rules) {
  std::string text;
  for (const RewriteRule& rule : rules) text += (text.empty() ? "" : "\n") + print_rule(rule);
  return text;
}

}  // namespace gopt
