// Products of a few lines by weights of 4 or 8 bits as they lie: (number - zero point) scale, of which a part of a
// column has one of each. The tensor cores multiply sixteen columns by up to eight lines: a number becomes a float of
// 16 bits without conversion, since its bits are the last of a power of two's mantissa, which is subtracted again
// together with the zero point. What a block of the depth adds up to is multiplied by its scale; sums are fp32. Lines
// of floats are three numbers of 8 bits each, which have all their digits: three lines.
//
// Weights come in chunks of 64 bytes of a column, sixteen words: the four words of a lane lie side by side, those that
// four lanes multiply by at once four words apart. Of the numbers of 4 bits in a word the even ones are its lower half,
// the odd ones its upper; numbers that had signs are counted from the least on. The chunks of a column are divided
// among the warps of a block, which ask for the first of them before the kernel before has ended.
#pragma once

#include "gopt_quantized_chunk.h"
#include "gopt_quantized_problem.h"
#include "gopt_vectors.cuh"

namespace gopt_runtime {
namespace tiles {

// The numbers of a word less a zero point, two of 16 bits to a register.
template <class Operand, int kBits>
struct PairsOfWord;

template <>
struct PairsOfWord<Half, 4> {
  static constexpr int kCount = 4;
  unsigned of_first, of_second;  // 1024 and 64 with the zero point, which two numbers of each mantissa are counted from
  __device__ __forceinline__ explicit PairsOfWord(unsigned zero)
      : of_first(zero * 0x10001u | 0x64006400u), of_second((zero * 0x100010u | 0x54005400u) ^ 0x80008000u) {}
  __device__ __forceinline__ void take(unsigned word, unsigned* pairs) const {
    constexpr unsigned kSixteenth = 0x2c002c00u;
#pragma unroll
    for (int k = 0; k < kCount; k += 2, word >>= 8) {
      pairs[k] = Half::difference((word & 0x000f000fu) | 0x64006400u, of_first);
      pairs[k + 1] = Half::product_and_sum((word & 0x00f000f0u) | 0x64006400u, kSixteenth, of_second);
    }
  }
};

template <>
struct PairsOfWord<Half, 8> {
  static constexpr int kCount = 2;
  unsigned of;
  __device__ __forceinline__ explicit PairsOfWord(unsigned zero) : of(zero * 0x10001u | 0x64006400u) {}
  __device__ __forceinline__ void take(unsigned word, unsigned* pairs) const {
    constexpr unsigned kFirst = 0x4140, kSecond = 0x4342;  // bytes below those of 1024
    pairs[0] = Half::difference(__byte_perm(word, 0x64646464u, kFirst), of);
    pairs[1] = Half::difference(__byte_perm(word, 0x64646464u, kSecond), of);
  }
};

template <>
struct PairsOfWord<Bfloat16, 4> {
  static constexpr int kCount = 4;
  unsigned of;  // 128 and the zero point
  __device__ __forceinline__ explicit PairsOfWord(unsigned zero) : of(zero * 0x10001u | 0x43004300u) {}
  __device__ __forceinline__ void take(unsigned word, unsigned* pairs) const {
#pragma unroll
    for (int k = 0; k < kCount; k++, word >>= 4)
      pairs[k] = Bfloat16::difference((word & 0x000f000fu) | 0x43004300u, of);
  }
};

template <>
struct PairsOfWord<Bfloat16, 8> {
  static constexpr int kCount = 2;
  float of;  // a mantissa of 7 bits has no room: of a float's, whose upper half these are
  __device__ __forceinline__ explicit PairsOfWord(unsigned zero) { of = __uint_as_float(zero | 0x4b000000u); }
  __device__ __forceinline__ void take(unsigned word, unsigned* pairs) const {
    constexpr unsigned kUpperHalves = 0x7632, kFirst = 0x7440;
    unsigned numbers[4];
#pragma unroll
    for (int k = 0; k < 4; k++) numbers[k] = as_bits(__uint_as_float(__byte_perm(word, 0x4b000000u, kFirst + k)) - of);
#pragma unroll
    for (int k = 0; k < kCount; k++) pairs[k] = __byte_perm(numbers[2 * k], numbers[2 * k + 1], kUpperHalves);
  }
};

// Lines as the tensor cores multiply them.
template <class T>
struct LinesOf {
  using Operand = std::conditional_t<std::is_same_v<T, gopt_half>, Half, Bfloat16>;
  static constexpr int kParts = std::is_same_v<T, float> ? kPartsOfFloat : 1;
};

template <class T, class Scale, int kBits, bool kHasZeros, bool kIsAligned, int kTiles, int kWarps>
class QuantizedProduct {
 public:
  static constexpr int kColumns = 16, kOfTile = kLinesOfTile, kThreads = kWarps * 32;
  static constexpr int kParts = LinesOf<T>::kParts, kLines = kTiles * kOfTile / kParts;
  static constexpr int kOfWord = numbers_of_word(kBits), kOfChunk = numbers_of_chunk(kBits);
  static constexpr int kSumBytes = kWarps * kColumns * kTiles * kOfTile * 4;
  // Of a part's numbers, which lanes read in pieces, without conflicts.
  static constexpr int kPitch = kOfChunk + (kBits == 4 ? 32 : 16);
  static constexpr int kStageBytes = kParts > 1 ? kTiles * kOfTile * kPitch * 2 : 0;
  static constexpr int kSharedBytes = kSumBytes > kWarps * kStageBytes ? kSumBytes : kWarps * kStageBytes;

