// Code for any size of open extents: one plan, run at sizes that are drawn, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"
#include "gopt/row_function.h"
#include "gopt/runnable_model.h"
#include "gopt/sized_plans.h"
#include "gopt/text.h"
#include "graph_with_weights.h"

namespace gopt {
namespace {

// Of text whose inputs named w... become weights that are drawn.
Graph drawn_graph(const std::string& text, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  return graph_with_weights(text, [&] { return 0.5 * normal(random); });
}

Result<Plan> plan_for_any(const Graph& graph, const Extents& maxima, int threads) {
  GOPT_ASSIGN_OR_RETURN(const auto open, open_extents(graph, {}, maxima));
  Target target{TargetKind::Cpu, threads};
  target.open = open;
  const auto costs = analytic_kernel_costs({});
  return make_plan(graph, target, *costs);
}

std::unique_ptr<RunnableModel> code_for_any(const Graph& graph, const Extents& maxima = {}, int threads = 1) {
  const auto plan = plan_for_any(graph, maxima, threads);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  if (!plan.ok()) return nullptr;
  EXPECT_TRUE(check_plan(*plan).ok()) << check_plan(*plan).error().message;
  auto model = compile_plan(*plan, threads);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? *std::move(model) : nullptr;
}

struct Case {
  const char *name, *text;
  int64_t largest = 20;  // extent that is drawn
  // Extents that may not be 0: by what a node requires, or since a library kernel sums over it.
  std::set<std::string> never_0 = {};
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }
class AnySize : public testing::TestWithParam<Case> {};

void expect_right(RunnableModel& model, const Graph& graph, const Extents& size, uint64_t seed) {
  const auto inputs = model.draw_at(seed, size);
  ASSERT_TRUE(inputs.ok()) << to_string(size) << ": " << inputs.error().message;
  const auto found = model.run(*inputs), expected = interpret(graph, *inputs);
  ASSERT_TRUE(found.ok() && expected.ok()) << to_string(size) << (found.ok() ? "" : found.error().message);
  ASSERT_EQ(found->size(), expected->size());
  for (size_t k = 0; k < found->size(); k++) {
    EXPECT_EQ((*found)[k].tensor_type(), (*expected)[k].tensor_type());
    const Difference d = difference("output", (*expected)[k], (*found)[k], {});
    EXPECT_TRUE(d.passed) << to_string(size) << " output " << k << ": " << d.max_relative << " " << d.note;
  }
}

// Larger and smaller ones by turns, so that what lay in memory before is of another size.
TEST_P(AnySize, IsRight) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const Graph graph = drawn_graph(GetParam().text, seed);
  for (const int threads : {1, 2}) {
    const auto model = code_for_any(graph, {}, threads);
    ASSERT_TRUE(model);
    Extents size = model->sizes().at(0);
    expect_right(*model, graph, size, seed);
    for (int draw = 0; draw < 12; draw++) {
      for (auto& [name, extent] : size)
        extent = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(GetParam().largest));
      if (draw == 5)
        for (auto& [name, extent] : size) extent = 1;
      expect_right(*model, graph, size, random());
    }
    for (const auto& [name, extent] : Extents(size)) {
      Extents empty = size;
      empty[name] = 0;
      if (!GetParam().never_0.contains(name)) {
        expect_right(*model, graph, empty, random());
      } else {
        const Status chosen = model->choose_size(empty);
        EXPECT_FALSE(chosen.ok()) << name;
      }
      expect_right(*model, graph, size, random());
    }
  }
}

const char* const kDecoder = R"(  input q : f32[n,m,192]
  input new : f32[n,m,64]
  input past : f32[n,2,p,32]
  input mask : f32[n,1,m,m+p]
  input bias : f32[6,1,m+p]
  constant c = f32[] {0.25}
  h = Reshape(q) {shape=[n,m,6,32]}
  qh = Transpose(h) {perm=[0,2,1,3]}
  g = Reshape(new) {shape=[n,m,2,32]}
  kh = Transpose(g) {perm=[0,2,1,3]}
  all = Concat(past, kh) {axis=2}
  u = Unsqueeze(all) {axes=[2]}
  e = Expand(u) {shape=[n,2,3,m+p,32]}
  k = Reshape(e) {shape=[n,6,m+p,32]}
  t = Transpose(k) {perm=[0,1,3,2]}
  s = MatMul(qh, t)
  d = Mul(s, c)
  f = Add(d, bias)
  a = Add(f, mask)
  w = Softmax(a) {axis=-1}
  o = MatMul(w, k)
  b = Transpose(o) {perm=[0,2,1,3]}
  y = Reshape(b) {shape=[n,m,192]}
  output y = y
  output all = all)";

