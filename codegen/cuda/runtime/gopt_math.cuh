// Scalar functions of generated kernels on the device, under the names that the printed expressions use, and the
// reduction over the threads of a block.
#pragma once

#include <cstdint>

// NaN wins, as in ONNX Runtime and numpy.
template <class T>
__device__ inline T gopt_max(T a, T b) {
  return b > a || b != b ? b : a;
}
template <class T>
__device__ inline T gopt_min(T a, T b) {
  return b < a || b != b ? b : a;
}

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
// The same by one instruction.
template <>
__device__ inline float gopt_max(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0,%1,%2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
template <>
__device__ inline float gopt_min(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0,%1,%2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}
#endif

// Sums of products as they are rounded: by instructions that are joined with none.
template <class T>
__device__ inline T gopt_rounded(T x) {
  return x;
}
template <class T>
__device__ inline T gopt_sum(T a, T b) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 4)
    return __fadd_rn(a, b);
  else
    return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
template <class T>
__device__ inline T gopt_difference(T a, T b) {
  return gopt_sum(a, -b);
}

// By one instruction, to two units in the last place; what is below the normal numbers is zero.
__device__ inline float gopt_short_exp2(float x) {
#ifdef __CUDACC__
  asm("ex2.approx.ftz.f32 %0,%0;" : "+f"(x));
  return x;
#else
  return exp2f(x);
#endif
}
__device__ inline float gopt_short_reciprocal(float x) {
#ifdef __CUDACC__
  asm("rcp.approx.ftz.f32 %0,%0;" : "+f"(x));
  return x;
#else
  return 1.0f / x;
#endif
}

// exp and tanh to 1e-6 of themselves, as far as the argument's own rounding counts for no more.
__device__ inline float gopt_short_exp(float x) { return gopt_short_exp2(1.44269504f * x); }
// tanh, by the reciprocal of 1 + exp(2x).
__device__ inline float gopt_short_tanh_of(float x, float share) {
  const float square = x * x;
  const float series =
      x + x * square * (-0.333333333f + square * (0.133333333f + square * (-0.0539682540f + square * 0.0218694885f)));
  return fabsf(x) < 0.3f ? copysignf(series, x) : 1.0f - 2.0f * share;
}
__device__ inline float gopt_short_tanh(float x) {
  return gopt_short_tanh_of(x, gopt_short_reciprocal(1.0f + gopt_short_exp2(2.88539008f * x)));
}

// erf to 1e-6 of itself: its series, or Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, in which the
// exponential and the reciprocal are short.
__device__ inline float gopt_short_erf(float x) {
  const float a = fabsf(x), square = x * x, t = gopt_short_reciprocal(1.0f + 0.3275911f * a);
  const float tail =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) *
      gopt_short_exp2(-1.44269504f * square);
  const float series =
      x * (1.12837917f +
           square * (-0.376126389f + square * (0.112837917f + square * (-0.0268661706f + square * 0.00522397762f))));
  return a < 0.5f ? series : copysignf(1.0f - tail, x);
}

__device__ inline int64_t gopt_floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
__device__ inline int64_t gopt_ceil_div(int64_t a, int64_t b) { return -gopt_floor_div(-a, b); }
__device__ inline int64_t gopt_clamp(int64_t i, int64_t bound) { return i < 0 ? 0 : i >= bound ? bound - 1 : i; }
// ONNX Div of integers truncates; by zero it is undefined, and 0 here.
__device__ inline int64_t gopt_divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

// x / divisor, rounded as a division is (Markstein, 1990) but for x below 2^-100, whose last digit may differ, where
// the reciprocal is the rounded one. Where that is infinite, no number or a zero, whose sign it has, so is the product.
__device__ inline float gopt_quotient(float x, float divisor, float reciprocal) {
  const float product = x * reciprocal, quotient = fmaf(fmaf(-product, divisor, x), reciprocal, product);
  return quotient == quotient && product != 0 ? quotient : product;
}