  __device__ __forceinline__ QuantizedProduct(const QuantizedProblem& p, char* shared)
      : p_(p), shared_(shared), chunks_(p.tile.depth / kOfChunk) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      // Of what is beyond the last column, the last.
      const int64_t c = min(static_cast<int>(blockIdx.x) * kColumns + column() + half * 8, p.tile.columns - 1);
      words_[half] = static_cast<const uint4*>(p.tile.weights) + c * chunks_ * kGroups + among();
      scales_[half] = static_cast<const Scale*>(p.scales) + c * p.numbers.scale.column;
      zeros_[half] = static_cast<const unsigned char*>(p.zeros) + c * p.numbers.zero.column;
    }
  }

  __device__ __forceinline__ void run() {
    Chunk ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; k++) fetch(ahead[k], warp() + k * kWarps);
    clear_stage();
    gopt_wait();
    for (int i = warp(); i < chunks_; i += kAhead * kWarps)
#pragma unroll
      for (int k = 0; k < kAhead; k++) {
        const int at = i + k * kWarps;
        if (at >= chunks_) break;
        const Chunk now = ahead[k];
        fetch(ahead[k], at + kAhead * kWarps);
        add(now, at);
      }
    finish();
  }

 private:
  using Operand = typename LinesOf<T>::Operand;
  using Pairs = PairsOfWord<Operand, kBits>;
  static constexpr int kAhead = 2, kGroups = kGroupsOfChunk, kPairs = Pairs::kCount, kOfGroup = kOfChunk / kGroups;
  static constexpr unsigned kAll = 0xffffffffu;

  // Of two columns: words, and scale and zero point of one of the groups of words, which the other lanes have.
  struct Chunk {
    uint4 words[2];
    Scale scales[2];
    unsigned char zeros[2];
  };

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ __forceinline__ int among() { return lane() % 4; }   // the lanes of a column
  static __device__ __forceinline__ int column() { return lane() / 4; }  // of a tile, or line, and eight further

  __device__ __forceinline__ void fetch(Chunk& chunk, int at) const {
    if (at >= chunks_) return;
    const int block = (at * kWordsOfChunk + among() * kGroups) >> p_.numbers.words_of_block,
              scale = block * p_.numbers.scale.block, zero = block * p_.numbers.zero.block;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      chunk.words[half] = words_[half][at * kGroups];
      chunk.scales[half] = scales_[half][scale];
      if constexpr (kHasZeros) chunk.zeros[half] = zeros_[half][zero];
    }
  }

  __device__ __forceinline__ void add(const Chunk& chunk, int at) {
    constexpr unsigned kNumber = (1u << kBits) - 1;
    stage(at);
    unsigned lines[kTiles][kGroups][kPairs];
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) load_lines(lines[tile], tile, at);
    float scales[2];
    unsigned zeros[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      scales[half] = (float)chunk.scales[half];
      if constexpr (kHasZeros) zeros[half] = (chunk.zeros[half] ^ p_.numbers.signs) & kNumber;
    }
#pragma unroll
    for (int group = 0; group < kGroups; group++) {
      const int from = lane() / 4 * 4 + group;
      unsigned numbers[2][kPairs];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        unsigned zero = static_cast<unsigned>(p_.numbers.zero_of_all);
        if constexpr (kHasZeros) zero = __shfl_sync(kAll, zeros[half], from);
        Pairs(zero).take(reinterpret_cast<const unsigned*>(&chunk.words[half])[group], numbers[half]);
      }
      const float first = __shfl_sync(kAll, scales[0], from), second = __shfl_sync(kAll, scales[1], from);