const Case kCases[] = {
    {"attention", R"(  input x : f32[n,m,16]
  input mask : f32[n,1,m]
  input w : f32[16,16]
  input w1 : f32[16]
  input w2 : f32[16]
  t = Tanh(x)
  q = MatMul(t, w)
  k = Transpose(q) {perm=[0,2,1]}
  s = MatMul(q, k)
  a = Add(s, mask)
  p = Softmax(a) {axis=2}
  o = MatMul(p, q)
  r = Add(o, x)
  y = LayerNormalization(r, w1, w2) {axis=2}
  output y = y)"},
    {"heads", R"(  input x : f32[n,m,24]
  input w : f32[24,24]
  p = MatMul(x, w)
  h = Reshape(p) {shape=[n,m,4,6]}
  q = Transpose(h) {perm=[0,2,1,3]}
  k = Transpose(h) {perm=[0,2,3,1]}
  s = MatMul(q, k)
  a = Softmax(s) {axis=3}
  o = MatMul(a, q)
  b = Transpose(o) {perm=[0,2,1,3]}
  y = Reshape(b) {shape=[n,m,24]}
  z = Reshape(b) {shape=[n,24*m]}
  output y = y
  output z = z)"},
    // A decoder's: keys and values of a cache and of new tokens, each for three heads of the query.
    {"decoder", kDecoder},
    {"of_a_cache_alone", R"(  input q : f32[n,m,16]
  input k : f32[n,p,16]
  t = Transpose(k) {perm=[0,2,1]}
  s = MatMul(q, t)
  w = Softmax(s) {axis=-1}
  y = MatMul(w, k)
  output y = y)"},
    // Lines of keys that are no pieces of memory, and a batch of too many axes to be cut: one kernel of the scores.
    {"batch_of_axes", R"(  input x : f32[n,m,2,2,2,16]
  k = Transpose(x) {perm=[2,0,3,4,1,5]}
  t = Transpose(x) {perm=[2,0,3,4,5,1]}
  s = MatMul(k, t)
  p = Softmax(s) {axis=-1}
  y = MatMul(p, k)
  output y = y)"},
    {"images",
     R"(  input x : f32[n,3,19,m]
  input w : f32[8,3,3,3]
  input w1 : f32[8]
  input w2 : f32[8,1,3,3]
  input w3 : f32[32,8,1,1]
  input w4 : f32[32,5]
  c = Conv(x, w, w1) {pads=[1,1,1,1], strides=[2,1]}
  r = Relu(c)
  d = Conv(r, w2) {group=8, pads=[1,1,1,1]}
  s = Add(d, r)
  p = MaxPool(s) {kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}
  e = Conv(p, w3)
  g = ReduceMean(e) {axes=[2,3], keepdims=0}
  y = MatMul(g, w4)
  output y = y
  output e = e)",
     20,
     {"m"}},
    {"cache", R"(  input past : f32[n,2,m,8]
  input new : f32[n,2,1,8]
  input w : f32[8,8]
  k = Concat(past, new) {axis=2}
  t = Transpose(k) {perm=[0,1,3,2]}
  q = MatMul(new, w)
  s = MatMul(q, t)
  p = Softmax(s) {axis=3}
  y = MatMul(p, k)
  output y = y
  output k = k)"},
    {"rows", R"(  input x : f32[n,24]
  input w : f32[40,24]
  input w1 : f32[40]
  input w2 : f32[40,10]
  a = Gemm(x, w, w1) {transB=1}
  b = Relu(a)
  c = MatMul(b, w2)
  y = Softmax(c) {axis=1}
  output y = y)"},
    // Of weights of a byte, whatever the number of rows.
    {"quantized", R"(  input x : f32[n,m,24]
  input w : i8[24,170]
  input w1 : f32[3,170]
  input w2 : f32[170]
  constant p = i64[24] {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}
  constant z = i8[] {1}
  s = Gather(w1, p) {axis=0}
  d = Dequantize(w, s, z)
  a = MatMul(x, d)
  b = Add(a, w2)
  y = Relu(b)
  output y = y)"},
    {"statistics",
     R"(  input x : f32[n,m,5]
  a = ReduceMean(x) {axes=[1], keepdims=1}
  b = Sub(x, a)
  c = Mul(b, b)
  d = ReduceSum(c) {axes=[0,1], keepdims=1}
  e = ReduceMax(x) {axes=[2], keepdims=1}
  f = Div(b, e)
  y = Add(f, d)
  output y = y)",
     20,
     {"m"}},
    {"pieces", R"(  input x : f32[n,m,12]
  input b : f32[n,m,4]
  s0, s1, s2 = Split(x) {axis=2, split=[3,5,4]}
  c = Concat(s1, b, s0) {axis=2}
  d = Concat(c, x) {axis=1}
  e = Transpose(d) {perm=[2,1,0]}
  f = Slice(e) {starts=[2], ends=[9], axes=[0]}
  g = Pad(f) {pads=[0,1,0,0,2,0]}
  y = Relu(g)
  output y = y
  output z = s2)"},
    {"choices",
     R"(  input x : f32[n,m]
  input z : f32[1,m]
  input ids : i64[m]
  input w : f32[7,6]
  l = Less(x, z)
  h = Where(l, x, z)
  e = Gather(w, ids) {axis=0}
  y = MatMul(h, e)
  output y = y
  output l = l)",
     20,
     {"m"}},
    {"long_rows", "  input x : f32[n,m]\n  y = Softmax(x) {axis=1}\n  output y = y", 6000},
    {"columns",
     "  input x : f32[n,m]\n  a = Softmax(x) {axis=0}\n  y = ReduceProd(a) {axes=[0]}\n  output y = y\n  output a = a",
     1500},
};
INSTANTIATE_TEST_SUITE_P(Graphs, AnySize, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Of weights that are drawn so, 4 bits hold the numbers; of those of 8 the test has blocks of all.
TEST(OpenSizes, QuantizedWeightsAreReadAsTheyAre) {
  for (const char* type : {"i8", "u8"}) {
    const bool is_small = std::string(type) == "i8";
    std::string text = "  input x : f32[n,1100]\n  constant w = " + std::string(type) + "[1100,130] {";
    for (int k = 0; k < 1100 * 130; k++) text += (k ? "," : "") + std::to_string(is_small ? k % 16 - 8 : k * 7 % 256);
    text += "}\n  constant s = f32[130] {";
    for (int k = 0; k < 130; k++) text += (k ? "," : "") + std::to_string(0.001 * (k + 1));
    text += "}\n  constant z = " + std::string(type) +
            "[] {3}\n  d = Dequantize(w, s, z)\n  y = MatMul(x, d)\n  output y = y";
    const Graph graph = drawn_graph(text, 1);
    const auto plan = plan_for_any(graph, {}, 2);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->kernels.size(), 1U);
    ASSERT_TRUE(plan->kernels[0].quantized);
    EXPECT_EQ(plan->kernels[0].quantized->bits, is_small ? 4 : 8);
    const auto model = code_for_any(graph, {}, 2);
    ASSERT_TRUE(model);
    for (const int64_t rows : {40, 1, 17, 2, 100, 16}) expect_right(*model, graph, {{"n", rows}}, 3);
  }
}

