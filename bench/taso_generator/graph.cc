#include "graph.h"

namespace taso_generator {

std::vector<Ref> outputs_of(const Graph& graph, const std::vector<Operator>& operators) {
  std::vector<Ref> outputs;
  for (size_t i = 0; i < graph.count; i++)
    for (int port = 0; port < operators[graph.applications[i].op].outputs(); port++) {
      const Ref ref{static_cast<int8_t>(i), static_cast<int8_t>(port)};
      bool is_read = false;
      for (size_t user = i + 1; user < graph.count; user++)
        for (size_t k = 0; k < static_cast<size_t>(operators[graph.applications[user].op].inputs()); k++)
          is_read = is_read || graph.applications[user].inputs[k] == ref;
      if (!is_read) outputs.push_back(ref);
    }
  return outputs;
}

}  // namespace taso_generator
