#include "size_signs.h"

#include <algorithm>

namespace gopt::verifier {

bool SizeSigns::is_never_below(const Index& a, const Index& b) const {
  if (a == b) return true;
  const Index difference = a - b;
  return std::all_of(sizes_.begin(), sizes_.end(), [&](const Environment& sizes) {
    const auto value = evaluate(difference, sizes);
    return value && *value >= 0;
  });
}

bool SizeSigns::is_ever_below(const Index& a, const Index& b) const {
  const Index difference = a - b;
  return std::any_of(sizes_.begin(), sizes_.end(), [&](const Environment& sizes) {
    const auto value = evaluate(difference, sizes);
    return value && *value < 0;
  });
}

std::optional<Index> SizeSigns::smaller(const Index& a, const Index& b) const {
  if (is_never_below(b, a)) return a;
  if (is_never_below(a, b)) return b;
  return std::nullopt;
}

std::optional<Index> SizeSigns::larger(const Index& a, const Index& b) const {
  if (is_never_below(a, b)) return a;
  if (is_never_below(b, a)) return b;
  return std::nullopt;
}

bool SizeSigns::is_mostly_false(const Cond& condition) const {
  const auto count =
      std::ranges::count_if(sizes_, [&](const Environment& sizes) { return evaluate(condition, sizes) == false; });
  return 2 * count > std::ssize(sizes_);
}

Index SizeSigns::quotient(const Index& numerator, const Index& denominator) const {
  const Index exact = floor_div(numerator, denominator);
  const auto first = evaluate(exact, sizes_.front());
  return first && is_same(exact, Index(*first)) ? Index(*first) : exact;
}

}  // namespace gopt::verifier
