// Memory on the device, errors as exceptions, and a sequence of launches recorded once and replayed as one CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace gopt_runtime {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// Zeroed before anything else is done by any stream, so that what no kernel writes is read as zero.
class DeviceBlock {
 public:
  explicit DeviceBlock(size_t size) {
    if (size == 0) return;
    check(cudaMalloc(&data_, size), "cannot allocate device memory");
    check(cudaMemset(data_, 0, size), "cannot clear device memory");
    check(cudaStreamSynchronize(nullptr), "cannot clear device memory");  // no other stream waits for it
  }
  ~DeviceBlock() { cudaFree(data_); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// Buffers of the model's inputs or outputs, where the recorded kernels expect them.
class Ports {
 public:
  explicit Ports(const std::vector<size_t>& sizes);
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;
  void* const* data() const { return buffers_.data(); }
  void* buffer(int number) const {  // null where there is none
    return number >= 0 && static_cast<size_t>(number) < buffers_.size() ? buffers_[static_cast<size_t>(number)]
                                                                        : nullptr;
  }
  // What is there already is not copied.
  void copy_in(const void* const* from, cudaStream_t stream) const;
  void copy_out(void* const* to, cudaStream_t stream) const;

 private:
  std::vector<size_t> sizes_;
  std::vector<void*> buffers_;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cannot make a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Recording {
 public:
  Recording() = default;
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Launches once for real, so that everything is loaded and chosen, then records.
  void record(const std::function<void(cudaStream_t)>& launch);
  void replay(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "cannot launch the graph"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// Milliseconds between marks on a stream.
class Stopwatch {
 public:
  Stopwatch(cudaStream_t stream, size_t marks);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void mark();
  void add_to(double* milliseconds);

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
  size_t next_ = 0;
};

void require_device();  // throws where there is none, or code was built for others
bool has_code_for_device();

}  // namespace gopt_runtime
