// Generated CUDA kernels, run on the processor (emulation/device.h) under its sanitizers: what they index and add,
// and how threads of a block wait for each other, is tested without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

#include "batch.h"
#include "emulated_program.h"
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
  size_t number = 0;  // of the kernel in the plan
  const Kernel& kernel() const { return plan.kernels[number]; }
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

// Those that launch the kernel, in their order.
std::vector<std::string> functions_of(const Emulated& c) {
  std::istringstream lines(text_of(c.code, "model.cc"));
  std::vector<std::string> functions;
  bool is_here = false;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t name = line.find("// "); name != std::string::npos)
      is_here = line.substr(name + 3) == c.kernel().name;
    const size_t begin = line.find("gopt_kernel_");
    if (is_here && begin != std::string::npos) functions.push_back(line.substr(begin, line.find('(', begin) - begin));
  }
  return functions;
}

// In memory of its own, so that what is read beside it is seen.
constexpr const char* kHead = R"(
#include "device.h"
#include "gopt_launch.h"
#include "gopt_half.cuh"
#include "gopt_math.cuh"
#include "gopt_cluster_reduce.cuh"
#include "gopt_meeting.cuh"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

constexpr size_t kMeetingBytes = 128 * 40;  // of the most blocks

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
    const std::string name = "case_" + std::to_string(k),
                      declared = without_includes(text_of(cases[k].code, "kernels.h"));
    kernels += "namespace " + name + " {\n" + declared + without_includes(text_of(cases[k].code, "kernels_")) + "}\n";
    main += "  {\n    std::printf(\"" + cases[k].own.name + "\\n\");\n    std::fflush(stdout);\n" +
            "    std::vector<std::vector<char>> all;\n";
    const auto add = [&](BufferId id, const std::string& file) {
      main += "    all.push_back(file_of(folder + \"/" + name + file + "\", " +
              std::to_string(cases[k].plan.buffer(id).size_bytes) + "));\n";
    };
    const Kernel& kernel = cases[k].kernel();
    for (size_t i = 0; i < kernel.input_buffers.size(); i++) add(kernel.input_buffers[i], "_in" + std::to_string(i));
    add(kernel.output_buffers[0], "_out");
    main +=
        "    std::vector<char> fresh(all.back().size(), char(0xff));\n    "
        "all.push_back(std::vector<char>(kMeetingBytes));\n"
        "    auto& out = all[all.size() - 2];\n";
    // Where blocks meet, the next run finds what the last one left, of other inputs.
    const auto run = [&] {
      main += "    out = fresh;\n";
      for (const std::string& function : functions_of(cases[k]))
        main += "    call(" + name + "::" + function + ", all);\n";
    };
    if (text_of(cases[k].code, "kernels_").find("gopt_meeting<") != std::string::npos) {
      main +=
          "    const auto given = all;\n    for (size_t i = 0; i + 2 < all.size(); i++) std::ranges::fill(all[i], "
          "char(0));\n";
      run();
      main += "    for (size_t i = 0; i + 2 < all.size(); i++) all[i] = given[i];\n";
    }
    run();
    main += "    std::ofstream(folder + \"/" + name + "_out\", std::ios::binary).write(out.data(), " +
            "static_cast<std::streamsize>(out.size()));\n  }\n";
  }
  return kHead + kernels +
         "int main(int count, char** words) {\n  const std::string folder = words[1];\n  gopt_runtime::fits = "
         "count < 3;\n  gopt_runtime::clusters = count < 4;\n" +
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
  const auto has = [&](const char* word) {
    return std::ranges::any_of(
        cases, [&](const Emulated& c) { return text_of(c.code, "kernels_").find(word) != std::string::npos; });
  };
  const bool has_clusters = has("has_clusters()"), has_meetings = has("fits_at_once(");
  const std::string folder = scratch_folder("emulated_" + to_string(precision));
  build_emulated(program_of(cases), folder);
  for (size_t k = 0; k < cases.size(); k++)
    for (size_t i = 0; i < cases[k].kernel().inputs.size(); i++)
      write_bytes(folder + "/case_" + std::to_string(k) + "_in" + std::to_string(i),
                  operand(cases[k], cases[k].kernel().inputs[i]).bytes());
  for (const char* devices : {"", " without_room", " without_room without_clusters"}) {
    if (!has_meetings && std::string(devices) == " without_room") continue;
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

// ---- a kernel between others, of images whose channels come last ----

class LastChannels : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    return plan.buffer(kernel.output_buffers[0]).layout.is_channels_last() ? 0.1 : 1;
  }
};

