#include "emit_cuda.h"

#include <algorithm>
#include <map>

#include "../abi.h"
#include "../buffers.h"
#include "../cpu/loops.h"
#include "../writer.h"
#include "c_interface.h"
#include "library_calls.h"
#include "recurrences.h"
#include "row_functions.h"
#include "sequences.h"
#include "thread_loops.h"

namespace gopt::codegen {

std::string_view cuda_runtime_text(std::string_view file);

namespace {

constexpr size_t kKernelsInFile = 8, kMaxFiles = 16;  // translation units, compiled at once

class CudaEmitter {
 public:
  explicit CudaEmitter(const Plan& plan) : plan_(plan) {}

  Result<EmittedCode> run() {
    for (const Kernel& kernel : plan_.kernels) {
      if (kernel.kind == KernelKind::Sequence) {
        GOPT_ASSIGN_OR_RETURN(const PrintedSequence printed, print_sequence(plan_, kernel, sequences_.size()));
        sequences_.push_back({printed.name + ".cu", printed.text});
        declarations_ += printed.declaration;
        step(kernel, printed.call);
      } else if (kernel.kind == KernelKind::Recurrence) {
        add_launch(kernel, print_recurrence(plan_, kernel, recurrences_.count, kShared), recurrences_);
      } else if (kernel.kind == KernelKind::RowFunction) {
        add_launch(kernel, print_row_function(plan_, kernel, row_functions_.count, kShared), row_functions_);
      } else if (has_library_call(kernel)) {
        const CudaLibraryCall call = print_cuda_library_call(plan_, kernel, primitives_, tiles_);
        primitives_ += call.primitives;
        create_ += plan_.times_kernels ? print_attempt(call.create) : call.create;
        step(kernel, call.run);
      } else {
        GOPT_RETURN_IF_ERROR(add_generated(kernel));
      }
    }
    return folder();
  }

 private:
  // Functions of one of the model's files.
  struct Launches {
    std::string text;
    size_t count = 0;
  };
  void add_launch(const Kernel& kernel, const PrintedLaunch& printed, Launches& file) {
    file.text += printed.text;
    file.count++;
    shared_bytes_ = std::max(shared_bytes_, printed.scratch_bytes);
    declarations_ += printed.declaration;
    step(kernel, printed.call);
  }