TEST(OpenSizes, AttentionIsOneKernel) {
  const Graph graph = drawn_graph(kDecoder, 1);
  const auto plan = plan_for_any(graph, {}, 1);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto kernel = std::ranges::find(plan->kernels, KernelKind::Attention, &Kernel::kind);
  ASSERT_NE(kernel, plan->kernels.end());
  // Keys and values are read where the cache lies: of it and of the query beside, one kernel each at most.
  EXPECT_LE(plan->kernels.size(), 2U);
  EXPECT_EQ(kernel->attention->batch, (Shape{symbol("n"), Index(2), Index(3)}));
  EXPECT_EQ(kernel->attention->key.batch[2], Index(0));
}

const char* const kProduct =
    "  input x : f32[n,4]\n  input z : f32[m,3]\n  t = Transpose(x) {perm=[1,0]}\n  y = MatMul(t, z)\n  output y = y";

TEST(OpenSizes, WhatIsNotAllowedIsSaidAndWhatWasSetStays) {
  const auto tensor = [](std::vector<int64_t> dims) {
    const auto count = static_cast<size_t>(element_count(dims));
    return Tensor::from_values<double>(ElementType::Float32, std::move(dims), std::vector<double>(count, 1));
  };
  const Graph graph = drawn_graph(kProduct, 1);
  const auto model = code_for_any(graph, {{"n", 6}});
  ASSERT_TRUE(model);
  const auto run = [&](int64_t n, int64_t m) {
    const auto outputs = model->run({{"x", tensor({n, 4})}, {"z", tensor({m, 3})}});
    return outputs.ok() ? std::to_string((*outputs)[0].to_doubles()[0]) : outputs.error().message;
  };
  EXPECT_EQ(run(5, 5), std::to_string(5.0));
  EXPECT_EQ(run(7, 7), "there is no code for n=7 m=7: n is from 0 to 6");
  EXPECT_EQ(run(0, 0),
            "the model has no meaning at n=0 m=0; of y (MatMul): its code sums over the extent n, which is not 0");
  EXPECT_EQ(run(5, 0), "the model has no meaning at n=5 m=0; of y (MatMul): inner extents n and m are equal");
  const std::string contradictory = run(5, 4);
  EXPECT_NE(contradictory.find("the model has no meaning at n=5 m=4"), std::string::npos) << contradictory;
  EXPECT_EQ(run(6, 6), std::to_string(6.0));
}

