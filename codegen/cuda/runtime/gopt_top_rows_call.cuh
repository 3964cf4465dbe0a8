// What is largest in rows, on its way to the device: few of them, by ranks, or by digits.
#pragma once

#include "gopt_top_few.cuh"
#include "gopt_top_rows.cuh"

namespace gopt_runtime {
namespace rows {

// Rows lie beside each other (inner = 1) and have `count` elements or more.
template <bool is_largest, class T>
void take_top(const T* x, T* values, int64_t* places, const RowSizes& s, int64_t count, cudaStream_t stream) {
  using Order = OrderOf<is_largest, T>;
  constexpr int64_t kFewest = 192, kManyRows = 1024, kSmallest = 64, kSample = 1024, kMostSamples = 4096,
                    kItem = Items<Order>::kBytes;
  constexpr int64_t kFixed = 4096;  // shared memory that is not the launch's to say
  if (s.outer * count == 0) return;
  int device = 0, most_bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int64_t most_room = (most_bytes - kFixed) / kItem;
  const Top<T> top{values, places, count};
  // Where a lane keeps more than four, that takes long, and pays for many rows alone.
  const bool has_places = s.row < UINT32_MAX;  // of 32 bits
  if (has_places && (count <= kUsualFew || (count <= kMostFew && s.row > kFewest && s.outer >= kManyRows)))
    return take_first_few<is_largest>(x, top, s.outer, s.row, stream);
  int64_t room = kSmallest;
  while (room < count) room *= 2;
  if (s.row <= kRankThreads || room > most_room || !has_places) {
    const int64_t threads = s.row < kRankThreads ? (s.row + 31) / 32 * 32 : kRankThreads;
    launch_kernel(&rank_rows<is_largest, T>, s.outer * ((s.row + threads - 1) / threads), threads, stream, x, top,
                  s.row);
    return;
  }
  // All of a row that is no longer; else twice as many as are wanted or more, and a sample that is rarely wrong. What
  // comes before its element number r, `row` / samples times r, is off by the square root of r of these; and is between
  // `count` and the room where that is (room - count) / 2 at most, as far as 2.6 standard deviations reach.
  int64_t samples = kSample;
  const auto is_enough = [&] {
    if (room >= s.row) return true;
    if (room < kSample || room < 2 * count) return false;
    constexpr double kSquareOfDeviations = 13.5;  // 2 x 2.6 x 2.6
    const double half = static_cast<double>(room - count), both = static_cast<double>(room + count);
    for (samples = kSample; samples <= room && samples <= kMostSamples; samples *= 2)
      if (half * half * static_cast<double>(samples) >= kSquareOfDeviations * static_cast<double>(s.row) * both)
        return true;
    samples = room < kMostSamples ? room : kMostSamples;
    return false;
  };
  while (!is_enough() && 2 * room <= most_room) room *= 2;
  if (samples > room) samples = room;
  const auto kernel = &select_rows<is_largest, T>;
  cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(room * kItem));
  int64_t length = s.row;
  auto of_room = static_cast<int>(room), of_sample = static_cast<int>(samples);
  void* passed[] = {&x, const_cast<Top<T>*>(&top), &length, &of_room, &of_sample};
  const int threads = s.row >= 2 * kTopThreads ? kTopThreads : kTopThreads / 2;
  launch_dependent(reinterpret_cast<const void*>(kernel),
                   {.grid = dim3(static_cast<unsigned>(s.outer)),
                    .threads = dim3(static_cast<unsigned>(threads)),
                    .shared_bytes = static_cast<size_t>(room * kItem)},
                   passed, stream);
}

}  // namespace rows
}  // namespace gopt_runtime
