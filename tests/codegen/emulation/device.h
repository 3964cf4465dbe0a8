// Enough of CUDA on the processor to run the kernels of tiles: a thread of the device is a fiber here, of which one
// runs at a time; the blocks of a cluster run side by side, clusters one after another.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#undef __device__
#undef __global__
#undef __host__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static  // blocks that do not share a cluster run one after another
#define __CUDA_ARCH__ 900

inline uint3 threadIdx, blockIdx;
inline dim3 gridDim, blockDim;

namespace emulation {

constexpr unsigned kWarp = 32, kMostBlocks = 64, kMostWarps = 32, kMemory = 256 * 1024;

// Copies that a thread has asked for, in stages; some are made at once, the others when it waits for their stage.
class Copies {
 public:
  void ask(char* to, const void* from, size_t bytes) {  // null: of zeros
    static std::minstd_rand draw(1);
    if (draw() / 32 % 2 == 0)
      Copy{to, from, bytes}.make();
    else
      copies_.push_back({to, from, bytes});
  }
  void end_stage() { ends_.push_back(copies_.size()); }
  void wait(size_t pending) {
    for (; ends_.size() - stage_ > pending; stage_++)
      for (; made_ < ends_[stage_]; made_++) copies_[made_].make();
    if (made_ == copies_.size() && stage_ == ends_.size()) forget();
  }
  void forget() { copies_.clear(), ends_.clear(), made_ = stage_ = 0; }

 private:
  struct Copy {
    char* to;
    const void* from;
    size_t bytes;
    void make() const { from ? std::memcpy(to, from, bytes) : std::memset(to, 0, bytes); }
  };
  std::vector<Copy> copies_;
  std::vector<size_t> ends_;  // of stages
  size_t made_ = 0, stage_ = 0;
};

// A thread of the device. It runs until it gives way to others; AddressSanitizer is told whose stack is in use.
class Fiber {
 public:
  void begin(std::function<void()> body, uint3 thread, uint3 block) {
    body_ = std::move(body), thread_ = thread, block_ = block, is_done_ = false;
    copies_.forget();
    ASAN_UNPOISON_MEMORY_REGION(stack_.data(), stack_.size());  // the body before has not returned from there
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.data();
    context_.uc_stack.ss_size = stack_.size();
    context_.uc_link = nullptr;
    makecontext(&context_, enter, 0);
  }
  void go_on() {
    threadIdx = thread_, blockIdx = block_, running_ = this, awaited_ = nullptr;
    void* frames = nullptr;
    __sanitizer_start_switch_fiber(&frames, stack_.data(), stack_.size());
    exchange(&outside_, &context_);
    __sanitizer_finish_switch_fiber(frames, nullptr, nullptr);
  }
  static void give_way() {
    void* frames = nullptr;
    __sanitizer_start_switch_fiber(&frames, outside_stack_, outside_size_);
    exchange(&running_->context_, &outside_);
    __sanitizer_finish_switch_fiber(frames, nullptr, nullptr);
  }
  static Copies& copies() { return running_->copies_; }
  bool is_done() const { return is_done_; }
  // Gives way until a number is no longer what it was.
  static void wait_for_change(const uint64_t& number) {
    running_->awaited_ = &number, running_->was_ = number;
    give_way();
  }
  bool can_go_on() const { return !awaited_ || *awaited_ != was_; }
  unsigned warp() const { return thread_.x / kWarp; }

 private:
  static void enter() {
    __sanitizer_finish_switch_fiber(nullptr, &outside_stack_, &outside_size_);
    running_->body_();
    running_->is_done_ = true;
    __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_size_);
    setcontext(&outside_);
  }

  static constexpr size_t kStack = 256 * 1024;
  // The C library's own: AddressSanitizer's, which knows of no fibers, forgets all of a stack at each switch, and takes
  // half of the time for it.
  using Exchange = int (*)(ucontext_t*, const ucontext_t*);
  static Exchange exchange_of_libc() {
    void* const found = dlsym(dlopen("libc.so.6", RTLD_LAZY), "swapcontext");
    if (!found) std::puts("no swapcontext in libc.so.6"), std::_Exit(1);
    return reinterpret_cast<Exchange>(found);
  }
  inline static const Exchange exchange = exchange_of_libc();
  inline static Fiber* running_ = nullptr;
  inline static ucontext_t outside_;
  inline static const void* outside_stack_ = nullptr;
  inline static size_t outside_size_ = 0;

  std::vector<char> stack_ = std::vector<char>(kStack);
  ucontext_t context_{};
  std::function<void()> body_;
  uint3 thread_{}, block_{};
  Copies copies_;
  const uint64_t* awaited_ = nullptr;
  uint64_t was_ = 0;
  bool is_done_ = false;
};

// What threads have come to since the last look: where all wait and nothing moves, one of them never will.
inline uint64_t moves = 0;

class Barrier {
 public:
  explicit Barrier(unsigned threads = 0) : threads_(threads) {}
  void arrive_and_wait() {
    if (++arrived_ == threads_) {
      arrived_ = 0, round_++, moves++;
      return;
    }
    Fiber::wait_for_change(round_);
  }

 private:
  unsigned threads_, arrived_ = 0;
  uint64_t round_ = 0;
};

struct Block {
  alignas(128) char memory[kMemory];
  Barrier barrier;
  std::array<Barrier, kMostWarps> warps;
};
inline std::array<Block, kMostBlocks> blocks;
inline Barrier cluster_barrier;

