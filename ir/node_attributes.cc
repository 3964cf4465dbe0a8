#include "gopt/node_attributes.h"

namespace gopt {

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

}  // namespace gopt
