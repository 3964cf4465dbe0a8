#include "gopt_half.cuh"
#include "gopt_launch.h"
#include "gopt_timing.h"

namespace gopt_runtime {
namespace {

constexpr int kThreads = 256, kBlocks = 1024;
constexpr int kBlocksBeside = 128;   // of what writes inputs, and of what comes after
constexpr long long kClocks = 6000;  // that writing takes at least: three or four microseconds
constexpr size_t kSmallestCache = size_t{4} << 20;

// A kernel that is timed gets ready while its inputs are written, as while the kernel before it in a model runs: that
// takes some microseconds, and leaves room on every multiprocessor.
__device__ __forceinline__ void stay_until(long long clock) {
  while (clock64() < clock)
    ;
}

template <class T>
__global__ void refresh_kernel(T* values, int64_t count) {
  gopt_let_next_begin();
  const long long end = clock64() + kClocks;
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    const uint32_t mixed = (uint32_t)i * 2654435761u;
    values[i] = T((float)(mixed >> 8) * (1.0f / 16777216) - 0.5f);
  }
  stay_until(end);
}

__global__ void refresh_bytes_kernel(char* values, int64_t count) {
  gopt_let_next_begin();
  const long long end = clock64() + kClocks;
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
    values[i] = 0;
  stay_until(end);
}

// The block is zero, so that nothing is written: the compiler does not know that.
__global__ void read_kernel(float4* values, int64_t count) {
  gopt_let_next_begin();
  gopt_wait();
  float sum = 0;
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    const float4 v = values[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum != 0) values[0].x = sum;
}

// What comes after a kernel in a model gets ready meanwhile, if it is let: it is launched, and its parameters and first
// weights come from memory, one after the other. Values are zero, which the compiler does not know.
__global__ void next_kernel(float4* values, int64_t count) {
  gopt_let_next_begin();
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const float4 parameters = values[i];
  const float4 weights = values[count / 8 + i + (int64_t)parameters.x];
  gopt_wait();
  if (weights.x != 0) values[i].x = weights.x;
}

unsigned blocks_for(int64_t count, int64_t most) {
  return static_cast<unsigned>(std::max<int64_t>(1, std::min(most, (count + kThreads - 1) / kThreads)));
}

// More than the cache that all multiprocessors share.
size_t bytes_to_forget_by() {
  int device = 0, cache = 0;
  check(cudaGetDevice(&device), "no device");
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "the size of the cache is not known");
  const size_t bytes = std::max(static_cast<size_t>(cache), kSmallestCache);
  return (bytes + bytes / 4) / sizeof(float4) * sizeof(float4);
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cannot make an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// What writes a kernel's inputs begins when the reading before it has ended, not beside it: the kernel that is timed
// gets ready while a kernel of a few microseconds runs, and not during all of the reading.
template <class T>
void refresh(char* at, int64_t bytes, cudaStream_t stream) {
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  refresh_kernel<T><<<blocks_for(count, kBlocksBeside), kThreads, 0, stream>>>(reinterpret_cast<T*>(at), count);
}
}  // namespace

void refresh_floats(char* at, int64_t bytes, cudaStream_t stream) { refresh<float>(at, bytes, stream); }
void refresh_halves(char* at, int64_t bytes, cudaStream_t stream) { refresh<gopt_half>(at, bytes, stream); }
void refresh_bfloats(char* at, int64_t bytes, cudaStream_t stream) { refresh<gopt_bfloat16>(at, bytes, stream); }

void refresh_bytes(char* at, int64_t bytes, cudaStream_t stream) {
  refresh_bytes_kernel<<<blocks_for(bytes, kBlocksBeside), kThreads, 0, stream>>>(at, bytes);
}

std::unique_ptr<DeviceBlock> block_if_there_is_room(size_t size) {
  size_t left = 0, all = 0;
  check(cudaMemGetInfo(&left, &all), "cannot ask for the device's memory");
  return size > 0 && size <= left / 2 ? std::make_unique<DeviceBlock>(size) : nullptr;
}

