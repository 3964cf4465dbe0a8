// Graphs of up to three applications of operators to variables and to each other, and pairs of them.
#pragma once

#include <vector>

#include "operators.h"

namespace taso_generator {

inline constexpr int kMaxApplications = 3;

struct Application {
  uint8_t op = 0;
  std::array<Ref, 2> inputs{};  // those that it has
  bool operator==(const Application& other) const = default;
};
struct Graph {
  uint8_t count = 0;
  std::array<Application, kMaxApplications> applications{};
};
struct Rule {
  Graph source, target;
  bool is_instance = false;
};

// The outputs that nothing reads, in order.
std::vector<Ref> outputs_of(const Graph& graph, const std::vector<Operator>& operators);

}  // namespace taso_generator
