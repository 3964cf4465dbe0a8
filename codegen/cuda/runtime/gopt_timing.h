// What a kernel costs within a CUDA graph, in the state of memory that it finds in a model: what it reads was just
// written, its weights were last read a whole run ago.
#pragma once

#include <algorithm>
#include <memory>

#include "gopt_device.h"

namespace gopt_runtime {

// In [-0.5, 0.5), no two neighbours alike.
void refresh_floats(char* at, int64_t bytes, cudaStream_t stream);
void refresh_halves(char* at, int64_t bytes, cudaStream_t stream);
void refresh_bfloats(char* at, int64_t bytes, cudaStream_t stream);
// Zero: an index that is valid everywhere.
void refresh_bytes(char* at, int64_t bytes, cudaStream_t stream);

// Zeros; null where the device has not twice as much memory left, or where there are none.
std::unique_ptr<DeviceBlock> block_if_there_is_room(size_t size);

// Whether an error was of one kernel alone: after one that corrupts the device's context nothing runs any more.
bool device_still_works();

// Two graphs are recorded for each kernel: some repetitions of what comes before a run (weights forgotten, inputs
// written) and of what comes after, and the same with the kernel between them. What the second takes longer is the
// kernel's, with what it keeps the next one from doing ahead: launches wait for each other as they do in a model's
// graph, and neither events nor the start of a graph are counted.
class KernelTimer {
 public:
  using Launch = std::function<void(cudaStream_t)>;
  explicit KernelTimer(size_t kernels);  // throws where no kernel runs at all
  // Milliseconds of one run of a kernel by the least times seen of both graphs, which are replayed once each. The first
  // call chooses algorithms and records; it throws where the kernel cannot be run. Of one that takes a tenth of a
  // second it is that of its first runs.
  double time(size_t kernel, const Launch& prepare, const Launch& launch);

 private:
  struct Graph {
    Recording recording;
    float least_ms = 0;
  };
  struct Entry {
    Graph without, with;
    int repetitions = 0;  // 0: it takes so long that there are no graphs
    float first_ms = 0;   // of a run outside of them
  };

  std::unique_ptr<Entry> record(const Launch& prepare, const Launch& launch);
  float elapsed_ms(const Launch& queue);
  void replay(Graph& graph);
  void forget(cudaStream_t stream) const;
  void go_on(cudaStream_t stream) const;

  Stream stream_;
  size_t unrelated_bytes_;
  DeviceBlock unrelated_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace gopt_runtime
