// What gopt_fragments.cuh asks of the device's instructions, in namespace gopt_runtime::tiles: products of fragments,
// and loads of matrices, by the layouts that PTX gives for them.

struct WarpRegisters {
  float a[32][8], b[32][4];  // numbers of a lane's words
  unsigned at[32];
};
inline WarpRegisters warp_registers[emulation::kMostBlocks][emulation::kMostWarps];
inline WarpRegisters& own_registers() { return warp_registers[blockIdx.y][threadIdx.x / emulation::kWarp]; }

inline float half_of(unsigned word, int number) {
  __half_raw raw;
  raw.x = static_cast<unsigned short>(word >> (16 * number));
  return __half2float(__half(raw));
}

inline float bfloat_of(unsigned word, int number) { return std::bit_cast<float>(word >> (16 * number) << 16); }

struct Fp32;  // of which nothing runs here

// m16n8k16: of a lane, rows lane / 4 and eight further, columns and depths lane % 4 * 2 and the next.
template <float (*number_of)(unsigned, int)>
void multiply_fragments(float* c, const unsigned* a, const unsigned* b) {
  WarpRegisters& warp = own_registers();
  const int lane = static_cast<int>(threadIdx.x % emulation::kWarp);
  for (int i = 0; i < 8; i++) warp.a[lane][i] = number_of(a[i / 2], i % 2);
  for (int i = 0; i < 4; i++) warp.b[lane][i] = number_of(b[i / 2], i % 2);
  emulation::wait_for_warp();
  for (int i = 0; i < 4; i++) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    double sum = 0;
    for (int k = 0; k < 16; k++) {
      const int among = k % 8 / 2;
      sum += static_cast<double>(warp.a[row % 8 * 4 + among][row / 8 * 2 + k / 8 * 4 + k % 2]) *
             warp.b[column * 4 + among][k / 8 * 2 + k % 2];
    }
    c[i] += static_cast<float>(sum);
  }
  emulation::wait_for_warp();
}

struct Half {
  using Stored = gopt_half;
  static unsigned pair(float low, float high) {
    const __half_raw first(__float2half_rn(low)), second(__float2half_rn(high));
    return first.x | static_cast<unsigned>(second.x) << 16;
  }
  static unsigned difference(unsigned a, unsigned b) {
    return pair(half_of(a, 0) - half_of(b, 0), half_of(a, 1) - half_of(b, 1));
  }
  static unsigned product_and_sum(unsigned a, unsigned b, unsigned c) {
    return pair(half_of(a, 0) * half_of(b, 0) + half_of(c, 0), half_of(a, 1) * half_of(b, 1) + half_of(c, 1));
  }
  static void mma(float* c, const unsigned* a, const unsigned* b) { multiply_fragments<half_of>(c, a, b); }
};

struct Bfloat16 {
  using Stored = gopt_bfloat16;
  static unsigned difference(unsigned a, unsigned b) {
    const auto rounded = [&](int i) {
      return std::bit_cast<unsigned short>(gopt_bfloat16(bfloat_of(a, i) - bfloat_of(b, i)));
    };
    return rounded(0) | static_cast<unsigned>(rounded(1)) << 16;
  }
  static void mma(float* c, const unsigned* a, const unsigned* b) { multiply_fragments<bfloat_of>(c, a, b); }
};

// Four matrices of eight rows, whose places lanes 0 to 7, 8 to 15 and so on give.
inline void load_four(unsigned* r, unsigned at, bool is_transposed) {
  WarpRegisters& warp = own_registers();
  const int lane = static_cast<int>(threadIdx.x % emulation::kWarp);
  expect_multiple(at, kChunk);
  warp.at[lane] = at;
  emulation::wait_for_warp();
  for (int matrix = 0; matrix < 4; matrix++) {
    unsigned short pair[2];
    for (int i = 0; i < 2; i++) {
      const int along = lane % 4 * 2 + i, across = lane / 4;
      const int row = is_transposed ? along : across, column = is_transposed ? across : along;
      std::memcpy(&pair[i], own_memory() + warp.at[matrix * 8 + row] + column * 2, sizeof pair[i]);
    }
    r[matrix] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
  emulation::wait_for_warp();
}
inline void load_matrices(unsigned* r, unsigned at) { load_four(r, at, false); }
inline void load_matrices_transposed(unsigned* r, unsigned at) { load_four(r, at, true); }
inline void store_chunk(unsigned to, const unsigned* words) { std::memcpy(own_memory() + to, words, kChunk); }
inline unsigned load_word(unsigned at) {
  unsigned word = 0;
  std::memcpy(&word, own_memory() + at, sizeof word);
  return word;
}
