// Implicit matrix products by warpgroups (wgmma, sm_90a). One thread asks the copy engine for slices of 128 bytes of
// each row and column, which come into a ring of stages in shared memory; warpgroups multiply them from there, 64 rows
// each, and say when a stage is free. A block makes one tile after another, and its slices come while the results of
// the one before are stored; or a cluster of blocks divides the depth of a tile. A convolution's windows are the
// engine's own (im2col), so that nothing of the source is unfolded, and what lies outside is zero. Groups are
// joined to runs that fill slices: a tile's columns are of one run, and read its channels alone. For other devices the
// same function is compiled to a tile of gopt_tiles.cuh, whose batch are the runs.
#pragma once

#include "gopt_hopper.cuh"
#include "gopt_register_result.cuh"
#include "gopt_tiles.cuh"
#include "gopt_warpgroup_problem.h"

namespace gopt_runtime {
namespace tiles {

// Rows and columns of a tile, stages of the ring, and the tile in its place on other devices.
template <int kRows_, int kColumns_, int kStages_, class Elsewhere_>
struct WarpgroupShape {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kStages = kStages_, kWarpgroups = kRows_ / 64,
                       kThreads = kWarpgroups * 128, kStageBytes = (kRows_ + kColumns_) * kSlice;
  static constexpr int kAllThreads = kThreads + 32;                     // with a warp that fills the ring
  static constexpr int kBlocks = kRows * kColumns <= 128 * 64 ? 2 : 1;  // at once on a multiprocessor
  // The ring leaves no room for sums: they are stored from registers, as RegisterResult does, or not at all.
  static constexpr bool kHasRoom = kRows * kColumns <= 128 * 128;
  using Elsewhere = Elsewhere_;
};
// Those of the planner (planner/warpgroups.cc).
using Warpgroups64x32 = WarpgroupShape<64, 32, 6, Tile64x32>;
using Warpgroups64x64 = WarpgroupShape<64, 64, 5, Tile64x64>;
using Warpgroups64x128 = WarpgroupShape<64, 128, 3, Tile64x128>;
using Warpgroups128x64 = WarpgroupShape<128, 64, 4, Tile128x64>;
using Warpgroups128x128 = WarpgroupShape<128, 128, 4, Tile128x128>;
using Warpgroups128x256 = WarpgroupShape<128, 256, 4, Tile128x256>;

// fp32 is by three products of TF32, and floats are multiplied by columns alone: the right operand's slice is split, or
// written by columns, before it is multiplied. Shared memory holds the ring, a plane or two of what is written so, room
// for sums, where they are not stored from registers, and barriers; of stages, as many as leave room for two blocks of
// halves of up to 128x64, of floats of up to 64x64.
template <class Operand, Right kRight, class S>
struct WarpgroupMemory {
  static constexpr bool kSplits = std::is_same_v<Operand, Fp32>, kHasFloats = sizeof(typename Operand::Stored) == 4,
                        kTransposes = kRight == Right::Lines && kHasFloats, kPrepares = kSplits || kTransposes;
  static constexpr int kPlaneBytes = S::kColumns * kSlice,
                       kPreparedBytes = (int{kSplits} + int{kTransposes}) * kPlaneBytes;
  static constexpr int stages() {
    // Of halves, as many as leave room for another block, of its own or of the next kernel's.
    if (!kPrepares) return !kHasFloats && S::kRows > 64 && S::kBlocks > 1 ? 3 : S::kStages;
    if (S::kRows > 64) return 3;
    return S::kColumns > 64 ? 4 : S::kStages - int{kTransposes};
  }
  static constexpr int kStages = stages();
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  static constexpr bool kIsAlone = kHasFloats && (S::kRows > 64 || (kSplits && S::kColumns > 64));
#else
  static constexpr bool kIsAlone = S::kRows > 64;  // the tile in its place
#endif
  static constexpr int kBlocks = kIsAlone ? 1 : S::kBlocks;
  static constexpr int kSumBytes = S::kHasRoom ? TileResult<S>::kSumBytes : 0;
  static constexpr int bytes_of(int stages) {
    return stages * (S::kStageBytes + 2 * static_cast<int>(sizeof(uint64_t))) + kPreparedBytes +
           static_cast<int>(sizeof(uint64_t));
  }
  static constexpr int kSharedBytes = bytes_of(kStages) + kSumBytes;
  // Without room for sums: stages in its place.
  static constexpr int stages_alone() {
    int stages = kStages;
    while (bytes_of(stages + 1) <= kSharedBytes) stages++;
    return stages;
  }
  static constexpr int kStagesAlone = stages_alone(), kSharedBytesAlone = bytes_of(kStagesAlone);
  static_assert(kSharedBytesAlone <= kSharedBytes);
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class Operand, Right kRight, class S, Before kBefore>
class WarpgroupTile : WarpgroupMemory<Operand, kRight, S> {
  using Memory = WarpgroupMemory<Operand, kRight, S>;
  using Memory::kPlaneBytes, Memory::kPreparedBytes, Memory::kPrepares, Memory::kSplits, Memory::kSumBytes,
      Memory::kTransposes;

