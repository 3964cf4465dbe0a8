// What the checker gives up, since it would take too long: smaller numbers, or another way, may do.
#pragma once

#include "sexpr.h"

namespace gopt::checker {

class BudgetSpent : public Fault {
 public:
  // More than `limit` of what `budget` names ("assignments of a sum").
  BudgetSpent(const std::string& budget, int64_t limit)
      : Fault("more than " + std::to_string(limit) + " " + budget), budget_(budget), limit_(limit) {}
  const std::string& budget() const { return budget_; }
  int64_t limit() const { return limit_; }

 private:
  std::string budget_;
  int64_t limit_;
};

}  // namespace gopt::checker
