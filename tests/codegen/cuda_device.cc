#include "cuda_device.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt {
namespace {

Obstacles find_obstacles() {
  Obstacles o;
  const BatchCase probe = make_case("probe", "input x : f32[4]\ny = Relu(x)\noutput y = y", 1);
  LayoutCosts costs(false);
  const auto plan = make_plan(probe.graph, {.kind = TargetKind::Cuda}, costs);
  EXPECT_TRUE(plan.ok());
  auto code = emit(*plan);
  EXPECT_TRUE(code.ok());
  const std::string folder = scratch_folder("cuda_probe");
  EXPECT_TRUE(write_emitted(*code, folder, true).ok());
  const auto model = LoadedModel::build_and_load(folder, 1);
  if (model.ok()) return o;
  const std::string& said = model.error().message;
  const auto says = [&said](const char* words) { return said.find(words) != std::string::npos; };
  if (says("CUDA device") || says("not built for the device"))
    o.run = said;
  else if (!cuda_toolkit() || says("No such file") || says("cannot find -l"))
    o.build = said;
  else
    ADD_FAILURE() << said;
  return o;
}

}  // namespace

const Obstacles& obstacles() {
  static const Obstacles found = find_obstacles();
  return found;
}

void expect_agreement_on_device(const std::vector<BatchCase>& cases, KernelCosts& costs, const std::string& name,
                                Precision precision) {
  const auto said =
      run_batch(cases, costs, name + "_" + to_string(precision), {.kind = TargetKind::Cuda, .precision = precision});
  if (obstacles().run.empty()) {
    for (const std::string& line : said) ADD_FAILURE() << to_string(precision) << ": " << line;
    return;
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0], obstacles().run) << "built and linked, and then there is no device";
}

void expect_word_in_kernels(const BatchCase& c, const std::string& word, const std::string& otherwise) {
  LayoutCosts costs(false);
  const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.error().message;
  const auto code = emit(*plan);
  ASSERT_TRUE(code.ok()) << c.name << ": " << code.error().message;
  const std::string text = text_of(*code, "kernels_");
  EXPECT_EQ(text.find(word.empty() ? otherwise : word) != std::string::npos, !word.empty()) << c.name << "\n" << text;
}

std::set<std::string> priced_for_halves(const Graph& graph, const std::set<std::string>& without) {
  class Costs : public KernelCosts {
   public:
    double time_ms(const Plan&, const Kernel& kernel) override {
      priced.insert(kernel.implementation);
      return 1;
    }
    std::set<std::string> priced;
  };
  Costs costs;
  Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  target.without.insert(without.begin(), without.end());
  EXPECT_TRUE(make_plan(graph, target, costs).ok());
  return costs.priced;
}

std::set<std::string> priced_for_product(int rows, int columns, int depth, const std::set<std::string>& without,
                                         bool is_by_columns) {
  const std::string m = std::to_string(rows), n = std::to_string(columns), k = std::to_string(depth);
  const std::string weights = is_by_columns ? n + "," + k : k + "," + n,
                    product = is_by_columns ? "Gemm(x, w) {transB=1}" : "MatMul(x, w)";
  const auto graph = parse_graph("graph product\ninput x : f32[" + m + "," + k + "]\ninput w : f32[" + weights +
                                 "]\ny = " + product + "\noutput y = y\nend\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? priced_for_halves(*graph, without) : std::set<std::string>();
}

}  // namespace gopt
