// What tiles are made of: products of fragments on the tensor cores, copies into shared memory and loads from it, and
// elements of a result, four at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "gopt_copies.cuh"
#include "gopt_half.cuh"

namespace gopt_runtime {
namespace tiles {

// ---- operands ----
// What a fragment is multiplied as. `mma` adds a product of 16 rows, 8 columns and 32 bytes of depth to the sums.

__device__ __forceinline__ unsigned as_bits(float x) { return __float_as_uint(x); }

// A number as one of 11 bits, to the nearest, and what that lacks, exactly. What would be rounded to infinity is not:
// the rest takes what is beyond, and with it infinities and not-a-numbers. Five instructions; those that convert to
// TF32 are many each.
__device__ __forceinline__ void split_float(unsigned bits, unsigned& large, unsigned& small) {
  constexpr unsigned kLargest = 0x7f7fe000u, kHalf = 0x1000u, kBitsOfTf32 = 0xffffe000u;
  const float x = __uint_as_float(bits), largest = __uint_as_float(kLargest);
  large = (as_bits(fminf(fmaxf(x, -largest), largest)) + kHalf) & kBitsOfTf32;
  small = as_bits(x - __uint_as_float(large));
}

// A sum of products of TF32 with what the tensor cores cut off of it, which is the same share of a sum whatever its
// depth: of numbers of either sign 0.87e-7, of numbers of one 1.2e-7 (H200, depths of 256 to 4,096). Layer after layer
// would lose it. Of sums of 20 bits or fewer, as of whole numbers below a million, nothing was cut: they stay as they
// are, and with them one in sixteen of all others.
__device__ __forceinline__ float with_what_was_cut(float sum) {
  constexpr unsigned kLastBits = 0xfu, kLargest = 0x7f7fffffu;
  constexpr float kCut = 1.04e-7f * 16 / 15;
  const float whole = fmaf(sum, kCut, sum);
  const bool is_cut = (as_bits(sum) & kLastBits) != 0 && fabsf(whole) <= __uint_as_float(kLargest);
  return is_cut ? whole : sum;
}

// Of two numbers of 16 bits.
template <class Pair>
__device__ __forceinline__ unsigned bits_of(Pair pair) {
  unsigned bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

template <class Pair>
__device__ __forceinline__ Pair pair_of(unsigned bits) {
  Pair pair;
  memcpy(&pair, &bits, sizeof pair);
  return pair;
}

struct Half {
  using Stored = gopt_half;
  static __device__ __forceinline__ void mma(float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  static __device__ __forceinline__ unsigned pair(float low, float high) {
    return bits_of(__floats2half2_rn(low, high));
  }
  // a - b and a b + c of pairs.
  static __device__ __forceinline__ unsigned difference(unsigned a, unsigned b) {
    return bits_of(__hsub2(pair_of<__half2>(a), pair_of<__half2>(b)));
  }
  static __device__ __forceinline__ unsigned product_and_sum(unsigned a, unsigned b, unsigned c) {
    return bits_of(__hfma2(pair_of<__half2>(a), pair_of<__half2>(b), pair_of<__half2>(c)));
  }
};

struct Bfloat16 {
  using Stored = gopt_bfloat16;
  static __device__ __forceinline__ void mma(float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  static __device__ __forceinline__ unsigned pair(float low, float high) {
    return bits_of(__floats2bfloat162_rn(low, high));
  }
  static __device__ __forceinline__ unsigned difference(unsigned a, unsigned b) {
    return bits_of(__hsub2(pair_of<__nv_bfloat162>(a), pair_of<__nv_bfloat162>(b)));
  }
};

__device__ __forceinline__ unsigned rounded_to_tf32(unsigned bits) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0,%1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
}
__device__ __forceinline__ void mma_tf32(float* c, const unsigned* a, const unsigned* b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

struct Tf32 {
  using Stored = float;
  static __device__ __forceinline__ void mma(float* c, const unsigned* a, const unsigned* b) {
    unsigned ra[4], rb[2];
#pragma unroll
    for (int i = 0; i < 4; i++) ra[i] = rounded_to_tf32(a[i]);
#pragma unroll
    for (int i = 0; i < 2; i++) rb[i] = rounded_to_tf32(b[i]);
    mma_tf32(c, ra, rb);
  }
};

// fp32 by three products of TF32: a number is a rounded one and what that lacks, of which the tensor cores take 11
// bits; the product of two such remainders is below the last bit. The tensor cores cut what they add instead of
// rounding it, so that their sums go over eight products only, and are added up by ordinary additions.
struct Fp32 {
  using Stored = float;
  static __device__ __forceinline__ void mma(float* c, const unsigned* a, const unsigned* b) {
    unsigned large_a[4], small_a[4], large_b[2], small_b[2];
#pragma unroll
    for (int i = 0; i < 4; i++) split_float(a[i], large_a[i], small_a[i]);
#pragma unroll
    for (int i = 0; i < 2; i++) split_float(b[i], large_b[i], small_b[i]);
    float sum[4] = {};
    mma_tf32(sum, small_a, large_b);
    mma_tf32(sum, large_a, small_b);
    mma_tf32(sum, large_a, large_b);
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] += sum[i];
  }
};

// ---- memory ----

__device__ __forceinline__ void load_matrices(unsigned* r, unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}
__device__ __forceinline__ void load_matrices_transposed(unsigned* r, unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}
__device__ __forceinline__ void store_chunk(unsigned to, const unsigned* words) {
  asm volatile("st.shared.v4.b32 [%0],{%1,%2,%3,%4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}
// Sets one element of a chunk that was zero.
template <class T>
__device__ __forceinline__ void put_element(unsigned* words, int element, T value) {
  if constexpr (sizeof(T) == 4) {
    words[element] = as_bits(value);
  } else {
    unsigned short bits;
    memcpy(&bits, &value, sizeof bits);
    words[element / 2] |= static_cast<unsigned>(bits) << (element % 2 * 16);
  }
}
__device__ __forceinline__ unsigned load_word(unsigned at) {
  unsigned word;
  asm volatile("ld.shared.b32 %0,[%1];" : "=r"(word) : "r"(at));
  return word;
}
__device__ __forceinline__ void load_chunk(unsigned* words, unsigned at) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3},[%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at));
}
__device__ __forceinline__ void store_word(unsigned at, unsigned word) {
  asm volatile("st.shared.b32 [%0],%1;" ::"r"(at), "r"(word) : "memory");
}

// Up to four elements as they lie, so that nothing waits for them before they are used; the others are zero.
template <class T>
class Four {
 public:
  __device__ __forceinline__ Four() : elements_{} {}
  __device__ __forceinline__ void load(const T* from, int count, bool is_aligned) {
    if (is_aligned && count == 4) {
      using Raw = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
      *reinterpret_cast<Raw*>(elements_) = *reinterpret_cast<const Raw*>(from);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) elements_[i] = i < count ? from[i] : T(0.0f);
  }
  __device__ __forceinline__ float operator[](int i) const { return (float)elements_[i]; }
  // As bits, of which sixteen bytes have room for four elements of any type.
  __device__ __forceinline__ void keep_in(unsigned* words) const { memcpy(words, elements_, sizeof elements_); }
  __device__ __forceinline__ void take_from(const unsigned* words) { memcpy(elements_, words, sizeof elements_); }

 private:
  alignas(4 * sizeof(T)) T elements_[4];
};
template <class T>
__device__ __forceinline__ void store_elements(T* to, const float* values, int count, bool is_aligned) {
  if (is_aligned && count == 4) {
    if constexpr (sizeof(T) == 4) {
      *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
    } else {
      alignas(8) T elements[4];
#pragma unroll
      for (int i = 0; i < 4; i++) elements[i] = T(values[i]);
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(elements);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i < count) to[i] = T(values[i]);
}
// The first `count` of two.
template <class T>
__device__ __forceinline__ void store_pair(T* to, const float* values, int count, bool is_aligned) {
  alignas(2 * sizeof(T)) const T elements[2] = {T(values[0]), T(values[1])};
  if (is_aligned && count >= 2) {
    using Raw = std::conditional_t<sizeof(T) == 4, uint2, unsigned>;
    *reinterpret_cast<Raw*>(to) = *reinterpret_cast<const Raw*>(elements);
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (i < count) to[i] = elements[i];
}

}  // namespace tiles
}  // namespace gopt_runtime
