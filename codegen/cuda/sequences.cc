#include "sequences.h"

#include <algorithm>
#include <map>
#include <vector>

#include "../buffers.h"
#include "../cpu/loops.h"
#include "../writer.h"
#include "gopt/buffer_root.h"
#include "gopt/vector_product.h"
#include "library_calls.h"
#include "sequence_steps.h"
#include "thread_loops.h"

namespace gopt::codegen {
namespace {

// As runtime/gopt_sequence.cuh has them.
constexpr int kBitsOfBytes = 48;
constexpr uint64_t kShared = 0xffff;

class SequencePrinter {
 public:
  SequencePrinter(const Plan& plan, const Kernel& sequence, size_t number)
      : plan_(plan), sequence_(sequence), number_(number), name_("gopt_sequence_" + std::to_string(number)) {}

  Result<PrintedSequence> run() {
    for (const SequenceChain& chain : chains_of(plan_, sequence_.members)) {
      GOPT_ASSIGN_OR_RETURN(const DividedChain divided, divide_chain(plan_, sequence_, chain));
      for (const ChainStep& step : divided.steps) add(step, divided.shared);
      ends_ += (ends_.empty() ? "" : ", ") + std::to_string(steps_count_);
      shared_bytes_ = std::max(shared_bytes_, divided.shared_bytes);
      chains_++;
    }
    PrintedSequence printed{"kernels_sequence_" + std::to_string(number_), text(), head() + ";\n", name_ + "("};
    for (const Location& base : bases_) printed.call += "(char*)(" + pointer_text(base) + "), ";
    printed.call += "stream);";
    return printed;
  }

 private:
  std::string head() const {
    std::string text = "void " + name_ + "(";
    for (size_t b = 0; b < bases_.size(); b++) text += "char* base" + std::to_string(b) + ", ";
    return text + "cudaStream_t stream)";
  }

  std::string text() const {
    const std::string bases = "gopt_runtime::sequences::Bases<" + std::to_string(bases_.size()) + ">";
    std::string cases, passed;
    for (const auto& [function, call] : calls_) cases += "case " + std::to_string(function) + ": return " + call;
    for (size_t b = 0; b < bases_.size(); b++) passed += (b == 0 ? "base" : ", base") + std::to_string(b);
    return "#include \"gopt_half.cuh\"\n#include \"gopt_math.cuh\"\n#include \"gopt_sequence_product.cuh\"\n#include "
           "\"kernels.h\"\n\nnamespace {\n\nusing "
           "gopt_runtime::sequences::Waits;\nstatic_assert(gopt_runtime::sequences::kThreads == " +
           std::to_string(kThreadsOfBlock) +
           " && gopt_runtime::sequences::kBitsOfBytes == " + std::to_string(kBitsOfBytes) +
           " && gopt_runtime::sequences::kShared == " + std::to_string(kShared) + ");\n\n" + functions_text_ +
           "__device__ const gopt_runtime::sequences::Step " + name_ + "_steps[] = {\n" + steps_ +
           "};\n__device__ const int " + name_ + "_ends[] = {" + ends_ +
           "};\n\n__global__ void __launch_bounds__(gopt_runtime::sequences::kThreads) " + name_ + "_body(const " +
           bases + " bases) " +
           indented(
               "{\nusing namespace gopt_runtime::sequences;\nchar* const shared = "
               "gopt_runtime::tiles::shared_of_block<OwnTensors<" +
               std::to_string(std::max<int64_t>(16, shared_bytes_)) + ">>().bytes;\ntake_steps<" +
               std::to_string(most_operands_) + ">(" + name_ + "_steps, " + name_ +
               "_ends, bases, shared, [](const Operands<" + std::to_string(most_operands_) +
               ">& o) {\nswitch (o.function) {\n" + cases + "}\n});\n}\n") +
           "\n}  // namespace\n\n" + head() + " " +
           indented("{\ngopt_runtime::sequences::launch(" + name_ + "_body, " + std::to_string(chains_) + ", stream, " +
                    bases + "{{" + passed + "}});\n}\n");
  }

