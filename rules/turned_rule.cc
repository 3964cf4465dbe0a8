#include "gopt/turned_rule.h"

#include <algorithm>
#include <set>

namespace gopt {
namespace {

// A side's applications, as text, each with what it makes: a window over two images that were joined is another one.
std::multiset<std::string> applications(const Graph& side) {
  std::multiset<std::string> all;
  for (const NodePtr& node : side.nodes()) {
    std::string text = op_info(node->op).name;
    for (const auto& [name, value] : node->attributes) text += " " + name + "=" + to_string(value);
    for (const TensorType& type : node->outputs) text += " " + to_string(type);
    if (!node->is(OpKind::Input)) all.insert(std::move(text));
  }
  return all;
}

}  // namespace

std::optional<RewriteRule> turned_round(const RewriteRule& rule) {
  RewriteRule other = rule;
  std::swap(other.left, other.right);
  other.marks = {};
  other.real_types.clear();
  other.proof.reset();
  if (!check_rule(other).ok() || std::ranges::includes(applications(other.right), applications(other.left)))
    return std::nullopt;
  const std::string sides = rule.name.substr(0, rule.name.rfind('-')), link = "-to-";
  if (const size_t at = sides.find(link); at != std::string::npos)
    other.name = sides.substr(at + link.size()) + link + sides.substr(0, at);
  other.name += "-" + other.content_hash().substr(0, 6);
  return other;
}

}  // namespace gopt
