// Graphs as tests write them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "gopt/text.h"

namespace gopt {

// The graph of these lines; a failure of the test, and an empty graph, where they are none.
inline Graph graph_of(const std::string& body) {
  auto graph = parse_graph("graph g\n" + body + "end\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message) << "\n" << body;
  return graph.ok() ? *graph : Graph();
}

}  // namespace gopt