 public:
  using Stored = typename Operand::Stored;
  static constexpr int kSize = sizeof(Stored), kDepth = kSlice / kSize;
  static constexpr bool kByLines = kRight == Right::Lines;
  static constexpr int kPanelBytes = kDepth * kSlice;  // by lines: of columns a slice, of all its depth
  static_assert(!kByLines || S::kColumns % (kSlice / kSize) == 0, "whole slices of lines are copied");
  static_assert(kBefore == Before::Nothing || (kSize == 2 && kRight == Right::Columns), "pairs, by columns");

  __device__ __forceinline__ explicit WarpgroupTile(const WarpgroupProblem& p) : p_(p) {
    extern __shared__ __align__(kEightLines) char ring[];
    ring_ = ring;
    const unsigned slices = p.slices_of_tap * p.problem.kernel_height * p.problem.kernel_width;
    first_ = static_cast<int>(slices * blockIdx.y / gridDim.y);
    count_ = static_cast<int>(slices * (blockIdx.y + 1) / gridDim.y) - first_;
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x == S::kThreads) {
      prepare_map(&p_.left);
      prepare_map(&p_.right);
    }
    ring_at_ = address_of(ring_);
    // Behind it is room for sums: slices of the next tile come while they are stored, and those of other blocks are
    // sent there.
    sums_at_ = p_.stages * S::kStageBytes + kPreparedBytes;
    const int barriers_at = sums_at_ + (p_.is_stored_from_registers ? 0 : kSumBytes);
    all_sums_ = reinterpret_cast<uint64_t*>(ring_ + barriers_at) + 2 * p_.stages;
    barriers_ = ring_at_ + barriers_at;
    // Else they are worked out anew for each slice, from the number of the block within its cluster.
    asm volatile("" : "+r"(barriers_), "+r"(ring_at_));
    if (threadIdx.x == 0) prepare_barriers();
    if (gridDim.y > 1)
      meet_cluster();  // as others' sums come from everywhere
    else
      __syncthreads();
    // The same for a warp, as the compiler knows after this: what the tensor cores read is then described by its scalar
    // unit. From registers of threads a description is on its way longer than a product of 64x64 takes.
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp < S::kWarpgroups * 4) {
      multiply_tiles(warp / 4);
    } else if (is_elected()) {
      fill();
    }
  }

 private:
  // Where a tile's rows and columns begin.
  struct Corner {
    int row, column;
  };
  __device__ __forceinline__ Corner corner_of(int tile) const {
    return {tile % p_.problem.row_tiles * S::kRows, tile / p_.problem.row_tiles * S::kColumns};
  }
  // A place in the ring, and whether the ring was filled an odd number of times before.
  struct Place {
    int stage = 0;
    unsigned parity = 0;
  };
  __device__ __forceinline__ void go_on(Place& place) const {
    if (++place.stage == p_.stages) place.stage = 0, place.parity ^= 1;
  }

  __device__ __forceinline__ unsigned full_at(int stage) const { return barriers_ + stage * sizeof(uint64_t); }
  __device__ __forceinline__ unsigned empty_at(int stage) const { return full_at(p_.stages + stage); }
  __device__ __forceinline__ unsigned left_at(int stage) const { return ring_at_ + stage * S::kStageBytes; }
  __device__ __forceinline__ unsigned right_at(int stage) const { return left_at(stage) + S::kRows * kSlice; }
  __device__ __forceinline__ float* room_for_sums() const { return reinterpret_cast<float*>(ring_ + sums_at_); }
  // The right operand's large and small parts of a slice.
  __device__ __forceinline__ unsigned large_at(int stage) const {
    return kTransposes ? left_at(p_.stages) : right_at(stage);
  }
  __device__ __forceinline__ unsigned small_at() const { return left_at(p_.stages) + (kTransposes ? kPlaneBytes : 0); }

