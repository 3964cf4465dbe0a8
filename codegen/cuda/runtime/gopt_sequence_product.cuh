// Products of a few lines by a matrix of columns, as steps of a sequence. What is read of the weights first is read
// before the step waits for what it multiplies. Sums are added in an order that is always the same, whatever the number
// of blocks.
#pragma once

#include <type_traits>

#include "gopt_activation.cuh"
#include "gopt_fragments.cuh"
#include "gopt_sequence.cuh"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace sequences {

constexpr int kPieceBytes = 16;

// What is added to a result, as it lies in memory: nothing waits for it before the sum is there.
template <class Out>
class Added {
 public:
  __device__ __forceinline__ void fetch(const TileProblem& p, int line, int column) {
    is_there_ = line < p.rows && column < p.columns;
    if (is_there_ && p.bias) bias_ = static_cast<const Out*>(p.bias)[column];
    if (is_there_ && p.addend) addend_ = static_cast<const Out*>(p.addend)[line * p.addend_line + column];
  }
  __device__ __forceinline__ void store(const TileProblem& p, int line, int column, float sum) const {
    if (!is_there_) return;
    float four[4] = {sum * p.scale, 0.0f, 0.0f, 0.0f};  // which activations take
    if (p.bias) four[0] += (float)bias_;
    if (p.addend) four[0] += (float)addend_;
    apply_activation<Out>(four, p.activation);
    static_cast<Out*>(p.dst)[line * p.dst_line + column] = Out(four[0]);
  }

 private:
  Out bias_, addend_;
  bool is_there_;
};

// Sums of warps that share a depth, by warp and lane: one room for all products of a kernel.
struct PartsOfSums {
  float of[kThreads / 32][32][4];
};

// Of numbers of 16 bits on the tensor cores: a warp has sixteen columns, of whose pieces of sixteen bytes four
// neighbouring threads take one each; kSplit warps share the depth, of which each thread reads kAhead pieces at once.
// Which of a product's depths are added up first is the same for both operands, so these need not lie as a fragment
// does.
template <class Operand, class Out, int kLines, int kSplit, int kAhead>
class TensorProduct {
 public:
  using T = typename Operand::Stored;

  __device__ __forceinline__ TensorProduct(const TileProblem& p, const Units& units)
      : p_(p), units_(units), pieces_(p.depth / kOfPiece) {}

  __device__ __forceinline__ void run(Waits waits) const {
    const unsigned of_block = blockDim.x / 32 / kSplit * kColumns, own = warp() / kSplit * kColumns + lane() / 4;
    const int first_piece = static_cast<int>(warp() % kSplit * 4 + lane() % 4);
    uint4 weights[2][kAhead];
    arrive(waits);
    fetch(weights, own, first_piece);
    wait(waits);
    for (unsigned first = 0; first < units_.count(); first += of_block) {
      float sums[2][4] = {};
      Added<Out> added[kResults];
#pragma unroll
      for (int r = 0; r < kResults; r++)
        if (has_result(r) && warp() % kSplit == 0) added[r].fetch(p_, line_of(r), column_of(first + own, r));
      for (int i = first_piece; i < pieces_ + first_piece; i += kAhead * kStep) {  // as often by each thread of a warp
        if (first > 0 || i > first_piece) fetch(weights, first + own, i);
        multiply(sums, weights, i);
      }
#pragma unroll
      for (int k = 0; k < 4; k++) sums[0][k] += sums[1][k];
      finish(sums[0], added, first + own);
    }
  }

 private:
  static constexpr int kColumns = 16, kOfPiece = kPieceBytes / 2, kStep = 4 * kSplit;

