#pragma once

#include <algorithm>

namespace gopt {

// As std::ranges::contains of C++23.
template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace gopt