  __device__ __forceinline__ void prepare_barriers() {
    if (ring_at_ % kEightLines != 0) asm volatile("trap;");  // chunks of lines would not be where they are read
    for (int stage = 0; stage < p_.stages; stage++) {
      prepare(full_at(stage), 1);
      prepare(empty_at(stage), S::kWarpgroups);
    }
    if (gridDim.y > 1) {
      prepare(address_of(all_sums_), 1);
      expect_bytes(address_of(all_sums_), S::kRows * S::kColumns * sizeof(float));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  // ---- one thread: asks for slices ----
  // What it does for one is to be no more than what it takes to come: 240 cycles of 64x64, 68 bytes a cycle. A thread
  // that the compiler takes for several, with divisions and loads between, took 380. Loops are not unrolled: within a
  // model a kernel finds its instructions in no near cache, and those of more turns come later than what they save.

  // A slice of the depth: so many channels of a tap, of which the left operand wants to know how far it is from the
  // first.
  struct Slice {
    int channel, tap;
    int y, x;
  };
  __device__ __forceinline__ Slice first_slice() const {
    const TileProblem& p = p_.problem;
    const int tap = first_ / p_.slices_of_tap, y = tap / p.kernel_width;
    return {(first_ - tap * p_.slices_of_tap) * kDepth, tap, y * p.dilations[0],
            (tap - y * p.kernel_width) * p.dilations[1]};
  }
  __device__ __forceinline__ void go_on(Slice& slice) const {
    const TileProblem& p = p_.problem;
    if ((slice.channel += kDepth) < p_.slices_of_tap * kDepth) return;
    slice.channel = 0, slice.tap++, slice.x += p.dilations[1];
    if (slice.x == p.kernel_width * p.dilations[1]) slice.x = 0, slice.y += p.dilations[0];
  }

  // The weights of the first slices do not wait for the kernel before, and those of further ones come into the L2 cache
  // meanwhile, for all tiles of these columns. All that can be known before it has ended is worked out before.
  __device__ __forceinline__ void fill() const {
    const bool is_constant = p_.problem.has_constant_weights;
    if (!is_constant) gopt_wait();
    const int ahead = min(count_, p_.stages);
    Corner corner = corner_of(static_cast<int>(blockIdx.x));
    Windows windows = windows_of(corner);
    Slice first = first_slice(), slice = first;
    Place place;
#pragma unroll 1
    for (int i = 0; i < ahead; i++, go_on(slice)) {
      expect_bytes(full_at(i), S::kStageBytes);
      ask_for_right(i, slice, corner.column);
    }
    if (is_constant && corner.row == 0) {
      const int end = min(count_, ahead + p_.slices_in_cache);
#pragma unroll 1
      for (int i = ahead; i < end; i++, go_on(slice)) bring_right(slice, corner.column);
    }
    // Else the compiler puts the divisions where their results are used, behind the wait.
    asm volatile("" : "+r"(windows.image), "+r"(windows.y), "+r"(windows.x), "+r"(windows.channel));
    asm volatile("" : "+r"(first.channel), "+r"(first.y), "+r"(first.x));
    if (is_constant) gopt_wait();
    slice = first;
#pragma unroll 1
    for (int i = 0; i < ahead; i++, go_on(slice), go_on(place)) ask_for_left(place.stage, slice, windows);
#pragma unroll 1
    for (int tile = static_cast<int>(blockIdx.x), i = ahead; tile < p_.tiles; i = 0) {
#pragma unroll 1
      for (; i < count_; i++, go_on(slice), go_on(place)) {
        wait_at(empty_at(place.stage), place.parity ^ 1);
        expect_bytes(full_at(place.stage), S::kStageBytes);
        ask_for_left(place.stage, slice, windows);
        ask_for_right(place.stage, slice, corner.column);
      }
      tile += static_cast<int>(gridDim.x);
      corner = corner_of(tile);
      windows = windows_of(corner);
      slice = first;
    }
  }

  // Where in the source the windows of a tile's rows begin, and the channels that its columns read.
  struct Windows {
    int image, y, x, channel;
  };
  __device__ __forceinline__ Windows windows_of(const Corner& corner) const {
    const TileProblem& p = p_.problem;
    const int line = corner.row / p.out_width, image = line / p.out_height;
    return {image, (line - image * p.out_height) * p.strides[0] - p.pads[0],
            (corner.row - line * p.out_width) * p.strides[1] - p.pads[1],
            kRight == Right::Groups ? corner.column / p_.columns_of_run * p_.channels_of_run : 0};
  }

  __device__ __forceinline__ void ask_for_left(int stage, const Slice& slice, const Windows& windows) const {
    copy_windows(left_at(stage), &p_.left, full_at(stage), windows.channel + slice.channel, windows.x, windows.y,
                 windows.image, static_cast<unsigned short>(slice.x), static_cast<unsigned short>(slice.y));
  }
  __device__ __forceinline__ void ask_for_right(int stage, const Slice& slice, int column) const {
    if constexpr (kByLines) {
      constexpr int kOfPanel = kSlice / kSize;
#pragma unroll
      for (int panel = 0; panel < S::kColumns / kOfPanel; panel++)
        copy_lines(right_at(stage) + panel * kPanelBytes, &p_.right, full_at(stage), column + panel * kOfPanel,
                   slice.tap, slice.channel);
    } else {
      copy_lines(right_at(stage), &p_.right, full_at(stage), slice.channel, slice.tap, column);
    }
  }

  // A slice into the L2 cache alone.
  __device__ __forceinline__ void bring_right(const Slice& slice, int column) const {
    constexpr int kOfPanel = kSlice / kSize;
#pragma unroll
    for (int panel = 0; panel < (kByLines ? S::kColumns / kOfPanel : 1); panel++)
      asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0,{%1,%2,%3}];" ::"l"(&p_.right),
                   "r"(kByLines ? column + panel * kOfPanel : slice.channel), "r"(slice.tap),
                   "r"(kByLines ? slice.channel : column)
                   : "memory");
  }

