#include "emit_cuda.h"

#include <algorithm>
#include <map>

#include "../abi.h"
#include "../buffers.h"
#include "../cpu/loops.h"
#include "../writer.h"
#include "library_calls.h"
#include "thread_loops.h"

namespace gopt::codegen {

std::string_view cuda_runtime_text(std::string_view file);

namespace {

constexpr size_t kKernelsInFile = 16, kMaxFiles = 8;  // translation units, compiled at once

class CudaEmitter {
 public:
  explicit CudaEmitter(const Plan& plan) : plan_(plan) {}

  Result<EmittedCode> run() {
    for (const Kernel& kernel : plan_.kernels) {
      const bool library = kernel.kind == KernelKind::Convolution || kernel.kind == KernelKind::MatrixProduct;
      if (library && has_library_call(plan_, kernel)) {
        const CudaLibraryCall call = print_cuda_library_call(plan_, kernel, primitives_++);
        create_ += call.create;
        step(kernel, call.run);
      } else {
        GOPT_RETURN_IF_ERROR(add_generated(kernel));
      }
    }
    return folder();
  }

 private:
  EmittedCode folder() const {
    EmittedCode code;
    code.plan = plan_;
    for (const char* file : {"model.h", "gopt_memory.h", "example.cc"})
      code.files.push_back({file, std::string(runtime_text(file))});
    for (const char* file :
         {"gopt_device.h", "gopt_device.cc", "gopt_library.h", "gopt_library.cc", "gopt_primitive.h",
          "gopt_convolution.cc", "gopt_product.cc", "gopt_kernels.cu", "gopt_math.cuh", "CMakeLists.txt"})
      code.files.push_back({file, std::string(cuda_runtime_text(file))});
    code.files.push_back(
        {"kernels.h",
         "// Launches of generated kernels, one function for each distinct kernel.\n#pragma once\n\n#include "
         "<cuda_runtime.h>\n\n#include <cstdint>\n\n" +
             declarations_});
    const size_t file_count = std::min(kMaxFiles, (bodies_.size() + kKernelsInFile - 1) / kKernelsInFile);
    for (size_t f = 0; f < file_count; f++) {
      std::string text = "#include \"gopt_math.cuh\"\n#include \"kernels.h\"\n\n";
      for (size_t i = f; i < bodies_.size(); i += file_count) text += bodies_[i];
      code.files.push_back({"kernels_" + std::to_string(f) + ".cu", text});
    }
    code.files.push_back({"model.cc", model_text()});
    return code;
  }

  Status add_generated(const Kernel& kernel) {
    auto body = lower_kernel(plan_, kernel);
    if (!body) return Error{"kernel " + kernel.name + ": " + body.error().message};
    std::string arguments;
    for (BufferId id : kernel.input_buffers) arguments += argument(id) + ", ";
    arguments += argument(kernel.output_buffers[0]) + ", stream);";
    std::string calls;
    for (const CudaKernel& printed : print_cuda_kernels(*body, overlaps(kernel)))
      calls += (calls.empty() ? "" : "\n") + function_for(printed) + "(" + arguments;
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
    const std::string grid = std::to_string(kernel.blocks) + ", " + std::to_string(kernel.threads);
    auto [it, inserted] = functions_.try_emplace(grid + kernel.parameters + kernel.body,
                                                 "gopt_kernel_" + std::to_string(functions_.size()));
    const std::string& name = it->second;
    if (!inserted) return name;
    const std::string head = "void " + name + "(" + kernel.parameters + ", cudaStream_t stream)";
    declarations_ += head + ";\n";
    std::string passed;
    for (size_t i = 0; kernel.parameters.find(" in" + std::to_string(i) + ",") != std::string::npos; i++)
      passed += "in" + std::to_string(i) + ", ";
    bodies_.push_back("static __global__ void __launch_bounds__(" + std::to_string(kernel.threads) + ") " + name +
                      "_body(" + kernel.parameters + ") " + kernel.body + "\n" + head + " {\n  " + name + "_body<<<" +
                      grid + ", 0, stream>>>(" + passed + "out);\n}\n\n");
    return name;
  }

  std::string argument(BufferId id) const {
    const Location location = locate(plan_, id);
    const bool constant = location.place == BufferPlace::Input || location.place == BufferPlace::Weight;
    return std::string(constant ? "(const " : "(") + storage_name(plan_.buffer(id).element) + "*)(" +
           pointer_text(location) + ")";
  }

  void step(const Kernel& kernel, const std::string& call) {
    const auto number = static_cast<size_t>(&kernel - plan_.kernels.data());
    run_ += "// " + kernel.name + "\n" + call + "\nmark(" + std::to_string(number) + ");\n";
  }

