// Short kernels that read each other's results, in one launch (planner/sequences.cc, codegen/cuda/sequence_steps.cc):
// which they are, what they wait for, and that plans of such kernels, run on the processor (emulation/device.h), agree
// with the interpreter. On a device they are built and run.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cuda_device.h"
#include "emulated_program.h"
#include "gopt/buffer_root.h"
#include "gopt/sequence.h"
#include "gopt/text.h"
#include "run_command.h"
#include "text_files.h"

namespace gopt {
namespace {

// Launches take so long that a few steps of a chain take less time.
class SlowLaunches : public KernelCosts {
 public:
  double time_ms(const Plan&, const Kernel&) override { return 0.003; }
  bool is_measured(const Plan&, const Kernel&) const override { return are_measured; }
  bool are_measured = true;
};

std::string number(int64_t i) { return std::to_string(i); }

// The cell of an LSTM, of gates that lie behind each other; names of its values end in `t`.
std::string lstm_cell(const std::string& t, const std::string& before, int64_t hidden) {
  std::string text;
  const char* gates[] = {"i", "o", "f", "c"};
  for (int g = 0; g < 4; g++)
    text += std::string("p") + gates[g] + t + " = Slice(g" + t + ") {starts=[" + number(g * hidden) + "], ends=[" +
            number((g + 1) * hidden) + "], axes=[1], steps=[1]}\n" + gates[g] + t + " = " +
            (g == 3 ? "Tanh" : "Sigmoid") + "(p" + gates[g] + t + ")\n";
  return text + "k" + t + " = Mul(f" + t + ", s" + before + ")\nn" + t + " = Mul(i" + t + ", c" + t + ")\ns" + t +
         " = Add(k" + t + ", n" + t + ")\nu" + t + " = Tanh(s" + t + ")\nh" + t + " = Mul(o" + t + ", u" + t + ")\n";
}
// That of a GRU, whose reset gate is applied to a part of the product.
std::string gru_cell(const std::string& t, const std::string& before, int64_t hidden) {
  std::string text;
  for (int g = 0; g < 3; g++)
    text += "p" + number(g) + t + " = Slice(m" + t + ") {starts=[" + number(g * hidden) + "], ends=[" +
            number((g + 1) * hidden) + "], axes=[1], steps=[1]}\nq" + number(g) + t + " = Slice(x" + t + ") {starts=[" +
            number(g * hidden) + "], ends=[" + number((g + 1) * hidden) + "], axes=[1], steps=[1]}\n";
  return text + "a" + t + " = Add(p0" + t + ", q0" + t + ")\nz" + t + " = Sigmoid(a" + t + ")\nb" + t + " = Add(p1" +
         t + ", q1" + t + ")\nr" + t + " = Sigmoid(b" + t + ")\nd" + t + " = Mul(r" + t + ", p2" + t + ")\ne" + t +
         " = Add(d" + t + ", q2" + t + ")\nn" + t + " = Tanh(e" + t + ")\nv" + t + " = Sub(h" + before + ", n" + t +
         ")\nw_" + t + " = Mul(z" + t + ", v" + t + ")\nh" + t + " = Add(n" + t + ", w_" + t + ")\n";
}

struct Recurrence {
  const char* name;
  bool is_lstm;
  int steps;
  int64_t hidden, lines;
  int directions = 1;
};

BatchCase case_of(const Recurrence& r) {
  const int64_t gates = (r.is_lstm ? 4 : 3) * r.hidden;
  const std::string state = "f32[" + number(r.lines) + "," + number(r.hidden) + "]";
  std::string inputs, nodes, all;
  for (int d = 0; d < r.directions; d++) {
    const std::string own = "_" + number(d);
    inputs += "input w" + number(d) + " : f32[" + number(r.hidden) + "," + number(gates) + "]\ninput h0" + own + " : " +
              state + "\ninput s0" + own + " : " + state + "\n";
    // Small weights, so that steps do not make much of what rounding made of the ones before.
    nodes += "v" + number(d) + " = Mul(w" + number(d) + ", small)\n";
    for (int step = 1; step <= r.steps; step++) {
      const std::string t = number(step) + own, before = number(step - 1) + own;
      inputs += "input x" + t + " : f32[" + number(r.lines) + "," + number(gates) + "]\n";
      nodes += "m" + t + " = MatMul(h" + before + ", v" + number(d) + ")\n";
      if (r.is_lstm) nodes += "g" + t + " = Add(m" + t + ", x" + t + ")\n";
      nodes += r.is_lstm ? lstm_cell(t, before, r.hidden) : gru_cell(t, before, r.hidden);
      all += (all.empty() ? "h" : ", h") + t;
    }
  }
  return make_case(
      r.name, inputs + "constant small = f32[] {0.1}\n" + nodes + "y = Concat(" + all + ") {axis=0}\noutput y = y", 11);
}

const std::vector<Recurrence>& recurrences() {
  static const std::vector<Recurrence> all{{"lstm", true, 4, 64, 1},
                                           {"gru", false, 4, 48, 1},
                                           {"both_ways", true, 3, 32, 1, 2},
                                           {"of_lines", true, 3, 40, 3},
                                           {"gru_of_lines", false, 3, 24, 2}};
  return all;
}

// Layers of a few lines, one after another, the last of which adds what the second one read; and elements of all.
BatchCase layers_case(const std::string& name, int64_t lines, int64_t width) {
  const std::string n = number(width), more = number(width + 40);
  return make_case(name,
                   "input x : f32[" + number(lines) + "," + n + "]\ninput w1 : f32[" + n + "," + more +
                       "]\ninput w2 : f32[" + more + "]\ninput w3 : f32[" + more + "," + n + "]\ninput w4 : f32[" + n +
                       "," + n + "]\ninput w5 : f32[" + n + "]\na = MatMul(x, w1)\nb = Add(a, w2)\nc = Relu(b)\n" +
                       "d = MatMul(c, w3)\ne = Tanh(d)\nf = MatMul(e, w4)\ng = Add(f, w5)\nh = Add(g, e)\n" +
                       "i = MatMul(h, w4)\nj = Tanh(i)\nk = ReduceMax(j) {axes=[0], keepdims=1}\nl = Sub(k, h)\n"
                       "output y = l",
                   13);
}

std::vector<BatchCase> sequence_cases() {
  std::vector<BatchCase> cases;
  for (const Recurrence& r : recurrences()) cases.push_back(case_of(r));
  cases.push_back(layers_case("layers", 1, 56));
  cases.push_back(layers_case("layers_of_lines", 4, 24));
  // Integers and truth values, and reductions between them.
  cases.push_back(make_case("integers",
                            "input x : f32[8,40]\nr = ReduceMean(x) {axes=[1], keepdims=1}\ng = Less(x, r)\n"
                            "i = Cast(g) {to=7}\nq = ReduceSum(i) {axes=[0], keepdims=1}\nj = Mul(i, q)\n"
                            "u = ReduceMax(j) {axes=[1], keepdims=1}\nv = Sub(u, j)\nc = ReduceSum(v) {axes=[0], "
                            "keepdims=1}\nd = Add(c, v)\ne = ReduceMax(d) {axes=[1], keepdims=1}\nf = Sub(d, e)\n"
                            "h = ReduceSum(f) {axes=[0], keepdims=1}\nk = Add(h, f)\noutput y = k",
                            17));
  return cases;
}

Plan plan_of(const BatchCase& c, Precision precision, const std::set<std::string>& without = {}) {
  SlowLaunches costs;
  Target target{.kind = TargetKind::Cuda, .precision = precision};
  target.without = without;
  auto plan = make_plan(c.graph, target, costs);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  const Status checked = check_plan(*plan);
  EXPECT_TRUE(checked.ok()) << c.name << ": " << checked.error().message;
  return *std::move(plan);
}

std::vector<const Kernel*> sequences_of(const Plan& plan) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : plan.kernels)
    if (kernel.kind == KernelKind::Sequence) found.push_back(&kernel);
  return found;
}

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) count++;
  return count;
}