  // ---- warpgroups: multiply ----

  __device__ __forceinline__ void multiply_tiles(int warpgroup) {
    const TileProblem& p = p_.problem;
    if (!p.has_constant_weights) gopt_wait();
    bool has_waited = !p.has_constant_weights;
    float sums[S::kColumns / 8][4];
    Place place;
    for (int tile = static_cast<int>(blockIdx.x); tile < p_.tiles; tile += static_cast<int>(gridDim.x)) {
      const Corner corner = corner_of(tile);
      RegisterResult<S, Stored, !kSplits> simple(p, corner.row + static_cast<int>(threadIdx.x) / 32 * 16, p.rows,
                                                 corner.column);
      TileResult<S> result(p, corner.row, corner.column, 0, first_place());
      const bool is_simple = !S::kHasRoom || p_.is_stored_from_registers;
      if (is_simple)
        simple.fetch_bias();
      else
        result.fetch_bias();
      if (!has_waited) {
        // Before the kernel before has ended: they would be waited for at each slice.
        if constexpr (kBefore != Before::Nothing)
          FragmentPrologue<Operand, kBefore>::bring(p, first_ * kDepth, count_ * kDepth);
        gopt_wait();
      }
      has_waited = true;
      if (is_simple)
        simple.fetch_addends();
      else
        result.fetch_addend();
      multiply_all(sums, warpgroup, corner.row, place);
      if (is_simple)
        simple.finish(sums);
      else if constexpr (S::kHasRoom)
        finish_in_room(result, sums);
    }
  }
  __device__ __forceinline__ void finish_in_room(const TileResult<S>& result, const float (*sums)[4]) const {
    if (gridDim.y == 1)
      result.finish_by_warps(room_for_sums(), sums);
    else
      finish_together(result, sums);
  }
  __device__ __forceinline__ int first_place() const {
    const int thread = static_cast<int>(threadIdx.x), blocks = static_cast<int>(gridDim.y);
    if (blocks == 1) return TileResult<S>::first_of_warp(thread);
    return thread + static_cast<int>(blockIdx.y) * (S::kRows / blocks) * TileResult<S>::kFours;
  }