  void add(const ChainStep& step, const std::map<BufferId, int64_t>& shared) {
    const Kernel& member = *step.member;
    std::vector<BufferId> operands = member.input_buffers;
    operands.push_back(member.output_buffers[0]);
    most_operands_ = std::max(most_operands_, operands.size());
    const size_t function =
        step.body ? function_of_elements(step) : function_for(member, product_parameters(member), product_text(step));
    constexpr const char* kWaits[] = {"Waits::Nothing", "Waits::Block", "Waits::Cluster"};
    steps_ += "    {" + std::to_string(function) + ", " + kWaits[static_cast<size_t>(step.waits)] + ", {";
    for (size_t i = 0; i < operands.size(); i++) steps_ += (i == 0 ? "" : ", ") + place_text(operands[i], shared);
    steps_ += "}},\n";
    steps_count_++;
  }

  static std::string units_text(int64_t period, int64_t elements) {
    return "const gopt_runtime::sequences::Units units(" + std::to_string(period > 0 ? period : elements) + ", " +
           std::to_string(elements) + ");\n";
  }

  size_t function_of_elements(const ChainStep& step) {
    const CudaKernel printed = print_cuda_step(*step.body);
    const std::string units = takes_chunks_as_step(*step.body) ? "" : units_text(step.period, step.elements);
    return function_for(*step.member, printed.parameters,
                        "{\n" + units +
                            "gopt_runtime::sequences::arrive(waits);\ngopt_runtime::sequences::wait(waits);\n" +
                            printed.text + "}\n");
  }

  // Its number; steps of the same text share one.
  size_t function_for(const Kernel& member, const std::string& parameters, const std::string& body) {
    const auto [it, inserted] = functions_.try_emplace(parameters + body, functions_.size());
    if (!inserted) return it->second;
    const std::string name = name_ + "_step_" + std::to_string(it->second);
    functions_text_ += "// " + member.name + "\n__device__ __forceinline__ void " + name + "(" + parameters +
                       ", gopt_runtime::sequences::Waits waits) " + indented(body) + "\n";
    std::string call = name + "(";
    for (size_t i = 0; i <= member.input_buffers.size(); i++) {
      const bool is_result = i == member.input_buffers.size();
      const BufferId id = is_result ? member.output_buffers[0] : member.input_buffers[i];
      call += std::string(is_result ? "(" : "(const ") + storage_name(plan_.buffer(id).element) + "*)o.at[" +
              std::to_string(i) + "], ";
    }
    calls_.emplace(it->second, call + "o.waits);\n");
    return it->second;
  }

  // The number of its base in the upper bits, and bytes.
  std::string place_text(BufferId id, const std::map<BufferId, int64_t>& shared) {
    const auto text = [](uint64_t base, int64_t bytes) {
      return std::to_string(base << kBitsOfBytes | static_cast<uint64_t>(bytes)) + "ull";
    };
    const BufferRoot root = root_of(plan_, id);
    if (const auto here = shared.find(root.buffer); here != shared.end()) {
      return text(kShared, here->second + root.offset);
    }
    const Location location = locate(plan_, id);
    const Location base{location.place, Index(0), location.number};
    auto it = std::ranges::find(bases_, base);
    if (it == bases_.end()) it = bases_.insert(bases_.end(), base);
    return text(static_cast<uint64_t>(it - bases_.begin()), location.offset.constant());
  }

  std::string product_parameters(const Kernel& member) const {
    std::string text;
    for (size_t i = 0; i < member.input_buffers.size(); i++)
      text +=
          "const " + storage_name(plan_.buffer(member.input_buffers[i]).element) + "* in" + std::to_string(i) + ", ";
    return text + storage_name(plan_.buffer(member.output_buffers[0]).element) + "* out";
  }

  // Which lines of single positions are steps of: those of a convolution may be parts of longer ones.
  ProductExtents extents_of(const Kernel& member) const {
    if (member.kind == KernelKind::MatrixProduct) return product_extents(plan_, member);
    const std::vector<int64_t>&src = plan_.buffer(member.input_buffers[0]).dims,
          &dst = plan_.buffer(member.output_buffers[0]).dims;
    return {.rows = dst[0], .columns = dst[1], .depth = src[1]};
  }
  int64_t line_of(const Kernel& member, BufferId id, int64_t packed) const {
    const int64_t line = member.kind == KernelKind::Convolution ? plan_.buffer(id).layout.line() : 0;
    return line > 0 ? line : packed;
  }

