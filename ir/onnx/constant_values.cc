#include "constant_values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gopt/op.h"

namespace gopt::ir {
namespace {

// Elements that are made, and of products those that are read, too: no less than what computing a node takes.
double most_work(const Node& node) {
  const auto count = [](const TensorType& type) {
    return type.has_static_shape() ? static_cast<double>(element_count(type.static_shape())) : HUGE_VAL;
  };
  double made = 0, read = 1;
  for (const TensorType& type : node.outputs) made += count(type);
  const OpInfo& info = op_info(node.op);
  if (info.has(kElementwise) || info.has(kDataMovement)) return made;
  for (const Value& input : node.inputs)
    if (input) read = std::max(read, count(input.type()));
  return made * read;
}

}  // namespace

bool is_of_constants(const Value& value) {
  constexpr double kMostWork = 1 << 26;
  double work = 0;
  std::set<const Node*> seen;
  std::vector<const Node*> stack{value.node.get()};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is(OpKind::Constant) || !seen.insert(node).second) continue;
    if (node->is(OpKind::Input) || node->is(OpKind::Opaque) || (work += most_work(*node)) > kMostWork) return false;
    for (const Value& input : node->inputs)
      if (input) stack.push_back(input.node.get());
  }
  return true;
}

}  // namespace gopt::ir