// The kernel that the node of this kind is in, with what it reads as the interpreter has it.
std::optional<Emulated> emulated_between(const BatchCase& c, OpKind kind) {
  LastChannels costs;
  auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
  if (!plan.ok()) return std::nullopt;
  const auto has_kind = [&](const Kernel& k) {
    return std::ranges::any_of(k.nodes, [&](const NodePtr& node) { return node->is(kind); });
  };
  const auto at = std::ranges::find_if(plan->kernels, has_kind);
  auto code = emit(*plan);
  if (at == plan->kernels.end() || !code.ok()) return std::nullopt;
  const auto number = static_cast<size_t>(at - plan->kernels.begin());
  return Emulated{c, *std::move(plan), *std::move(code), number};
}

// Elements as they lie in an image whose channels come last, and back.
std::vector<float> turned(std::span<const float> from, const std::vector<int64_t>& dims, bool back) {
  const int64_t channels = dims[1], positions = element_count(std::span(dims).subspan(2));
  std::vector<float> to(from.size());
  for (int64_t n = 0; n < dims[0]; n++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t p = 0; p < positions; p++) {
        const auto plain = static_cast<size_t>((n * channels + c) * positions + p),
                   last = static_cast<size_t>((n * positions + p) * channels + c);
        to[back ? plain : last] = from[back ? last : plain];
      }
  return to;
}

void expect_agreement_between(const BatchCase& c, OpKind kind, const std::string& word) {
  const auto own = emulated_between(c, kind);
  ASSERT_TRUE(own) << c.name;
  EXPECT_NE(text_of(own->code, "kernels_").find(word), std::string::npos) << text_of(own->code, "kernels_");
  const Kernel& kernel = own->kernel();
  std::vector<GraphOutput> outputs;
  for (const Value& value : kernel.inputs) outputs.push_back({"in" + std::to_string(outputs.size()), value});
  outputs.push_back({"out", kernel.outputs[0]});
  const auto values = interpret(Graph(c.graph.inputs(), outputs, {}), c.inputs);
  ASSERT_TRUE(values.ok()) << values.error().message;
  const std::string folder = scratch_folder("emulated_" + c.name);
  build_emulated(program_of({*own}), folder);
  const auto is_last = [&](BufferId id) { return own->plan.buffer(id).layout.is_channels_last(); };
  for (size_t i = 0; i < kernel.inputs.size(); i++) {
    const auto all = (*values)[i].bytes();
    const std::span<const float> given(reinterpret_cast<const float*>(all.data()), all.size() / sizeof(float));
    const std::vector<float> lying = is_last(kernel.input_buffers[i]) ? turned(given, (*values)[i].dims(), false)
                                                                      : std::vector(given.begin(), given.end());
    write_bytes(folder + "/case_0_in" + std::to_string(i), std::as_bytes(std::span(lying)));
  }
  for (const char* devices : {"", " without_room without_clusters"}) {
    const Outcome ran = run_command(folder + "/program " + folder + devices);
    ASSERT_EQ(ran.status, 0) << ran.text;
    const std::string bytes = read_file(folder + "/case_0_out");
    const std::span<const float> made(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    const Tensor& wanted = values->back();
    const std::vector<float> plain =
        is_last(kernel.output_buffers[0]) ? turned(made, wanted.dims(), true) : std::vector(made.begin(), made.end());
    const auto* first = reinterpret_cast<const std::byte*>(plain.data());
    const Tensor got = Tensor::from_bytes(ElementType::Float32, wanted.dims(), {first, first + bytes.size()});
    EXPECT_EQ(difference(got, wanted, Precision::Fp32, c.step), "") << c.name << devices;
  }
}

// Groups of `width` channels each.
BatchCase groups_between_convolutions(const std::string& name, int64_t groups, int64_t width, int64_t side) {
  const std::string channels = std::to_string(groups * width), of_group = std::to_string(groups),
                    image = std::to_string(side) + "," + std::to_string(side),
                    elements = std::to_string(width * side * side);
  return make_case(
      name,
      "input x : f32[1,8," + image + "]\ninput w1 : f32[" + channels + ",8,1,1]\ninput w2 : f32[" + of_group +
          "]\ninput w3 : f32[" + of_group + "]\ninput w4 : f32[" + channels + ",1,1]\ninput w5 : f32[" + channels +
          ",1,1]\ninput w6 : f32[8," + channels + ",1,1]\na = Conv(x, w1)\nr = Reshape(a) {shape=[1," + of_group + "," +
          elements + "]}\nn = InstanceNormalization(r, w2, w3)\nb = Reshape(n) {shape=[1," + channels + "," + image +
          "]}\nc = Mul(b, w4)\nd = Add(c, w5)\ne = Sigmoid(d)\nf = Mul(d, e)\ny = Conv(f, w6)\noutput y = y",
      7);
}

TEST(EmulatedKernels, OfRowsAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(row_chunk_cases(), precision, row_chunk_cases().size() - 2);
}

// More blocks than a warp has lanes, numbers of four bytes and of eight, other ones each time.
constexpr const char* kMeetings = R"(
constexpr int kBlocks = 64, kRows = 2, kTimes = 5;
void meet(const int64_t* x, int64_t* sums, float* most, uint64_t* memory) {
  gopt_meeting<kBlocks> meeting(memory);
  const int64_t own = x[(blockIdx.x * kBlocks + blockIdx.y) * blockDim.x + threadIdx.x];
  const auto sum = meeting.reduce(own, [](auto a, auto b) { return a + b; });
  const auto largest = meeting.reduce((float)own, [](auto a, auto b) { return a < b ? b : a; });
  const auto again = meeting.reduce(sum + own, [](auto a, auto b) { return a < b ? b : a; });
  if (threadIdx.x == 0 && blockIdx.y == kBlocks / 2) sums[blockIdx.x] = again - sum, most[blockIdx.x] = largest;
}
int main() {
  constexpr int64_t kThreads = 32, kOfRow = kBlocks * kThreads;
  std::vector<int64_t> x(kRows * kOfRow), sums(kRows);
  std::vector<float> most(kRows);
  std::vector<uint64_t> memory(kRows * kBlocks * 5);
  for (int64_t time = 0; time < kTimes; time++) {
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<int64_t>(i * 7919 % 1009) * (time - 2) << 33;
    gopt_runtime::launch_all_at_once(meet, kRows, kBlocks, kThreads, nullptr, (const int64_t*)x.data(), sums.data(),
                                     most.data(), memory.data());
    for (int r = 0; r < kRows; r++) {
      const int64_t largest = *std::max_element(x.begin() + r * kOfRow, x.begin() + (r + 1) * kOfRow);
      if (sums[r] != largest || most[r] != static_cast<float>(largest)) std::abort();
    }
  }
  std::printf("all are right\n");
}
)";

