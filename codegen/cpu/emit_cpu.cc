#include "emit_cpu.h"

#include <algorithm>
#include <map>

#include "../abi.h"
#include "../buffers.h"
#include "../writer.h"
#include "loops.h"

namespace gopt::codegen {
namespace {

constexpr size_t kKernelFiles = 2;  // translation units, compiled at once

class CpuEmitter {
 public:
  explicit CpuEmitter(const Plan& plan) : plan_(plan) {}

  Result<EmittedCode> run() {
    for (const Kernel& kernel : plan_.kernels) {
      const bool library = kernel.kind != KernelKind::Generated && kernel.kind != KernelKind::Reorder;
      if (library) {
        GOPT_ASSIGN_OR_RETURN(const LibraryCall call, print_library_call(plan_, kernel, primitives_++));
        create_ += plan_.times_kernels ? print_attempt(call.create) : call.create;
        step(kernel, call.run);
      } else {
        GOPT_RETURN_IF_ERROR(add_generated(kernel));
      }
    }
    EmittedCode code;
    code.plan = plan_;
    std::vector<const char*> files{"model.h",           "gopt_math.h",   "gopt_memory.h",      "gopt_post.h",
                                   "gopt_activation.h", "gopt_vector.h", "gopt_planar.h",      "gopt_planar.cc",
                                   "gopt_rows.h",       "gopt_rows.cc",  "gopt_convolution.h", "gopt_convolution.cc",
                                   "gopt_dnnl.h",       "gopt_dnnl.cc",  "CMakeLists.txt",     "example.cc"};
    if (plan_.times_kernels) files.push_back("gopt_timing.h");
    const bool has_halves = std::any_of(std::begin(bodies_), std::end(bodies_), [](const std::string& text) {
      return text.find("gopt_half") != std::string::npos || text.find("gopt_bfloat16") != std::string::npos;
    });
    if (has_halves) files.push_back("gopt_half.h");
    for (const char* file : files) code.files.push_back({file, std::string(runtime_text(file))});
    code.files.push_back(
        {"kernels.h",
         "// Generated loops, one function for each distinct kernel.\n#pragma once\n\n#include <cstdint>\n\n" +
             std::string(has_halves ? "#include \"gopt_half.h\"\n\n" : "") + declarations_});
    for (size_t i = 0; i < kKernelFiles; i++)
      code.files.push_back({"kernels_" + std::to_string(i) + ".cc",
                            "#include \"gopt_math.h\"\n#include \"kernels.h\"\n\n" + bodies_[i]});
    code.files.push_back({"model.cc", model_text()});
    return code;
  }

 private:
  Status add_generated(const Kernel& kernel) {
    auto body = lower_kernel(plan_, kernel);
    if (!body) return Error{"kernel " + kernel.name + ": " + body.error().message};
    const std::string text = print_cpu_kernel(*body, plan_.target.threads);
    auto [it, inserted] = functions_.try_emplace(text, "gopt_kernel_" + std::to_string(functions_.size()));
    if (inserted) {
      declarations_ += "void " + it->second + text.substr(0, text.find(" {\n")) + ";\n";
      bodies_[functions_.size() % kKernelFiles] += "void " + it->second + text + "\n";
    }
    std::string call = it->second + "(";
    for (size_t i = 0; i < kernel.input_buffers.size(); i++) call += argument(kernel.input_buffers[i]) + ", ";
    step(kernel, call + argument(kernel.output_buffers[0]) + ");");
    return Unit{};
  }

  std::string argument(BufferId id) const {
    const Location location = locate(plan_, id);
    const bool constant = location.place == BufferPlace::Input || location.place == BufferPlace::Weight;
    return std::string(constant ? "(const " : "(") + storage_name(plan_.buffer(id).element) + "*)(" +
           pointer_text(location) + ")";
  }

  void step(const Kernel& kernel, const std::string& call) {
    const auto number = static_cast<size_t>(&kernel - plan_.kernels.data());
    const std::string mark = "mark(" + std::to_string(number) + ");\n";
    const std::string line =
        call + "  // " + kernel.name +
        (kernel.implementation.empty() || kernel.implementation == "direct" ? "" : " " + kernel.implementation) + "\n";
    run_ += plan_.times_kernels
                ? "if (mark.wants(" + std::to_string(number) + ")) {\ngopt_runtime::forget_weights(model.threads);\n" +
                      print_refresh(plan_, kernel, "model.threads") + "mark.start();\n" + line + mark + "}\n"
                : line + mark;
  }