  std::string product_text(const ChainStep& step) const {
    const Kernel& member = *step.member;
    const ProductExtents e = extents_of(member);
    const auto input_of = [&](BufferId id) {
      return "in" + std::to_string(std::ranges::find(member.input_buffers, id) - member.input_buffers.begin());
    };
    std::string text =
        "{\nusing namespace gopt_runtime;\nTileProblem d;\nd.src = in0, d.weights = in1, d.dst = out;\n" +
        extents_text(e) + scale_text(e) + "d.line_of_weights = d.depth;\nd.src_line = " +
        std::to_string(line_of(member, member.input_buffers[0], e.depth)) +
        ";\nd.dst_line = " + std::to_string(line_of(member, member.output_buffers[0], e.columns)) + ";\n";
    for (const Epilogue& own : member.epilogues) {
      if (own.kind == Epilogue::Kind::Bias) text += "d.bias = " + input_of(own.operand) + ";\n";
      if (own.kind == Epilogue::Kind::AddTensor)
        text += "d.addend = " + input_of(own.operand) +
                ";\nd.addend_line = " + std::to_string(line_of(member, own.operand, e.columns)) + ";\n";
    }
    text += epilogue_text(member);
    const Buffer &src = plan_.buffer(member.input_buffers[0]), &dst = plan_.buffer(member.output_buffers[0]);
    const int64_t lines = lines_of_product(plan_, member), at_once = lines > 2 ? 4 : lines;
    const std::vector<int64_t> steps{e.depth, line_of(member, member.input_buffers[0], e.depth)};
    const bool in_pieces =
        has_chunks(plan_, member.input_buffers[0], steps) && has_chunks(plan_, member.input_buffers[1], {e.depth});
    const int64_t period = step.period > 0 ? step.period : e.columns;
    const int64_t of_block = e.columns / period * ((period + kBlocksOfChain - 1) / kBlocksOfChain);
    const bool has_tensor_cores = in_pieces && is_half(src.element);
    const std::string types = "<" +
                              (has_tensor_cores ? "tiles::" + operand_text(plan_, member) : storage_name(src.element)) +
                              ", " + storage_name(dst.element) + ", " + std::to_string(at_once) + ", ";
    return text + units_text(period, e.columns) + "sequences::" + (has_tensor_cores ? "Tensor" : "") + "Product" +
           types +
           (has_tensor_cores
                ? std::to_string(split_of(of_block)) + ", " + std::to_string(ahead_of(e.depth, split_of(of_block)))
                : std::to_string(lanes_of(of_block)) + ", " + (in_pieces ? "true" : "false")) +
           ">(d, units).run(waits);\n}\n";
  }
  // Pieces of two columns that a thread reads at once, where it has a part of the depth.
  static int64_t ahead_of(int64_t depth, int64_t split) {
    constexpr int64_t kMost = 8, kOfPiece = 8, kThreads = 4;
    return std::clamp((depth / kOfPiece + kThreads * split - 1) / (kThreads * split), int64_t{1}, kMost);
  }
  // Warps that share a depth, where a block has so many columns.
  static int64_t split_of(int64_t columns) {
    constexpr int64_t kColumns = 16, kWarps = kThreadsOfBlock / 32;
    int64_t split = kWarps;
    while (split > 1 && (columns + kColumns - 1) / kColumns * split > kWarps) split /= 2;
    return split;
  }
  // That share a column, of which a block has so many: all threads have a part.
  static int64_t lanes_of(int64_t columns) {
    constexpr int64_t kFewest = 4, kMost = 32;
    int64_t lanes = kMost;
    while (lanes > kFewest && columns * lanes > kThreadsOfBlock) lanes /= 2;
    return lanes;
  }

  const Plan& plan_;
  const Kernel& sequence_;
  const size_t number_;
  const std::string name_;
  std::map<std::string, size_t> functions_;  // by text
  std::map<size_t, std::string> calls_;      // by number
  std::string functions_text_, steps_, ends_;
  std::vector<Location> bases_;
  size_t steps_count_ = 0, chains_ = 0, most_operands_ = 0;
  int64_t shared_bytes_ = 0;
};

}  // namespace

Result<PrintedSequence> print_sequence(const Plan& plan, const Kernel& sequence, size_t number) {
  return SequencePrinter(plan, sequence, number).run();
}

}  // namespace gopt::codegen
