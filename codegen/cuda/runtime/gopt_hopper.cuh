// What tiles of warpgroups ask of an H100 or H200 (sm_90a): products of matrices in shared memory (wgmma), descriptions
// of tensors, and copies by them.
#pragma once

#include <cuda.h>

#include "gopt_arrivals.cuh"
#include "gopt_fragments.cuh"

namespace gopt_runtime {
namespace tiles {

constexpr int kEightLines = 8 * 128;  // bytes, in which the chunks of lines are permuted

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A matrix in shared memory, in lines of 128 bytes whose chunks are permuted (CUTLASS's SW128): from eight lines to the
// next, and of lines along the columns, from 64 columns to the next.
__device__ __forceinline__ uint64_t matrix_at(unsigned at, unsigned panel_bytes) {
  constexpr uint64_t kPermuted = uint64_t{1} << 62;
  return (at & 0x3ffff) >> 4 | static_cast<uint64_t>(panel_bytes >> 4) << 16 | uint64_t{kEightLines >> 4} << 32 |
         kPermuted;
}

// The matrix so many bytes behind: addresses are within the low word, in 14 bits that count sixteen bytes.
__device__ __forceinline__ uint64_t moved(uint64_t matrix, unsigned bytes) {
  return (matrix & 0xffffffff00000000) | (static_cast<unsigned>(matrix) + (bytes >> 4));
}

// Asks that what is in the registers of a product may be used by the next, and says that a group of products is whole.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Whether a thread is the one of its warp that is chosen. Of that one the compiler knows that it is alone: else what is
// asked of the copy engine is a loop over the threads of a warp.
__device__ __forceinline__ bool is_elected() {
  unsigned is;
  asm volatile("{.reg .pred p; elect.sync _|p,0xffffffff; selp.u32 %0,1,0,p;}" : "=r"(is));
  return is != 0;
}

// What threads have written to shared memory may be read by products from now on.
__device__ __forceinline__ void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Of the threads that multiply.
template <int kThreads>
__device__ __forceinline__ void wait_for_each_other() {
  asm volatile("bar.sync 1,%0;" ::"n"(kThreads) : "memory");
}

template <int kColumns>
struct Width {};

#define GOPT_2(c, n)                                                                                                   \
  "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]), "+f"(c[n + 1][0]), "+f"(c[n + 1][1]), "+f"(c[n + 1][2]), \
      "+f"(c[n + 1][3])
#define GOPT_4(c, n) GOPT_2(c, n), GOPT_2(c, n + 2)
#define GOPT_8(c, n) GOPT_4(c, n), GOPT_4(c, n + 4)
#define GOPT_NAMES_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define GOPT_NAMES_32 \
  GOPT_NAMES_16       \
  ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define GOPT_NAMES_64                                                \
  GOPT_NAMES_32                                                      \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define GOPT_NAMES_128                                                           \
  GOPT_NAMES_64                                                                  \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"             \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"             \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// multiply<kByLines>(Operand, Width<N>, c, a, b) adds a product of 64 rows, N columns and 32 bytes of depth to the
// sums; with kByLines the right matrix lies by lines of columns, which is for 16 bits alone.
#define GOPT_PRODUCT(Operand, width, types, names, left, right, order, ...)                                          \
  template <int kByLines>                                                                                            \
  __device__ __forceinline__ void multiply(Operand, Width<width>, float(*c)[4], uint64_t a, uint64_t b) {            \
    asm volatile("{.reg .pred adds; setp.eq.u32 adds,0,0; wgmma.mma_async.sync.aligned.m64n" #width types " {" names \
                 "}," left "," right ",adds,1,1" order ";}"                                                          \
                 : __VA_ARGS__                                                                                       \
                 : "l"(a), "l"(b), "n"(kByLines));                                                                   \
  }
#define GOPT_PRODUCTS(Operand, types, ordered)                                                                      \
  GOPT_PRODUCT(Operand, 32, types, GOPT_NAMES_16, "%16", "%17", ordered(",0,%18"), GOPT_4(c, 0))                    \
  GOPT_PRODUCT(Operand, 64, types, GOPT_NAMES_32, "%32", "%33", ordered(",0,%34"), GOPT_8(c, 0))                    \
  GOPT_PRODUCT(Operand, 128, types, GOPT_NAMES_64, "%64", "%65", ordered(",0,%66"), GOPT_8(c, 0), GOPT_8(c, 8))     \
  GOPT_PRODUCT(Operand, 256, types, GOPT_NAMES_128, "%128", "%129", ordered(",0,%130"), GOPT_8(c, 0), GOPT_8(c, 8), \
               GOPT_8(c, 16), GOPT_8(c, 24))
// multiply_registers(Operand, Width<N>, c, a, b) likewise where the left matrix is in the registers, as fragments of 16
// rows by 32 bytes for each warp, and the right one lies by columns.
#define GOPT_PRODUCT_OF_REGISTERS(Operand, width, types, order, names, a, b, ...)                                    \
  __device__ __forceinline__ void multiply_registers(Operand, Width<width>, float(*c)[4], const unsigned* left,      \
                                                     uint64_t right) {                                               \
    asm volatile("{.reg .pred adds; setp.eq.u32 adds,0,0; wgmma.mma_async.sync.aligned.m64n" #width types " {" names \
                 "},{" a "}," b ",adds,1,1" order ";}"                                                               \
                 : __VA_ARGS__                                                                                       \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));                              \
  }
#define GOPT_PRODUCTS_OF_REGISTERS(Operand, types, order)                                                     \
  GOPT_PRODUCT_OF_REGISTERS(Operand, 32, types, order, GOPT_NAMES_16, "%16,%17,%18,%19", "%20", GOPT_4(c, 0)) \
  GOPT_PRODUCT_OF_REGISTERS(Operand, 64, types, order, GOPT_NAMES_32, "%32,%33,%34,%35", "%36", GOPT_8(c, 0)) \
  GOPT_PRODUCT_OF_REGISTERS(Operand, 128, types, order, GOPT_NAMES_64, "%64,%65,%66,%67", "%68", GOPT_8(c, 0), GOPT_8(c, 8))
GOPT_PRODUCTS_OF_REGISTERS(Half, "k16.f32.f16.f16", ",0")
GOPT_PRODUCTS_OF_REGISTERS(Bfloat16, "k16.f32.bf16.bf16", ",0")
GOPT_PRODUCTS_OF_REGISTERS(Tf32, "k8.f32.tf32.tf32", "")
#define GOPT_ORDERED(order) order
#define GOPT_UNORDERED(order) ""
GOPT_PRODUCTS(Half, "k16.f32.f16.f16", GOPT_ORDERED)
GOPT_PRODUCTS(Bfloat16, "k16.f32.bf16.bf16", GOPT_ORDERED)
GOPT_PRODUCTS(Tf32, "k8.f32.tf32.tf32", GOPT_UNORDERED)

// The description of a tensor is on its way before it is first used.
__device__ __forceinline__ void prepare_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Asks the copy engine for windows of an image from a corner on, of one tap, and for lines of a matrix; both say at a
// barrier how many bytes have come.
__device__ __forceinline__ void copy_windows(unsigned to, const CUtensorMap* map, unsigned barrier, int channel, int x,
                                             int y, int image, unsigned short tap_x, unsigned short tap_y) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0],[%1,{%3,%4,%5,%6}],[%2],{%7,%8};" ::"r"(to),
      "l"(map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(image), "h"(tap_x), "h"(tap_y)
      : "memory");
}
__device__ __forceinline__ void copy_lines(unsigned to, const CUtensorMap* map, unsigned barrier, int in_line, int tap,
                                           int line) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0],[%1,{%3,%4,%5}],[%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(in_line), "r"(tap), "r"(line)
      : "memory");
}

#endif  // of sm_90a

}  // namespace tiles
}  // namespace gopt_runtime
