#include "gopt/node_names.h"

#include <algorithm>
#include <set>

namespace gopt {
namespace {

// Letters that have to be put in, taken out or changed.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> names = node.output_names;
  names.push_back(node.name);
  std::erase(names, "");
  return names;
}

std::string nearest_names(const Graph& graph, const std::string& wanted) {
  constexpr size_t kShown = 4;
  std::set<std::pair<size_t, std::string>> found;
  for (const NodePtr& node : graph.nodes()) {
    for (const std::string& name : names_of(*node)) {
      // One that holds the other is nearer than its length says.
      const bool is_part = name.find(wanted) != std::string::npos || wanted.find(name) != std::string::npos;
      found.emplace(is_part ? 0 : distance(name, wanted), name);
    }
    while (found.size() > kShown) found.erase(std::prev(found.end()));
  }
  std::string text;
  for (const auto& [letters, name] : found) text += (text.empty() ? "`" : ", `") + name + "`";
  return text;
}

}  // namespace

std::string name_of_node(const Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& name : node.output_names)
    if (!name.empty()) return name;
  return node.opaque ? node.opaque->op_type : op_info(node.op).name;
}

Result<NodePtr> find_node(const Graph& graph, const std::string& name) {
  const auto& nodes = graph.nodes();
  const auto named = std::find_if(nodes.begin(), nodes.end(), [&](const NodePtr& node) { return node->name == name; });
  if (!name.empty() && named != nodes.end()) return *named;
  for (const NodePtr& node : nodes)
    for (const std::string& own : names_of(*node))
      if (own == name) return node;
  const std::string nearest = nearest_names(graph, name);
  return Error{"there is no node or value `" + name + "`" +
               (nearest.empty() ? ": nothing has a name" : "; the nearest names are " + nearest)};
}

}  // namespace gopt
