// Functions of rows: running sums and products, and what is largest, in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "gopt_row_sizes.h"
#include "gopt_team.h"

namespace gopt_runtime {

constexpr int64_t kRowWorthAThread = 16384;  // elements

// ---- running sums and products ----

template <Running how, class Sum>
Sum run_on(Sum sum, Sum element) {
  return how == Running::Sum ? sum + element : sum * element;
}

template <Running how, bool is_reversed, bool is_exclusive, class T>
class RunningRows {
  using Sum = typename RunningSum<T>::Type;
  static constexpr int kStreams = 4;  // rows, or parts of one: a sum waits for the one before
  static constexpr int64_t kColumns = 1024, kLanes = 16, kOfVector = 8;

 public:
  RunningRows(const T* x, T* y, const RowSizes& sizes) : x_(x), y_(y), s_(sizes) {}

  void run() const {
    const int64_t work = s_.outer * s_.row * s_.inner;
    if (work == 0) return;
    const auto threads = static_cast<int>(std::min<int64_t>(threads_now(), 1 + work / kRowWorthAThread));
    if (s_.inner > 1) return run_columns(threads);
    const int64_t parts = parts_of_row(threads);
    if (parts > 1) return run_parts(parts, threads);
    share_range(s_.outer, threads, [&](int64_t first, int64_t last, int) {
      const Sum none[kStreams] = {kNone, kNone, kNone, kNone};
      for (; first + kStreams <= last; first += kStreams) scan<kStreams>(first * s_.row, s_.row, s_.row, none);
      for (; first < last; first++) scan<1>(first * s_.row, s_.row, s_.row, none);
    });
  }

 private:
  static constexpr Sum kNone = how == Running::Sum ? 0 : 1;

  // A row is cut where there are too few.
  int64_t parts_of_row(int threads) const {
    constexpr int64_t kShort = 1024;
    return how == Running::Sum && kHasSafeParts<how, T> && s_.outer < kStreams * threads && s_.row >= kShort
               ? kStreams * threads
               : 1;
  }

  // The offset of a row's element number k in the order that it is run in.
  int64_t place(int64_t k, int64_t row) const { return is_reversed ? row - 1 - k : k; }

  // `count` elements of as many streams, of which each begins `distance` after the one before, in memory.
  template <int streams>
  void scan(int64_t begin, int64_t distance, int64_t count, const Sum* before) const {
    Sum sums[streams];
    for (int s = 0; s < streams; s++) sums[s] = before[s];
    const T* const x = x_ + begin;
    T* const y = y_ + begin;
    for (int64_t k = 0; k < count; k++)
      for (int s = 0; s < streams; s++) {
        const int64_t at = s * distance + place(k, count);
        const Sum with = run_on<how>(sums[s], static_cast<Sum>(x[at]));
        y[at] = static_cast<T>(is_exclusive ? sums[s] : with);
        sums[s] = with;
      }
  }

  Sum total(const T* x, int64_t count) const {
    Sum lanes[kLanes] = {};
    for (; count >= kLanes; count -= kLanes, x += kLanes)
      for (int64_t lane = 0; lane < kLanes; lane++) lanes[lane] += static_cast<Sum>(x[lane]);
    for (int64_t lane = 0; lane < count; lane++) lanes[lane] += static_cast<Sum>(x[lane]);
    Sum sum = 0;
    for (const Sum lane : lanes) sum += lane;
    return sum;
  }

  // Parts of equal lengths, and what is left behind them in memory; their totals first.
  void run_parts(int64_t parts, int threads) const {
    const int64_t length = s_.row / parts, left = s_.row - parts * length;
    thread_local std::vector<Sum> kept;
    kept.resize(static_cast<size_t>(s_.outer * (parts + 1)));
    Sum* const before = kept.data();
    share_each(s_.outer * parts, threads, [&](int64_t k, int) {
      before[k / parts * (parts + 1) + k % parts] = total(x_ + k / parts * s_.row + k % parts * length, length);
    });
    for (int64_t block = 0; block < s_.outer; block++) {
      Sum* const own = before + block * (parts + 1);
      own[parts] = total(x_ + block * s_.row + parts * length, left);
      Sum sum = 0;
      for (int64_t k = 0; k <= parts; k++) {
        const int64_t part = place(k, parts + 1);
        const Sum of_part = own[part];
        own[part] = sum;
        sum += of_part;
      }
    }
    const int64_t groups = parts / kStreams;
    share_each(s_.outer * groups, threads, [&](int64_t k, int) {
      const int64_t block = k / groups, part = k % groups * kStreams;
      scan<kStreams>(block * s_.row + part * length, length, length, before + block * (parts + 1) + part);
    });
    for (int64_t block = 0; block < s_.outer; block++)
      scan<1>(block * s_.row + parts * length, left, left, before + block * (parts + 1) + parts);
  }