  std::string model_text() const {
    std::string text =
        "#include \"model.h\"\n\n#include <cstdio>\n#include <memory>\n\n#include \"gopt_device.h\"\n#include "
        "\"gopt_library.h\"\n"
        "#include \"gopt_memory.h\"\n#include \"kernels.h\"\n\n" +
        print_tables(plan_);
    text += "namespace {\n\nconstexpr size_t kWeightBytes = " + std::to_string(weights_file_size(plan_)) +
            ", kArenaBytes = " + std::to_string(plan_.arena_bytes) + ";\n\n}  // namespace\n" + kModel;
    text += indented(
        "void create_kernels(gopt_runtime::Library& library) {\n(void)library;\nusing namespace gopt_runtime;\n" +
        create_ + "}\n\n");
    text += indented(
        "template <class Mark>\nvoid launch_kernels(gopt_model& model, cudaStream_t stream, Mark mark) {\n"
        "[[maybe_unused]] const char* weights = model.weights.data();\n[[maybe_unused]] char* arena = "
        "model.arena.data();\n"
        "[[maybe_unused]] void* const* inputs = model.inputs.data();\n[[maybe_unused]] void* const* outputs = "
        "model.outputs.data();\n"
        "[[maybe_unused]] gopt_runtime::Library& library = model.library;\n(void)stream;\n(void)mark;\n" +
        run_ + "gopt_runtime::check(cudaGetLastError(), \"a kernel cannot be launched\");\n}\n");
    return text + kInterface;
  }

  static constexpr const char* kModel = R"(
struct gopt_model {
  gopt_runtime::DeviceBlock weights, arena;
  gopt_runtime::Ports inputs, outputs;
  gopt_runtime::Library library;
  gopt_runtime::Recording recording;
  std::string error;

  gopt_model()
      : weights(kWeightBytes), arena(kArenaBytes), inputs(sizes(gopt_input_count(), gopt_input)), outputs(sizes(gopt_output_count(), gopt_output)) {}

  static std::vector<size_t> sizes(int count, const gopt_tensor_info* (*info)(int)) {
    std::vector<size_t> bytes;
    for (int i = 0; i < count; i++) bytes.push_back(info(i)->size_bytes);
    return bytes;
  }
};

namespace {

)";

  static constexpr const char* kInterface = R"(
void upload(gopt_model& model, const char* path) {
  const gopt_runtime::Weights weights(path, kWeightBytes);
  if (kWeightBytes > 0)
    gopt_runtime::check(cudaMemcpy(model.weights.data(), weights.data(), kWeightBytes, cudaMemcpyHostToDevice), "cannot upload the weights");
}

// Copies in, launches, copies out. Without a stream the call waits for the outputs.
template <class Launch>
int guarded_run(gopt_model* model, const void* const* inputs, void* const* outputs, cudaStream_t stream, Launch launch) {
  try {
    model->inputs.copy_in(inputs, stream);
    launch();
    model->outputs.copy_out(outputs, stream);
    if (!stream) gopt_runtime::check(cudaStreamSynchronize(stream), "a kernel failed");
    return 0;
  } catch (const std::exception& e) {
    model->error = e.what();
    return 1;
  }
}

}  // namespace

gopt_model* gopt_create(const char* weights_path, int, char* error, size_t error_size) {
  try {
    gopt_runtime::require_device();
    auto model = std::make_unique<gopt_model>();
    upload(*model, weights_path);
    create_kernels(model->library);
    model->recording.record([&](cudaStream_t stream) { launch_kernels(*model, stream, [](int) {}); });
    return model.release();
  } catch (const std::exception& e) {
    if (error && error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return nullptr;
  }
}

int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  return guarded_run(model, inputs, outputs, on, [&] { model->recording.replay(on); });
}

int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void* stream, double* milliseconds) {
  const auto on = static_cast<cudaStream_t>(stream);
  return guarded_run(model, inputs, outputs, on, [&] {
    gopt_runtime::Stopwatch stopwatch(on, static_cast<size_t>(gopt_kernel_count()) + 1);
    stopwatch.mark();
    launch_kernels(*model, on, [&](int) { stopwatch.mark(); });
    stopwatch.add_to(milliseconds);
  });
}

const char* gopt_error(const gopt_model* model) { return model->error.c_str(); }

void gopt_destroy(gopt_model* model) { delete model; }
)";

  const Plan& plan_;
  std::map<std::string, std::string> functions_;  // text to name
  std::vector<std::string> bodies_;
  std::string declarations_, create_, run_;
  size_t primitives_ = 0;
};

}  // namespace

Result<EmittedCode> emit_cuda(const Plan& plan) { return CudaEmitter(plan).run(); }

}  // namespace gopt::codegen
