#include "further.h"

namespace gopt::cli {

std::string partial_text(const RewriteRule& rule) {
  const auto partial = prove_partial(rule);
  if (!partial) return "no region: " + partial.error().message;
  std::string text = "partially equal on";
  for (size_t o = 0; o < partial->rule.regions.size(); o++) {
    const std::vector<Box>& boxes = partial->rule.regions[o];
    text += (o ? ", output " : " output ") + std::to_string(o);
    if (boxes.empty()) text += " everywhere";
    for (const Box& box : boxes) text += " " + to_string(box);
  }
  if (!partial->rule.condition.is_true()) text += " when " + to_string(partial->rule.condition);
  return text;
}

std::vector<RewriteRule> generalised(const std::vector<RewriteRule>& rules) {
  std::vector<RewriteRule> all;
  for (const RewriteRule& rule : rules) {
    if (!rule.proof) {
      all.push_back(rule);
      continue;
    }
    for (RewriteRule& form : generalise(rule)) all.push_back(std::move(form));
  }
  return all;
}

}  // namespace gopt::cli