  __device__ __forceinline__ void multiply_all(float (*sums)[4], int warpgroup, int first_row,
                                               Place& place) const {
    clear_sums<S::kColumns / 8>(sums);
    if constexpr (kBefore != Before::Nothing)
      multiply_from_registers(sums, warpgroup, first_row, place);
    else if constexpr (kPrepares)
      multiply_prepared(sums, warpgroup, place);
    else
      multiply_as_they_lie(sums, warpgroup, place);
  }
  __device__ __forceinline__ void multiply_as_they_lie(float (*sums)[4], int warpgroup, Place& place) const {
    const uint64_t left = matrix_at(left_at(0) + warpgroup * 64 * kSlice, 16),
                   right = matrix_at(right_at(0), kByLines ? kPanelBytes : 16);
    int before = 0;
    for (int i = 0; i < count_; i++) {
      wait_at(full_at(place.stage), place.parity);
      const unsigned stage = place.stage * S::kStageBytes;
      begin_products();
#pragma unroll
      for (int step = 0; step < kSlice / 32; step++)
        multiply<kByLines>(Operand{}, Width<S::kColumns>{}, sums, moved(left, stage + step * 32),
                           moved(right, stage + step * (kByLines ? 16 * kSlice : 32)));
      end_products();
      if (i > 0) {
        wait_for_products<1>();
        release(before);
      }
      before = place.stage;
      go_on(place);
    }
    wait_for_sums(sums);
    release(before);
  }

  // The left operand goes through the registers of the threads that multiply. What is done to a slice there is done
  // while the one before is multiplied, whose fragments are others. A slice takes 0.27 to 0.41 us so where it takes 0.1
  // as it lies: warps of their own that change slices in shared memory were no faster, nor were two slices at a time.
  __device__ __forceinline__ void multiply_from_registers(float (*sums)[4], int warpgroup, int first_row,
                                                          Place& place) const {
    using Own = FragmentPrologue<Operand, kBefore>;
    using Numbers = typename Own::Numbers;
    constexpr int kSteps = kSlice / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4,
              row = warpgroup * 64 + warp * 16;
    const Own prologue(p_.problem, first_row + row + lane / 4);
    const unsigned line = left_at(0) + (row + lane % 16) * kSlice;
    const uint64_t right = matrix_at(right_at(0), 16);
    int before = 0;
    const auto fetch = [&](int i, Numbers* numbers) {
#pragma unroll
      for (int step = 0; step < kSteps; step++) prologue.fetch(numbers[step], (first_ + i) * kDepth + step * 16);
    };
    // Constants are near; gates come from where the kernel before has left them, and are asked for a slice ahead.
    constexpr bool kIsAhead = kBefore == Before::Gates;
    const auto multiply_slice = [&](int i, unsigned(*fragments)[4], Numbers* numbers, Numbers* next) {
      if constexpr (!kIsAhead)
        fetch(i, numbers);
      else if (i + 1 < count_)
        fetch(i + 1, next);
      wait_at(full_at(place.stage), place.parity);
      const unsigned stage = place.stage * S::kStageBytes;
#pragma unroll
      for (int step = 0; step < kSteps; step++) {
        // Chunks of a line are permuted by the number of the line.
        load_matrices(fragments[step], line + stage + ((step * 2 + lane / 16) ^ (lane % 8)) * kChunk);
        prologue.apply(fragments[step], numbers[step]);
      }
      begin_products();
#pragma unroll
      for (int step = 0; step < kSteps; step++)
        multiply_registers(Operand{}, Width<S::kColumns>{}, sums, fragments[step], moved(right, stage + step * 32));
      end_products();
      if (i > 0) {
        wait_for_products<1>();
        release(before);
      }
      before = place.stage;
      go_on(place);
    };
    unsigned fragments[2][kSteps][4];
    Numbers numbers[2][kSteps];
    if constexpr (kIsAhead) fetch(0, numbers[0]);
    for (int i = 0; i < count_; i += 2) {
      multiply_slice(i, fragments[0], numbers[0], numbers[1]);
      if (i + 1 < count_) multiply_slice(i + 1, fragments[1], numbers[1], numbers[0]);
    }
    wait_for_sums(sums);
    release(before);
  }
  template <int kColumns = S::kColumns>
  static __device__ __forceinline__ void wait_for_sums(float (*sums)[4]) {
    wait_for_products<0>();
    // The compiler does not know that the sums change until then.
#pragma unroll
    for (int n = 0; n < kColumns / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) asm volatile("" : "+f"(sums[n][i])::"memory");
  }

