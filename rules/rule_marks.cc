// The table of marks: names, which of them a search respects, and what they mean.
#include <algorithm>

#include "gopt/rule.h"

namespace gopt {
namespace {

constexpr MarkInfo kMarks[] = {
    {"finite-only", &RuleMarks::finite_only, false, "differs where an activation is infinite or not a number"},
    {"loses-range", &RuleMarks::loses_range, false,
     "the right side overflows, vanishes or is no number where the left side has a value"},
    {"cancels", &RuleMarks::cancels, false, "the right side loses all digits where the left side keeps them"},
    {"narrows", &RuleMarks::narrows, false,
     "the right side rounds in a type of fewer digits than that in which the left side computes"},
    {"drops-rounding", &RuleMarks::drops_rounding, false,
     "the left side takes terms away that it added, which rounds, or measures rounding; the right side does not"},
    {"reassociates", &RuleMarks::reassociates, true, "sums or products in another order"},
    {"changes-rounding", &RuleMarks::changes_rounding, true, "other functions or constants"},
};

constexpr ElementType kRealTypes[] = {ElementType::Float16, ElementType::BFloat16, ElementType::Float32,
                                      ElementType::Float64};

}  // namespace

std::span<const MarkInfo> all_marks() { return kMarks; }

const MarkInfo* find_mark(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMarks), std::end(kMarks), [&](const MarkInfo& mark) { return mark.name == name; });
  return found == std::end(kMarks) ? nullptr : found;
}

RuleMarks operator|(const RuleMarks& a, const RuleMarks& b) {
  RuleMarks r = a;
  for (const MarkInfo& mark : kMarks) r.*(mark.flag) = a.*(mark.flag) || b.*(mark.flag);
  return r;
}

std::string to_string(const RuleMarks& marks) {
  std::string text;
  for (const MarkInfo& mark : kMarks)
    if (marks.*(mark.flag)) text += " " + std::string(mark.name);
  return text;
}

bool may_apply(const RuleMarks& marks, const RuleMarks& allowed) {
  return std::none_of(std::begin(kMarks), std::end(kMarks), [&](const MarkInfo& mark) {
    return !mark.is_safe && marks.*(mark.flag) && !(allowed.*(mark.flag));
  });
}

std::span<const ElementType> all_real_types() { return kRealTypes; }

bool holds_for(const RewriteRule& rule, ElementType real) {
  return rule.real_types.empty() ||
         std::find(rule.real_types.begin(), rule.real_types.end(), real) != rule.real_types.end();
}

}  // namespace gopt
