// Plans with recurrences: what the CUDA target writes for them in each precision, and that it compiles wherever nvcc
// is.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <numeric>

#include "batch.h"
#include "gopt/codegen.h"
#include "gopt/recurrence.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

constexpr int64_t kSteps = 3, kHidden = 132;

// One direction from a state of zeros, or one that the caller gives.
Graph graph_of(Recurrence::Cell cell, int64_t batch, bool is_state_given) {
  GraphBuilder builder;
  Recurrence r{.cell = cell};
  const auto floats = [](std::vector<int64_t> dims) {
    return TensorType{ElementType::Float32, Shape(dims.begin(), dims.end())};
  };
  const auto zeros = [&](std::vector<int64_t> dims) {
    const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies());
    const std::vector<float> values(static_cast<size_t>(count));
    return builder.constant(Tensor::from_values(ElementType::Float32, std::move(dims), values));
  };
  const Value sums = builder.input("x", floats({kSteps, batch, r.gates() * kHidden})),
              state = is_state_given ? builder.input("h", floats({1, batch, kHidden})) : zeros({1, batch, kHidden});
  std::vector<Value> inputs = {sums, zeros({1, r.gates() * kHidden, kHidden}), state};
  inputs.push_back(r.has_cell_state() ? zeros({1, batch, kHidden}) : Value());
  inputs.resize(Recurrence::kInputs);
  auto op = std::make_shared<OpaqueOp>();
  op->op_type = op->payload = to_string(cell);
  op->recurrence = std::make_shared<const Recurrence>(std::move(r));
  const NodePtr node =
      builder.opaque(std::move(op), inputs, {floats({kSteps, 1, batch, kHidden}), floats({1, batch, kHidden})});
  builder.output("y", {node, 0});
  return builder.build();
}

// The emitted files; none where there is no code.
std::vector<EmittedFile> files_of(const Graph& graph, Precision precision) {
  LayoutCosts costs(true);
  const auto plan = make_plan(graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan.ok()) return {};
  const auto code = emit(*plan);
  EXPECT_TRUE(code.ok()) << code.error().message;
  return code.ok() ? code->files : std::vector<EmittedFile>();
}
std::string text_of_recurrences(const std::vector<EmittedFile>& files) {
  for (const EmittedFile& file : files)
    if (file.name == "kernels_recurrences.cu") return file.text;
  return "";
}

TEST(RecurrencesOnCuda, AreRoundedWhereThePrecisionHasItAlone) {
  using Cell = Recurrence::Cell;
  struct Case {
    Cell cell;
    int64_t batch;
    bool is_state_given;
    Precision precision;
    const char* launch;
  };
  for (const Case& c : {Case{Cell::Gru, 8, false, Precision::Fp32, "launch<Cell::Gru, 2, false, 0>"},
                        Case{Cell::Gru, 8, false, Precision::Tf32, "launch<Cell::Gru, 2, true, 1>"},
                        Case{Cell::Gru, 8, true, Precision::Tf32, "launch<Cell::Gru, 2, false, 0>"},
                        Case{Cell::Gru, 8, true, Precision::Fp16, "launch<Cell::Gru, 2, true, 1>"},
                        Case{Cell::Lstm, 1, false, Precision::Fp16, "launch<Cell::Lstm, 2, false, 0>"},
                        Case{Cell::Lstm, 2, false, Precision::Bf16, "launch<Cell::Lstm, 2, true, 1>"},
                        Case{Cell::Relu, 8, false, Precision::Fp16, "launch<Cell::Relu, 2, false, 0>"}}) {
    const std::string text = text_of_recurrences(files_of(graph_of(c.cell, c.batch, c.is_state_given), c.precision));
    EXPECT_NE(text.find(c.launch), std::string::npos) << c.launch << "\n" << text;
  }
}

// A block has as many eights of sequences as it takes for all blocks to be on the device at once; memory is for halves
// of two steps, as the kernel has it (which Compile sees).
TEST(RecurrencesOnCuda, HaveMemoryInWhichBlocksMeet) {
  struct Case {
    int64_t batch;
    const char *launch, *exchange;
  };
  for (const Case& c : {Case{8, "true, 1>(", ") == 5120)"}, Case{9, "true, 1>(", ") == 10240)"},
                        Case{200, "true, 2>(", ") == 133120)"}, Case{3000, "true, 0>(", "exchange, stream)"}}) {
    const std::string text =
        text_of_recurrences(files_of(graph_of(Recurrence::Cell::Gru, c.batch, false), Precision::Fp16));
    EXPECT_NE(text.find(c.launch), std::string::npos) << c.batch << "\n" << text;
    EXPECT_NE(text.find(c.exchange), std::string::npos) << c.batch << "\n" << text;
  }
}

TEST(RecurrencesOnCuda, Compile) {
  if (run_command("nvcc --version").status != 0) GTEST_SKIP() << "no nvcc";
  const TestFolder folder;
  for (const EmittedFile& file : files_of(graph_of(Recurrence::Cell::Gru, 8, false), Precision::Tf32))
    std::ofstream(folder.file(file.name)) << file.text;
  for (const char* architecture : {"90a", "80"}) {
    const Outcome compiled =
        run_command("nvcc -std=c++17 -gencode=arch=compute_" + std::string(architecture) + ",code=sm_" + architecture +
                    " -c " + folder.file("kernels_recurrences.cu") + " -o " + folder.file("recurrences.o"));
    EXPECT_EQ(compiled.status, 0) << compiled.text;
  }
}

}  // namespace
}  // namespace gopt