  // Elements beside each other each have their own sum; in strips, so that each thread has one, but of short lines
  // that begin within lines of the cache, of which two threads would write one in each: what takes longer than it
  // saves.
  void run_columns(int threads) const {
    constexpr int64_t kOfCache = 64, kShort = 4096;  // bytes
    const auto line = s_.inner * static_cast<int64_t>(sizeof(T));
    const bool are_shared = line % kOfCache != 0 && line < kShort;
    const int64_t of_threads = are_shared ? s_.inner : (s_.outer * s_.inner + threads - 1) / threads,
                  width = std::min({kColumns, s_.inner, (of_threads + kLanes - 1) / kLanes * kLanes}),
                  strips = (s_.inner + width - 1) / width;
    share_each(s_.outer * strips, threads, [&](int64_t k, int) {
      const int64_t first = k % strips * width;
      run_strip(k / strips * s_.row * s_.inner + first, std::min(width, s_.inner - first));
    });
  }

  void run_strip(int64_t begin, int64_t count) const {
    // Lines that lie near each other are gone through again for every few columns, whose sums are in registers then.
    if (s_.inner <= kColumns) {
      constexpr int64_t kWide = 4 * kOfVector;
      for (; count >= kWide; begin += kWide, count -= kWide) run_vectors<4>(begin);
      for (; count >= kOfVector; begin += kOfVector, count -= kOfVector) run_vectors<1>(begin);
    }
    Sum sums[kColumns];
    std::fill(sums, sums + count, kNone);
    for (int64_t step = 0; step < s_.row; step++) {
      const T* __restrict const x = x_ + begin + place(step, s_.row) * s_.inner;
      T* __restrict const y = y_ + (x - x_);
      for (int64_t c = 0; c < count; c++) {
        const Sum with = run_on<how>(sums[c], static_cast<Sum>(x[c]));
        y[c] = static_cast<T>(is_exclusive ? sums[c] : with);
        sums[c] = with;
      }
    }
  }

  template <int kVectors>
  void run_vectors(int64_t begin) const {
    typedef T Elements __attribute__((vector_size(kOfVector * sizeof(T))));
    typedef Sum Sums __attribute__((vector_size(kOfVector * sizeof(Sum))));
    Sums sums[kVectors];
    for (Sums& own : sums) own = Sums{} + kNone;
    for (int64_t step = 0; step < s_.row; step++) {
      const int64_t at = begin + place(step, s_.row) * s_.inner;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) {
        Elements own;
        std::memcpy(&own, x_ + at + v * kOfVector, sizeof own);
        const Sums elements = __builtin_convertvector(own, Sums),
                   with = how == Running::Sum ? sums[v] + elements : sums[v] * elements;
        own = __builtin_convertvector(is_exclusive ? sums[v] : with, Elements);
        std::memcpy(y_ + at + v * kOfVector, &own, sizeof own);
        sums[v] = with;
      }
    }
  }

  const T* x_;
  T* y_;
  RowSizes s_;
};

template <Running how, bool is_reversed, bool is_exclusive, class T>
void run_along_rows(const T* x, T* y, const RowSizes& sizes) {
  RunningRows<how, is_reversed, is_exclusive, T>(x, y, sizes).run();
}

// ---- what is largest, in order ----

// Less for what comes first. A NaN is above all numbers, and zeros are equal.
template <bool is_largest, class T>
auto order_of(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  if constexpr (std::is_floating_point_v<T>) x += 0;  // of -0 it makes 0
  Bits bits;
  std::memcpy(&bits, &x, sizeof bits);
  if constexpr (std::is_floating_point_v<T>) {
    bits ^= (bits & kSign) != 0 ? std::numeric_limits<Bits>::max() : kSign;
    bits = x != x ? std::numeric_limits<Bits>::max() : bits;
  } else {
    bits ^= kSign;
  }
  return is_largest ? static_cast<Bits>(~bits) : bits;
}

