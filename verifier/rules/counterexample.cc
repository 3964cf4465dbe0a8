#include <cmath>

#include "gopt/verifier.h"

namespace gopt {

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: return "proved";
    case Verdict::Refuted: return "refuted";
    case Verdict::Unknown: return "unknown";
  }
  return "";
}

std::string to_string(const MarkExample& example) {
  return std::string(example.mark->name) + " in " + to_string(example.type) + ", " + to_string(example.example);
}

std::string to_string(const Counterexample& c) {
  constexpr double kShownAlike = 1e-7;  // of numbers that differ by less, 9 digits may be the same
  std::string text;
  for (const auto& [name, size] : c.sizes) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  for (const auto& [name, tensor] : c.inputs) {
    text += (text.empty() ? "" : " ") + name + "=";
    text += tensor.count() <= 16 ? to_string(AttributeValue(tensor)) : to_string(tensor.tensor_type());
  }
  if (!c.what.empty()) text += ": " + c.what;
  if (c.position.empty() && !c.what.empty() && c.left == 0 && c.right == 0) return text;
  text += " at output " + std::to_string(c.output) + "[";
  for (size_t k = 0; k < c.position.size(); k++) text += (k ? "," : "") + std::to_string(c.position[k]);
  char values[80];
  snprintf(values, sizeof values, "]: %.9g against %.9g", c.left, c.right);
  if (std::fabs(c.left - c.right) <= kShownAlike * std::fabs(c.left))
    snprintf(values, sizeof values, "]: %.17g against %.17g", c.left, c.right);
  return text + values;
}

}  // namespace gopt
