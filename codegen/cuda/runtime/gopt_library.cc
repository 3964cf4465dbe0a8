#include "gopt_library.h"

#include <stdexcept>
#include <string>

#include "gopt_device.h"
#include "gopt_primitive.h"
#include "gopt_tiles.h"

namespace gopt_runtime {

void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string("cuDNN: ") + cudnnGetErrorString(status));
}
void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLASLt: ") + cublasLtGetStatusString(status));
}

void* Workspace::at_least(size_t size) {
  if (size > size_) {
    check(cudaFree(data_), "cannot free a workspace");
    data_ = nullptr;
    size_ = 0;
    check(cudaMalloc(&data_, size), "cannot allocate a workspace");
    size_ = size;
  }
  return data_;
}

namespace {

struct Events {
  Events() {
    check(cudaEventCreate(&start), "cannot make an event");
    check(cudaEventCreate(&stop), "cannot make an event");
  }
  ~Events() {
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  cudaEvent_t start = nullptr, stop = nullptr;
};

}  // namespace

// The device is kept busy until all launches are queued: what the host takes for a call, which is more than most
// kernels take at batch 1, is not a part of what a model replays.
float time_launch(const std::function<bool(cudaStream_t)>& launch, cudaStream_t stream) {
  constexpr int kLaunches = 7, kRounds = 3;
  if (!launch(stream) || cudaStreamSynchronize(stream) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  const Events events;
  float least = 0;
  for (int round = 0; round < kRounds; round++) {
    keep_busy(stream);
    check(cudaEventRecord(events.start, stream), "cannot record an event");
    for (int i = 0; i < kLaunches; i++) launch(stream);
    check(cudaEventRecord(events.stop, stream), "cannot record an event");
    check(cudaEventSynchronize(events.stop), "a kernel failed");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events.start, events.stop), "cannot read an event");
    if (round == 0 || milliseconds < least) least = milliseconds;
  }
  return least / kLaunches;
}

struct Library::State {
  struct Entry {
    std::unique_ptr<Primitive> primitive;
    std::string what;
    bool chosen = false;
    std::unique_ptr<TileGroup> group = nullptr;
  };
  Shared shared;
  std::vector<Entry> entries;
};

Library::Library() : state_(std::make_unique<State>()) {}
Library::~Library() = default;

void Library::add(const Convolution& convolution) {
  state_->entries.push_back({make_convolution(state_->shared, convolution), "a convolution"});
}
void Library::add(const MatrixProduct& product) {
  state_->entries.push_back({make_product(state_->shared, product), "a matrix product"});
}

void Library::add(const Convolution& convolution, const Tiling& tiling) {
  state_->entries.push_back({make_tiled(convolution, tiling), "a convolution"});
}
void Library::add(const MatrixProduct& product, const Tiling& tiling) {
  state_->entries.push_back({make_tiled(product, tiling), "a matrix product"});
}

void Library::add(const Convolution& convolution, const WarpgroupTiling& tiling) {
  state_->entries.push_back({make_by_warpgroups(convolution, tiling), "a convolution"});
}
void Library::add(const MatrixProduct& product, const WarpgroupTiling& tiling) {
  state_->entries.push_back({make_by_warpgroups(product, tiling), "a matrix product"});
}

void Library::add(const AttentionProblem& attention, const TileKernel& kernel) {
  state_->entries.push_back({make_attention(attention, kernel), "an attention"});
}

void Library::add(const Convolution& convolution, const ChannelTiling& tiling) {
  state_->entries.push_back({make_channels(convolution, tiling), "a window over channels"});
}
void Library::add(const Convolution& convolution, const PatchTiling& tiling) {
  state_->entries.push_back({make_by_patches(convolution, tiling), "a convolution"});
}
void Library::add(const MatrixProduct& product, const QuantizedTiling& tiling) {
  state_->entries.push_back({make_quantized(product, tiling), "a product by quantized weights"});
}
void Library::add(const TileGroup& group) {
  state_->entries.push_back({nullptr, "a group", true, std::make_unique<TileGroup>(group)});
}

void Library::add_nothing() { state_->entries.push_back({nullptr, "a kernel"}); }

void Library::reserve() {
  state_->shared.workspace.at_least(kMaxWorkspace);
  state_->shared.unfolded.at_least(kMaxWorkspace);
}

void Library::run(size_t number, const Operands& operands, cudaStream_t stream) {
  State::Entry& entry = state_->entries.at(number);
  if (!entry.chosen && !(entry.primitive && entry.primitive->choose(operands, stream)))
    throw std::runtime_error("the libraries have no algorithm for " + entry.what);
  entry.chosen = true;
  if (!entry.primitive->launch(operands, stream)) throw std::runtime_error(entry.what + " failed");
}

void Library::run_group(size_t number, const std::vector<Operands>& operands, cudaStream_t stream) {
  State::Entry& entry = state_->entries.at(number);
  if (!entry.group || !entry.group->launch(operands, stream)) throw std::runtime_error(entry.what + " failed");
}

}  // namespace gopt_runtime
