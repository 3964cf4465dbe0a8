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

}  // namespace gopt_runtime
