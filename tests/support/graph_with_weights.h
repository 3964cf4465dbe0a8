// Graphs from text whose inputs named w... are weights.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "gopt/text.h"

namespace gopt {

// Elements of weights are what `value` returns, one after another.
inline Graph graph_with_weights(
    const std::string& text, const std::function<double()>& value = [] { return 0.5; }) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph) return {};
  GraphBuilder builder;
  std::map<Value, Value> weights;
  std::vector<Value> inputs;
  for (const Value& input : graph->inputs()) {
    if (input.node->name[0] != 'w') {
      inputs.push_back(input);
      continue;
    }
    const std::vector<int64_t> dims = input.type().static_shape();
    std::vector<double> values(static_cast<size_t>(element_count(dims)));
    for (double& v : values) v = value();
    weights[input] = builder.constant(Tensor::from_values(input.type().element, dims, values), input.node->name);
  }
  auto replaced = replace_values(*graph, weights);
  EXPECT_TRUE(replaced.ok()) << (replaced.ok() ? "" : replaced.error().message);
  return Graph(inputs, replaced->outputs(), {});
}

}  // namespace gopt
