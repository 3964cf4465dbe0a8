// Convolutions by cuDNN or cuBLASLt and matrix products by cuBLASLt, in true fp32, in TF32 or of numbers of 16 bits;
// sums are fp32. The first run of each measures the libraries' algorithms, with what follows fused where a library can,
// and keeps the fastest; later runs only launch.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gopt_element.h"

namespace gopt_runtime {

// Whose algorithms are measured.
enum class Family { All, Dnn, Unfolded };

// What tiles do to a source of 16 bits before they multiply it: by channels, which are folded to x scale + shift, or by
// gates, as operands say; what of the former is less or more than two numbers is these.
struct PrologueSettings {
  bool has_channels = false;
  float epsilon = 0, least = -INFINITY, largest = INFINITY;
  int64_t positions = 1;  // of gates: of the result, of an image
};

struct Convolution {
  // Extents of two or three spatial axes; weights [out, in / groups, h, w], transposed [in, out / groups, h, w].
  std::vector<int64_t> src, weights, dst;
  int64_t groups = 1;
  bool transposed = false;
  bool channels_last = false;  // of src, weights and dst: n, h, w, c in memory
  // Channels last, by tiles: elements from one position to the next, where channels are a part of longer lines.
  int64_t src_line = 0, dst_line = 0, addend_line = 0;
  int64_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1}, pads[3] = {0, 0, 0};  // of each spatial axis
  PrologueSettings prologue;
  Activation activation;
  Family family = Family::All;
  int algorithm = -1;                  // cuDNN's, by its number there; else what is fastest when the model is created
  Element element = Element::Float32;  // of all tensors
  bool tf32 = false;                   // floats are rounded to 11 bits, for the tensor cores
};

// Positions of an image, taps of a kernel.
inline int64_t positions_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (size_t a = 2; a < dims.size(); a++) count *= dims[a];
  return count;
}

// dst[b] = left[b] right[b], row-major; with `transposed` an operand lies as its transpose.
struct MatrixProduct {
  // Matrices of a batch, outermost axis first: count, and steps in elements (0: the same matrix again).
  struct Axis {
    int64_t count, left_step, right_step;
  };
  int64_t rows = 0, columns = 0, depth = 0;
  // Elements from one row to the next, of a left operand that is not transposed and of one matrix; 0: they are packed.
  int64_t left_line = 0, dst_line = 0, addend_line = 0;
  bool left_transposed = false, right_transposed = false;
  float scale = 1;
  std::vector<Axis> batch;
  Activation activation;
  Element operands = Element::Float32;
  Element result = Element::Float32;  // of bias and addend, too
  bool tf32 = false;
};

// (x - mean) scale / sqrt(variance + epsilon) + shift of each channel, floats, any of which may be null; or a factor
// for each image and channel, of the source's type.
struct PrologueOperands {
  const void *scale = nullptr, *shift = nullptr, *mean = nullptr, *variance = nullptr, *gates = nullptr;
};

struct Operands {
  const void* src = nullptr;
  const void* weights = nullptr;
  const void* bias = nullptr;    // a vector, or null; of attention as its shape says
  const void* addend = nullptr;  // of dst's shape, may be dst itself, or null
  void* dst = nullptr;
  const void* value = nullptr;  // attention, of which src is the query, weights are the key and addend is the mask
  PrologueOperands prologue = {};
  const void* choice = nullptr;                    // attention: truth values of a byte
  const void *scales = nullptr, *zeros = nullptr;  // of quantized weights
};

// A kernel of ours in place of the libraries' (gopt_tiles.h).
struct TileKernel;
class TileGroup;
struct AttentionProblem;  // gopt_attention.h
struct Tiling {
  const TileKernel* kernel = nullptr;
  int split = 1;                      // blocks that share the depth of a tile
  bool has_constant_weights = false;  // and bias; else another kernel makes them
  int joined_groups = 1;              // of a convolution, by one tile
};

// Likewise by warpgroups (gopt_warpgroups.h).
struct WarpgroupTiling {
  const TileKernel* kernel = nullptr;
  int split = 1;
  bool has_constant_weights = false;
  int joined_groups = 1;  // of a convolution, whose channels fill a slice
};

// Windows over channels side by side (gopt_channels.h).
struct ChannelTiling {
  const TileKernel* kernel = nullptr;
  bool has_constant_weights = false;  // likewise
  bool counts_outside = false;        // a mean divides by all of the window
};

// A product by quantized weights (gopt_quantized_vectors.cuh), whose bits lie by columns.
struct QuantizedTiling {
  const TileKernel* kernel = nullptr;
  QuantizedNumbers numbers;
};

// An image of few channels by patches (gopt_patches.h).
struct PatchTiling {
  const TileKernel* kernel = nullptr;
  bool has_constant_weights = false;  // likewise
};

class Library {
 public:
  Library();
  ~Library();
  void add(const Convolution& convolution);
  void add(const MatrixProduct& product);
  void add(const Convolution& convolution, const Tiling& tiling);
  void add(const MatrixProduct& product, const Tiling& tiling);
  void add(const Convolution& convolution, const WarpgroupTiling& tiling);
  void add(const MatrixProduct& product, const WarpgroupTiling& tiling);
  void add(const AttentionProblem& attention, const TileKernel& kernel);
  void add(const TileGroup& group);
  void add(const Convolution& convolution, const ChannelTiling& tiling);
  void add(const Convolution& convolution, const PatchTiling& tiling);
  void add(const MatrixProduct& product, const QuantizedTiling& tiling);
  // Stands for one that could not be added: to run it is an error.
  void add_nothing();
  // Takes the memory that any may ask for, so that it stays where it is.
  void reserve();
  void run(size_t number, const Operands& operands, cudaStream_t stream);
  // Of a group: operands of each of its members, in turn.
  void run_group(size_t number, const std::vector<Operands>& operands, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gopt_runtime