TEST(Sequences, TakeARecurrenceInOneLaunch) {
  for (const Recurrence& r : recurrences()) {
    const Plan plan = plan_of(case_of(r), Precision::Fp16);
    const auto sequences = sequences_of(plan);
    ASSERT_EQ(sequences.size(), 1U) << print_plan(plan);
    const std::vector<SequenceChain> chains = chains_of(plan, sequences[0]->members);
    EXPECT_EQ(chains.size(), static_cast<size_t>(r.directions)) << print_plan(plan);
    size_t products = 0;
    for (const Kernel& member : sequences[0]->members) products += member.kind == KernelKind::MatrixProduct;
    EXPECT_EQ(products, static_cast<size_t>(r.steps * r.directions)) << print_plan(plan);
    EXPECT_TRUE(sequences_of(plan_of(case_of(r), Precision::Fp16, {kSequences})).empty());
  }
}

// Steps come after what they read, in the order of how many have to come before.
TEST(Sequences, HaveChainsInOrder) {
  const Plan plan = plan_of(case_of(recurrences()[2]), Precision::Fp32);
  const Kernel& sequence = *sequences_of(plan).at(0);
  std::set<size_t> all;
  for (const SequenceChain& chain : chains_of(plan, sequence.members)) {
    std::set<BufferId> made;
    bool is_first = true;
    for (const size_t step : chain) {
      const Kernel& member = sequence.members[step];
      EXPECT_TRUE(all.insert(step).second);
      for (const BufferId id : member.input_buffers)
        for (const Kernel& other : sequence.members)
          if (other.output_buffers[0] == id) {
            EXPECT_TRUE(made.contains(id));
            EXPECT_FALSE(is_first);
          }
      made.insert(member.output_buffers[0]);
      is_first = false;
    }
  }
  EXPECT_EQ(all.size(), sequence.members.size());
}