  std::string model_text() const {
    std::string text =
        "#include \"model.h\"\n\n#include <omp.h>\n\n#include <atomic>\n#include <cstdio>\n#include "
        "<memory>\n\n#include \"gopt_dnnl.h\"\n"
        "#include \"gopt_memory.h\"\n" +
        std::string(plan_.times_kernels ? "#include \"gopt_timing.h\"\n" : "") + "#include \"kernels.h\"\n\n" +
        print_tables(plan_);
    text +=
        "struct gopt_model {\n  gopt_runtime::Weights weights;\n  gopt_runtime::Block arena;\n  gopt_runtime::Library "
        "library;\n  int threads;\n"
        "  std::string error;\n  std::atomic_flag busy = ATOMIC_FLAG_INIT;\n\n  gopt_model(const char* path, int "
        "count)\n      : weights(path, " +
        std::to_string(weights_file_size(plan_)) + "), arena(" + std::to_string(plan_.arena_bytes) +
        "), library(count), threads(count) {}\n};\n\nnamespace {\n\n";
    text += indented(
        "void create_kernels(gopt_model& model) {\n[[maybe_unused]] const char* weights = model.weights.data();\n"
        "[[maybe_unused]] char* arena = model.arena.data();\ngopt_runtime::Library& library = model.library;\n"
        "using namespace gopt_runtime;\n" +
        create_ + "library.finish();\n}\n\n");
    text += indented(
        "template <class Mark>\nvoid run_kernels(gopt_model& model, const void* const* inputs, void* const* outputs, "
        "Mark mark) {\n"
        "[[maybe_unused]] const char* weights = model.weights.data();\n[[maybe_unused]] char* arena = "
        "model.arena.data();\n"
        "[[maybe_unused]] gopt_runtime::Library& library = model.library;\n(void)inputs;\n(void)outputs;\n"
        "if (model.threads > 0) omp_set_num_threads(model.threads);\n" +
        run_ + "}\n");
    const std::string_view runs = plan_.times_kernels ? kTimingRuns : kRuns;
    return text + "\n" + kRunning + kGuard + std::string(runs) + kGuardedError + kEnd;
  }

  static constexpr const char* kGuard = R"(template <class Mark>
int guarded_run(gopt_model* model, const void* const* inputs, void* const* outputs, Mark mark) {
  const Running running(*model);
  if (!running.is_mine) return 1;
  try {
    run_kernels(*model, inputs, outputs, mark);
    return 0;
  } catch (const std::exception& e) {
    model->error = e.what();
    return 1;
  }
}

}  // namespace

gopt_model* gopt_create(const char* weights_path, int threads, char* error, size_t error_size) {
  try {
    auto model = std::make_unique<gopt_model>(weights_path, threads);
    create_kernels(*model);
    return model.release();
  } catch (const std::exception& e) {
    if (error && error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return nullptr;
  }
}

)";

  static constexpr const char* kRuns =
      R"(int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void*) {
  return guarded_run(model, inputs, outputs, [](int) {});
}

int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void*, double* milliseconds) {
  double last = gopt_runtime::now_ms();
  return guarded_run(model, inputs, outputs, [&](int kernel) {
    const double now = gopt_runtime::now_ms();
    milliseconds[kernel] += now - last;
    last = now;
  });
}

)";

  static constexpr const char* kTimingRuns = R"(
int gopt_run(gopt_model* model, const void* const*, void* const*, void*) {
  model->error = "these kernels are timed one by one";
  return 1;
}

int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void*, double* milliseconds) {
  return guarded_run(model, inputs, outputs, gopt_runtime::OneByOne{milliseconds});
}
)";

  static constexpr const char* kEnd = R"(
void gopt_destroy(gopt_model* model) { delete model; }
)";

  const Plan& plan_;
  std::map<std::string, std::string> functions_;  // text to name
  std::string declarations_, bodies_[kKernelFiles], create_, run_;
  size_t primitives_ = 0;
};

}  // namespace

Result<EmittedCode> emit_cpu(const Plan& plan) { return CpuEmitter(plan).run(); }

}  // namespace gopt::codegen
