// What was chosen for kernels before: plans of one model have most of their kernels in common, and each is asked for
// some thirty implementations.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "gopt/plan.h"

namespace gopt::planner {

// All of a kernel, what it reads and writes, and the target that its implementations or their times depend on; empty
// where more may: for kernels of several members, and for open sizes.
std::string text_for_choice(const Plan& plan, const Kernel& kernel);

// Kept by costs whose answers stay what they are. Several threads may ask.
class Choices {
 public:
  struct Choice {
    std::string implementation;
    double ms = 0;
  };
  virtual ~Choices() = default;
  // Of what is known now; `version`: of what it is known by, where that grows.
  std::optional<Choice> find(const std::string& text);
  void keep(const std::string& text, Choice choice);

 protected:
  virtual size_t version() const { return 0; }

 private:
  void forget_others();  // of an earlier version

  std::mutex mutex_;
  std::unordered_map<std::string, Choice> choices_;
  size_t version_ = 0;
};

}  // namespace gopt::planner