// Truncates; out of range is the nearest, not-a-number 0.
__device__ inline int64_t gopt_to_int(double x) {
  return x != x ? 0 : x >= 9.2233720368547758e18 ? INT64_MAX : x <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)x;
}
// Likewise to an unsigned number, as the signed one of the same bits; what is below 0 as a signed one.
__device__ inline int64_t gopt_to_unsigned(double x) {
  constexpr double kHalf = 9.2233720368547758e18;
  return x < kHalf ? gopt_to_int(x) : x < 2 * kHalf ? (int64_t)(uint64_t)x : x != x ? 0 : -1;
}

#define GOPT_LIBM(name, single, both)                                \
  __device__ inline double gopt_##name(double x) { return both(x); } \
  __device__ inline float gopt_##name(float x) { return single(x); }
GOPT_LIBM(exp, expf, exp)
GOPT_LIBM(log, logf, log)
GOPT_LIBM(log1p, log1pf, log1p)
GOPT_LIBM(sqrt, sqrtf, sqrt)
GOPT_LIBM(sin, sinf, sin)
GOPT_LIBM(cos, cosf, cos)
GOPT_LIBM(tan, tanf, tan)
GOPT_LIBM(asin, asinf, asin)
GOPT_LIBM(acos, acosf, acos)
GOPT_LIBM(atan, atanf, atan)
GOPT_LIBM(sinh, sinhf, sinh)
GOPT_LIBM(cosh, coshf, cosh)
GOPT_LIBM(asinh, asinhf, asinh)
GOPT_LIBM(acosh, acoshf, acosh)
GOPT_LIBM(atanh, atanhf, atanh)
GOPT_LIBM(tanh, tanhf, tanh)
GOPT_LIBM(erf, erff, erf)
GOPT_LIBM(floor, floorf, floor)
GOPT_LIBM(ceil, ceilf, ceil)
GOPT_LIBM(round, nearbyintf, nearbyint)
GOPT_LIBM(trunc, truncf, trunc)
#undef GOPT_LIBM
__device__ inline float gopt_narrow(float x) { return x; }
__device__ inline double gopt_narrow(double x) { return (float)x; }
__device__ inline int gopt_isnan(float x) { return x != x; }
__device__ inline int gopt_isnan(double x) { return x != x; }
__device__ inline int gopt_isnan(int64_t) { return 0; }
// The device's pow is off by an ulp or two where the host's is exact: a power of whole numbers is rounded to one, since
// what truncates it afterwards would see one less.
__device__ inline double gopt_pow(double x, double y) {
  const double power = pow(x, y);
  return y >= 0 && x == trunc(x) && y == trunc(y) && fabs(power) < 9007199254740992.0 ? rint(power) : power;
}
__device__ inline float gopt_pow(float x, float y) {
  const float power = powf(x, y);
  return y >= 0 && x == truncf(x) && y == truncf(y) && fabsf(power) < 16777216.0f ? rintf(power) : power;
}
__device__ inline int64_t gopt_pow(int64_t x, int64_t y) { return gopt_to_int(gopt_pow((double)x, (double)y)); }
__device__ inline float gopt_fmod(float x, float y) { return fmodf(x, y); }
__device__ inline double gopt_fmod(double x, double y) { return fmod(x, y); }
__device__ inline int64_t gopt_fmod(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

// The values of all threads of the block combined, in an order that is always the same; every thread gets the result.
// Blocks are whole warps, and all their threads come here.
template <class T, class Combine>
__device__ inline T gopt_block_reduce(T value, Combine combine) {
  __shared__ T of_warp[32];
  for (int step = 16; step > 0; step /= 2) value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, step));
  if (blockDim.x == 32) return value;
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; warp++) value = combine(value, of_warp[warp]);
  __syncthreads();
  return value;
}