TEST(EmulatedKernels, BlocksMeetAgain) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  const std::string folder = scratch_folder("emulated_meetings");
  build_emulated(std::string(kHead) + kMeetings, folder);
  const Outcome ran = run_command(folder + "/program");
  EXPECT_NE(ran.text.find("all are right"), std::string::npos) << ran.text;
}

TEST(EmulatedKernels, OfChunksAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  expect_agreement(chunk_cases(), Precision::Fp32, chunk_cases().size());
}

TEST(EmulatedKernels, OfColumnsAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(column_cases(), precision, column_cases().size() - 1);
}

TEST(EmulatedKernels, OfGroupsOfLastChannelsAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  expect_agreement_between(groups_between_convolutions("whole_groups", 3, 8, 20), OpKind::InstanceNormalization,
                           "row_in0[7]");
  expect_agreement_between(groups_between_convolutions("shared_groups", 2, 8, 42), OpKind::InstanceNormalization,
                           "gopt_cluster_reduce<2>");
  expect_agreement_between(groups_between_convolutions("groups_beside", 32, 4, 80), OpKind::InstanceNormalization,
                           "gopt_cluster_reduce<8, 2>");
}

TEST(EmulatedKernels, OfMatchesAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  expect_agreement(match_cases(), Precision::Fp32, match_cases().size() - 2);
}

TEST(EmulatedKernels, OfSquaresAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(square_cases(), precision, square_cases().size() - 4);
}

TEST(EmulatedKernels, OfGraphsAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  std::vector<BatchCase> cases = graph_cases();
  const std::vector<BatchCase> halves = half_cases(), operators = operator_cases();
  cases.insert(cases.end(), halves.begin(), halves.end());
  constexpr size_t kStep = 12, kLeast = 45;  // all of them compile for minutes
  for (size_t k = 0; k < operators.size(); k += kStep) cases.push_back(operators[k]);
  expect_agreement(cases, Precision::Fp32, kLeast);
}

}  // namespace
}  // namespace gopt