// Of a recurrence only the product waits for other blocks: its gates are its own block's, in shared memory.
TEST(Sequences, WaitForOtherBlocksOnceAStep) {
  for (const Recurrence& r : recurrences()) {
    const auto code = emit(plan_of(case_of(r), Precision::Fp32));
    ASSERT_TRUE(code.ok()) << code.error().message;
    const std::string text = text_of(*code, "kernels_sequence_0");
    EXPECT_EQ(count_of(text, "Waits::Cluster,"), static_cast<size_t>((r.steps - 1) * r.directions)) << text;
    EXPECT_GE(count_of(text, "Waits::Block,"), static_cast<size_t>((r.steps - 1) * r.directions)) << text;
    const std::string steps = text.substr(text.find("_steps[] ="));
    if (r.is_lstm) continue;  // whose last cell, which reads all gates, has too many operands to be a step
    EXPECT_GE(count_of(steps, "18446462598732840960ull"), 1U) << "nothing is in shared memory\n" << steps;
  }
}

// What ends two chains would have them be one, and one cluster take them both.
TEST(Sequences, DoNotJoinWhatCanRunSideBySide) {
  std::string text = "input x : f32[1,64]\ninput w1 : f32[64,64]\na0 = Tanh(x)\nb0 = Exp(x)\n";
  constexpr int kLayers = 5;
  for (int layer = 1; layer <= kLayers; layer++)
    for (const char* chain : {"a", "b"})
      text += chain + number(layer) + " = MatMul(" + chain + number(layer - 1) + ", w1)\n";
  const BatchCase c =
      make_case("two", text + "m = Mul(a5, b5)\ny = ReduceMax(m) {axes=[1], keepdims=1}\noutput y = y", 3);
  const Plan plan = plan_of(c, Precision::Fp32);
  const auto sequences = sequences_of(plan);
  ASSERT_EQ(sequences.size(), 1U) << print_plan(plan);
  EXPECT_EQ(chains_of(plan, sequences[0]->members).size(), 2U) << print_plan(plan);
  EXPECT_EQ(plan.kernels.back().kind, KernelKind::Generated) << print_plan(plan);
}

