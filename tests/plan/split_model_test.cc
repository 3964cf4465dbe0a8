// Graphs that fall apart where nodes have no code: which step makes which values.
#include "gopt/split_model.h"

#include <gtest/gtest.h>

#include "gopt/kernel_costs.h"

namespace gopt {
namespace {

const TensorType kFour{ElementType::Float32, Shape{Index(4)}};
// What no function can be called for: a sequence, and numbers of which nobody knows how many there are.
const TensorType kSequence{}, kFound{ElementType::Float32, Shape{symbol("found")}};

class GraphOf {
 public:
  Value input(const std::string& name, const TensorType& type = kFour) { return builder.input(name, type); }
  Value opaque(const std::string& name, std::vector<Value> inputs, const TensorType& type) {
    const auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Frob", "", {}});
    return {builder.opaque(op, std::move(inputs), {type}, name, {name}), 0};
  }
  Value apply(OpKind kind, const std::string& name, std::vector<Value> inputs, const Attributes& attributes = {}) {
    return {*builder.add(kind, std::move(inputs), attributes, 1, name, {name}), 0};
  }
  // How many elements a value has, said by its extents alone.
  Value count(const Shape& shape) {
    const Value one = builder.constant(Tensor::scalar_f32(1));
    const Value ones = apply(OpKind::Expand, "ones", {one}, {{"shape", shape}});
    return apply(OpKind::ReduceSum, "count", {ones}, {{"axes", std::vector<Index>{Index(0)}}, {"keepdims", Index(0)}});
  }
  GraphBuilder builder;
};

std::string text_of(const SplitModel& split) {
  std::string text;
  for (const ModelStep& step : split.steps) {
    text += text.empty() ? "" : "; ";
    text += step.is_code() ? "code" : "yours";
    for (const Value& input : step.graph.inputs()) text += " " + input.node->name;
    text += " ->";
    for (const GraphOutput& output : step.graph.outputs()) text += " " + output.name;
  }
  return text;
}

Result<SplitModel> split(const Graph& graph) {
  Target target{TargetKind::Cpu, 1};
  target.calls_functions = true;
  return split_model(graph, target);
}

struct Case {
  const char* name;
  void (*make)(GraphOf&);
  const char* steps;
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }
class Split : public testing::TestWithParam<Case> {};

TEST_P(Split, EachPieceIsAsLargeAsItCanBe) {
  GraphOf of;
  GetParam().make(of);
  const auto found = split(of.builder.build());
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(text_of(*found), GetParam().steps);
  const auto costs = analytic_kernel_costs({});
  for (const ModelStep& step : found->steps) {
    EXPECT_TRUE(validate(step.graph).ok());
    if (!step.is_code()) continue;
    Target target{TargetKind::Cpu, 1};
    target.calls_functions = true;
    target.open = own_extents(step.graph, target);
    for (OpenExtent& extent : target.open) extent.usual = 5;
    const auto plan = make_plan(step.graph, target, *costs);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
  }
}

const Case kCases[] = {
    {"WhatIsKnownBeforeIsOnePiece",
     [](GraphOf& g) {
       const Value x = g.input("x"), a = g.apply(OpKind::Exp, "a", {x}), b = g.apply(OpKind::Sin, "b", {x});
       const Value found = g.opaque("found", {a}, kFound);
       g.builder.output("y", g.apply(OpKind::Abs, "c", {found}));
       g.builder.output("z", g.apply(OpKind::Neg, "d", {b}));
     },
     "code x -> a z; yours a -> found; code found -> y"},
    {"WhatWaitsForNothingIsBeforeIt",
     [](GraphOf& g) {
       const Value x = g.input("x"), found = g.opaque("found", {x}, kFound);
       g.builder.output("y", g.apply(OpKind::Abs, "c", {found}));
     },
     "yours x -> found; code found -> y"},
    {"SequencesStayWithinAStep",
     [](GraphOf& g) {
       const Value x = g.input("x"), s = g.opaque("s", {x}, kSequence), t = g.opaque("t", {s}, kSequence);
       const Value u = g.opaque("u", {t}, kFour), other = g.opaque("other", {x}, kFound);
       g.builder.output("y", g.apply(OpKind::Abs, "a", {u}));
       g.builder.output("z", g.apply(OpKind::Neg, "b", {other}));
     },
     "yours x -> u; yours x -> other; code u other -> y z"},
    {"AChainOfWaiting",
     [](GraphOf& g) {
       Value v = g.input("x");
       for (const char* k : {"1", "2"})
         v = g.opaque(std::string("found") + k, {g.apply(OpKind::Exp, std::string("e") + k, {v})}, kFound);
       g.builder.output("y", g.apply(OpKind::Abs, "a", {v}));
     },
     "code x -> e1; yours e1 -> found1; code found1 -> e2; yours e2 -> found2; code found2 -> y"},
    {"AnOutputMayBeACallersValueOrAnInput",
     [](GraphOf& g) {
       const Value x = g.input("x"), found = g.opaque("found", {g.apply(OpKind::Exp, "e", {x})}, kFound);
       g.builder.output("y", found);
       g.builder.output("same", x);
       g.builder.output("again", found);
     },
     "code x -> e; yours e -> y"},
    {"WhatAFunctionIsCalledForStaysInside",
     [](GraphOf& g) {
       const Value x = g.input("x"), f = g.opaque("f", {g.apply(OpKind::Exp, "e", {x})}, kFour);
       const Value found = g.opaque("found", {g.apply(OpKind::Abs, "a", {f})}, kFound);
       g.builder.output("y", g.apply(OpKind::Neg, "n", {found}));
     },
     "code x -> a; yours a -> found; code found -> y"},
    {"WhatSizesOfAnInputSayTakesTheInput",
     [](GraphOf& g) {
       const Shape open{symbol("n")};
       const Value found = g.opaque("found", {g.input("x", {ElementType::Float32, open})}, kFound);
       g.builder.output("y", g.apply(OpKind::Mul, "m", {found, g.count(open)}));
     },
     "yours x -> found; code found x -> y"},
    {"WhatSizesThatWereFoundSayTakesWhatWasFound",
     [](GraphOf& g) {
       const Value x = g.input("x"), found = g.opaque("found", {x}, kFound), other = g.opaque("other", {found}, kFour);
       const Value more = g.opaque("more", {other}, {ElementType::Float32, Shape{symbol("again")}});
       g.builder.output("y", g.apply(OpKind::Mul, "m", {more, g.count(*kFound.shape)}));
     },
     "yours x -> found; code found -> other; yours other -> more; code more found -> y"},
    {"WhatTheCallerMakesOfSizesTakesAnInput",
     [](GraphOf& g) {
       const Shape open{symbol("n")};
       const Value x = g.input("x", {ElementType::Float32, open});
       const Value found = g.opaque("found", {g.count(open)}, kFound);
       g.builder.output("y", g.apply(OpKind::Abs, "a", {found}));
       g.builder.output("z", g.apply(OpKind::Abs, "b", {x}));
     },
     "code x -> z; yours x -> found; code found -> y"},
    {"AnOutputOfSizesThatWereFoundIsMadeAfterThem",
     [](GraphOf& g) {
       const Value x = g.input("x"), found = g.opaque("found", {g.apply(OpKind::Exp, "e", {x})}, kFound);
       g.builder.output("y", found);
       g.builder.output("count", g.count(*kFound.shape));
     },
     "code x -> e; yours e -> y; code y -> count"},
    {"ConstantsAreOfAPieceThatThereIs",
     [](GraphOf& g) {
       g.builder.output("c", g.builder.constant(Tensor::scalar_f32(3)));
       const Value found = g.opaque("found", {g.input("x")}, kFound);
       g.builder.output("y", found);
       g.builder.output("count", g.count(*kFound.shape));
     },
     "yours x -> y; code y -> count c"},
};
INSTANTIATE_TEST_SUITE_P(Graphs, Split, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Of a concatenation with what was found only the sum is seen by the piece that takes it.
TEST(SplitModel, ExtentsThatAPieceDoesNotSeeBecomeItsOwn) {
  GraphOf g;
  const Value x = g.input("x"), found = g.opaque("found", {x}, kFound);
  const Value joined{*g.builder.add(OpKind::Concat, {found, x}, {{"axis", Index(0)}}, 1, "joined", {"joined"}), 0};
  const Value again = g.opaque("again", {joined}, {ElementType::Float32, joined.type().shape});
  const Value sum = g.apply(OpKind::Add, "sum", {again, joined});
  const Value other = g.opaque("other", {sum}, kFound);
  g.builder.output("y", g.apply(OpKind::Neg, "n", {other}));
  const auto split = gopt::split(g.builder.build());
  ASSERT_TRUE(split.ok()) << split.error().message;
  ASSERT_TRUE(split->steps[3].is_code()) << text_of(*split);
  const Graph& piece = split->steps[3].graph;
  EXPECT_EQ(to_string(piece.inputs()[0].type()), "f32[again_dim0]");
  EXPECT_EQ(to_string(piece.outputs()[0].value.type()), "f32[again_dim0]");
}

TEST(SplitModel, WithoutAnyCodeAllIsTheCallers) {
  GraphOf g;
  const Value x = g.input("x");
  g.builder.output("y", g.opaque("first", {x}, kFound));
  g.builder.output("z", g.opaque("second", {x}, kSequence));
  const auto split = gopt::split(g.builder.build());
  ASSERT_TRUE(split.ok()) << split.error().message;
  ASSERT_EQ(split->steps.size(), 2U) << text_of(*split);
  for (const ModelStep& step : split->steps) EXPECT_FALSE(step.is_code() || step.nodes[0].why.empty());
  EXPECT_EQ(split->outputs.size(), 2U);
}

}  // namespace
}  // namespace gopt