  // A slice at a time. The tensor cores cut what they add instead of rounding it: of fp32 their sums go over one slice,
  // and are added up by ordinary additions.
  __device__ __forceinline__ void multiply_prepared(float (*sums)[4], int warpgroup, Place& place) const {
    for (int i = 0; i < count_; i++) {
      wait_at(full_at(place.stage), place.parity);
      if constexpr (kTransposes)
        write_by_columns(place.stage);
      else
        split_columns(place.stage);
      show_to_products();
      wait_for_each_other<S::kThreads>();
      if constexpr (kSplits)
        multiply_split(sums, left_at(place.stage) + warpgroup * 64 * kSlice, large_at(place.stage));
      else
        multiply_slice(sums, left_at(place.stage) + warpgroup * 64 * kSlice, large_at(place.stage));
      wait_for_each_other<S::kThreads>();  // of whom all have read what is there
      release(place.stage);
      go_on(place);
    }
    if constexpr (kSplits)
#pragma unroll
      for (int n = 0; n < S::kColumns / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[n][i] = with_what_was_cut(sums[n][i]);
  }
  __device__ __forceinline__ void multiply_slice(float (*sums)[4], unsigned left, unsigned right) const {
    const uint64_t a = matrix_at(left, 16), b = matrix_at(right, 16);
    begin_products();
#pragma unroll
    for (int step = 0; step < kSlice / 32; step++)
      multiply<false>(Operand{}, Width<S::kColumns>{}, sums, moved(a, step * 32), moved(b, step * 32));
    end_products();
    wait_for_sums(sums);
  }
  __device__ __forceinline__ void multiply_split(float (*sums)[4], unsigned left, unsigned right) const {
    constexpr int kSteps = kSlice / 32;
    unsigned large[kSteps][4], small[kSteps][4];
    const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int step = 0; step < kSteps; step++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        // Chunks of a line are permuted by the number of the line.
        const int chunk = step * 2 + i / 2;
        const unsigned at = left + (row + i % 2 * 8) * kSlice + (chunk ^ (row % 8)) * kChunk + lane % 4 * kSize;
        split_float(load_word(at), large[step][i], small[step][i]);
      }
    const uint64_t large_parts = matrix_at(right, 16), small_parts = matrix_at(small_at(), 16);
    constexpr int kAtOnce = S::kColumns < 64 ? S::kColumns : 64;
#pragma unroll
    for (int column = 0; column < S::kColumns; column += kAtOnce) {
      float partial[kAtOnce / 8][4] = {};
      begin_products();
      // The small ones first: what is cut is a part of the sum so far.
#pragma unroll
      for (int step = 0; step < kSteps; step++) {
        const unsigned at = column * kSlice + step * 32;
        multiply_registers(Tf32{}, Width<kAtOnce>{}, partial, small[step], moved(large_parts, at));
        multiply_registers(Tf32{}, Width<kAtOnce>{}, partial, large[step], moved(small_parts, at));
      }
#pragma unroll
      for (int step = 0; step < kSteps; step++)
        multiply_registers(Tf32{}, Width<kAtOnce>{}, partial, large[step], moved(large_parts, column * kSlice + step * 32));
      end_products();
      wait_for_sums<kAtOnce>(partial);
#pragma unroll
      for (int n = 0; n < kAtOnce / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[column / 8 + n][i] += partial[n][i];
    }
  }

  // The large parts stay where the numbers were.
  __device__ __forceinline__ void split_columns(int stage) const {
#pragma unroll
    for (int i = 0; i < kPlaneBytes / kChunk / S::kThreads; i++) {
      const unsigned at = (static_cast<int>(threadIdx.x) + i * S::kThreads) * kChunk;
      unsigned words[4], large[4], small[4];
      load_chunk(words, right_at(stage) + at);
#pragma unroll
      for (int k = 0; k < 4; k++) split_float(words[k], large[k], small[k]);
      store_chunk(right_at(stage) + at, large);
      store_chunk(small_at() + at, small);
    }
  }
  // A lane has a line, of which it takes four columns at a time.
  __device__ __forceinline__ void write_by_columns(int stage) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    constexpr int kFours = S::kColumns / 4, kFoursOfPanel = kSlice / kChunk;
#pragma unroll
    for (int i = 0; i < kFours / (S::kThreads / 32); i++) {
      const int four = warp + i * (S::kThreads / 32);
      unsigned words[4];
      load_chunk(words, right_at(stage) + four / kFoursOfPanel * kPanelBytes + lane * kSlice +
                            (four % kFoursOfPanel ^ (lane % 8)) * kChunk);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const int column = four * 4 + k;
        const unsigned at = column * kSlice + (lane / 4 ^ (column % 8)) * kChunk + lane % 4 * kSize;
        if constexpr (kSplits) {
          unsigned large, small;
          split_float(words[k], large, small);
          store_word(large_at(stage) + at, large);
          store_word(small_at() + at, small);
        } else {
          store_word(large_at(stage) + at, words[k]);
        }
      }
    }
  }