// Places in constants, and such as are read.
TEST(OpenSizes, PlacesLieWithinTheAxis) {
  const struct {
    std::string indices;
    std::vector<int64_t> right, wrong;
    std::string what;
  } rows[] = {{"constant i = i64[] {1}", {2, 5}, {0, 1}, "index 1 lies within the axis"},
              {"constant i = i64[] {-3}", {3, 5}, {0, 2}, "index -3 lies within the axis"},
              {"constant i = i64[2] {0, 3}", {4, 7}, {0}, "places are looked up along the extent n, which is not 0"}};
  for (const auto& row : rows) {
    const Graph graph =
        drawn_graph("  input x : f32[n,4]\n  " + row.indices + "\n  y = Gather(x, i) {axis=0}\n  output y = y", 1);
    const auto model = code_for_any(graph, {});
    ASSERT_TRUE(model) << row.indices;
    for (const int64_t n : row.right) expect_right(*model, graph, {{"n", n}}, 3);
    for (const int64_t n : row.wrong) {
      const Status chosen = model->choose_size({{"n", n}});
      ASSERT_FALSE(chosen.ok()) << row.indices << " " << n;
      EXPECT_NE(chosen.error().message.find(row.what), std::string::npos) << chosen.error().message;
    }
  }
}

// Terabytes of scores, and sizes for which there are no numbers of bytes; what was set is still there afterwards.
TEST(OpenSizes, WhatNoMemoryHoldsIsRefused) {
  const Graph graph = drawn_graph(
      "  input x : f32[n,4]\n  t = Transpose(x) {perm=[1,0]}\n  s = MatMul(x, t)\n  p = Softmax(s) {axis=-1}\n"
      "  y = MatMul(p, x)\n  output y = y\n  r = ReduceMax(s) {axes=[1]}\n  output r = r",  // read by others, too, no
                                                                                            // scores of attention
      1);
  const auto model = code_for_any(graph, {});
  ASSERT_TRUE(model);
  expect_right(*model, graph, {{"n", 5}}, 3);
  for (const int64_t size : {int64_t{1000000}, int64_t{2000000000}}) {
    const Status chosen = model->choose_size({{"n", size}});
    ASSERT_FALSE(chosen.ok());
    EXPECT_NE(chosen.error().message.find("out of memory"), std::string::npos) << chosen.error().message;
    expect_right(*model, graph, {{"n", 5}}, 4);
  }
  const Status chosen = model->choose_size({{"n", std::numeric_limits<int64_t>::max()}});
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.error().message.find("from 0 to 2147483647"), std::string::npos) << chosen.error().message;
  expect_right(*model, graph, {{"n", 7}}, 5);
}

// Maxima that do not go together: no memory is there for them, but each size below is run.
TEST(OpenSizes, MaximaNeedNoMeaningTogether) {
  const Graph graph = drawn_graph(kProduct, 1);
  const auto model = code_for_any(graph, {{"n", 6}, {"m", 9}});
  ASSERT_TRUE(model);
  for (const int64_t size : {6, 1, 4}) expect_right(*model, graph, {{"n", size}, {"m", size}}, 3);
}