  EmittedCode folder() const {
    EmittedCode code;
    code.plans = {plan_};
    for (const char* file : {"model.h", "gopt_running.h", "gopt_memory.h", "example.cc"})
      code.files.push_back({file, std::string(runtime_text(file))});
    std::vector<const char*> runtime{"gopt_device.h",
                                     "gopt_device.cc",
                                     "gopt_library.h",
                                     "gopt_library.cc",
                                     "gopt_primitive.h",
                                     "gopt_convolution.cc",
                                     "gopt_product.cc",
                                     "gopt_kernels.cu",
                                     "gopt_math.cuh",
                                     "gopt_half.cuh",
                                     "gopt_tiles.h",
                                     "gopt_tiles.cc",
                                     "gopt_warpgroups.h",
                                     "gopt_warpgroups.cc",
                                     "gopt_channels.h",
                                     "gopt_channels.cc",
                                     "gopt_patches.h",
                                     "gopt_patches.cc",
                                     "gopt_launch.h",
                                     "gopt_activation.cuh",
                                     "gopt_epilogue.cuh",
                                     "gopt_attention.h",
                                     "gopt_attention.cc",
                                     "gopt_element.h",
                                     "gopt_tile_problem.h",
                                     "gopt_warpgroup_problem.h",
                                     "gopt_quantized_problem.h",
                                     "gopt_quantized.cc",
                                     "CMakeLists.txt"};
    const std::vector<EmittedFile> tiles = tiles_.files();
    if (!tiles.empty())
      runtime.insert(
          runtime.end(),
          {"gopt_tiles.cuh", "gopt_tile_result.cuh", "gopt_register_result.cuh", "gopt_hopper.cuh",
           "gopt_warpgroups.cuh", "gopt_channels.cuh", "gopt_channel_tiles.cuh", "gopt_channel_rectangle.h",
           "gopt_patches.cuh", "gopt_vectors.cuh", "gopt_quantized_vectors.cuh", "gopt_quantized_chunk.h",
           "gopt_attention.cuh", "gopt_fragments.cuh", "gopt_windows.cuh", "gopt_transposed.cuh", "gopt_prologue.cuh"});
    if (!tiles.empty() || has_clusters_ || has_meetings_ || !sequences_.empty() || recurrences_.count > 0 ||
        row_functions_.count > 0)
      runtime.insert(runtime.end(), {"gopt_cluster.cuh", "gopt_copies.cuh", "gopt_arrivals.cuh"});
    if (recurrences_.count > 0)
      runtime.insert(runtime.end(),
                     {"gopt_recurrence_step.cuh", "gopt_recurrence_division.cuh", "gopt_recurrence_halves.cuh",
                      "gopt_recurrence_shares.cuh", "gopt_recurrence.cuh", "gopt_recurrence_call.cuh"});
    if (row_functions_.count > 0)
      runtime.insert(runtime.end(), {"gopt_running_rows.cuh", "gopt_top_rows.cuh", "gopt_top_few.cuh",
                                     "gopt_top_sorted.cuh", "gopt_top_rows_call.cuh"});
    if (!sequences_.empty()) runtime.insert(runtime.end(), {"gopt_sequence.cuh", "gopt_sequence_product.cuh"});
    if ((!sequences_.empty() || recurrences_.count > 0) && tiles.empty()) runtime.push_back("gopt_fragments.cuh");
    if (has_clusters_) runtime.push_back("gopt_cluster_reduce.cuh");
    if (has_meetings_) runtime.push_back("gopt_meeting.cuh");
    if (plan_.times_kernels) runtime.insert(runtime.end(), {"gopt_timing.h", "gopt_timing.cu"});
    for (const char* file : runtime) code.files.push_back({file, std::string(cuda_runtime_text(file))});
    code.files.push_back({"gopt_settings.h", settings_text()});
    code.files.insert(code.files.end(), tiles.begin(), tiles.end());
    const bool has_halves = std::any_of(plan_.buffers.begin(), plan_.buffers.end(),
                                        [](const Buffer& buffer) { return is_half(buffer.element); });
    code.files.push_back(
        {"kernels.h",
         "// Launches of generated kernels, one function for each distinct kernel.\n#pragma once\n\n#include "
         "<cuda_runtime.h>\n\n#include <cstdint>\n\n" +
             std::string(has_halves ? "struct gopt_half;\nstruct gopt_bfloat16;\n" : "") + declarations_});
    const size_t file_count = std::min(kMaxFiles, (bodies_.size() + kKernelsInFile - 1) / kKernelsInFile);
    for (size_t f = 0; f < file_count; f++) {
      std::string text = std::string(has_halves ? "#include \"gopt_half.cuh\"\n" : "") +
                         "#include \"gopt_launch.h\"\n#include \"gopt_math.cuh\"\n" +
                         (has_clusters_ ? "#include \"gopt_cluster_reduce.cuh\"\n" : "") +
                         (has_meetings_ ? "#include \"gopt_meeting.cuh\"\n" : "") + "#include \"kernels.h\"\n\n";
      for (size_t i = f; i < bodies_.size(); i += file_count) text += bodies_[i];
      code.files.push_back({"kernels_" + std::to_string(f) + ".cu", text});
    }
    code.files.insert(code.files.end(), sequences_.begin(), sequences_.end());
    if (recurrences_.count > 0)
      code.files.push_back({"kernels_recurrences.cu",
                            "#include \"gopt_recurrence_call.cuh\"\n#include \"kernels.h\"\n\n" + recurrences_.text});
    if (row_functions_.count > 0) {
      code.files.push_back({"gopt_row_sizes.h", std::string(runtime_text("gopt_row_sizes.h"))});
      code.files.push_back({"kernels_rows.cu",
                            "#include \"gopt_running_rows.cuh\"\n#include \"gopt_top_rows_call.cuh\"\n#include "
                            "\"kernels.h\"\n\n" +
                                row_functions_.text});
    }
    code.files.push_back({"model.cc", model_text()});
    return code;
  }

  // What of the plan's target the runtime is compiled for.
  std::string settings_text() const {
    const bool is_dependent = !plan_.target.without.contains(kDependentLaunch);
    return "// Launches wait for the kernel before them by themselves.\n#pragma once\n\n#define "
           "GOPT_DEPENDENT_LAUNCH " +
           std::string(is_dependent ? "1" : "0") + "\n";
  }

