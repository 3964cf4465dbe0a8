// Functions of rows in loops of our own: rows that fill no block, fewer rows than threads, NaN, zeros of both signs,
// equal elements, integers that wrap around.
#include <gtest/gtest.h>

#include "emulation/row_reference.h"
#include "gopt_row_functions.h"

namespace gopt_runtime {
namespace {

using reference::Numbers;

const Numbers kNumbers[] = {Numbers::Usual, Numbers::Large, Numbers::Equal, Numbers::Special};

template <class T>
class RowFunctions : public ::testing::Test {
 protected:
  void TearDown() override { omp_set_num_threads(threads_); }

 private:
  int threads_ = omp_get_max_threads();
};
using Types = ::testing::Types<float, double, int32_t, int64_t>;
TYPED_TEST_SUITE(RowFunctions, Types);

template <Running how, bool is_reversed, bool is_exclusive, class T>
void expect_running(const std::vector<T>& x, const reference::Rows& s, const std::string& what) {
  constexpr T kBeyond = 77;
  std::vector<T> y(x.size() + 1, kBeyond);
  run_along_rows<how, is_reversed, is_exclusive>(x.data(), y.data(), {s.outer, s.row, s.inner});
  EXPECT_EQ(y.back(), kBeyond) << what;
  y.pop_back();
  const auto want = reference::running(x, s, how == Running::Product, is_reversed, is_exclusive);
  EXPECT_EQ(reference::first_wrong(y, want, reference::lost_by_sums(x)), -1)
      << what << (is_reversed ? " reversed" : "") << (is_exclusive ? " exclusive" : "");
}

TYPED_TEST(RowFunctions, RunningOnesAreAsInExactArithmetic) {
  const reference::Rows sizes[] = {{1, 1, 1},    {1, 17, 1}, {3, 100, 1},  {9, 33, 1},   {1, 5000, 1},
                                   {2, 4099, 1}, {1, 40, 3}, {2, 21, 300}, {5, 9, 31},   {1, 3000, 70},
                                   {0, 5, 1},    {0, 40, 3}, {5, 40, 0},   {1, 2000, 0}, {3, 0, 2}};
  uint64_t seed = 3;
  for (const auto& s : sizes)
    for (const Numbers numbers : kNumbers)
      for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        const auto x = reference::drawn<TypeParam>(s.count(), numbers, seed++);
        const std::string what = std::to_string(s.outer) + " " + std::to_string(s.row) + " " + std::to_string(s.inner) +
                                 " numbers " + std::to_string(static_cast<int>(numbers));
        expect_running<Running::Sum, false, false>(x, s, what);
        expect_running<Running::Sum, false, true>(x, s, what);
        expect_running<Running::Sum, true, false>(x, s, what);
        expect_running<Running::Sum, true, true>(x, s, what);
        if (numbers == Numbers::Large || s.row > 100) continue;  // products leave the range of 64 bits
        expect_running<Running::Product, false, false>(x, s, what);
        expect_running<Running::Product, true, true>(x, s, what);
      }
}

template <bool is_largest, class T>
void expect_top(const std::vector<T>& x, const reference::Rows& s, int64_t count) {
  const std::vector<int64_t> want = reference::top(x, s, count, is_largest);
  std::vector<T> values(want.size());
  std::vector<int64_t> places(want.size()), alone(want.size());
  const RowSizes sizes{s.outer, s.row, 1};
  take_top<is_largest>(x.data(), values.data(), places.data(), sizes, count);
  take_top<is_largest>(x.data(), static_cast<T*>(nullptr), alone.data(), sizes, count);
  EXPECT_EQ(places, want) << s.row << " " << count;
  EXPECT_EQ(alone, want);
  for (size_t k = 0; k < want.size(); k++) {
    const T& own = x[static_cast<size_t>(static_cast<int64_t>(k) / count * s.row + want[k])];
    ASSERT_EQ(std::memcmp(&values[k], &own, sizeof own), 0) << k;
  }
}

TYPED_TEST(RowFunctions, TopIsThatOfASort) {
  struct Case {
    int64_t outer, row, count;
  };
  const Case cases[] = {{1, 1, 1},      {3, 20, 20},     {2, 100, 7}, {7, 600, 1},     {1, 1100, 600},  {2, 9000, 10},
                        {1, 9000, 700}, {1, 9000, 9000}, {0, 20, 3},  {1, 2049, 2048}, {1, 70000, 8300}};
  uint64_t seed = 7;
  for (const Case& c : cases)
    for (const Numbers numbers : kNumbers)
      for (const int threads : {1, 2}) {
        omp_set_num_threads(threads);
        const reference::Rows s{c.outer, c.row, 1};
        const auto x = reference::drawn<TypeParam>(s.count(), numbers, seed++);
        expect_top<true>(x, s, c.count);
        expect_top<false>(x, s, c.count);
        auto rising = x;  // each element comes before all so far
        std::ranges::sort(rising, [](auto a, auto b) { return a < b || (a == a && b != b); });
        expect_top<true>(rising, s, c.count);
      }
}

}  // namespace
}  // namespace gopt_runtime
