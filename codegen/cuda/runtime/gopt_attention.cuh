// Attention on the tensor cores: scores never leave the registers (Dao et al., FlashAttention-2, 2023, section 3). A
// block makes 16 lines of the result for each of its row warps; keys and values pass through stages of shared memory,
// or all lie there where there are few. Warps that share the keys of a line keep maxima, sums and results of their own,
// which are joined in the order of the warps at the end, so that results never change. Of a few lines blocks of a
// cluster share the keys, too (Dao et al., Flash-Decoding, 2023), and join what each of them has in their order.
#pragma once

#include "gopt_attention.h"
#include "gopt_cluster.cuh"
#include "gopt_fragments.cuh"
#include "gopt_launch.h"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

// kTreats: there is a bias, or a choice of scores.
template <class Operand, int kDepth, bool kChunked, int kRows, int kKeyWarps, bool kTreats>
class AttentionTile {
 public:
  using T = typename Operand::Stored;
  static constexpr int kSize = sizeof(T), kOfChunk = kChunk / kSize, kChunksOfLine = kDepth / kOfChunk;
  // Lines are padded by a chunk, so that eight of them lie in different banks.
  static constexpr int kPitch = kDepth * kSize + kChunk;
  static constexpr int kRowWarps = kRows / 16, kThreads = kRowWarps * kKeyWarps * 32;
  // Of a warp in a stage.
  static constexpr int kMostKeys = kKeyWarps == 1 ? 64 : kKeyWarps < 8 ? 32 : 16;
  static constexpr int kKeys = kPitch > 300 && kMostKeys > 16 ? kMostKeys / 2 : kMostKeys;
  static constexpr int kStageKeys = kKeys * kKeyWarps;
  static constexpr int kQueryBytes = kRows * kPitch, kStageBytes = 2 * kStageKeys * kPitch, kLeastStages = 2;
  // The parts of the result, with their maxima and sums, lie where stages were.
  static constexpr int kSumPitch = kDepth + 4;
  static constexpr int kPartBytes = kRows * (kSumPitch + 2) * 4;
  static constexpr int kLoopBytes = kQueryBytes + kLeastStages * kStageBytes,
                       kJoinBytes = kKeyWarps > 1 ? kKeyWarps * kPartBytes : 0;
  static constexpr int kSharedBytes = kLoopBytes > kJoinBytes ? kLoopBytes : kJoinBytes;
  // At once on a multiprocessor: one computes while others wait. 0: as many as come of the registers that it needs.
  static constexpr int kBlocks = kSize == 2 && kDepth <= 64 && kThreads <= 512 ? 512 / kThreads : 0;
  static_assert(kDepth % 16 == 0 && kRows % 16 == 0 && kKeys % 16 == 0, "lines and keys of whole fragments");

