// Which few of many things make the difference (Zeller's delta debugging).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::driver {

// Whether it fails with these alone. Errors end the search.
using FailsWith = std::function<Result<bool>(const std::vector<std::string>&)>;

struct SmallestFailing {
  std::vector<std::string> items;  // in the order that they were given
  int tests = 0;                   // no set is asked about twice
  bool is_smallest = true;         // without any one of them it does not fail; else the tests were used up before
};

// Precondition: it fails with all items, and not with none.
Result<SmallestFailing> smallest_failing(std::vector<std::string> items, const FailsWith& fails, int most_tests);

}  // namespace gopt::driver