  Status add_generated(const Kernel& kernel) {
    auto body = lower_kernel(plan_, kernel);
    if (!body) return Error{"kernel " + kernel.name + ": " + body.error().message};
    std::string arguments;
    for (BufferId id : kernel.input_buffers) arguments += argument(id) + ", ";
    arguments += argument(kernel.output_buffers[0]);
    std::string calls;
    std::set<int> constants;
    for (size_t i = 0; i < kernel.input_buffers.size(); i++)
      if (plan_.buffer(kernel.input_buffers[i]).place == BufferPlace::Weight) constants.insert(static_cast<int>(i));
    for (const CudaKernel& printed : print_cuda_kernels(*body, overlaps(kernel), constants))
      calls += (calls.empty() ? "" : "\n") + function_for(printed) + "(" + arguments + meeting_argument(printed) +
               ", stream);";
    step(kernel, calls);
    return Unit{};
  }

  // A library kernel whose addend lies where its result goes, and which is generated after all.
  bool overlaps(const Kernel& kernel) const {
    const Location out = locate(plan_, kernel.output_buffers[0]);
    for (BufferId id : kernel.input_buffers) {
      const Location in = locate(plan_, id);
      if (in.place == out.place && in.offset == out.offset && in.number == out.number) return true;
    }
    return false;
  }

  // The function that launches it: "void NAME(PARAMETERS, cudaStream_t stream)".
  std::string function_for(const CudaKernel& kernel) {
    auto [it, inserted] = functions_.try_emplace(grid_text(kernel) + kernel.parameters + kernel.body(),
                                                 "gopt_kernel_" + std::to_string(functions_.size()));
    const std::string& name = it->second;
    if (!inserted) return name;
    const std::string head = "void " + name + "(" + parameters_of(kernel) + ", cudaStream_t stream)";
    declarations_ += head + ";\n";
    std::string text, launches;
    for (const CudaKernel* k = &kernel; k; k = k->otherwise.get()) {
      const bool is_last = !k->otherwise, is_first = k == &kernel;
      const std::string own = name + (is_first ? "_body" : is_last ? "_alone" : "_cluster");
      text += global_text(*k, own);
      launches += is_last ? launch_text(*k, own)
                          : "if (" + condition_of(*k, own) + ")\n  " + launch_text(*k, own) + "else" +
                                (k->otherwise->otherwise ? " " : "\n  ");
      has_clusters_ = has_clusters_ || (k->of_each > 1 && !k->meets);
      has_meetings_ = has_meetings_ || k->meets;
    }
    bodies_.push_back(text + head + " " + indented("{\n" + launches + "}\n") + "\n");
    return name;
  }

  // Memory of the model's for one call alone, zero at first, that each run leaves to the next.
  std::string scratch(int64_t bytes) {
    constexpr int64_t kLine = 128;
    const std::string offset = std::to_string(scratch_bytes_);
    scratch_bytes_ += (bytes + kLine - 1) / kLine * kLine;
    return "model.scratch.data() + " + offset;
  }
  std::string meeting_argument(const CudaKernel& kernel) {
    return kernel.meets ? ", (uint64_t*)(" + scratch(kernel.meeting_bytes()) + ")" : "";
  }

  static std::string parameters_of(const CudaKernel& kernel) {
    return kernel.parameters + (kernel.meets ? ", uint64_t* memory" : "");
  }
  static std::string grid_text(const CudaKernel& kernel) {
    const std::string of_each = kernel.of_each > 1 ? ", " + std::to_string(kernel.of_each) : "";
    return std::to_string(kernel.blocks) + of_each + ", " + std::to_string(kernel.threads);
  }
  // Whether the device has what the kernel's blocks need of it.
  static std::string condition_of(const CudaKernel& kernel, const std::string& name) {
    return kernel.meets ? "gopt_runtime::fits_at_once(" + name + ", " + grid_text(kernel) + ")"
                        : "gopt_runtime::has_clusters()";
  }
  static std::string global_text(const CudaKernel& kernel, const std::string& name) {
    return "static __global__ void __launch_bounds__(" + std::to_string(kernel.threads) + ") " + name + "(" +
           parameters_of(kernel) + ") " + kernel.body() + "\n";
  }
  static std::string launch_text(const CudaKernel& kernel, const std::string& name) {
    std::string passed;
    for (size_t i = 0; kernel.parameters.find(" in" + std::to_string(i) + ",") != std::string::npos; i++)
      passed += "in" + std::to_string(i) + ", ";
    const std::string function = kernel.meets         ? "launch_all_at_once"
                                 : kernel.of_each > 1 ? "launch_cluster_kernel"
                                                      : "launch_kernel";
    return "gopt_runtime::" + function + "(" + name + ", " + grid_text(kernel) + ", stream, " + passed +
           (kernel.meets ? "out, memory);\n" : "out);\n");
  }