bool device_still_works() {
  cudaGetLastError();  // one that was of a launch alone is forgotten
  return cudaDeviceSynchronize() == cudaSuccess;
}

KernelTimer::KernelTimer(size_t kernels)
    : unrelated_bytes_(bytes_to_forget_by()), unrelated_(unrelated_bytes_), entries_(kernels) {
  forget(stream_);
  check(cudaGetLastError(), "kernels of this build do not run on this device");
  check(cudaStreamSynchronize(stream_), "kernels of this build do not run on this device");
}

// Reading leaves nothing behind that has to be written back while the kernel runs.
void KernelTimer::forget(cudaStream_t stream) const {
  const auto count = static_cast<int64_t>(unrelated_bytes_ / sizeof(float4));
  launch_kernel(read_kernel, blocks_for(count, kBlocks), kThreads, stream, reinterpret_cast<float4*>(unrelated_.data()),
                count);
}

void KernelTimer::go_on(cudaStream_t stream) const {
  const auto count = static_cast<int64_t>(unrelated_bytes_ / sizeof(float4));
  launch_kernel(next_kernel, kBlocksBeside, kThreads / 2, stream, reinterpret_cast<float4*>(unrelated_.data()), count);
}

// The device is kept busy until all is queued, so that how fast the host is does not count.
float KernelTimer::elapsed_ms(const Launch& queue) {
  constexpr int kBusy = 4;
  const Event start, stop;
  for (int i = 0; i < kBusy; i++) forget(stream_);
  check(cudaEventRecord(start, stream_), "cannot record an event");
  queue(stream_);
  check(cudaEventRecord(stop, stream_), "cannot record an event");
  check(cudaEventSynchronize(stop), "a kernel failed");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop), "cannot read an event");
  return milliseconds;
}

void KernelTimer::replay(Graph& graph) {
  const float ms = elapsed_ms([&](cudaStream_t stream) { graph.recording.replay(stream); });
  graph.least_ms = graph.least_ms == 0 ? ms : std::min(graph.least_ms, ms);
}

std::unique_ptr<KernelTimer::Entry> KernelTimer::record(const Launch& prepare, const Launch& launch) {
  constexpr int kRepetitions = 10, kFewRepetitions = 2, kWarmUp = 5;
  constexpr float kSlowMs = 1;  // a long kernel needs no repetitions to be told from the clock's steps
  // Nothing else that it could be compared with takes so long: it is not run again. A first run may choose algorithms.
  constexpr float kEndlessMs = 100, kChoosingMs = 10000;
  auto entry = std::make_unique<Entry>();
  prepare(stream_);
  entry->first_ms = elapsed_ms(launch);
  if (entry->first_ms > kChoosingMs) return entry;
  entry->first_ms = elapsed_ms(launch);
  if (entry->first_ms > kEndlessMs) return entry;
  entry->repetitions = entry->first_ms > kSlowMs ? kFewRepetitions : kRepetitions;
  auto record = [&](Graph& graph, bool with_kernel) {
    graph.recording.record([&](cudaStream_t stream) {
      for (int i = 0; i < entry->repetitions; i++) {
        forget(stream);
        prepare(stream);
        if (with_kernel) launch(stream);
        go_on(stream);
      }
    });
  };
  record(entry->without, false);
  record(entry->with, true);
  for (int i = 0; i < kWarmUp; i++) replay(entry->without);
  return entry;
}

double KernelTimer::time(size_t kernel, const Launch& prepare, const Launch& launch) {
  std::unique_ptr<Entry>& entry = entries_.at(kernel);
  if (!entry) entry = record(prepare, launch);
  if (entry->repetitions == 0) return entry->first_ms;
  replay(entry->without);
  replay(entry->with);
  // What is within the clock's steps of nothing is not nothing.
  constexpr double kLeastMs = 1e-4;
  const double added = static_cast<double>(entry->with.least_ms) - entry->without.least_ms;
  return std::max(kLeastMs, added / entry->repetitions);
}

}  // namespace gopt_runtime
