// What the runtime's library calls share: handles, device memory that they use in turn, and the timing of a launch. See
// gopt_library.h for what they do.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <functional>
#include <memory>

#include "gopt_library.h"

namespace gopt_runtime {

struct TileProblem;

constexpr size_t kMaxWorkspace = size_t{256} << 20;

void check(cudnnStatus_t status);
void check(cublasStatus_t status);

// A library's object with its functions to make and to destroy it.
template <class T, class Status, Status (*create)(T*), Status (*destroy)(T)>
class Handle {
 public:
  Handle() { check(create(&object_)); }
  ~Handle() { destroy(object_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator T() const { return object_; }

 private:
  T object_{};
};
using Dnn = Handle<cudnnHandle_t, cudnnStatus_t, cudnnCreate, cudnnDestroy>;
using Blas = Handle<cublasLtHandle_t, cublasStatus_t, cublasLtCreate, cublasLtDestroy>;

// Device memory that grows while algorithms are chosen; one call after another uses it.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() { cudaFree(data_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* at_least(size_t size);

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// What is done to a source before it is multiplied (gopt_prologue.cuh), as tiles read it.
class ProloguePart {
 public:
  ProloguePart() = default;
  explicit ProloguePart(const Convolution& convolution) : settings_(convolution.prologue) {}
  // Once, before the first launch.
  void fold(TileProblem& problem, const Operands& operands, cudaStream_t stream) const;

 private:
  PrologueSettings settings_;
  std::unique_ptr<Workspace> lines_ = std::make_unique<Workspace>();
};

struct Shared {
  Dnn dnn;
  Blas blas;
  Workspace workspace, unfolded;
};

// Milliseconds of one launch; negative: it cannot be launched.
float time_launch(const std::function<bool(cudaStream_t)>& launch, cudaStream_t stream);

class Primitive {
 public:
  virtual ~Primitive() = default;
  // Chooses an algorithm; false: there is none.
  virtual bool choose(const Operands& operands, cudaStream_t stream) = 0;
  virtual bool launch(const Operands& operands, cudaStream_t stream) = 0;
};

std::unique_ptr<Primitive> make_convolution(Shared& shared, const Convolution& convolution);
std::unique_ptr<Primitive> make_product(Shared& shared, const MatrixProduct& product);
std::unique_ptr<Primitive> make_tiled(const Convolution& convolution, const Tiling& tiling);
std::unique_ptr<Primitive> make_tiled(const MatrixProduct& product, const Tiling& tiling);
std::unique_ptr<Primitive> make_by_warpgroups(const Convolution& convolution, const WarpgroupTiling& tiling);
std::unique_ptr<Primitive> make_by_warpgroups(const MatrixProduct& product, const WarpgroupTiling& tiling);
std::unique_ptr<Primitive> make_channels(const Convolution& convolution, const ChannelTiling& tiling);
std::unique_ptr<Primitive> make_by_patches(const Convolution& convolution, const PatchTiling& tiling);
std::unique_ptr<Primitive> make_quantized(const MatrixProduct& product, const QuantizedTiling& tiling);
std::unique_ptr<Primitive> make_attention(const AttentionProblem& problem, const TileKernel& kernel);

// dst = activation(dst + bias + addend); the bias's element of position i is i / inner mod channels.
struct Finish {
  Element element = Element::Float32;
  void* dst = nullptr;
  int64_t count = 0;
  const void* bias = nullptr;
  int64_t channels = 1, inner = 1;
  const void* addend = nullptr;
  Activation activation;
};
void apply_epilogue(const Finish& finish, cudaStream_t stream);

// Scale and shift of each channel, one beside the other, of what `operands` says; zeros for those up to `all`.
void fold_channels(float* lines, const PrologueOperands& operands, float epsilon, int channels, int all,
                   cudaStream_t stream);

// For half a millisecond.
void keep_busy(cudaStream_t stream);

// Every window of the source as a column: dst[image, channel, ky, kx, y, x].
void unfold(void* dst, const void* src, const Convolution& convolution, cudaStream_t stream);
// What each position of a transposed convolution's source gives to the result, added up, and what follows it. taps:
// floats [image, channel, ky, kx, position], of channels last [image, position, ky, kx, channel].
void fold(const float* taps, const Operands& operands, const Convolution& convolution, cudaStream_t stream);

}  // namespace gopt_runtime
