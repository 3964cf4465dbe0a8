#include "attributes.h"

#include <algorithm>

namespace gopt::codegen {

std::vector<int64_t> ints_or(const Node& node, const char* name, std::vector<int64_t> otherwise) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return otherwise;
  std::vector<int64_t> numbers;
  for (const Index& i : std::get<std::vector<Index>>(it->second)) numbers.push_back(i.constant());
  return numbers;
}

int64_t int_or(const Node& node, const char* name, int64_t otherwise) {
  auto it = node.attributes.find(name);
  return it == node.attributes.end() ? otherwise : std::get<Index>(it->second).constant();
}

double real_or(const Node& node, const char* name, double otherwise) {
  auto it = node.attributes.find(name);
  if (it != node.attributes.end()) return std::get<double>(it->second);
  const AttributeSchema* schema = op_info(node.op).find_attribute(name);
  return schema && schema->default_value ? std::get<double>(*schema->default_value) : otherwise;
}

std::string list(const std::vector<int64_t>& numbers) {
  std::string s = "{";
  for (size_t i = 0; i < numbers.size(); i++) s += (i ? ", " : "") + std::to_string(numbers[i]);
  return s + "}";
}

std::string number(double value) {
  char text[40];
  snprintf(text, sizeof text, "%.9g", std::clamp(value, -3.4028234e38, 3.4028234e38));
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + "f";
}

}  // namespace gopt::codegen
