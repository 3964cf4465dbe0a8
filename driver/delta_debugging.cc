#include "delta_debugging.h"

#include <algorithm>
#include <map>
#include <optional>

namespace gopt::driver {
namespace {

using Items = std::vector<std::string>;

class DeltaDebugging {
 public:
  DeltaDebugging(Items items, const FailsWith& fails, int most_tests)
      : fails_(fails), most_tests_(most_tests), found_{std::move(items)} {}

  Result<SmallestFailing> run() {
    size_t parts = 2;
    while (found_.items.size() > 1 && found_.is_smallest) {
      GOPT_ASSIGN_OR_RETURN(const bool is_smaller, reduce(parts));
      if (is_smaller) continue;
      if (parts >= found_.items.size()) break;
      parts = std::min(2 * parts, found_.items.size());
    }
    return std::move(found_);
  }

 private:
  // To one of so many parts, else to all but one of them.
  Result<bool> reduce(size_t& parts) {
    for (const bool is_complement : {false, true}) {
      for (size_t part = 0; part < parts; part++) {
        Items some = is_complement ? all_but(part, parts) : only(part, parts);
        GOPT_ASSIGN_OR_RETURN(const bool fails, ask(some));
        if (!fails) continue;
        found_.items = std::move(some);
        parts = is_complement ? std::max<size_t>(2, parts - 1) : 2;
        parts = std::min(parts, std::max<size_t>(1, found_.items.size()));
        return true;
      }
    }
    return false;
  }

  size_t begin_of(size_t part, size_t parts) const { return part * found_.items.size() / parts; }
  Items only(size_t part, size_t parts) const {
    const auto first = found_.items.begin();
    return {first + static_cast<std::ptrdiff_t>(begin_of(part, parts)),
            first + static_cast<std::ptrdiff_t>(begin_of(part + 1, parts))};
  }
  Items all_but(size_t part, size_t parts) const {
    Items items = found_.items;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(begin_of(part, parts)),
                items.begin() + static_cast<std::ptrdiff_t>(begin_of(part + 1, parts)));
    return items;
  }

  // Once the tests are used up nothing fails any more.
  Result<bool> ask(const Items& items) {
    if (items.empty()) return false;
    if (const auto known = known_.find(items); known != known_.end()) return known->second;
    if (found_.tests >= most_tests_) {
      found_.is_smallest = false;
      return false;
    }
    found_.tests++;
    GOPT_ASSIGN_OR_RETURN(const bool fails, fails_(items));
    known_.emplace(items, fails);
    return fails;
  }

  const FailsWith& fails_;
  const int most_tests_;
  SmallestFailing found_;
  std::map<Items, bool> known_;
};

}  // namespace

Result<SmallestFailing> smallest_failing(std::vector<std::string> items, const FailsWith& fails, int most_tests) {
  return DeltaDebugging(std::move(items), fails, most_tests).run();
}

}  // namespace gopt::driver