  // Of a thread: columns `lane / 4` and eight further of the lines `lane % 4 * 2` and one further, if there are
  // several.
  static constexpr int kResults = 4;
  static __device__ __forceinline__ constexpr bool has_result(int result) { return kLines > 1 || result % 2 == 0; }
  static __device__ __forceinline__ unsigned lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ unsigned warp() { return threadIdx.x / 32; }
  static __device__ __forceinline__ int line_of(int result) { return static_cast<int>(lane() % 4 * 2) + result % 2; }
  __device__ __forceinline__ int column_of(unsigned own, int result) const {
    return static_cast<int>(units_.number(own + static_cast<unsigned>(result / 2) * 8));
  }
  // What is not there is zero.
  __device__ __forceinline__ uint4 piece_of(const T* line, bool is_there, int piece) const {
    return is_there && piece < pieces_ ? *reinterpret_cast<const uint4*>(line + piece * kOfPiece) : uint4{};
  }
  __device__ __forceinline__ void fetch(uint4 (*weights)[kAhead], unsigned own, int first) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int column = column_of(own, half * 2);
      const T* line = static_cast<const T*>(p_.weights) + column * p_.line_of_weights;
#pragma unroll
      for (int k = 0; k < kAhead; k++) weights[half][k] = piece_of(line, column < p_.columns, first + k * kStep);
    }
  }
  __device__ __forceinline__ void multiply(float (*sums)[4], const uint4 (*weights)[kAhead], int first) const {
    const int line = static_cast<int>(lane() / 4);
    const T* from = static_cast<const T*>(p_.src) + line * static_cast<int64_t>(p_.src_line);
    uint4 given[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; k++) given[k] = piece_of(from, line < p_.rows, first + k * kStep);
#pragma unroll
    for (int k = 0; k < kAhead; k++) {
      const unsigned low[4] = {weights[0][k].x, weights[1][k].x, weights[0][k].y, weights[1][k].y},
                     high[4] = {weights[0][k].z, weights[1][k].z, weights[0][k].w, weights[1][k].w},
                     low_given[2] = {given[k].x, given[k].y}, high_given[2] = {given[k].z, given[k].w};
      Operand::mma(sums[0], low, low_given);
      Operand::mma(sums[1], high, high_given);
    }
  }

  __device__ __forceinline__ void finish(float* sums, const Added<Out>* added, unsigned own) const {
    if constexpr (kSplit > 1) {
      auto& parts = tiles::shared_of_block<PartsOfSums>().of;
#pragma unroll
      for (int r = 0; r < 4; r++) parts[warp()][lane()][r] = sums[r];
      __syncthreads();
      if (warp() % kSplit == 0)
#pragma unroll
        for (int part = 1; part < kSplit; part++)
#pragma unroll
          for (int r = 0; r < 4; r++) sums[r] += parts[warp() + part][lane()][r];
    }
    if (warp() % kSplit == 0)
#pragma unroll
      for (int r = 0; r < kResults; r++)
        if (has_result(r)) added[r].store(p_, line_of(r), column_of(own, r), sums[r]);
    if (kSplit > 1) __syncthreads();  // what has been read may be written over
  }

  const TileProblem& p_;
  const Units& units_;
  const int pieces_;
};

// kLanes neighbouring threads have a column of the weights, in pieces of sixteen bytes or, where operands begin between
// two, of an element.
template <class T, class Out, int kLines, int kLanes, bool kInPieces>
class Product {
 public:
  __device__ __forceinline__ Product(const TileProblem& p, const Units& units)
      : p_(p), units_(units), pieces_(p.depth / kOfPiece) {}

  __device__ __forceinline__ void run(Waits waits) const {
    const unsigned of_block = blockDim.x / kLanes, own = threadIdx.x / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    Piece weights[kAhead];
    arrive(waits);
    fetch(weights, static_cast<int>(units_.number(own)), lane);
    wait(waits);
    for (unsigned first = 0; first < units_.count(); first += of_block) {
      const int column = static_cast<int>(units_.number(first + own));
      Added<Out> added;
      if (lane < kLines) added.fetch(p_, lane, column);
      float sums[kLines] = {};
      for (int i = lane; i < pieces_; i += kAhead * kLanes) {
        if (first > 0 || i > lane) fetch(weights, column, i);
        add(sums, weights, column, i);
      }
      finish(sums, added, column, lane);
    }
  }

 private:
  static constexpr int kOfPiece = kInPieces ? kPieceBytes / static_cast<int>(sizeof(T)) : 1, kAhead = 8;
  using Piece = std::conditional_t<kInPieces, uint4, T>;

  static __device__ __forceinline__ float element(const Piece& piece, int k) {
    return (float)reinterpret_cast<const T*>(&piece)[k];
  }
  __device__ __forceinline__ bool has(int column, int piece) const { return column < p_.columns && piece < pieces_; }

  __device__ __forceinline__ void fetch(Piece* weights, int column, int first) const {
    const T* line = static_cast<const T*>(p_.weights) + column * p_.line_of_weights;
#pragma unroll
    for (int k = 0; k < kAhead; k++)
      if (has(column, first + k * kLanes))
        weights[k] = *reinterpret_cast<const Piece*>(line + (first + k * kLanes) * kOfPiece);
  }

  __device__ __forceinline__ void add(float* sums, const Piece* weights, int column, int first) const {
#pragma unroll
    for (int line = 0; line < kLines; line++) {
      if (line >= p_.rows) continue;
      const T* from = static_cast<const T*>(p_.src) + line * static_cast<int64_t>(p_.src_line);
      Piece given[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; k++)
        if (has(column, first + k * kLanes))
          given[k] = *reinterpret_cast<const Piece*>(from + (first + k * kLanes) * kOfPiece);
#pragma unroll
      for (int k = 0; k < kAhead; k++)
        if (has(column, first + k * kLanes))
#pragma unroll
          for (int e = 0; e < kOfPiece; e++) sums[line] += element(given[k], e) * element(weights[k], e);
    }
  }

  __device__ __forceinline__ void finish(float* sums, const Added<Out>& added, int column, int lane) const {
    float sum = 0.0f;  // of the line that the lane finishes
#pragma unroll
    for (int line = 0; line < kLines; line++) {
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) sums[line] += __shfl_xor_sync(0xffffffffu, sums[line], step);
      if (line == lane) sum = sums[line];
    }
    if (lane < kLines) added.store(p_, lane, column, sum);
  }

  const TileProblem& p_;
  const Units& units_;
  const int pieces_;
};

}  // namespace sequences
}  // namespace gopt_runtime
