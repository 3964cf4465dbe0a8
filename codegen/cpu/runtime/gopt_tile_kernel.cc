#include "gopt_tile_kernel.h"

#include <algorithm>

#include "gopt_terms.h"

#if GOPT_HAS_AMX
#include <immintrin.h>
#define GOPT_AMX_CODE __attribute__((target("amx-tile,amx-bf16")))
#endif

namespace gopt_runtime {
namespace {

// ---- what the unit computes, in words of one number ----

// Subnormal numbers count as zeros, as operands and as results.
float flushed(float value) {
  return (bits_of(value) & kExponent) == 0 ? float_of(bits_of(value) & ~kMagnitude) : value;
}
float wide(uint16_t term) { return flushed(float_of(static_cast<uint32_t>(term) << 16)); }

// Even and odd channels are summed apart, from zero, and their sum is added.
void add_tile_product(float* sums, const uint16_t* x, int64_t line, const uint16_t* w) {
  constexpr int kPairs = kTileDepth / 2;
  float even[kTileColumns], odd[kTileColumns];
  for (int row = 0; row < kTileRows; row++) {
    std::fill_n(even, kTileColumns, 0.0f);
    std::fill_n(odd, kTileColumns, 0.0f);
    for (int pair = 0; pair < kPairs; pair++) {
      const float first = wide(x[row * line + 2 * pair]), second = wide(x[row * line + 2 * pair + 1]);
      for (int c = 0; c < kTileColumns; c++) {
        even[c] = flushed(even[c] + first * wide(w[pair * kTileDepth + 2 * c]));
        odd[c] = flushed(odd[c] + second * wide(w[pair * kTileDepth + 2 * c + 1]));
      }
    }
    for (int c = 0; c < kTileColumns; c++) {
      float& sum = sums[row * kTileColumns + c];
      sum = flushed(flushed(sum) + flushed(even[c] + odd[c]));
    }
  }
}

// Which terms are multiplied, in order: x's, w's.
struct TermPair {
  int x, w;
};
constexpr TermPair kPairsOfOne[] = {{0, 0}}, kPairsOfTwo[] = {{1, 0}, {0, 0}, {0, 1}},
                   kPairsOfThree[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};

template <int terms, TileTerms which, int rows, int columns>
void multiply_emulated(const TileProduct& p) {
  constexpr int kLast = terms * (terms + 1) / 2 - 1;
  const TermPair* pairs = terms == 1 ? kPairsOfOne : terms == 2 ? kPairsOfTwo : kPairsOfThree;
  if (!p.continues) std::fill_n(p.sums, rows * columns * kTileRows * kTileColumns, 0.0f);
  const uint16_t *x = p.x, *w = p.w;
  for (int64_t block = 0; block < p.blocks; block++, x += p.block)
    for (int64_t tap = 0; tap < p.tap_count; tap++, w += terms * columns * kTileElements)
      for (int pair = which == TileTerms::First ? kLast : 0; pair < (which == TileTerms::Lower ? kLast : kLast + 1);
           pair++) {
        const bool is_again = pairs[pair].x == 0 && pairs[pair].w > 0;
        const uint16_t* own = x + p.taps[tap] * p.line + (is_again ? p.again : pairs[pair].x * kTileDepth);
        for (int r = 0; r < rows; r++)
          for (int c = 0; c < columns; c++)
            add_tile_product(p.sums + (r * columns + c) * kTileRows * kTileColumns, own + r * p.row, p.line,
                             w + (pairs[pair].w * columns + c) * kTileElements);
      }
}

#if GOPT_HAS_AMX

// ---- tiles: 0 to 3 sums, 4 and 5 x, 6 and 7 w ----

// What is in memory by now is what it is: g++ does not know that tiles, and their configuration, are read from there.
inline void settle(const void* memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

template <int rows>
GOPT_AMX_CODE inline void load_x(const uint16_t* from, const TileProduct& p) {
  _tile_loadd(4, from, p.line * 2);
  if constexpr (rows == 2) _tile_loadd(5, from + p.row, p.line * 2);
}
template <int columns>
GOPT_AMX_CODE inline void load_w(const uint16_t* from, int term) {
  _tile_loadd(6, from + term * columns * kTileElements, 64);
  if constexpr (columns == 2) _tile_loadd(7, from + (term * columns + 1) * kTileElements, 64);
}
// What is multiplied by next is asked for between products, a few lines at a time: all that a step has would fill what
// misses of the first cache wait in, and the step's own tiles would wait behind them. And in four places of it in turn:
// memory gives a core a quarter to a half more so than line after line.
template <int terms, TileTerms which>
struct Asking {
  static constexpr uint32_t kPairs = terms * (terms + 1) / 2;
  static constexpr uint32_t kTimes = which == TileTerms::Lower ? kPairs - 1 : kPairs;  // in a step
  static constexpr int64_t kPlaces = 4;
  const char* at;
  int64_t apart, place_bytes, place = 0;
  uint32_t lines[kPairs] = {};

  explicit Asking(const TileProduct& p)
      : at(p.ahead), apart(p.ahead_apart), place_bytes(p.ahead_lines * p.blocks * p.tap_count / kPlaces * apart) {
    const auto all = static_cast<uint32_t>(p.ahead_lines);
    for (uint32_t i = 0; i < kTimes; i++) lines[i] = all * (i + 1) / kTimes - all * i / kTimes;
  }
  void ask(int time) {
    for (uint32_t i = 0; i < lines[time]; i++) {
      _mm_prefetch(at + place * place_bytes, _MM_HINT_T1);
      if (++place == kPlaces) place = 0, at += apart;
    }
  }
};

template <int rows, int columns>
GOPT_AMX_CODE inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (columns == 2) _tile_dpbf16ps(1, 4, 7);
  if constexpr (rows == 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
}

constexpr int kSumElements = kTileRows * kTileColumns, kSumLine = 64;

template <int rows, int columns>
GOPT_AMX_CODE inline void start(const TileProduct& p) {
  if (p.continues) {
    _tile_loadd(0, p.sums, kSumLine);
    if constexpr (columns == 2) _tile_loadd(1, p.sums + kSumElements, kSumLine);
    if constexpr (rows == 2) _tile_loadd(2, p.sums + columns * kSumElements, kSumLine);
    if constexpr (rows == 2 && columns == 2) _tile_loadd(3, p.sums + 3 * kSumElements, kSumLine);
  } else {
    _tile_zero(0);
    if constexpr (columns == 2) _tile_zero(1);
    if constexpr (rows == 2) _tile_zero(2);
    if constexpr (rows == 2 && columns == 2) _tile_zero(3);
  }
}
template <int rows, int columns>
GOPT_AMX_CODE inline void store(const TileProduct& p) {
  _tile_stored(0, p.sums, kSumLine);
  if constexpr (columns == 2) _tile_stored(1, p.sums + kSumElements, kSumLine);
  if constexpr (rows == 2) _tile_stored(2, p.sums + columns * kSumElements, kSumLine);
  if constexpr (rows == 2 && columns == 2) _tile_stored(3, p.sums + 3 * kSumElements, kSumLine);
}

template <int rows, int columns, class Asking>
GOPT_AMX_CODE inline void multiply(Asking& asking, int time) {
  multiply<rows, columns>();
  asking.ask(time);
}

template <int rows, int columns, class Asking>
GOPT_AMX_CODE inline void add_lower_of_three(const TileProduct& p, const uint16_t* x, const uint16_t* w,
                                             Asking& asking) {
  load_w<columns>(w, 0);
  load_x<rows>(x + 2 * kTileDepth, p);
  multiply<rows, columns>(asking, 0);
  load_x<rows>(x + kTileDepth, p);
  multiply<rows, columns>(asking, 1);
  load_w<columns>(w, 1);
  multiply<rows, columns>(asking, 2);
  load_x<rows>(x + p.again, p);
  multiply<rows, columns>(asking, 3);
  load_w<columns>(w, 2);
  multiply<rows, columns>(asking, 4);
}

// One block of channels of one tap; what is in the tiles is used as often as it can be before others come.
template <int terms, TileTerms which, int rows, int columns>
GOPT_AMX_CODE inline void add_step(const TileProduct& p, const uint16_t* x, const uint16_t* w,
                                   Asking<terms, which>& asking) {
  if constexpr (terms == 2) {
    load_w<columns>(w, 0);
    load_x<rows>(x + kTileDepth, p);
    multiply<rows, columns>(asking, 0);
    load_x<rows>(x, p);
    multiply<rows, columns>(asking, 1);
    if (p.again != 0) load_x<rows>(x + p.again, p);
    load_w<columns>(w, 1);
    multiply<rows, columns>(asking, 2);
  } else {
    constexpr bool kLower = terms == 3 && which != TileTerms::First;
    if constexpr (kLower) add_lower_of_three<rows, columns>(p, x, w, asking);
    if constexpr (which == TileTerms::Lower) return;
    load_w<columns>(w, 0);
    if (!kLower || p.again != 0) load_x<rows>(x, p);
    multiply<rows, columns>(asking, Asking<terms, which>::kPairs - 1);
  }
}

// Two tiles of rows by two of columns, of two terms: each load as early as its tile is free, among products of others,
// one of them in the step before. Of such orders some hundreds were drawn and timed with operands from the second
// cache: this one takes an eighth less than loads in front of each four products. x's lower term of the second tile of
// rows is there when a step begins.
GOPT_AMX_CODE inline void add_square(const TileProduct& p, const uint16_t* x, const uint16_t* w, const uint16_t* next_x,
                                     Asking<2, TileTerms::All>& asking) {
  const int64_t line = p.line * 2;
  const uint16_t* lower_w = w + 2 * kTileElements;
  _tile_loadd(6, w, kSumLine);
  _tile_loadd(7, w + kTileElements, kSumLine);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
  _tile_loadd(4, x + kTileDepth, line);
  _tile_loadd(5, x + p.row, line);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(0, 4, 6);
  asking.ask(0);
  _tile_dpbf16ps(3, 5, 7);
  _tile_loadd(4, x, line);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_loadd(7, lower_w + kTileElements, kSumLine);
  _tile_dpbf16ps(0, 4, 6);
  asking.ask(1);
  _tile_loadd(6, lower_w, kSumLine);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
  _tile_loadd(5, next_x + p.row + kTileDepth, line);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(0, 4, 6);
  asking.ask(2);
}

GOPT_AMX_CODE void multiply_square(const TileProduct& product) {
  const TileProduct p = product;
  settle(p.x);
  start<2, 2>(p);
  const uint16_t *block = p.x, *x = block + p.taps[0] * p.line, *w = p.w;
  Asking<2, TileTerms::All> asking(p);
  _tile_loadd(5, x + p.row + kTileDepth, p.line * 2);
  int64_t tap = 0;
  for (int64_t left = p.blocks * p.tap_count; left > 0; left--, w += 4 * kTileElements) {
    if (++tap == p.tap_count) tap = 0, block += p.block;
    // After the last step its own once more, which nothing uses.
    const uint16_t* next_x = left > 1 ? block + p.taps[tap] * p.line : x;
    add_square(p, x, w, next_x, asking);
    x = next_x;
  }
  store<2, 2>(p);
}

template <int terms, TileTerms which, int rows, int columns>
GOPT_AMX_CODE void multiply_amx(const TileProduct& product) {
  if constexpr (terms == 2 && rows == 2 && columns == 2)
    if (product.again == 0) return multiply_square(product);
  constexpr int64_t kStep = terms * columns * kTileElements;
  const TileProduct p = product;
  settle(p.x);
  start<rows, columns>(p);
  const uint16_t *x = p.x, *w = p.w;
  Asking<terms, which> asking(p);
  for (int64_t block = 0; block < p.blocks; block++, x += p.block)
    for (int64_t tap = 0; tap < p.tap_count; tap++, w += kStep)
      add_step<terms, which, rows, columns>(p, x + p.taps[tap] * p.line, w, asking);
  store<rows, columns>(p);
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t line_bytes[16] = {};
  uint8_t rows[16] = {};
};

GOPT_AMX_CODE void configure(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 8; tile++) {
    config.line_bytes[tile] = kSumLine;
    config.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : kTileRows);
  }
  settle(&config);
  _tile_loadconfig(&config);
}
GOPT_AMX_CODE void release() { _tile_release(); }

#endif

template <int terms, TileTerms which, int rows>
MultiplyTiles multiply_of(TileUnit unit, int columns) {
#if GOPT_HAS_AMX
  if (unit == TileUnit::Amx)
    return columns == 2 ? multiply_amx<terms, which, rows, 2> : multiply_amx<terms, which, rows, 1>;
#endif
  (void)unit;
  return columns == 2 ? multiply_emulated<terms, which, rows, 2> : multiply_emulated<terms, which, rows, 1>;
}
template <int terms, TileTerms which>
MultiplyTiles multiply_of(TileUnit unit, int rows, int columns) {
  return rows == 2 ? multiply_of<terms, which, 2>(unit, columns) : multiply_of<terms, which, 1>(unit, columns);
}
template <int terms>
MultiplyTiles multiply_of(TileUnit unit, TileTerms which, int rows, int columns) {
  switch (which) {
    case TileTerms::Lower: return multiply_of<terms, TileTerms::Lower>(unit, rows, columns);
    case TileTerms::First: return multiply_of<terms, TileTerms::First>(unit, rows, columns);
    case TileTerms::All: break;
  }
  return multiply_of<terms, TileTerms::All>(unit, rows, columns);
}

}  // namespace

MultiplyTiles multiply_function(TileUnit unit, int terms, TileTerms which, int rows, int columns) {
  return terms == 1   ? multiply_of<1, TileTerms::All>(unit, rows, columns)
         : terms == 2 ? multiply_of<2, TileTerms::All>(unit, rows, columns)
                      : multiply_of<3>(unit, which, rows, columns);
}

void begin_tiles(TileUnit unit, int rows) {
#if GOPT_HAS_AMX
  if (unit == TileUnit::Amx) configure(rows);
#endif
  (void)unit, (void)rows;
}
void end_tiles(TileUnit unit) {
#if GOPT_HAS_AMX
  if (unit == TileUnit::Amx) release();
#endif
  (void)unit;
}

}  // namespace gopt_runtime
