// Plans with functions of rows: what the CUDA target writes for them, and that it compiles wherever nvcc is.
#include <gtest/gtest.h>

#include <fstream>

#include "batch.h"
#include "gopt/codegen.h"
#include "gopt/row_function.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

NodePtr add(GraphBuilder& builder, const RowFunction& function, const Value& x, std::vector<TensorType> outputs) {
  auto op = std::make_shared<OpaqueOp>();
  op->op_type = to_string(function.kind);
  op->payload = to_string(function);
  op->row_function = std::make_shared<const RowFunction>(function);
  return builder.opaque(std::move(op), {x}, std::move(outputs));
}

// Running sums of columns, the largest of each row of these, of which the places alone are read, and integers.
Graph graph_of_rows() {
  GraphBuilder builder;
  const TensorType floats{ElementType::Float32, Shape{Index(3), Index(40), Index(700)}},
      integers{ElementType::Int64, Shape{Index(5), Index(64)}},
      taken{ElementType::Float32, Shape{Index(3), Index(40), Index(7)}}, places{ElementType::Int64, taken.shape};
  const Value x = builder.input("x", floats), n = builder.input("n", integers);
  const NodePtr sum = add(builder, {.kind = RowFunction::Kind::Sum, .axis = 1, .is_reversed = true}, x, {floats});
  const NodePtr top = add(builder, {.kind = RowFunction::Kind::Top, .axis = 2}, {sum, 0}, {taken, places});
  const NodePtr product =
      add(builder, {.kind = RowFunction::Kind::Product, .axis = 1, .is_exclusive = true}, n, {integers});
  builder.output("places", {top, 1});
  builder.output("product", {product, 0});
  return builder.build();
}

TEST(RowFunctionsOnCuda, AreWrittenAndCompile) {
  LayoutCosts costs(true);
  const auto plan = make_plan(graph_of_rows(), {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->kernels.size(), 3U);
  const auto code = emit(*plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string kernels = text_of(*code, "kernels_rows.cu"), model = text_of(*code, "model.cc");
  for (const char* call : {"run_along_rows<Running::Sum, true, false>(x, y0, {3, 40, 700}, stream)",
                           "take_top<true>(x, y0, y1, {120, 700, 1}, 7, 1, candidates, stream)",
                           "run_along_rows<Running::Product, false, true>(x, y0, {5, 64, 1}, stream)"})
    EXPECT_NE(kernels.find(call), std::string::npos) << call << "\n" << kernels;
  EXPECT_NE(model.find("(float*)nullptr, (int64_t*)"), std::string::npos) << model;  // values that nobody reads
  if (run_command("nvcc --version").status != 0) GTEST_SKIP() << "no nvcc";
  const TestFolder folder;
  for (const EmittedFile& file : code->files) std::ofstream(folder.file(file.name)) << file.text;
  for (const char* architecture : {"90a", "80"}) {
    const Outcome compiled =
        run_command("nvcc -std=c++17 -gencode=arch=compute_" + std::string(architecture) + ",code=sm_" + architecture +
                    " -c " + folder.file("kernels_rows.cu") + " -o " + folder.file("rows.o"));
    EXPECT_EQ(compiled.status, 0) << compiled.text;
  }
}

// Of long rows parts give theirs first, by memory that all of them use.
TEST(RowFunctionsOnCuda, LongRowsAreDivided) {
  GraphBuilder builder;
  const auto take = [&](const std::string& name, int64_t rows, int64_t row, int64_t count) {
    const TensorType taken{ElementType::Float32, Shape{Index(rows), Index(count)}},
        places{ElementType::Int64, taken.shape};
    const Value x = builder.input(name, {ElementType::Float32, Shape{Index(rows), Index(row)}});
    builder.output(name + "_places",
                   {add(builder, {.kind = RowFunction::Kind::Top, .axis = 1}, x, {taken, places}), 1});
  };
  take("a", 1, 1000000, 10);
  take("b", 3, 65536, 64);
  take("c", 200, 70000, 1);   // as many rows as there are blocks
  take("d", 1, 70000, 3000);  // whose parts would give half of what they have
  LayoutCosts costs(true);
  const auto plan = make_plan(builder.build(), {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto code = emit(*plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string kernels = text_of(*code, "kernels_rows.cu"), model = text_of(*code, "model.cc");
  for (const char* call : {"{1, 1000000, 1}, 10, 102, candidates", "{3, 65536, 1}, 64, 8, candidates",
                           "{200, 70000, 1}, 1, 1, candidates", "{1, 70000, 1}, 3000, 1, candidates"})
    EXPECT_NE(kernels.find(call), std::string::npos) << call << "\n" << kernels;
  // A value and a place of each of 3 x 8 x 64, the most.
  EXPECT_NE(model.find("kOwnBytes = 0, kScratchBytes = 24576;"), std::string::npos) << model;
  EXPECT_NE(model.find("model.scratch.data() + kOwnBytes, stream"), std::string::npos) << model;
}

// Equal ones are one node.
TEST(RowFunctions, AreMerged) {
  GraphBuilder builder;
  const Index n = symbol("n");
  const TensorType row{ElementType::Float32, Shape{n}}, taken{ElementType::Float32, Shape{Index(5)}},
      places{ElementType::Int64, taken.shape};
  const Value x = builder.input("x", row);
  const RowFunction top{.kind = RowFunction::Kind::Top};
  const NodePtr first = add(builder, top, x, {taken, places});
  EXPECT_EQ(first, add(builder, top, x, {taken, places}));
  EXPECT_NE(first, add(builder, top, x, {row, places}));
  EXPECT_NE(first, add(builder, {.kind = RowFunction::Kind::Top, .is_largest = false}, x, {taken, places}));
}

}  // namespace
}  // namespace gopt
