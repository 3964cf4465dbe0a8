// The kernels of functions of rows, run on the processor (emulation/device.h) under its sanitizers, against their
// definition: rows that fill no block and rows of several, equal elements, NaN, integers that wrap around.
#include <gtest/gtest.h>

#include "emulated_program.h"

namespace gopt {
namespace {

constexpr const char* kProgram = R"(
namespace {
using namespace gopt_runtime;
using namespace rows;
using reference::Numbers;
int wrong = 0;
uint64_t seed = 1;

void tell(const char* what, const reference::Rows& s, int64_t found) {
  std::printf("%s %ld %ld %ld: %ld\n", what, static_cast<long>(s.outer), static_cast<long>(s.row),
              static_cast<long>(s.inner), static_cast<long>(found));
  wrong += found >= 0;
}

template <class T, Running how, bool is_reversed, bool is_exclusive>
void expect(const reference::Rows& s, const std::vector<T>& x) {
  std::vector<T> y(x.size(), T(77));
  run_along_rows<how, is_reversed, is_exclusive>(x.data(), y.data(), RowSizes{s.outer, s.row, s.inner}, nullptr);
  const auto want = reference::running(x, s, how == Running::Product, is_reversed, is_exclusive);
  tell("running", s, reference::first_wrong(y, want, reference::lost_by_sums(x)));
}
template <class T, Running how = Running::Sum, bool is_reversed = false, bool is_exclusive = false>
void run(const reference::Rows& s, Numbers numbers) {
  expect<T, how, is_reversed, is_exclusive>(s, reference::drawn<T>(s.count(), numbers, seed++));
}
template <class T, Running how, class Number>
void run_on_own(const reference::Rows& s, const Number& number) {
  std::vector<T> x;
  for (int64_t k = 0; k < s.count(); k++) x.push_back(number(k));
  expect<T, how, false, false>(s, x);
}

enum class Read { Both, Values, Places };

// `launch(x, top)` is to find what is largest, with so many bytes of memory.
template <class T, bool is_largest, class Launch>
void expect_top(const reference::Rows& s, int count, const std::vector<T>& x, Read read, size_t bytes,
                const Launch& launch) {
  const auto want = reference::top(x, s, count, is_largest);
  std::vector<T> values(want.size());
  std::vector<int64_t> places(want.size(), -1);
  for (emulation::Block& block : emulation::blocks) std::memset(block.memory, 0xff, emulation::kMemory);
  launch(x.data(),
         Top<T>{read == Read::Places ? nullptr : values.data(), read == Read::Values ? nullptr : places.data(), count});
  for (const emulation::Block& block : emulation::blocks)
    for (size_t i = bytes; i < emulation::kMemory; i++)
      if (block.memory[i] != static_cast<char>(0xff)) std::abort();  // beyond what it asked for
  int64_t found = read == Read::Values ? -1 : reference::first_wrong(places, want, 0);
  for (size_t k = 0; k < want.size() && found < 0 && read != Read::Places; k++) {
    const T& own = x[static_cast<size_t>(static_cast<int64_t>(k) / count * s.row + want[k])];
    if (std::memcmp(&values[k], &own, sizeof own) != 0) found = static_cast<int64_t>(k);
  }
  tell("top", s, found);
}

template <class T, bool is_largest>
void take(const reference::Rows& s, int count, Numbers numbers, int room, Read read = Read::Both) {
  constexpr int64_t kBlock = 96;
  const auto bytes = static_cast<size_t>(room * Items<OrderOf<is_largest, T>>::kBytes);
  const auto x = reference::drawn<T>(s.count(), numbers, seed++);
  expect_top<T, is_largest>(s, count, x, read, bytes, [&](const T* x, const Top<T>& top) {
    if (room > 0)
      gopt_runtime::launch_kernel(&select_rows<is_largest, T>, s.outer, kBlock, nullptr, x, top, Parts{s.row}, room,
                                  room / 2);
    else
      gopt_runtime::launch_kernel(&rank_rows<is_largest, T>, s.outer * ((s.row + kBlock - 1) / kBlock), kBlock, nullptr,
                                  x, top, s.row);
  });
}
template <class T, bool is_largest>
void take_few_of(const reference::Rows& s, int count, const std::vector<T>& x, Read read = Read::Both) {
  expect_top<T, is_largest>(s, count, x, read, 0, [&](const T* x, const Top<T>& top) {
    take_first_few<is_largest>(x, top, s.outer, Parts{s.row}, nullptr);
  });
}
template <class T, bool is_largest>
void take_few_of(const reference::Rows& s, int count, Numbers numbers, Read read = Read::Both) {
  take_few_of<T, is_largest>(s, count, reference::drawn<T>(s.count(), numbers, seed++), read);
}
// As the runtime divides it, on a device with so much shared memory.
template <class T, bool is_largest>
void take_as_divided(const reference::Rows& s, int count, int64_t parts, Numbers numbers, int64_t shared_bytes, Read read = Read::Both) {
  gopt_runtime::shared_bytes = shared_bytes;
  const auto x = reference::drawn<T>(s.count(), numbers, seed++);
  constexpr char kUnused = 0x55;
  std::vector<char> candidates(static_cast<size_t>(s.outer * parts * count * 16) + 1, kUnused);
  expect_top<T, is_largest>(s, count, x, read, emulation::kMemory, [&](const T* x, const Top<T>& top) {
    take_top<is_largest>(x, top.values, top.places, RowSizes{s.outer, s.row, 1}, count, parts, parts > 1 ? candidates.data() : nullptr, nullptr);
  });
  if (candidates.back() != kUnused) std::abort();
}
// All of a row, by the blocks of a cluster.
template <class T, bool is_largest>
void sort_by(int64_t blocks, const reference::Rows& s, int count, Numbers numbers, int room, Read read = Read::Both) {
  constexpr int64_t kBlock = 64;
  const auto bytes = static_cast<size_t>(room * Items<OrderOf<is_largest, T>>::kBytes);
  const auto x = reference::drawn<T>(s.count(), numbers, seed++);
  expect_top<T, is_largest>(s, count, x, read, bytes, [&](const T* x, const Top<T>& top) {
    gopt_runtime::launch_cluster_kernel(&sort_rows<is_largest, T>, s.outer, blocks, kBlock, nullptr, x, top,
                                        Parts{s.row}, room);
  });
}
// Rows of what comes after all else alone.
template <class T, bool is_largest>
void take_few_of_last(const reference::Rows& s, int count, T last) {
  take_few_of<T, is_largest>(s, count, std::vector<T>(static_cast<size_t>(s.count()), last));
}
}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  run<float>({2, 17, 1}, Numbers::Usual);
  run<float, Running::Sum, true>({1, 20011, 1}, Numbers::Large);
  run<double, Running::Sum>({2, 16390, 1}, Numbers::Usual);
  run<double, Running::Sum, false, true>({1, 4100, 1}, Numbers::Special);
  run<int32_t, Running::Sum, true, true>({3, 300, 1}, Numbers::Large);
  run<int64_t, Running::Product>({2, 90, 1}, Numbers::Usual);
  run<float, Running::Product, true>({1, 60, 1}, Numbers::Special);
  run<float>({2, 5, 3}, Numbers::Usual);
  run<float, Running::Sum, true, true>({2, 203, 40}, Numbers::Usual);
  run<int64_t, Running::Product, false, true>({1, 70, 33}, Numbers::Large);
  run<float, Running::Sum, false, true>({2, 9, 8192}, Numbers::Usual);
  // What a part of a row comes to is beyond the range, what the row comes to is not.
  run_on_own<float, Running::Product>({1, 300, 1}, [](int64_t k) { return k == 0 ? 0.0F : 1e3F; });
  run_on_own<float, Running::Product>({1, 200, 2}, [](int64_t k) { return k < 2 ? 0.0F : 1e30F; });
  run_on_own<double, Running::Sum>({1, 64, 1}, [](int64_t k) { return k == 0 ? -1e308 : k == 4 || k == 8 ? 1e308 : 0; });
  for (const Numbers numbers : {Numbers::Usual, Numbers::Large, Numbers::Equal, Numbers::Special}) {
    take<float, true>({2, 50, 1}, 7, numbers, 0, Read::Values);
    take<double, false>({1, 90, 1}, 80, numbers, 0);
    take<float, false>({1, 301, 1}, 301, numbers, 0);
    take<float, true>({2, 700, 1}, 30, numbers, 64);
    take<float, false>({1, 700, 1}, 64, numbers, 64);
    take<double, true>({1, 501, 1}, 30, numbers, 128, Read::Places);
    take<double, true>({1, 300, 1}, 250, numbers, 256);
    take<int32_t, true>({1, 400, 1}, 1, numbers, 64);
    take<int64_t, false>({1, 333, 1}, 100, numbers, 256);
    take<int64_t, true>({1, 100, 1}, 90, numbers, 128);
    take_few_of<float, true>({6, 40, 1}, 1, numbers, Read::Values);
    take_few_of<float, false>({2, 1100, 1}, 16, numbers);
    take_few_of<double, true>({3, 300, 1}, 4, numbers, Read::Places);
    take_few_of<double, false>({5, 33, 1}, 13, numbers);
    take_few_of<int32_t, true>({1, 2000, 1}, 3, numbers);
    take_few_of<int64_t, false>({1, 17, 1}, 9, numbers);
    take_few_of<float, true>({2, 400, 1}, 5, numbers);
    sort_by<float, true>(2, {2, 500, 1}, 500, numbers, 256);
    sort_by<double, false>(8, {1, 900, 1}, 333, numbers, 128, Read::Places);
    sort_by<int64_t, true>(4, {3, 128, 1}, 100, numbers, 64, Read::Values);
    sort_by<int32_t, false>(8, {1, 513, 1}, 513, numbers, 128);
    take_as_divided<float, true>({2, 1003, 1}, 3, 5, numbers, 16384);
    take_as_divided<int64_t, false>({1, 401, 1}, 1, 7, numbers, 16384, Read::Places);
    take_as_divided<double, true>({2, 907, 1}, 20, 6, numbers, 16384);
    take_as_divided<float, false>({1, 640, 1}, 64, 3, numbers, 16384, Read::Values);
    take_as_divided<float, true>({1, 3000, 1}, 2900, 1, numbers, 16384);  // more than a block has room for
  }
  take_few_of<float, true>({1, 4700, 1}, 2, Numbers::Equal);
  take_few_of_last<float, false>({2, 4, 1}, 4, std::numeric_limits<float>::quiet_NaN());
  take_few_of_last<int32_t, true>({1, 300, 1}, 3, INT32_MIN);
  take_few_of_last<int64_t, false>({3, 16, 1}, 16, INT64_MAX);
  std::printf(wrong == 0 ? "all are right\n" : "%d are wrong\n", wrong);
}
)";

TEST(EmulatedRows, AreAsTheirDefinition) {
  expect_all_right({"gopt_launch.h", "gopt_cluster.cuh", "row_reference.h"},
                   {"../../runtime/gopt_row_sizes.h", "gopt_running_rows.cuh", "gopt_top_rows.cuh", "gopt_top_few.cuh",
                    "gopt_top_sorted.cuh", "gopt_top_rows_call.cuh"},
                   kProgram);
}

}  // namespace
}  // namespace gopt