// Weights are read before a step waits.
TEST(Sequences, LeaveProductsByWhatIsComputed) {
  const BatchCase c = make_case("computed",
                                "input x : f32[1,64]\ninput w1 : f32[64,64]\ninput b : f32[32,64]\na = MatMul(x, w1)\n"
                                "t = Tanh(a)\nm = Mul(b, t)\nn = Tanh(m)\ng = Gemm(t, n) {transB=1}\nh = Tanh(g)\n"
                                "input w2 : f32[32,64]\ni = MatMul(h, w2)\nj = Tanh(i)\nk = MatMul(j, w1)\n"
                                "l = MatMul(k, w1)\no = MatMul(l, w1)\noutput y = o",
                                5);
  for (const Precision precision : {Precision::Fp32, Precision::Fp16}) {
    const Plan plan = plan_of(c, precision);
    EXPECT_FALSE(sequences_of(plan).empty()) << print_plan(plan);
    for (const Kernel* sequence : sequences_of(plan))
      for (const Kernel& member : sequence->members)
        if (member.kind == KernelKind::MatrixProduct) {
          EXPECT_EQ(plan.buffer(root_of(plan, member.input_buffers[1]).buffer).place, BufferPlace::Weight);
        }
  }
}

// Where nobody has measured the kernels nobody knows whether it pays, nor where their kernels are switched off.
TEST(Sequences, AreOfMeasuredKernels) {
  const BatchCase c = case_of(recurrences()[0]);
  SlowLaunches costs;
  costs.are_measured = false;
  const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(sequences_of(*plan).empty()) << print_plan(*plan);
  for (const Kernel* sequence : sequences_of(plan_of(c, Precision::Fp32, {"kernel:gemv"})))
    for (const Kernel& member : sequence->members) EXPECT_NE(member.kind, KernelKind::MatrixProduct);
}

// Products of many lines, and kernels that move much, are launches of their own.
TEST(Sequences, LeaveLargeKernels) {
  const BatchCase many = layers_case("many", 64, 56);
  const Plan plan = plan_of(many, Precision::Fp16);
  EXPECT_EQ(std::ranges::count(plan.kernels, KernelKind::MatrixProduct, &Kernel::kind), 4) << print_plan(plan);
  const BatchCase large =
      make_case("large",
                "input x : f32[4096,2048]\na = Exp(x)\nb = Transpose(a) {perm=[1,0]}\nc = ReduceSum(b) "
                "{axes=[0], keepdims=0}\nd = Exp(c)\noutput y = d",
                3);
  EXPECT_TRUE(sequences_of(plan_of(large, Precision::Fp32)).empty());
}

// ---- on the processor ----

