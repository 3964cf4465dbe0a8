#include "rule_text.h"

#include <string>

namespace taso_generator {

namespace {

std::string text_of(const Operator& op) {
  const auto number = [](const char* name, int value) {
    return "\"" + std::string(name) + "\": " + std::to_string(value);
  };
  const std::string kernel = number("kernel_h", op.first) + ", " + number("kernel_w", op.second);
  const std::string window =
      kernel + ", " + number("stride_h", 1) + ", " + number("stride_w", 1) + ", \"pad\": \"same\"";
  std::string name, parameters;
  switch (op.kind) {
    case Kind::MatMul: name = "matmul", parameters = "\"acti\": \"none\""; break;
    case Kind::Add: name = "ewadd"; break;
    case Kind::Mul: name = "ewmul"; break;
    case Kind::Conv:
      name = "conv2d", parameters = window + ", \"acti\": \"" + (op.flag ? "relu" : "none") + "\"";
      break;
    case Kind::AveragePool: name = "pool2d_avg", parameters = window; break;
    case Kind::MaxPool: name = "pool2d_max", parameters = window; break;
    case Kind::PoolKernel: name = "const_pool", parameters = kernel; break;
    case Kind::IdentityKernel: name = "const_iconv", parameters = kernel; break;
    case Kind::IdentityMatrix: name = "const_imm"; break;
    case Kind::Ones: name = "const_one"; break;
    case Kind::Enlarge: name = "enlarge", parameters = kernel; break;
    case Kind::ScalarMul: name = "scalar_mul"; break;
    case Kind::Relu: name = "relu"; break;
    case Kind::Concat:
      name = "concat";
      parameters = number("num_inputs", 2) + ", " + number("axis", op.first) + ", " + number("numdim", op.second);
      break;
    case Kind::Split: name = "split", parameters = number("num_outputs", 2) + ", " + number("axis", op.first); break;
    case Kind::Transpose:
      name = "transpose";
      parameters = number("numdim", 2) + ", " + number("perm", 2) + ", " + number("outshuffle", op.flag);
      break;
  }
  return "\"op\": \"" + name + "\", \"p\": {" + parameters + "}";
}

std::string text_of(const Ref& ref) { return "[" + std::to_string(ref.source) + ", " + std::to_string(ref.port) + "]"; }

std::string text_of(const Graph& graph, const std::vector<Operator>& operators) {
  std::string text;
  for (size_t i = 0; i < graph.count; i++) {
    const Application& application = graph.applications[i];
    const Operator& op = operators[application.op];
    text += (i == 0 ? "{" : ", {") + text_of(op) + ", \"in\": [";
    for (size_t k = 0; k < static_cast<size_t>(op.inputs()); k++)
      text += (k == 0 ? "" : ", ") + text_of(application.inputs[k]);
    text += "]}";
  }
  return "[" + text + "]";
}

}  // namespace

void write(const std::vector<Rule>& rules, const std::vector<Operator>& operators, std::ostream& out) {
  out << "[";
  for (size_t number = 0; number < rules.size(); number++) {
    const Rule& rule = rules[number];
    out << (number == 0 ? "\n" : ",\n") << "{\"id\": " << number << ", \"src\": " << text_of(rule.source, operators)
        << ", \"dst\": " << text_of(rule.target, operators) << ", \"out\": [";
    const std::vector<Ref> from = outputs_of(rule.source, operators), to = outputs_of(rule.target, operators);
    for (size_t i = 0; i < from.size(); i++)
      out << (i == 0 ? "[" : ", [") << text_of(from[i]) << ", " << text_of(to[i]) << "]";
    out << "]}";
  }
  out << "\n]\n";
}

}  // namespace taso_generator