// The next so many bytes of every block's memory.
inline size_t reserve(size_t bytes) {
  constexpr size_t kLine = 128;
  static size_t end = 0;
  const size_t begin = end;
  end += (bytes + kLine - 1) / kLine * kLine;
  if (end > kMemory) std::abort();
  return begin;
}

inline Block& own_block() { return blocks[blockIdx.y]; }
inline void wait_for_warp() { own_block().warps[threadIdx.x / kWarp].arrive_and_wait(); }

// In another order each time, and now and then with a warp that is held back until all others wait for it, so that
// what a barrier should order is not ordered by chance.
inline void run_all(std::vector<Fiber*>& fibers) {
  constexpr unsigned kSeldom = 8, kNone = ~0U, kMostIdle = 4;  // what one writes others may look at in the next round
  static std::minstd_rand draw(1);
  unsigned held = kNone;
  unsigned idle_rounds = 0;
  while (!fibers.empty()) {
    if (idle_rounds > 0)
      held = kNone;
    else if (held == kNone && draw() / kWarp % kSeldom == 0)
      held = fibers[draw() / kWarp % fibers.size()]->warp();
    std::ranges::shuffle(fibers, draw);
    const uint64_t before = moves;
    for (Fiber* fiber : fibers)
      if (fiber->warp() != held && fiber->can_go_on()) fiber->go_on();
    const bool is_anyone_done = std::erase_if(fibers, [](const Fiber* fiber) { return fiber->is_done(); }) > 0;
    idle_rounds = is_anyone_done || moves != before ? 0 : idle_rounds + 1;
    if (idle_rounds == kMostIdle) {
      std::printf("a barrier that not all threads come to\n");
      std::fflush(stdout);
      std::_Exit(1);
    }
  }
}

inline void (*forget_barriers)() = nullptr;

template <class Body>
void launch(dim3 grid, unsigned threads, const Body& body) {
  static std::deque<Fiber> fibers;
  gridDim = grid, blockDim = dim3(threads);
  while (fibers.size() < threads * grid.y) fibers.emplace_back();
  for (unsigned i = 0; i < grid.x * grid.z; i++) {
    cluster_barrier = Barrier(threads * grid.y);
    if (forget_barriers) forget_barriers();
    std::vector<Fiber*> running;
    for (unsigned y = 0; y < grid.y; y++) {
      std::memset(blocks[y].memory, 0xff, kMemory);  // not a number
      blocks[y].barrier = Barrier(threads);
      for (unsigned w = 0; w < threads / kWarp; w++) blocks[y].warps[w] = Barrier(kWarp);
      for (unsigned t = 0; t < threads; t++) {
        running.push_back(&fibers[running.size()]);
        running.back()->begin(body, {t, 0, 0}, {i % grid.x, y, i / grid.x});
      }
    }
    run_all(running);
  }
}

}  // namespace emulation

[[noreturn]] inline void __trap() { std::abort(); }

// What each thread of a warp gives to the others.
inline uint64_t given[emulation::kMostBlocks][emulation::kMostWarps][emulation::kWarp];
template <class T>
T __shfl_sync(unsigned, T value, int source) {
  uint64_t* warp = given[blockIdx.y][threadIdx.x / emulation::kWarp];
  std::memcpy(&warp[threadIdx.x % emulation::kWarp], &value, sizeof value);
  emulation::wait_for_warp();
  T found;
  std::memcpy(&found, &warp[source], sizeof found);
  emulation::wait_for_warp();
  return found;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
  unsigned word = 0;
  for (unsigned k = 0; k < 4; k++)
    word |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * k) & 7)) & 0xff) << (8 * k);
  return word;
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step) {
  return __shfl_sync(mask, value, static_cast<int>(threadIdx.x % emulation::kWarp) ^ step);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned step) {
  const unsigned lane = threadIdx.x % emulation::kWarp;
  return __shfl_sync(mask, value, static_cast<int>(lane + step < emulation::kWarp ? lane + step : lane));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned step) {
  const unsigned lane = threadIdx.x % emulation::kWarp;
  return __shfl_sync(mask, value, static_cast<int>(lane < step ? lane : lane - step));
}

inline unsigned __ballot_sync(unsigned, bool is_so) {
  const uint64_t* warp = given[blockIdx.y][threadIdx.x / emulation::kWarp];
  given[blockIdx.y][threadIdx.x / emulation::kWarp][threadIdx.x % emulation::kWarp] = is_so ? 1 : 0;
  emulation::wait_for_warp();
  unsigned all = 0;
  for (unsigned lane = 0; lane < emulation::kWarp; lane++) all |= static_cast<unsigned>(warp[lane]) << lane;
  emulation::wait_for_warp();
  return all;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int atomicAdd(int* at, int number) {
  const int before = *at;
  *at += number;
  return before;
}

inline void __syncwarp() { emulation::wait_for_warp(); }
inline void __syncthreads() { emulation::own_block().barrier.arrive_and_wait(); }
inline int __syncthreads_or(int is_so) {
  static int any[emulation::kMostBlocks];
  __syncthreads();
  any[blockIdx.y] = 0;
  __syncthreads();
  if (is_so) any[blockIdx.y] = 1;
  __syncthreads();
  return any[blockIdx.y];
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline long long __double_as_longlong(double x) {
  long long bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
using std::max, std::min;