// Reads inputs and weights from a folder, runs the plan's kernels, and writes the first output there.
std::string program_of(const Plan& plan, const EmittedCode& code) {
  std::string calls;
  std::istringstream lines(text_of(code, "model.cc"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  gopt_kernel_") || line.starts_with("  gopt_sequence_")) calls += line + "\n";
  std::string files;
  for (const Buffer& buffer : plan.buffers)
    if (!buffer.is_view && (buffer.place == BufferPlace::Input || buffer.place == BufferPlace::Output)) {
      const bool is_input = buffer.place == BufferPlace::Input;
      files += std::string("  ") + (is_input ? "inputs" : "outputs") + "[" + number(buffer.offset) +
               "] = " + (is_input ? "read(\"in" + number(buffer.offset) + "\", " : "fresh(") +
               number(buffer.size_bytes) + ");\n";
    }
  const auto bytes = [&](const Buffer& b) { return b.place == BufferPlace::Output ? b.size_bytes : 0; };
  int64_t output = 0;
  for (const Buffer& buffer : plan.buffers)
    if (!buffer.is_view) output = std::max(output, bytes(buffer));
  return "#include \"device.h\"\n#include \"gopt_launch.h\"\n#include \"gopt_half.cuh\"\n#include \"gopt_math.cuh\"\n"
         "#include \"gopt_sequence_product.cuh\"\n#include <fstream>\n#include <iterator>\n#include <string>\n" +
         without_includes(text_of(code, "kernels.h")) + without_includes(text_of(code, "kernels_")) +
         "std::string folder;\nstd::vector<std::vector<char>> kept;\nchar* fresh(size_t size) {\n"
         "  kept.emplace_back(size, char(0xff));\n  return kept.back().data();\n}\n"
         "char* read(const std::string& name, size_t size) {\n  char* to = fresh(size);\n"
         "  std::ifstream(folder + \"/\" + name, std::ios::binary).read(to, (std::streamsize)size);\n  return to;\n}\n"
         "int main(int count, char** words) {\n  folder = words[1];\n  gopt_runtime::clusters = count < 3;\n"
         "  std::ifstream file(folder + \"/weights.bin\", std::ios::binary);\n"
         "  const std::vector<char> all{std::istreambuf_iterator<char>(file), {}};\n  const char* weights = "
         "all.data();\n"
         "  char* arena = fresh(" +
         number(std::max<int64_t>(1, plan.arena_bytes)) + ");\n  void *inputs[64], *outputs[64];\n" + files +
         "  cudaStream_t stream = nullptr;\n" + calls +
         "  std::ofstream(folder + \"/out\", std::ios::binary).write((char*)outputs[0], " + number(output) + ");\n}\n";
}

void expect_emulated_agreement(const BatchCase& c, Precision precision) {
  const Plan plan = plan_of(c, precision);
  ASSERT_FALSE(sequences_of(plan).empty()) << print_plan(plan);
  for (const Kernel& kernel : plan.kernels)
    ASSERT_TRUE(kernel.kind == KernelKind::Sequence || kernel.kind == KernelKind::Generated ||
                kernel.kind == KernelKind::Reorder)
        << print_plan(plan);
  const auto code = emit(plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string folder = scratch_folder("sequence_" + c.name + "_" + to_string(precision));
  ASSERT_TRUE(write_emitted(*code, folder, false).ok());
  const std::string own = folder + "/emulated";
  ASSERT_NO_FATAL_FAILURE(build_emulated(program_of(plan, *code), own));
  for (const Buffer& buffer : plan.buffers)
    if (!buffer.is_view && buffer.place == BufferPlace::Input) {
      const Tensor& given = c.inputs.at(buffer.value.node->name);
      std::ofstream(folder + "/in" + number(buffer.offset), std::ios::binary)
          .write(reinterpret_cast<const char*>(given.bytes().data()),
                 static_cast<std::streamsize>(given.bytes().size()));
    }
  const auto wanted = interpret(c.graph, c.inputs);
  ASSERT_TRUE(wanted.ok()) << wanted.error().message;
  for (const char* devices : {"", " without_clusters"}) {
    const Outcome ran = run_command(own + "/program " + folder + devices);
    ASSERT_EQ(ran.status, 0) << c.name << devices << "\n" << ran.text.substr(0, 3000);
    const std::string bytes = read_file(folder + "/out");
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    const Tensor got =
        Tensor::from_bytes((*wanted)[0].tensor_type().element, (*wanted)[0].dims(), {first, first + bytes.size()});
    EXPECT_EQ(difference(got, (*wanted)[0], precision, c.step), "") << c.name << devices << " " << to_string(precision);
  }
}

TEST(Sequences, EmulatedAgreeWithTheInterpreter) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA headers";
  const std::vector<BatchCase> cases = sequence_cases();
  for (size_t k = 0; k < cases.size(); k++) {  // each takes seconds to compile
    const bool is_in_both = k < 2;
    if (is_in_both || k % 2 == 0) expect_emulated_agreement(cases[k], Precision::Fp32);
    if (is_in_both || k % 2 == 1) expect_emulated_agreement(cases[k], Precision::Fp16);
  }
}

// ---- on a device ----

TEST(Sequences, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the test below builds and runs";
  SlowLaunches costs;
  expect_agreement_on_device({sequence_cases()[0], sequence_cases().back()}, costs, "sequences", Precision::Fp16);
}

class SequencesOnDevice : public testing::TestWithParam<Precision> {};

TEST_P(SequencesOnDevice, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  SlowLaunches costs;
  std::vector<BatchCase> cases = sequence_cases();
  cases.push_back(case_of({"many_steps", true, 70, 128, 1, 2}));
  cases.push_back(case_of({"wide", false, 6, 400, 1}));
  expect_agreement_on_device(cases, costs, "sequences_" + to_string(GetParam()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Precisions, SequencesOnDevice,
                         testing::Values(Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16),
                         [](const auto& info) { return to_string(info.param); });

}  // namespace
}  // namespace gopt
