// Generated CUDA kernels, run on the processor (emulation/device.h) under its sanitizers: what they index and add,
// and how threads of a block wait for each other, is tested without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "batch.h"
#include "gopt/layout.h"
#include "gopt/text.h"
#include "run_command.h"
#include "text_files.h"

namespace gopt {
namespace {

// A graph that one generated kernel computes, whose tensors lie as in the graph.
struct Emulated {
  BatchCase own;
  Plan plan;
  EmittedCode code;
  const Kernel& kernel() const { return plan.kernels[0]; }
};

bool is_plain(const Plan& plan, BufferId id) {
  const Buffer& buffer = plan.buffer(id);
  return buffer.layout.is_plain() && !buffer.is_view && buffer.element == buffer.value.type().element;
}

std::optional<Emulated> emulated(const BatchCase& c, Precision precision) {
  LayoutCosts costs(true);
  auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
  if (!plan.ok() || plan->kernels.size() != 1 || plan->kernels[0].kind != KernelKind::Generated) return std::nullopt;
  const Kernel& kernel = plan->kernels[0];
  std::vector<BufferId> buffers = kernel.input_buffers;
  buffers.push_back(kernel.output_buffers[0]);
  if (!std::ranges::all_of(buffers, [&](BufferId id) { return is_plain(*plan, id); })) return std::nullopt;
  // Others are folded constants.
  const auto is_given = [](const Value& v) { return v.node->is(OpKind::Input) || v.node->is(OpKind::Constant); };
  if (!std::ranges::all_of(kernel.inputs, is_given)) return std::nullopt;
  auto code = emit(*plan);
  if (!code.ok()) return std::nullopt;
  return Emulated{c, *std::move(plan), *std::move(code)};
}

// Without what it includes and declares for all.
std::string body_of(const EmittedCode& code, const std::string& begin) {
  std::istringstream lines(text_of(code, begin));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#include") && !line.starts_with("#pragma once") && !line.starts_with("struct gopt_"))
      text += line + "\n";
  return text;
}

// In memory of its own, so that what is read beside it is seen.
constexpr const char* kHead = R"(
#include "device.h"
#include "gopt_launch.h"
#include "gopt_half.cuh"
#include "gopt_math.cuh"
#include "gopt_cluster_reduce.cuh"

#include <fstream>
#include <string>
#include <utility>

std::vector<char> file_of(const std::string& path, size_t size) {
  std::vector<char> bytes(size);
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size));
  return bytes;
}
template <class... P, size_t... I>
void call(void (*kernel)(P...), std::vector<std::vector<char>>& all, std::index_sequence<I...>) {
  kernel(static_cast<P>(I < all.size() ? static_cast<void*>(all[I].data()) : nullptr)...);
}
template <class... P>
void call(void (*kernel)(P...), std::vector<std::vector<char>>& all) {
  call(kernel, all, std::index_sequence_for<P...>());
}
)";