  __device__ __forceinline__ void release(int stage) const {
    if (threadIdx.x % 128 == 0) arrive_at(empty_at(stage));
  }

  // ---- sums of several blocks ----

  // Each sends the others the sums of the rows that they finish, as soon as it has them.
  __device__ __forceinline__ void finish_together(const TileResult<S>& result, const float (*sums)[4]) const {
    const int blocks = static_cast<int>(gridDim.y), rows = S::kRows / blocks;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    float* own = room_for_sums() + static_cast<int>(blockIdx.y) * rows * TileResult<S>::kPitch + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = thread / 32 * 16 + lane / 4 + half * 8;
      const unsigned block = static_cast<unsigned>(row * blocks / S::kRows),  // both are powers of two
          to = address_in(block, own + (row & (rows - 1)) * TileResult<S>::kPitch),
                     barrier = address_in(block, all_sums_);
#pragma unroll
      for (int n = 0; n < S::kColumns / 8; n++)
        send(to + n * 8 * sizeof(float), sums[n][half * 2], sums[n][half * 2 + 1], barrier);
    }
    wait_for_cluster_at(address_of(all_sums_), 0);
    result.finish_rows(room_for_sums(), rows);
  }

  const WarpgroupProblem& p_;
  char* ring_;
  uint64_t* all_sums_;
  unsigned ring_at_, barriers_;  // addresses; of stages that are full, then of those that are empty
  int first_, count_, sums_at_;
};

#endif  // of sm_90a

// Blocks at once on a multiprocessor that the registers are divided by: what is done to two slices of a source, beside
// two warpgroups' sums, takes as many as there are.
template <class Operand, Right kRight, class S, Before kBefore>
constexpr int kBlocksOfWarpgroups =
    kBefore != Before::Nothing && S::kRows > 64 ? 1 : WarpgroupMemory<Operand, kRight, S>::kBlocks;

template <class Operand, Right kRight, class S, Before kBefore>
__global__ void __launch_bounds__(S::kAllThreads, (kBlocksOfWarpgroups<Operand, kRight, S, kBefore>))
    warpgroup_kernel(const __grid_constant__ WarpgroupProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  WarpgroupTile<Operand, kRight, S, kBefore>(problem).run();
#else
  using E = typename S::Elsewhere;
  if (threadIdx.x < E::kThreads)
    Tile<Operand, kRight, Copies::Chunks, E, kBefore>(problem.problem, blockIdx.x, blockIdx.z).run();
#endif
}

template <class Operand, Right kRight, class S, Before kBefore = Before::Nothing>
TileKernel make_warpgroups() {
  using Memory = WarpgroupMemory<Operand, kRight, S>;
  TileKernel kernel;
  kernel.function = reinterpret_cast<const void*>(warpgroup_kernel<Operand, kRight, S, kBefore>);
  kernel.rows = S::kRows, kernel.columns = S::kColumns, kernel.threads = S::kAllThreads;
  kernel.shared_bytes = Memory::kSharedBytes;
  kernel.shared_bytes_of_tile = Tile<Operand, kRight, Copies::Chunks, typename S::Elsewhere>::kSharedBytes;
  kernel.needs_chunks = !S::kHasRoom;
  kernel.stages = Memory::kStages, kernel.stages_alone = Memory::kStagesAlone;
  kernel.shared_bytes_alone = Memory::kSharedBytesAlone;
  return kernel;
}

}  // namespace tiles
}  // namespace gopt_runtime
