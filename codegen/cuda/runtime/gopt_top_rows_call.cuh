// What is largest in rows, on its way to the device: few of them, by ranks, by digits, or by sorting all.
#pragma once

#include <cmath>

#include "gopt_top_few.cuh"
#include "gopt_top_rows.cuh"
#include "gopt_top_sorted.cuh"

namespace gopt_runtime {
namespace rows {

// Sorting so many elements by so many blocks takes, about (H200): a step of which each thread has a pair, and the
// meetings of blocks.
inline double microseconds_to_sort(int64_t count, int64_t blocks) {
  constexpr double kOfStep = 0.21, kOfBlocks = 12;
  const double doublings = std::log2(static_cast<double>(count)), pairs = static_cast<double>(count) / 2;
  const double turns = pairs / static_cast<double>(blocks * kTopThreads);
  return doublings * (doublings + 1) / 2 * (turns > 1 ? turns : 1) * kOfStep + (blocks > 1 ? kOfBlocks : 0);
}

// By the blocks of a cluster, where so many have room for all of a part, and that takes less than `microseconds`.
template <bool is_largest, class T>
bool sort_parts(const T* x, const Top<T>& top, int64_t count_of_parts, Parts parts, int64_t most_room,
                double microseconds, cudaStream_t stream) {
  constexpr int64_t kMostBlocks = 8, kAllBlocks = 128, kFewest = 512, kItem = Items<OrderOf<is_largest, T>>::kBytes;
  int64_t blocks = kMostBlocks, room = kFewest;
  while (room * blocks < parts.most()) room *= 2;
  while (blocks * count_of_parts > kAllBlocks && blocks > 1 && 2 * room <= most_room) blocks /= 2, room *= 2;
  if (!has_clusters() || blocks == 1 || room > most_room) return false;
  if (microseconds_to_sort(room * blocks, blocks) >= microseconds) return false;
  const auto kernel = &sort_rows<is_largest, T>;
  let_ask_for(reinterpret_cast<const void*>(kernel), room * kItem);
  const int64_t pairs = room / 2;
  launch_with(kernel,
              {.grid = dim3(static_cast<unsigned>(count_of_parts), static_cast<unsigned>(blocks)),
               .threads = dim3(static_cast<unsigned>(pairs < kTopThreads ? pairs : kTopThreads)),
               .shared_bytes = static_cast<size_t>(room * kItem),
               .cluster = static_cast<int>(blocks)},
              stream, x, top, parts, static_cast<int>(room));
  return true;
}

// Of each part.
template <bool is_largest, class T>
void take_top_of(const T* x, const Top<T>& top, int64_t count_of_parts, Parts parts, cudaStream_t stream) {
  using Order = OrderOf<is_largest, T>;
  constexpr int64_t kFewest = 192, kManyRows = 1024, kSmallest = 64, kSample = 1024, kMostSamples = 4096,
                    kItem = Items<Order>::kBytes;
  constexpr int64_t kFixed = 4096;  // shared memory that is not the launch's to say
  const int64_t most_room = (most_shared_bytes() - kFixed) / kItem, count = top.count, length = parts.most();
  // Where a lane keeps more than four, that takes long, and pays for many rows alone.
  const bool has_places = length < UINT32_MAX;  // of 32 bits
  if (has_places && (count <= kUsualFew || (count <= kMostFew && length > kFewest && count_of_parts >= kManyRows)))
    return take_first_few<is_largest>(x, top, count_of_parts, parts, stream);
  int64_t room = kSmallest;
  while (room < count) room *= 2;
  if (room > most_room && has_places &&
      sort_parts<is_largest>(x, top, count_of_parts, parts, most_room, HUGE_VAL, stream))
    return;
  if (parts.of_row == 1 && (length <= kRankThreads || room > most_room || !has_places)) {
    const int64_t threads = length < kRankThreads ? (length + 31) / 32 * 32 : kRankThreads;
    launch_kernel(&rank_rows<is_largest, T>, count_of_parts * ((length + threads - 1) / threads), threads, stream, x,
                  top, length);
    return;
  }
  // All of a row that is no longer; else twice as many as are wanted or more, and a sample that is rarely wrong. What
  // comes before its element number r, `length` / samples times r, is off by the square root of r of these; and is
  // between `count` and the room where that is (room - count) / 2 at most, as far as 2.6 standard deviations reach.
  int64_t samples = kSample;
  const auto is_enough = [&] {
    if (room >= length) return true;
    if (room < kSample || room < 2 * count) return false;
    constexpr double kSquareOfDeviations = 13.5;  // 2 x 2.6 x 2.6
    const double half = static_cast<double>(room - count), both = static_cast<double>(room + count);
    for (samples = kSample; samples <= room && samples <= kMostSamples; samples *= 2)
      if (half * half * static_cast<double>(samples) >= kSquareOfDeviations * static_cast<double>(length) * both)
        return true;
    samples = room < kMostSamples ? room : kMostSamples;
    return false;
  };
  while (!is_enough() && 2 * room <= most_room) room *= 2;
  if (samples > room) samples = room;
  if (sort_parts<is_largest>(x, top, count_of_parts, parts, most_room, microseconds_to_sort(room, 1), stream)) return;
  const auto kernel = &select_rows<is_largest, T>;
  let_ask_for(reinterpret_cast<const void*>(kernel), room * kItem);
  const int threads = length >= 2 * kTopThreads ? kTopThreads : kTopThreads / 2;
  launch_with(kernel,
              {.grid = dim3(static_cast<unsigned>(count_of_parts)),
               .threads = dim3(static_cast<unsigned>(threads)),
               .shared_bytes = static_cast<size_t>(room * kItem)},
              stream, x, top, parts, static_cast<int>(room), static_cast<int>(samples));
}

// Rows lie beside each other (inner = 1) and have `count` elements or more. Those in several parts, of as many elements
// or more and 2^32 at most, of which a block has room for `count`, have room in `candidates` for a value and a place,
// of eight bytes each, of so many of each part; each of these gives what it has first, of which the row's are taken
// then.
template <bool is_largest, class T>
void take_top(const T* x, T* values, int64_t* places, const RowSizes& s, int64_t count, int64_t parts, void* candidates,
              cudaStream_t stream) {
  if (s.outer * count == 0) return;
  if (parts == 1) return take_top_of<is_largest>(x, {values, places, count}, s.outer, {s.row}, stream);
  const int64_t of_parts = s.outer * parts;
  auto* const found_at = static_cast<int64_t*>(candidates);
  auto* const found = reinterpret_cast<T*>(found_at + of_parts * count);
  take_top_of<is_largest>(x, {found, places ? found_at : nullptr, count}, of_parts, {s.row, parts}, stream);
  take_top_of<is_largest>(static_cast<const T*>(found), {values, places, count, places ? found_at : nullptr}, s.outer,
                          {parts * count}, stream);
}

}  // namespace rows
}  // namespace gopt_runtime