  __device__ __forceinline__ explicit AttentionTile(const AttentionProblem& p) : p_(p) {
    extern __shared__ __align__(128) char shared[];
    shared_ = shared;
    base_ = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    first_row_ = static_cast<int>(blockIdx.x % p.row_tiles) * p.tile_rows;
    int64_t rest = blockIdx.x / p.row_tiles;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
      const int64_t i = rest % p.batch[axis];
      rest /= p.batch[axis];
      query_ += i * p.query.batch[axis];
      key_ += i * p.key.batch[axis];
      value_ += i * p.value.batch[axis];
      mask_ += i * p.mask.batch[axis];
      if constexpr (kTreats) bias_ += i * p.bias.batch[axis], choice_ += i * p.choice.batch[axis];
      result_ += i * p.result.batch[axis];
    }
    const int warp = static_cast<int>(threadIdx.x) / 32, row_warps = p.tile_rows / 16;
    row_warp_ = warp % row_warps;
    key_warp_ = warp / row_warps;
    lane_ = static_cast<int>(threadIdx.x) % 32;
    part_ = kKeyWarps > 1 ? static_cast<int>(blockIdx.y) : 0;
    parts_ = kKeyWarps > 1 ? static_cast<int>(gridDim.y) : 1;
    // Scores are compared before they are scaled, where that leaves their order.
    is_plain_ = !kTreats && !p.mask_data && p.scale > 0;
    factor_ = (is_plain_ ? p.scale : 1.0f) * (kIsFast ? kLog2E : 1.0f);
  }

  __device__ __forceinline__ void run() {
    gopt_wait();
    const T* query = static_cast<const T*>(p_.query_data) + query_;
    load_lines(base_, query, p_.query.line, first_row_, p_.tile_rows, p_.rows, p_.depth);
    const int all_steps = (p_.keys + kStageKeys - 1) / kStageKeys, before = all_steps * part_ / parts_,
              steps = all_steps * (part_ + 1) / parts_ - before, first_key = before * kStageKeys;
    int asked = 0;
    for (; asked < steps && asked < p_.stages; asked++) {
      load_stage(asked, first_key + asked * kStageKeys);
      end_stage();
    }
    clear();
    for (int step = 0, stage = 0; step < steps; step++) {
      wait_for_stages_but(asked - 1 - step);
      __syncthreads();
      if (step == 0) load_query();
      attend(stage_at(stage), first_key + step * kStageKeys + key_warp_ * kKeys);
      if (asked < steps) {
        __syncthreads();
        load_stage(stage, first_key + asked++ * kStageKeys);
        end_stage();
      }
      if (++stage == p_.stages) stage = 0;
    }
    if constexpr (kKeyWarps > 1) {
      __syncthreads();
      store_part();
      __syncthreads();
#if __CUDA_ARCH__ >= 900
      if (parts_ > 1) {
        join_warps();
        wait_for_cluster();
      }
#endif
    }
    switch (p_.result_element) {
      case Element::Float32: finish<float>(); break;
      case Element::Float16: finish<gopt_half>(); break;
      case Element::BFloat16: finish<gopt_bfloat16>(); break;
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (kKeyWarps > 1)
      if (parts_ > 1) wait_for_cluster();  // nobody leaves while its memory is read
#endif
  }

 private:
  static constexpr int kResultTiles = kDepth / 8;
  static constexpr bool kIsHalf = kSize == 2, kIsFast = !std::is_same_v<Operand, Fp32>;
  static constexpr float kLog2E = 1.4426950408889634f;
  // The query's fragments stay in registers where they are few.
  static constexpr int kStepBytes = 32, kSteps = kDepth * kSize / kStepBytes;
  static constexpr bool kKeepsQuery = kSteps <= 4;

  __device__ __forceinline__ unsigned stage_at(int stage) const { return base_ + kQueryBytes + stage * kStageBytes; }

  __device__ __forceinline__ void load_stage(int stage, int first_key) {
    const T *keys = static_cast<const T*>(p_.key_data) + key_, *values = static_cast<const T*>(p_.value_data) + value_;
    load_lines(stage_at(stage), keys, p_.key.line, first_key, kStageKeys, p_.keys, p_.depth);
    load_lines(stage_at(stage) + kStageKeys * kPitch, values, p_.value.line, first_key, kStageKeys, p_.keys,
               p_.value_depth);
  }

  // Lines from `first` on into shared memory; those past the end, and elements past a line's, are zero. A thread has
  // the same chunk of each of its lines.
  __device__ __forceinline__ void load_lines(unsigned to, const T* from, int64_t line_step, int first, int count,
                                             int end, int depth) const {
    const int lines_at_once = static_cast<int>(blockDim.x) / kChunksOfLine,
              first_line = static_cast<int>(threadIdx.x) / kChunksOfLine,
              element = static_cast<int>(threadIdx.x) % kChunksOfLine * kOfChunk;
    if (first_line >= lines_at_once) return;
    const T* source = from + (first + first_line) * line_step + element;
    unsigned at = to + first_line * kPitch + element * kSize;
    for (int line = first_line; line < count; line += lines_at_once) {
      const bool is_line = first + line < end;
      if constexpr (kChunked) {
        const bool is_there = is_line && element < depth;
        copy_chunk(at, is_there ? source : from, is_there);
      } else {
        unsigned words[4] = {};
#pragma unroll
        for (int e = 0; e < kOfChunk; e++)
          if (is_line && element + e < depth) put_element(words, e, source[e]);
        store_chunk(at, words);
      }
      source += lines_at_once * line_step, at += lines_at_once * kPitch;
    }
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int n = 0; n < kResultTiles; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) result_sums_[n][i] = 0;
#pragma unroll
    for (int half = 0; half < 2; half++) largest_[half] = -INFINITY, sum_[half] = 0;
  }

  static __device__ __forceinline__ void wait_for_stages_but(int pending) {
    switch (pending) {
      case 0: return wait_for_stages<0>();
      case 1: return wait_for_stages<1>();
      case 2: return wait_for_stages<2>();
      default: return wait_for_stages<3>();
    }
  }

  __device__ __forceinline__ void load_query_step(unsigned* a, int step) const {
    load_matrices(a, base_ + (row_warp_ * 16 + lane_ % 16) * kPitch + step * kStepBytes + lane_ / 16 * kChunk);
  }
  __device__ __forceinline__ void load_query() {
    if constexpr (kKeepsQuery)
#pragma unroll
      for (int step = 0; step < kSteps; step++) load_query_step(query_of_step_[step], step);
  }

  // This warp's keys of a stage: all at once, or what there is of them a fragment at a time.
  __device__ __forceinline__ void attend(unsigned stage, int first_key) {
    const unsigned keys = stage + key_warp_ * kKeys * kPitch, values = keys + kStageKeys * kPitch;
    if (first_key + kKeys <= p_.keys) return attend_to<kKeys, true>(keys, values, first_key);
#pragma unroll 1
    for (int k = 0; first_key + k < p_.keys; k += 16)
      attend_to<16, false>(keys + k * kPitch, values + k * kPitch, first_key + k);
  }
  template <int kCount, bool kIsWhole>
  __device__ __forceinline__ void attend_to(unsigned keys, unsigned values, int first_key) {
    float scores[kCount / 8][4];
    multiply_keys<kCount>(keys, scores);
    if constexpr (kTreats)
      treat<kCount>(scores, first_key);
    else if (!is_plain_)
      add_mask<kCount>(scores, first_key);
    if constexpr (!kIsWhole) leave_out<kCount>(scores, first_key);
    weigh<kCount>(scores);
    multiply_values<kCount>(values, scores);
  }

  template <int kCount>
  __device__ __forceinline__ void multiply_keys(unsigned keys, float (*scores)[4]) const {
#pragma unroll
    for (int n = 0; n < kCount / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) scores[n][i] = 0;
#pragma unroll
    for (int step = 0; step < kSteps; step++) {
      unsigned a[4];
      if constexpr (kKeepsQuery)
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = query_of_step_[step][i];
      else
        load_query_step(a, step);
#pragma unroll
      for (int n = 0; n < kCount / 8; n += 2) {
        unsigned r[4];
        load_matrices(
            r, keys + (n * 8 + lane_ % 8 + lane_ / 16 * 8) * kPitch + step * kStepBytes + lane_ / 8 % 2 * kChunk);
        Operand::mma(scores[n], a, r);
        Operand::mma(scores[n + 1], a, r + 2);
      }
    }
  }

  __device__ __forceinline__ int row_of(int half) const { return first_row_ + row_warp_ * 16 + lane_ / 4 + half * 8; }

  static __device__ __forceinline__ float number_at(const void* data, Element element, int64_t at) {
    switch (element) {
      case Element::Float32: return static_cast<const float*>(data)[at];
      case Element::Float16: return (float)static_cast<const gopt_half*>(data)[at];
      case Element::BFloat16: return (float)static_cast<const gopt_bfloat16*>(data)[at];
    }
    return 0;
  }
  __device__ __forceinline__ float mask_at(int row, int key) const {
    return number_at(p_.mask_data, p_.mask_element,
                     mask_ + row * p_.mask.line + static_cast<int64_t>(key) * p_.mask_step);
  }

  // What is chosen, and what is added, in the order that the model has them.
  __device__ __forceinline__ float treated(float score, int row, int key) const {
    bool is_replaced = false;
    if (p_.choice_data) {
      const int64_t at = choice_ + row * p_.choice.line + static_cast<int64_t>(key) * p_.choice_step;
      is_replaced = (static_cast<const unsigned char*>(p_.choice_data)[at] != 0) != p_.kept;
    }
    if (is_replaced && p_.chooses_first) score = p_.otherwise;
    if (p_.mask_data) score += mask_at(row, key);
    if (p_.bias_data)
      score += number_at(p_.bias_data, p_.bias_element,
                         bias_ + row * p_.bias.line + static_cast<int64_t>(key) * p_.bias_step);
    return is_replaced && !p_.chooses_first ? p_.otherwise : score;
  }
  template <int kCount>
  __device__ __forceinline__ void treat(float (*scores)[4], int first_key) const {
#pragma unroll
    for (int n = 0; n < kCount / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int key = first_key + n * 8 + lane_ % 4 * 2 + i % 2, row = row_of(i / 2);
        float& score = scores[n][i];
        score *= p_.scale;
        if (key < p_.keys && row < p_.rows) score = treated(score, row, key);
      }
  }

  template <int kCount>
  __device__ __forceinline__ void add_mask(float (*scores)[4], int first_key) const {
#pragma unroll
    for (int n = 0; n < kCount / 8; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int key = first_key + n * 8 + lane_ % 4 * 2 + i, row = row_of(0), other = row_of(1);
        float mask = 0, mask_of_other = 0;
        if (p_.mask_data && key < p_.keys) {
          if (row < p_.rows) mask = mask_of_other = mask_at(row, key);
          if (other < p_.rows && p_.mask.line != 0) mask_of_other = mask_at(other, key);
        }
        scores[n][i] = scores[n][i] * p_.scale + mask;
        scores[n][i + 2] = scores[n][i + 2] * p_.scale + mask_of_other;
      }
  }

  // What is no key has no weight.
  template <int kCount>
  __device__ __forceinline__ void leave_out(float (*scores)[4], int first_key) const {
#pragma unroll
    for (int n = 0; n < kCount / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (first_key + n * 8 + lane_ % 4 * 2 + i % 2 >= p_.keys) scores[n][i] = -INFINITY;
  }

  // Scores become exponentials over the largest so far; what was summed over a smaller one is scaled down to it.
  template <int kCount>
  __device__ __forceinline__ void weigh(float (*scores)[4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float largest = largest_[half];
#pragma unroll
      for (int n = 0; n < kCount / 8; n++)
        largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      const float from = reference(largest), factor = weight(largest_[half], from);
      largest_[half] = largest;
      float sum = sum_[half] * factor;
#pragma unroll
      for (int n = 0; n < kCount / 8; n++)
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; i++) {
          scores[n][i] = weight(scores[n][i], from);
          sum += scores[n][i];
        }
      sum_[half] = sum;
#pragma unroll
      for (int n = 0; n < kResultTiles; n++)
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; i++) result_sums_[n][i] *= factor;
    }
  }
  // Where all so far is masked by minus infinity, nothing is added.
  static __device__ __forceinline__ float reference(float largest) { return largest == -INFINITY ? 0.0f : largest; }
  __device__ __forceinline__ float weight(float score, float from) const {
    const float exponent = (score - from) * factor_;
    if constexpr (kIsFast) {
      float power;
      asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(power) : "f"(exponent));
      return power;
    } else {
      return expf(exponent);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void multiply_values(unsigned values, const float (*weights)[4]) {
    if constexpr (kIsHalf) {
#pragma unroll
      for (int step = 0; step < kCount / 16; step++) {
        const float *w = weights[2 * step], *next = weights[2 * step + 1];
        const unsigned a[4] = {Operand::pair(w[0], w[1]), Operand::pair(w[2], w[3]), Operand::pair(next[0], next[1]),
                               Operand::pair(next[2], next[3])};
#pragma unroll
        for (int n = 0; n < kResultTiles; n += 2) {
          unsigned r[4];
          load_matrices_transposed(r, values + (step * 16 + lane_ % 16) * kPitch + (n * 8 + lane_ / 16 * 8) * kSize);
          Operand::mma(result_sums_[n], a, r);
          Operand::mma(result_sums_[n + 1], a, r + 2);
        }
      }
    } else {
      // A fragment's keys in the order in which the scores lie in it: 0, 2, 4, 6, 1, 3, 5, 7.
#pragma unroll
      for (int step = 0; step < kCount / 8; step++) {
        const float* w = weights[step];
        const unsigned a[4] = {as_bits(w[0]), as_bits(w[2]), as_bits(w[1]), as_bits(w[3])};
        const unsigned line = values + (step * 8 + lane_ % 4 * 2) * kPitch + lane_ / 4 * kSize;
#pragma unroll
        for (int n = 0; n < kResultTiles; n++) {
          const unsigned b[2] = {load_word(line + n * 8 * kSize), load_word(line + kPitch + n * 8 * kSize)};
          Operand::mma(result_sums_[n], a, b);
        }
      }
    }
  }

  // ---- the result ----

  __device__ __forceinline__ float* part(int key_warp) const {
    return reinterpret_cast<float*>(shared_) + key_warp * (kPartBytes / 4);
  }
  // After a part's lines: the largest score and the sum of each.
  static constexpr int kLargest = kRows * kSumPitch, kSum = kLargest + kRows;

  __device__ __forceinline__ float whole_sum(int half) const {
    float sum = sum_[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
  }
  // A sum of weighted values, of which one weight in all is `share`.
  __device__ __forceinline__ float mean_of(float value, float share) const {
    return p_.nan_is_zero && !(share < INFINITY) ? 0.0f : value * share;
  }

  __device__ __forceinline__ void store_part() {
    float* to = part(key_warp_);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float sum = whole_sum(half);
      const int row = row_of(half) - first_row_;
      if (lane_ % 4 == 0) to[kLargest + row] = largest_[half], to[kSum + row] = sum;
#pragma unroll
      for (int n = 0; n < kResultTiles; n++)
        *reinterpret_cast<float2*>(to + row * kSumPitch + n * 8 + lane_ % 4 * 2) =
            make_float2(result_sums_[n][half * 2], result_sums_[n][half * 2 + 1]);
    }
  }

  template <class Out>
  __device__ __forceinline__ void finish() const {
    Out* to = static_cast<Out*>(p_.result_data) + result_;
    if constexpr (kKeyWarps == 1)
      store_own(to);
    else
      join(to);
  }

  // Lines of a warp that has all of their keys.
  template <class Out>
  __device__ __forceinline__ void store_own(Out* to) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float share = 1.0f / whole_sum(half);
      const int row = row_of(half);
      if (row >= p_.rows) continue;
#pragma unroll
      for (int n = 0; n < kResultTiles; n++) {
        const int column = n * 8 + lane_ % 4 * 2;
        const float values[2] = {mean_of(result_sums_[n][half * 2], share),
                                 mean_of(result_sums_[n][half * 2 + 1], share)};
        store_pair(to + row * p_.result.line + column, values, p_.value_depth - column, p_.is_aligned);
      }
    }
  }

  // Of four elements of a line, what all parts have: their sums over exponentials of what exceeds the largest score.
  struct Joined {
    float largest, sum, values[4];
  };
  // `part_at(k)`: sums of part k from the tile's first line on, `scores_at(k)`: of its lines the largest score, then,
  // `sums` behind it, the sum.
  template <class PartAt, class ScoresAt>
  __device__ __forceinline__ Joined joined(int parts, int line, int column, int sums, const PartAt& part_at,
                                           const ScoresAt& scores_at) const {
    Joined all{-INFINITY, 0, {}};
#pragma unroll 8
    for (int k = 0; k < parts; k++) all.largest = fmaxf(all.largest, scores_at(k)[line]);
    const float from = reference(all.largest);
#pragma unroll 8
    for (int k = 0; k < parts; k++) {
      const float factor = weight(scores_at(k)[line], from);
      const float4 own = *reinterpret_cast<const float4*>(part_at(k) + line * kSumPitch + column);
      all.sum += scores_at(k)[sums + line] * factor;
      all.values[0] += own.x * factor, all.values[1] += own.y * factor;
      all.values[2] += own.z * factor, all.values[3] += own.w * factor;
    }
    return all;
  }
  __device__ __forceinline__ Joined joined_warps(int line, int column) const {
    return joined(
        kKeyWarps, line, column, kSum - kLargest, [&](int w) { return part(w); },
        [&](int w) { return part(w) + kLargest; });
  }