// An element's order and its place in the row; of 32 bits each they are one number.
template <class Bits>
struct Ranked {
  Bits order;
  uint64_t at;

  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.order < b.order || (a.order == b.order && a.at < b.at);
  }
};
template <class Bits>
struct RankedOf {
  using Type = Ranked<Bits>;
  static Type of(Bits order, int64_t at) { return {order, static_cast<uint64_t>(at)}; }
  static Bits order(const Type& item) { return item.order; }
  static int64_t place(const Type& item) { return static_cast<int64_t>(item.at); }
};
template <>
struct RankedOf<uint32_t> {
  using Type = uint64_t;
  static Type of(uint32_t order, int64_t at) { return (uint64_t{order} << 32) | static_cast<uint32_t>(at); }
  static uint32_t order(Type item) { return static_cast<uint32_t>(item >> 32); }
  static int64_t place(Type item) { return static_cast<uint32_t>(item); }
};

// Of most elements it is only seen that they come after as many as are wanted; what does not is kept until there are
// twice as many, or a few more, of which the first are found (Hoare's selection) and stay.
template <bool is_largest, class T>
class TopOfRow {
  using Bits = decltype(order_of<is_largest>(T()));
  using Items = RankedOf<Bits>;
  using Item = typename Items::Type;

 public:
  TopOfRow(const T* row, int64_t length, int64_t count) : row_(row), length_(length), count_(count) {
    constexpr int64_t kFew = 32, kInserted = 16;
    most_ = count <= kInserted ? count : std::min(length, count + std::max(count, kFew));
    items_ = room(0, most_ + kAtOnce);
    if (count == 1)
      keep_best();
    else
      count <= kInserted ? insert_all() : keep_all();
  }

  int64_t place(int64_t rank) const { return Items::place(items_[rank]); }

 private:
  static constexpr int64_t kAtOnce = 32;

  // Whether any of the next so many elements comes before the last that is kept; what is equal to it does not.
  bool is_any_before(int64_t first) const {
    Bits those = 0;
    for (int64_t j = 0; j < kAtOnce; j++) those |= static_cast<Bits>(order_of<is_largest>(row_[first + j]) < last_);
    return those != 0;
  }

  // The only one that is wanted: of parts the least order, and within the first part that has the least of all, its
  // place.
  void keep_best() {
    constexpr int64_t kPart = 4 * kAtOnce;
    Bits best = std::numeric_limits<Bits>::max();
    int64_t at = 0;
    for (int64_t k = 0; k < length_; k += kPart) {
      const int64_t end = std::min(length_, k + kPart);
      Bits least = std::numeric_limits<Bits>::max();
#pragma omp simd reduction(min : least)
      for (int64_t j = k; j < end; j++) {
        const Bits order = order_of<is_largest>(row_[j]);
        least = order < least ? order : least;
      }
      if (least < best) best = least, at = k;
    }
    const auto count = static_cast<int>(std::min(length_ - at, kPart));
    int place = count - 1;
#pragma omp simd reduction(min : place)
    for (int j = 0; j < count; j++) {
      const int own = order_of<is_largest>(row_[at + j]) == best ? j : count - 1;
      place = own < place ? own : place;
    }
    items_[0] = Items::of(best, at + place);
  }

  // A few in their order, into which each is put that comes before their last.
  void insert_all() {
    for (; kept_ < count_; kept_++) insert(kept_, kept_);
    int64_t k = count_;
    for (; k < length_; k = std::min(length_, k + kAtOnce)) {
      if (k + kAtOnce <= length_ && !is_any_before(k)) continue;
      for (int64_t j = k; j < std::min(length_, k + kAtOnce); j++)
        if (order_of<is_largest>(row_[j]) < last_) insert(j, count_ - 1);
    }
  }