// What one extent has to be by a number of the model another has to be by it.
TEST(OpenSizes, ArePlannedForWhereTheModelHasAMeaning) {
  const Graph graph = drawn_graph(
      "  input x : f32[n,6,h,w]\n  input k : f32[a,1,3,3]\n  input b : f32[c]\n  y = Conv(x, k, b) {group=6}\n  output "
      "y = "
      "y",
      1);
  const auto open = open_extents(graph, {}, {});
  ASSERT_TRUE(open.ok());
  std::map<std::string, int64_t> usual;
  for (const OpenExtent& extent : *open) usual[atom(extent.symbol).name] = extent.usual;
  EXPECT_EQ(usual.at("a") % 6, 0);
  EXPECT_EQ(usual.at("c"), usual.at("a"));
}

TEST(OpenSizes, AMaximumIsOfAnOpenExtent) {
  const Graph graph = drawn_graph(kProduct, 1);
  EXPECT_EQ(open_extents(graph, {}, {{"k", 4}}).error().message,
            "a maximum is given of 'k', which is no open extent of the model; they are n, m");
  EXPECT_EQ(open_extents(graph, {}, {{"n", 0}}).error().message, "the maximum of n is at least 1");
  // Sizes that the model has no meaning at are not planned for.
  const auto equal = open_extents(graph, {{"n", 30}}, {{"m", 3}});
  ASSERT_TRUE(equal.ok());
  EXPECT_EQ((*equal)[0].usual, 3);
  const auto open =
      open_extents(drawn_graph("  input x : f32[n,m]\n  y = Tanh(x)\n  output y = y", 1), {{"n", 30}}, {{"m", 3}});
  ASSERT_TRUE(open.ok());
  EXPECT_EQ((*open)[0].usual, 30);
  EXPECT_EQ((*open)[1].usual, 3);
  EXPECT_EQ((*open)[1].maximum, 3);
}

// As many as are taken of a row.
TEST(OpenSizes, AreAsLargeAsTheModelSays) {
  GraphBuilder builder;
  auto top = std::make_shared<OpaqueOp>();
  const RowFunction function{.kind = RowFunction::Kind::Top, .axis = 1};
  top->op_type = to_string(function.kind);
  top->payload = to_string(function);
  top->row_function = std::make_shared<const RowFunction>(function);
  const Index b = symbol("b"), n = symbol("n");
  const Value x = builder.input("x", {ElementType::Float32, Shape{b, n}});
  const TensorType taken{ElementType::Float32, Shape{b, Index(2000)}}, places{ElementType::Int64, taken.shape};
  builder.output("y", {builder.opaque(std::move(top), {x}, {taken, places}), 0});
  const auto open = open_extents(builder.build(), {}, {});
  ASSERT_TRUE(open.ok()) << open.error().message;
  EXPECT_EQ((*open)[0].usual, 8);
  EXPECT_EQ((*open)[1].usual, 2000);
}

// Beside code for named sizes, which these are run by.
TEST(OpenSizes, StandBesideNamedSizes) {
  const char* kText =
      "  input x : f32[%,6]\n  input w : f32[6,6]\n  p = MatMul(x, w)\n  y = Softmax(p) {axis=0}\n  output y = y";
  const auto graph_of = [&](const std::string& n) {
    std::string text = kText;
    return drawn_graph(text.replace(text.find('%'), 1, n), 9);
  };
  const auto costs = analytic_kernel_costs({});
  const auto sized = make_plan(graph_of("4"), {TargetKind::Cpu, 1}, *costs);
  ASSERT_TRUE(sized.ok());
  const auto joined = join_sizes(graph_of("n"), {*sized});
  ASSERT_TRUE(joined.ok());
  SizedPlans plans = *joined;
  const auto any = plan_for_any(graph_of("n"), {}, 1);
  ASSERT_TRUE(any.ok());
  add_general(plans, *any);
  const auto model = compile_sizes(plans, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (const int64_t n : {4, 5, 100, 4, 1}) expect_right(**model, graph_of("n"), {{"n", n}}, static_cast<uint64_t>(n));
  const auto at_named = (*model)->draw_at(1, {{"n", 4}}), at_other = (*model)->draw_at(1, {{"n", 5}});
  const auto kernels = [&](const auto& inputs) { return (*model)->profile(*inputs, 1)->size(); };
  EXPECT_EQ(kernels(at_named), sized->kernels.size());
  EXPECT_EQ(kernels(at_other), any->kernels.size());
}

}  // namespace
}  // namespace gopt