// Runs all of them, on the files of a folder.
std::string program_of(const std::vector<Emulated>& cases) {
  std::string kernels, main;
  for (size_t k = 0; k < cases.size(); k++) {
    const std::string name = "case_" + std::to_string(k), declared = body_of(cases[k].code, "kernels.h");
    kernels += "namespace " + name + " {\n" + declared + body_of(cases[k].code, "kernels_") + "}\n";
    main += "  {\n    std::printf(\"" + cases[k].own.name + "\\n\");\n    std::fflush(stdout);\n" +
            "    std::vector<std::vector<char>> all;\n";
    const auto add = [&](BufferId id, const std::string& file) {
      main += "    all.push_back(file_of(folder + \"/" + name + file + "\", " +
              std::to_string(cases[k].plan.buffer(id).size_bytes) + "));\n";
    };
    const Kernel& kernel = cases[k].kernel();
    for (size_t i = 0; i < kernel.input_buffers.size(); i++) add(kernel.input_buffers[i], "_in" + std::to_string(i));
    add(kernel.output_buffers[0], "_out");
    main += "    std::fill(all.back().begin(), all.back().end(), char(0xff));\n";
    for (size_t f = 0; declared.find("gopt_kernel_" + std::to_string(f) + "(") != std::string::npos; f++)
      main += "    call(" + name + "::gopt_kernel_" + std::to_string(f) + ", all);\n";
    main += "    std::ofstream(folder + \"/" + name + "_out\", std::ios::binary).write(all.back().data(), " +
            "static_cast<std::streamsize>(all.back().size()));\n  }\n";
  }
  return kHead + kernels +
         "int main(int count, char** words) {\n  const std::string folder = words[1];\n  gopt_runtime::clusters = "
         "count < "
         "3;\n" +
         main + "}\n";
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// What a kernel reads: an input of the graph, or one of its constants.
Tensor operand(const Emulated& c, const Value& value) {
  const auto given = c.own.inputs.find(value.node->name);
  return given != c.own.inputs.end() ? given->second : value.node->tensor;
}

// Those of them that one kernel computes, which are to be so many.
void expect_agreement(const std::vector<BatchCase>& all, Precision precision, size_t least) {
  std::vector<Emulated> cases;
  for (const BatchCase& c : all)
    if (auto own = emulated(c, precision)) cases.push_back(*std::move(own));
  ASSERT_GE(cases.size(), least);
  const bool has_clusters = std::ranges::any_of(
      cases, [](const Emulated& c) { return text_of(c.code, "kernels_").find("has_clusters()") != std::string::npos; });
  const std::string folder = scratch_folder("emulated_" + to_string(precision));
  std::filesystem::create_directories(folder);
  for (const char* place : {GOPT_CUDA_RUNTIME, GOPT_EMULATION})
    for (const auto& file : std::filesystem::directory_iterator(place))
      if (file.path().extension() == ".cuh" || file.path().extension() == ".h")
        std::filesystem::copy(file.path(), folder, std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder + "/program.cc") << program_of(cases);
  const Outcome built =
      run_command("g++ -std=c++20 -O1 -w -fsanitize=address,undefined -fno-sanitize-recover=undefined -I" + folder +
                  " -isystem " + *cuda_toolkit() + "/include " + folder + "/program.cc -o " + folder + "/program");
  ASSERT_EQ(built.status, 0) << built.text.substr(0, 3000);
  for (size_t k = 0; k < cases.size(); k++)
    for (size_t i = 0; i < cases[k].kernel().inputs.size(); i++)
      write_bytes(folder + "/case_" + std::to_string(k) + "_in" + std::to_string(i),
                  operand(cases[k], cases[k].kernel().inputs[i]).bytes());
  for (const char* devices : {"", " without_clusters"}) {
    const Outcome ran = run_command(folder + "/program " + folder + devices);
    ASSERT_EQ(ran.status, 0) << ran.text;
    for (size_t k = 0; k < cases.size(); k++) {
      const auto wanted = interpret(cases[k].own.graph, cases[k].own.inputs);
      ASSERT_TRUE(wanted.ok()) << wanted.error().message;
      const std::string bytes = read_file(folder + "/case_" + std::to_string(k) + "_out");
      const TensorType type = (*wanted)[0].tensor_type();
      const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
      const Tensor got = Tensor::from_bytes(type.element, (*wanted)[0].dims(), {first, first + bytes.size()});
      EXPECT_EQ(difference(got, (*wanted)[0], precision, cases[k].own.step), "") << cases[k].own.name << devices;
    }
    if (!has_clusters || precision != Precision::Fp32) return;  // the rest is alike
  }
}

bool has_headers() { return cuda_toolkit() && std::filesystem::exists(*cuda_toolkit() + "/include/cuda_fp16.h"); }

TEST(EmulatedKernels, OfRowsAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(row_chunk_cases(), precision, row_chunk_cases().size() - 2);
}

TEST(EmulatedKernels, OfChunksAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  expect_agreement(chunk_cases(), Precision::Fp32, chunk_cases().size());
}

TEST(EmulatedKernels, OfColumnsAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(column_cases(), precision, column_cases().size() - 1);
}

TEST(EmulatedKernels, OfMatchesAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  expect_agreement(match_cases(), Precision::Fp32, match_cases().size() - 1);
}

TEST(EmulatedKernels, OfSquaresAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(square_cases(), precision, square_cases().size() - 4);
}

TEST(EmulatedKernels, OfGraphsAgreeWithTheInterpreter) {
  if (!has_headers()) GTEST_SKIP() << "no CUDA headers";
  std::vector<BatchCase> cases = graph_cases();
  const std::vector<BatchCase> halves = half_cases(), operators = operator_cases();
  cases.insert(cases.end(), halves.begin(), halves.end());
  constexpr size_t kStep = 12, kLeast = 45;  // all of them compile for minutes
  for (size_t k = 0; k < operators.size(); k += kStep) cases.push_back(operators[k]);
  expect_agreement(cases, Precision::Fp32, kLeast);
}

}  // namespace
}  // namespace gopt
