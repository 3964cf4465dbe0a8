// Whether there are matrix tiles of bfloat16 (AMX), and what they are for: asked by whoever plans for this processor,
// and, as this file goes out with the model, by its kernels (gopt_tiles.h).
#pragma once

#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define GOPT_HAS_AMX 1
#endif

namespace gopt_runtime {

// Whether the processor has them, and the operating system lets this process use them, for which it has to be asked.
inline bool has_amx() {
#if GOPT_HAS_AMX
  static const bool has = [] {
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16) == 0 || (d & kTile) == 0) return false;
    return __builtin_cpu_supports("avx512bf16") != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
#else
  return false;
#endif
}

// Of fewer channels a tile is mostly zeros.
constexpr int64_t kFewestTileChannels = 8;

// Whether the taps along a window's last axis become channels, as they lie beside each other in an image whose few
// channels are its last axis.
inline bool folds_window(int64_t channels, int64_t taps, int64_t stride, int64_t dilation) {
  constexpr int64_t kMostChannels = 64, kLongest = 16, kLargestStride = 4;
  return channels < kFewestTileChannels && taps > 1 && taps <= kLongest && channels * taps >= kFewestTileChannels &&
         channels * taps <= kMostChannels && stride <= kLargestStride && dilation == 1;
}

// Whether groups of so many channels each fill tiles: a pair of them, 32 results, reads whole blocks of 32 channels, or
// one of these; what is of another group is multiplied by zeros. Of fewer channels that is most.
inline bool groups_fill_tiles(int64_t groups, int64_t in, int64_t out) {
  constexpr int64_t kFewest = 4, kBlock = 32;
  const auto divides = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
  if (in < kFewest || out < kFewest || groups * in % kBlock != 0 || groups * out % kBlock != 0) return false;
  const int64_t read = out < kBlock ? kBlock / out * in : in;
  return divides(out, kBlock) && divides(read, kBlock);
}

}  // namespace gopt_runtime