#if __CUDA_ARCH__ >= 900
  struct LinesOfBlock {
    float largest[kRows], sum[kRows];
  };
  // What a cluster's other blocks read: this one's sums, in the place of its first warp's.
  __device__ __forceinline__ void join_warps() const {
    LinesOfBlock& lines = shared_of_block<LinesOfBlock>();
    for (int i = static_cast<int>(threadIdx.x); i < p_.tile_rows * kDepth / 4; i += static_cast<int>(blockDim.x)) {
      const int line = i / (kDepth / 4), column = i % (kDepth / 4) * 4;
      const Joined own = joined_warps(line, column);
      *reinterpret_cast<float4*>(part(0) + line * kSumPitch + column) =
          make_float4(own.values[0], own.values[1], own.values[2], own.values[3]);
      if (column == 0) lines.largest[line] = own.largest, lines.sum[line] = own.sum;
    }
  }
  __device__ __forceinline__ Joined joined_blocks(int line, int column) const {
    const LinesOfBlock& lines = shared_of_block<LinesOfBlock>();
    return joined(
        parts_, line, column, kRows, [&](int block) { return in_block(part(0), block); },
        [&](int block) { return in_block(lines.largest, block); });
  }
#endif

  // Blocks of a cluster make every so many four elements each.
  template <class Out>
  __device__ __forceinline__ void join(Out* to) const {
    const int threads = static_cast<int>(blockDim.x);
    for (int i = part_ * threads + static_cast<int>(threadIdx.x); i < p_.tile_rows * kDepth / 4;
         i += parts_ * threads) {
      const int in_tile = i / (kDepth / 4), column = i % (kDepth / 4) * 4, row = first_row_ + in_tile;
      if (row >= p_.rows || column >= p_.value_depth) continue;
#if __CUDA_ARCH__ >= 900
      Joined all = parts_ > 1 ? joined_blocks(in_tile, column) : joined_warps(in_tile, column);
#else
      Joined all = joined_warps(in_tile, column);
#endif
      const float share = 1.0f / all.sum;
#pragma unroll
      for (int k = 0; k < 4; k++) all.values[k] = mean_of(all.values[k], share);
      const int count = p_.value_depth - column < 4 ? p_.value_depth - column : 4;
      store_elements(to + row * p_.result.line + column, all.values, count, p_.is_aligned);
    }
  }

  const AttentionProblem& p_;
  char* shared_;
  unsigned base_;
  // Elements before this block's matrices.
  int64_t query_ = 0, key_ = 0, value_ = 0, mask_ = 0, bias_ = 0, choice_ = 0, result_ = 0;
  int first_row_, row_warp_, key_warp_, lane_;
  int part_, parts_;  // of the keys, of which a cluster's blocks have one each
  bool is_plain_;
  float factor_;
  unsigned query_of_step_[kKeepsQuery ? kSteps : 1][4];
  float largest_[2], sum_[2];  // of lines lane / 4 and lane / 4 + 8; the sum is of this lane's keys
  float result_sums_[kResultTiles][4];
};

template <class Operand, int kDepth, bool kChunked, int kRows, int kKeyWarps, bool kTreats>
__global__ void __launch_bounds__(AttentionTile<Operand, kDepth, kChunked, kRows, kKeyWarps, kTreats>::kThreads,
                                  AttentionTile<Operand, kDepth, kChunked, kRows, kKeyWarps, kTreats>::kBlocks)
    attention_kernel(const __grid_constant__ AttentionProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  AttentionTile<Operand, kDepth, kChunked, kRows, kKeyWarps, kTreats>(problem).run();
}

template <class Operand, int kDepth, bool kChunked, int kRows, int kKeyWarps, bool kTreats>
TileKernel make_attention() {
  using Tile = AttentionTile<Operand, kDepth, kChunked, kRows, kKeyWarps, kTreats>;
  return {reinterpret_cast<const void*>(attention_kernel<Operand, kDepth, kChunked, kRows, kKeyWarps, kTreats>),
          kRows,
          kDepth,
          Tile::kThreads,
          Tile::kSharedBytes,
          0,
          Tile::kStageBytes,
          Tile::kStageKeys};
}

}  // namespace tiles
}  // namespace gopt_runtime