  std::string argument(BufferId id) const {
    const Location location = locate(plan_, id);
    const bool constant = location.place == BufferPlace::Input || location.place == BufferPlace::Weight;
    return std::string(constant ? "(const " : "(") + storage_name(plan_.buffer(id).element) + "*)(" +
           pointer_text(location) + ")";
  }

  void step(const Kernel& kernel, const std::string& call) {
    const auto number = static_cast<size_t>(&kernel - plan_.kernels.data());
    if (!plan_.times_kernels) {
      run_ += "// " + kernel.name + "\n" + call + "\nmark(" + std::to_string(number) + ");\n";
      return;
    }
    const std::string head = "case " + std::to_string(number) + ":  // " + kernel.name + "\n";
    run_ += head + call + "\nbreak;\n";
    refresh_ += head + print_refresh(plan_, kernel, "stream") + "break;\n";
  }

  std::string model_text() const {
    const CudaInterface interface = cuda_interface(plan_.times_kernels);
    std::string text =
        "#include \"model.h\"\n\n#include <atomic>\n#include <cstdio>\n#include <memory>\n\n#include "
        "\"gopt_device.h\"\n#include "
        "\"gopt_library.h\"\n"
        "#include \"gopt_memory.h\"\n" +
        std::string(plan_.times_kernels ? "#include \"gopt_timing.h\"\n" : "") + "#include \"kernels.h\"\n" +
        (tiles_.files().empty() ? "\n" : "#include \"gopt_attention.h\"\n#include \"tiles.h\"\n\n") +
        print_tables(plan_);
    text +=
        "namespace {\n\n[[maybe_unused]] constexpr size_t kWeightBytes = " + std::to_string(weights_file_size(plan_)) +
        ", kArenaBytes = " + std::to_string(plan_.arena_bytes) + ", kOwnBytes = " + std::to_string(scratch_bytes_) +
        ", kScratchBytes = " + std::to_string(scratch_bytes_ + shared_bytes_) + ";\n\n}  // namespace\n" +
        interface.model;
    text += indented(
        "void create_kernels(gopt_runtime::Library& library) {\n(void)library;\nusing namespace gopt_runtime;\n" +
        create_ + "}\n\n");
    text += indented(plan_.times_kernels ? kernel_functions() : launch_function());
    return text + interface.functions;
  }

  // Memory that a kernel uses while it runs, behind what is one call's alone.
  static constexpr const char* kShared = "model.scratch.data() + kOwnBytes";
  static constexpr const char* kWeights = "[[maybe_unused]] const char* weights = model.weights.data();\n";
  static constexpr const char* kArena = "[[maybe_unused]] char* arena = model.arena.data();\n";
  static constexpr const char* kCheck =
      "gopt_runtime::check(cudaGetLastError(), \"a kernel cannot be launched\");\n}\n";

  std::string launch_function() const {
    return "template <class Mark>\nvoid launch_kernels(gopt_model& model, cudaStream_t stream, Mark mark) {\n" +
           std::string(kWeights) + kArena +
           "[[maybe_unused]] void* const* inputs = model.inputs.data();\n[[maybe_unused]] void* const* outputs = "
           "model.outputs.data();\n[[maybe_unused]] gopt_runtime::Library& library = "
           "model.library;\n(void)stream;\n(void)mark;\n" +
           run_ + kCheck;
  }

  // Of a timing plan: what a kernel reads, and the kernel by its number with weights from anywhere.
  std::string kernel_functions() const {
    return "void refresh_inputs(gopt_model& model, int kernel, cudaStream_t stream) {\n" + std::string(kArena) +
           "switch (kernel) {\n" + refresh_ + "}\n" + kCheck +
           "\nvoid launch_kernel(gopt_model& model, int kernel, [[maybe_unused]] const char* weights, cudaStream_t "
           "stream) {\n" +
           kArena + "[[maybe_unused]] gopt_runtime::Library& library = model.library;\nswitch (kernel) {\n" + run_ +
           "}\n" + kCheck;
  }

  const Plan& plan_;
  std::map<std::string, std::string> functions_;  // text to name
  std::vector<std::string> bodies_;
  std::vector<EmittedFile> sequences_;
  TileFunctions tiles_;
  bool has_clusters_ = false, has_meetings_ = false;  // of blocks, in some generated kernel
  int64_t scratch_bytes_ = 0, shared_bytes_ = 0;      // of calls alone, and of what all may use
  std::string declarations_, create_, run_, refresh_;
  Launches recurrences_, row_functions_;
  size_t primitives_ = 0;
};

}  // namespace

Result<EmittedCode> emit_cuda(const Plan& plan) { return CudaEmitter(plan).run(); }

}  // namespace gopt::codegen