#pragma unroll
      for (int tile = 0; tile < kTiles; tile++) {
        float sum[4] = {};
#pragma unroll
        for (int k = 0; k < kPairs; k += 2) {
          const unsigned a[4] = {numbers[0][k], numbers[1][k], numbers[0][k + 1], numbers[1][k + 1]};
          Operand::mma(sum, a, lines[tile][group] + k);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) sums_[tile][i] += sum[i] * (i < 2 ? first : second);
      }
    }
  }

  // The numbers of a line that the lane's words are multiplied by.
  __device__ __forceinline__ void load_lines(unsigned (*pairs)[kPairs], int tile, int at) const {
    const int line = tile * kOfTile + column();
    if constexpr (kParts > 1) {
      const char* from = stage_of_warp() + (line * kPitch + among() * kOfWord) * 2;
#pragma unroll
      for (int group = 0; group < kGroups; group++) take_pairs(pairs[group], from + group * kOfGroup * 2);
    } else {
#pragma unroll
      for (int group = 0; group < kGroups; group++)
#pragma unroll
        for (int k = 0; k < kPairs; k++) pairs[group][k] = 0;
      if (line >= p_.tile.rows) return;
      const T* from = static_cast<const T*>(p_.tile.src) + line * p_.tile.src_line + at * kOfChunk + among() * kOfWord;
#pragma unroll
      for (int group = 0; group < kGroups; group++) {
        if constexpr (kIsAligned) {
          take_pairs(pairs[group], from + group * kOfGroup);
        } else {
#pragma unroll
          for (int k = 0; k < kOfWord; k++) put_element(pairs[group], k, from[group * kOfGroup + k]);
        }
      }
    }
  }

  static __device__ __forceinline__ void take_pairs(unsigned* pairs, const void* from) {
    using Piece = std::conditional_t<kPairs == 4, uint4, uint2>;
    const Piece piece = *static_cast<const Piece*>(from);
#pragma unroll
    for (int k = 0; k < kPairs; k++) pairs[k] = reinterpret_cast<const unsigned*>(&piece)[k];
  }

  // ---- floats: parts of what a chunk is multiplied by, which a warp has for itself ----

  __device__ __forceinline__ char* stage_of_warp() const { return shared_ + warp() * kStageBytes; }

  __device__ __forceinline__ void clear_stage() const {
    if constexpr (kParts > 1)
      for (int i = lane(); i < kStageBytes / 4; i += 32) reinterpret_cast<unsigned*>(stage_of_warp())[i] = 0;
  }

  __device__ __forceinline__ void stage(int at) const {
    if constexpr (kParts > 1) {
      constexpr float kLargest = 3.3895314e38f;  // of 8 bits: what is beyond, and infinite, the second part takes
      __syncwarp();
      auto* parts = reinterpret_cast<gopt_bfloat16*>(stage_of_warp());
      for (int line = 0; line < p_.tile.rows; line++)
#pragma unroll
        for (int k = lane(); k < kOfChunk; k += 32) {
          const float x = static_cast<const float*>(p_.tile.src)[line * p_.tile.src_line + at * kOfChunk + k];
          const gopt_bfloat16 first(fminf(fmaxf(x, -kLargest), kLargest)), second(x - (float)first);
          const float rest = x - (float)first - (float)second;
          gopt_bfloat16* to = parts + line * kParts * kPitch + k;
          to[0] = first, to[kPitch] = second;
          to[2 * kPitch] = gopt_bfloat16(fabsf((float)second) <= kLargest ? rest : 0.0f);
        }
      __syncwarp();
    }
  }

  // ---- the end ----

  __device__ __forceinline__ void finish() {
    float* sums = reinterpret_cast<float*>(shared_);  // [warp, part of a line, column]
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int part = tile * kOfTile + among() * 2 + i % 2;
        sums[(warp() * kTiles * kOfTile + part) * kColumns + column() + i / 2 * 8] = sums_[tile][i];
      }
    __syncthreads();
    for (int result = static_cast<int>(threadIdx.x); result < kLines * kColumns; result += kThreads) {
      const int line = result / kColumns, c = static_cast<int>(blockIdx.x) * kColumns + result % kColumns;
      if (line >= p_.tile.rows || c >= p_.tile.columns) continue;
      float sum = 0.0f;
#pragma unroll
      for (int part = kParts - 1; part >= 0; part--)  // the smallest first
#pragma unroll
        for (int w = 0; w < kWarps; w++)
          sum += sums[(w * kTiles * kOfTile + line * kParts + part) * kColumns + result % kColumns];
      finish_sum(p_.tile, sum * p_.tile.scale, line, c);
    }
  }

  const QuantizedProblem& p_;
  char* shared_;
  int chunks_;
  const uint4* words_[2];
  const Scale* scales_[2];
  const unsigned char* zeros_[2];
  float sums_[kTiles][4] = {};
};

template <class T, class Scale, int kBits, bool kHasZeros, bool kIsAligned, int kTiles, int kWarps>
__global__ void __launch_bounds__(kWarps * 32) quantized_kernel(const __grid_constant__ QuantizedProblem problem) {
  extern __shared__ __align__(128) char shared[];
  gopt_let_next_begin();
  gopt_touch(problem);
  QuantizedProduct<T, Scale, kBits, kHasZeros, kIsAligned, kTiles, kWarps>(problem, shared).run();
}

template <class T, class Scale, int kBits, bool kHasZeros, bool kIsAligned, int kTiles, int kWarps>
TileKernel make_quantized() {
  using Product = QuantizedProduct<T, Scale, kBits, kHasZeros, kIsAligned, kTiles, kWarps>;
  return {reinterpret_cast<const void*>(quantized_kernel<T, Scale, kBits, kHasZeros, kIsAligned, kTiles, kWarps>),
          Product::kLines, Product::kColumns, Product::kThreads, Product::kSharedBytes};
}

}  // namespace tiles
}  // namespace gopt_runtime
