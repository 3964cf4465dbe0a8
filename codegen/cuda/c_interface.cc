#include "c_interface.h"

#include "../abi.h"

namespace gopt::codegen {
namespace {

constexpr const char* kUpload = R"(
void upload(gopt_model& model, const char* path) {
  const gopt_runtime::Weights weights(path, kWeightBytes);
  if (kWeightBytes > 0)
    gopt_runtime::check(cudaMemcpy(model.weights.data(), weights.data(), kWeightBytes, cudaMemcpyHostToDevice), "cannot upload the weights");
}

)";

constexpr const char* kEnd = R"(
int gopt_register(gopt_model* model, const char*, gopt_function, void*) {
  model->error = "code for the GPU calls no functions for operators";
  return 1;
}
void gopt_destroy(gopt_model* model) { delete model; }
)";

constexpr const char* kModel = R"(
struct gopt_model {
  gopt_runtime::DeviceBlock weights, arena, scratch;
  gopt_runtime::Ports inputs, outputs;
  gopt_runtime::Library library;
  gopt_runtime::Recording recording;
  std::string error;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  gopt_model()
      : weights(kWeightBytes), arena(kArenaBytes), scratch(kScratchBytes), inputs(sizes(gopt_input_count(), gopt_input)), outputs(sizes(gopt_output_count(), gopt_output)) {}

  static std::vector<size_t> sizes(int count, const gopt_tensor_info* (*info)(int)) {
    std::vector<size_t> bytes;
    for (int i = 0; i < count; i++) bytes.push_back(info(i)->size_bytes);
    return bytes;
  }
};

#include "gopt_running.h"

namespace {

)";

constexpr const char* kFunctions =
    R"(// Copies in, launches, copies out. Without a stream the call waits for the outputs.
template <class Launch>
int guarded_run(gopt_model* model, const void* const* inputs, void* const* outputs, cudaStream_t stream, Launch launch) {
  const Running running(*model);
  if (!running.is_mine) return 1;
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

void* gopt_device_input(gopt_model* model, int number) { return model->inputs.buffer(number); }
void* gopt_device_output(gopt_model* model, int number) { return model->outputs.buffer(number); }

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

)";

// ---- timing plans ----

constexpr const char* kTimingModel = R"(
struct gopt_model {
  gopt_runtime::DeviceBlock weights{kWeightBytes}, arena{kArenaBytes}, scratch{kScratchBytes};
  std::unique_ptr<gopt_runtime::DeviceBlock> other_weights;  // where there is room
  gopt_runtime::Library library;
  gopt_runtime::KernelTimer timer{static_cast<size_t>(gopt_kernel_count())};
  std::string error;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

#include "gopt_running.h"

namespace {

)";

constexpr const char* kTimingFunctions = R"(}  // namespace

gopt_model* gopt_create(const char* weights_path, int, char* error, size_t error_size) {
  try {
    gopt_runtime::require_device();
    auto model = std::make_unique<gopt_model>();
    upload(*model, weights_path);
    create_kernels(model->library);
    model->library.reserve();
    model->other_weights = gopt_runtime::block_if_there_is_room(kWeightBytes);
    return model.release();
  } catch (const std::exception& e) {
    if (error && error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return nullptr;
  }
}

void* gopt_device_input(gopt_model*, int) { return nullptr; }
void* gopt_device_output(gopt_model*, int) { return nullptr; }

int gopt_run(gopt_model* model, const void* const*, void* const*, void*) {
  model->error = "these kernels are timed one by one";
  return 1;
}

// As a kernel of a model that has run before finds the device: its instructions are in the cache that all multiprocessors
// share, as they are when a model runs again and again, and its weights are not.
void prepare(gopt_model& model, int kernel, cudaStream_t stream) {
  refresh_inputs(model, kernel, stream);
  if (!model.other_weights) return;
  launch_kernel(model, kernel, model.other_weights->data(), stream);
  refresh_inputs(model, kernel, stream);
}

// Milliseconds of the kernels whose entry is not negative. 1: one of them cannot be run; 2: nor can any other any more.
int gopt_profile(gopt_model* model, const void* const*, void* const*, void*, double* milliseconds) {
  const Running running(*model);
  if (!running.is_mine) return 1;
  try {
    for (int kernel = 0; kernel < gopt_kernel_count(); kernel++)
      if (milliseconds[kernel] >= 0)
        milliseconds[kernel] = model->timer.time(
            static_cast<size_t>(kernel), [&](cudaStream_t stream) { prepare(*model, kernel, stream); },
            [&](cudaStream_t stream) { launch_kernel(*model, kernel, model->weights.data(), stream); });
    return 0;
  } catch (const std::exception& e) {
    model->error = e.what();
    return gopt_runtime::device_still_works() ? 1 : 2;
  }
}

)";

}  // namespace

CudaInterface cuda_interface(bool times_kernels) {
  return {std::string(times_kernels ? kTimingModel : kModel),
          std::string(kUpload) + (times_kernels ? kTimingFunctions : kFunctions) + kEnd};
}

}  // namespace gopt::codegen
