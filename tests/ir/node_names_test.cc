// Nodes by the names that people give them.
#include "gopt/node_names.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt {
namespace {

Graph chain() {
  auto graph =
      parse_graph("graph g\ninput image : f32[4]\nfirst = Relu(image)\nsecond = Exp(first)\noutput y = second\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

TEST(NodeNames, ANodeIsFoundByItsNameAndByItsValue) {
  const Graph graph = chain();
  for (const char* name : {"image", "first", "second"}) {
    const auto found = find_node(graph, name);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(name_of_node(**found), name);
  }
}

TEST(NodeNames, AnUnknownNameGetsTheNearestOnes) {
  const auto found = find_node(chain(), "frist");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message.find("there is no node or value `frist`; the nearest names are `first`"), 0U)
      << found.error().message;
}

TEST(NodeNames, ANameThatHoldsTheWantedOneIsNear) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{4}});
  const NodePtr deep = *builder.add(OpKind::Relu, {x}, {}, 1, "/features/block.12/activation/Relu");
  builder.output("y", {deep, 0});
  const auto found = find_node(builder.build(), "block.12");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("names are `/features/block.12/activation/Relu`"), std::string::npos)
      << found.error().message;
}

}  // namespace
}  // namespace gopt
