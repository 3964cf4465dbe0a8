#include "gopt/node_attributes.h"

#include <algorithm>

namespace gopt {

bool has_number_attributes(const Node& node) {
  const auto is_number = [](const Index& i) { return i.is_constant(); };
  return std::all_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
    const auto* one = std::get_if<Index>(&attribute.second);
    const auto* several = std::get_if<std::vector<Index>>(&attribute.second);
    return (!one || is_number(*one)) && (!several || std::all_of(several->begin(), several->end(), is_number));
  });
}

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

std::vector<size_t> transposed_order(const Node& transpose, size_t rank) {
  std::vector<size_t> order;
  for (size_t d = rank; d-- > 0;) order.push_back(d);
  const auto axes = static_cast<int64_t>(rank);
  const std::vector<int64_t> given = ints_or(transpose, "perm", std::vector<int64_t>(order.begin(), order.end()));
  for (size_t d = 0; d < rank; d++) order[d] = static_cast<size_t>(given[d] < 0 ? given[d] + axes : given[d]);
  return order;
}

double real_or(const Node& node, const char* name, double otherwise) {
  auto it = node.attributes.find(name);
  if (it != node.attributes.end()) return std::get<double>(it->second);
  const AttributeSchema* schema = op_info(node.op).find_attribute(name);
  return schema && schema->default_value ? std::get<double>(*schema->default_value) : otherwise;
}

}  // namespace gopt