  // Without a branch: each of the first `held` is less than what goes on.
  void insert(int64_t at, int64_t held) {
    Item item = Items::of(order_of<is_largest>(row_[at]), at);
    for (int64_t k = 0; k < held; k++) {
      const Item own = items_[k];
      const bool is_less = item < own;
      items_[k] = is_less ? item : own;
      item = is_less ? own : item;
    }
    items_[held] = item;
    last_ = Items::order(item);
  }

  void keep_all() {
    int64_t k = 0;
    for (; k < most_; k++) items_[k] = Items::of(order_of<is_largest>(row_[k]), k);
    kept_ = most_;
    if (length_ > most_) keep_first();
    for (; k + kAtOnce <= length_; k += kAtOnce) {
      if (!is_any_before(k)) continue;
      add(k, k + kAtOnce);
      if (kept_ >= most_) keep_first();
    }
    add(k, length_);
    if (kept_ > count_) keep_first();
    sort();
  }

  // This thread's.
  static Item* room(size_t which, int64_t count) {
    thread_local std::array<std::vector<Item>, 2> rooms;
    if (static_cast<int64_t>(rooms[which].size()) < count) rooms[which].resize(static_cast<size_t>(count));
    return rooms[which].data();
  }

  // Many items that are one number by their digits, the least first (Knuth, The Art of Computer Programming, volume 3,
  // section 5.2.5): those of places, where these are not in order, then those of orders.
  void sort() {
    constexpr int64_t kFewest = 96, kMany = 8192;
    if constexpr (std::is_same_v<Item, uint64_t>) {
      if (count_ >= kFewest) return count_ < kMany ? sort_by_digits<8>() : sort_by_digits<11>();
    }
    std::sort(items_, items_ + count_);
  }
  template <int bits>
  void sort_by_digits() {
    constexpr int kOrder = 32, kEnd = 64;
    if (length_ > count_)
      for (int shift = 0; (length_ - 1) >> shift > 0; shift += bits) sort_by_digit<bits>(shift);
    for (int shift = kOrder; shift < kEnd; shift += bits) sort_by_digit<bits>(shift);
  }
  template <int bits>
  void sort_by_digit(int shift) {
    constexpr uint64_t kDigit = (uint64_t{1} << bits) - 1;
    std::array<uint32_t, kDigit + 1> next{};
    const auto digit = [shift](Item item) { return (item >> shift) & kDigit; };
    for (int64_t k = 0; k < count_; k++) next[digit(items_[k])]++;
    if (next[digit(items_[0])] == count_) return;  // all have it
    uint32_t before = 0;
    for (uint32_t& own : next) before += std::exchange(own, before);
    Item* const sorted = room(items_ == room(0, 0) ? 1 : 0, count_);
    for (int64_t k = 0; k < count_; k++) sorted[next[digit(items_[k])]++] = items_[k];
    items_ = sorted;
  }

  void keep_first() {
    std::nth_element(items_, items_ + (count_ - 1), items_ + kept_);
    kept_ = count_;
    last_ = Items::order(items_[count_ - 1]);
  }

  // What is equal to the last that is kept comes after it.
  void add(int64_t first, int64_t end) {
    for (; first < end; first++) {
      const Bits order = order_of<is_largest>(row_[first]);
      items_[kept_] = Items::of(order, first);
      kept_ += order < last_ ? 1 : 0;
    }
  }

  const T* row_;
  int64_t length_, count_, most_ = 0, kept_ = 0;  // kept at most, and now
  Item* items_ = nullptr;                         // this thread's until it looks at another row
  Bits last_ = 0;
};

// Rows lie beside each other (inner = 1) and have `count` elements or more. What nobody reads is null.
template <bool is_largest, class T>
void take_top(const T* x, T* values, int64_t* places, const RowSizes& s, int64_t count) {
  if (count == 0) return;
  const auto threads = static_cast<int>(std::min<int64_t>(threads_now(), 1 + s.outer * s.row / kRowWorthAThread));
  share_each(s.outer, threads, [&](int64_t r, int) {
    const T* const row = x + r * s.row;
    const TopOfRow<is_largest, T> top(row, s.row, count);
    for (int64_t k = 0; k < count; k++) {
      if (values) values[r * count + k] = row[top.place(k)];
      if (places) places[r * count + k] = top.place(k);
    }
  });
}

}  // namespace gopt_runtime
