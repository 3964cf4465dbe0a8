#include "gopt_device.h"

namespace gopt_runtime {

void require_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("no CUDA device can be used: ") + cudaGetErrorString(status));
  if (count == 0) throw std::runtime_error("there is no CUDA device");
  if (has_code_for_device()) return;
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cannot ask for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cannot ask about the device");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cannot ask about the device");
  const std::string number = major == 9 ? "90a" : std::to_string(major) + std::to_string(minor);
  throw std::runtime_error("this code was not built for the device, whose compute capability is " +
                           std::to_string(major) + "." + std::to_string(minor) +
                           ": configure it with -DCMAKE_CUDA_ARCHITECTURES=" + number);
}

Ports::Ports(const std::vector<size_t>& sizes) : sizes_(sizes), buffers_(sizes.size(), nullptr) {
  for (size_t i = 0; i < sizes.size(); i++)
    if (sizes[i] > 0) check(cudaMalloc(&buffers_[i], sizes[i]), "cannot allocate device memory");
  for (size_t i = 0; i < sizes.size(); i++)
    if (sizes[i] > 0) check(cudaMemset(buffers_[i], 0, sizes[i]), "cannot clear device memory");
}

Ports::~Ports() {
  for (void* buffer : buffers_) cudaFree(buffer);
}

void Ports::copy_in(const void* const* from, cudaStream_t stream) const {
  for (size_t i = 0; i < sizes_.size(); i++)
    if (sizes_[i] > 0 && from[i] != buffers_[i])
      check(cudaMemcpyAsync(buffers_[i], from[i], sizes_[i], cudaMemcpyDefault, stream), "cannot copy an input");
}

void Ports::copy_out(void* const* to, cudaStream_t stream) const {
  for (size_t i = 0; i < sizes_.size(); i++)
    if (sizes_[i] > 0 && to[i] != buffers_[i])
      check(cudaMemcpyAsync(to[i], buffers_[i], sizes_[i], cudaMemcpyDefault, stream), "cannot copy an output");
}

Recording::~Recording() {
  if (executable_) cudaGraphExecDestroy(executable_);
}

void Recording::record(const std::function<void(cudaStream_t)>& launch) {
  Stream stream;
  launch(stream);
  check(cudaStreamSynchronize(stream), "a kernel failed");
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cannot record");
  try {
    launch(stream);
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cannot record");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cannot make a CUDA graph");
  check(cudaGraphUpload(executable_, stream), "cannot upload the CUDA graph");
  check(cudaStreamSynchronize(stream), "cannot upload the CUDA graph");
}

Stopwatch::Stopwatch(cudaStream_t stream, size_t marks) : stream_(stream), events_(marks, nullptr) {
  for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cannot make an event");
}

Stopwatch::~Stopwatch() {
  for (cudaEvent_t event : events_)
    if (event) cudaEventDestroy(event);
}

void Stopwatch::mark() { check(cudaEventRecord(events_.at(next_++), stream_), "cannot record an event"); }

void Stopwatch::add_to(double* milliseconds) {
  check(cudaStreamSynchronize(stream_), "a kernel failed");
  for (size_t i = 1; i < next_; i++) {
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, events_[i - 1], events_[i]), "cannot read an event");
    milliseconds[i - 1] += elapsed;
  }
}

}  // namespace gopt_runtime