// Room for a number of each thread, the same for all reductions of a kernel: they are many, and blocks have little.
__device__ inline void* gopt_room_of_threads() {
  __shared__ double room[1024];
  return room;
}

// Likewise of the threads of a column, where kColumns threads beside each other are of different ones; both numbers are
// powers of two.
template <int kColumns, class T, class Combine>
__device__ inline T gopt_column_reduce(T value, Combine combine) {
  T* const of_thread = static_cast<T*>(gopt_room_of_threads());
  of_thread[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half >= kColumns; half /= 2) {
    if (threadIdx.x < half) of_thread[threadIdx.x] = combine(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
    __syncthreads();
  }
  value = of_thread[threadIdx.x % kColumns];
  __syncthreads();
  return value;
}

// Likewise of a warp alone.
template <class T, class Combine>
__device__ inline T gopt_warp_reduce(T value, Combine combine) {
  for (int step = 16; step > 0; step /= 2) value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

// Likewise of so many threads of a warp beside each other, a power of two.
template <int kThreads, class T, class Combine>
__device__ inline T gopt_part_reduce(T value, Combine combine) {
  for (int step = kThreads / 2; step > 0; step /= 2)
    value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

// Of which of a block's kThreads threads it is so: their numbers, in order, and how many they are. All threads come
// here, and have read what they need of `matched` before.
template <int kThreads>
__device__ inline int gopt_matches(bool is_match, int* matched) {
  __shared__ int of_warp[kThreads / 32];
  if (!__syncthreads_or(is_match)) return 0;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, mask = __ballot_sync(0xffffffffu, is_match);
  if (lane == 0) of_warp[warp] = __popc(mask);
  __syncthreads();
  int before = 0, all = 0;
  for (unsigned w = 0; w < kThreads / 32; w++) {
    if (w < warp) before += of_warp[w];
    all += of_warp[w];
  }
  if (is_match) matched[before + __popc(mask & ((1u << lane) - 1))] = (int)threadIdx.x;
  __syncthreads();
  return all;
}

// One of a chunk's elements, which is what any subscript means.
template <class T>
struct gopt_element {
  T& value;
  __device__ __forceinline__ T& operator[](int64_t) const { return value; }
};

// Neighbouring elements of a tensor from `at` on, by the subscripts of the whole; moved at once where they lie on a
// boundary of their size.
template <class T, int kCount>
class gopt_chunk {
 public:
  __device__ __forceinline__ gopt_chunk() : at_(0) {}
  __device__ __forceinline__ explicit gopt_chunk(int64_t at) : at_(at) {}
  __device__ __forceinline__ gopt_chunk(const T* all, int64_t at) : at_(at) { copy(elements_, all + at); }
  __device__ __forceinline__ void store(T* all) const { copy(all + at_, elements_); }
  __device__ __forceinline__ gopt_element<const T> element(int i) const { return {elements_[i]}; }
  __device__ __forceinline__ gopt_element<T> element(int i) { return {elements_[i]}; }
  __device__ __forceinline__ const T& operator[](int64_t i) const { return elements_[i - at_]; }
  __device__ __forceinline__ T& operator[](int64_t i) { return elements_[i - at_]; }

 private:
  static constexpr int kBytes = kCount * (int)sizeof(T);
  struct alignas(kBytes < 4 ? 4 : kBytes) Whole {
    unsigned words[(kBytes + 3) / 4];  // one is never moved so
  };
  static __device__ __forceinline__ void copy(T* to, const T* from) {
    if (kCount > 1 && ((uintptr_t)to | (uintptr_t)from) % kBytes == 0) {
      *reinterpret_cast<Whole*>(to) = *reinterpret_cast<const Whole*>(from);
      return;
    }
#pragma unroll
    for (int i = 0; i < kCount; i++) to[i] = from[i];
  }

  alignas(kBytes) T elements_[kCount];
  int64_t at_;
};
