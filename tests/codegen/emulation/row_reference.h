// Functions of rows by their definition, one element after another, for kernels of every target to be compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace reference {

struct Rows {
  int64_t outer, row, inner;
  int64_t count() const { return outer * row * inner; }
  int64_t at(int64_t block, int64_t k, int64_t column) const { return (block * row + k) * inner + column; }
};

enum class Numbers { Usual, Large, Equal, Special };

// Usual: of both signs. Equal: few different ones. Special: NaN, infinities and zeros of both signs among them.
template <class T>
std::vector<T> drawn(int64_t count, Numbers numbers, uint64_t seed) {
  std::vector<T> all(static_cast<size_t>(count));
  for (T& x : all) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<int64_t>(seed >> 33);  // 31 of them
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(numbers == Numbers::Equal   ? bits % 3 - 1
                         : numbers == Numbers::Usual ? bits % 2001 - 1000
                                                     : (bits << 1) - (int64_t{1} << 31));
    } else {
      const T part = static_cast<T>(bits) / static_cast<T>(int64_t{1} << 30) - 1;
      constexpr T kInf = std::numeric_limits<T>::infinity();
      constexpr T kNan = std::numeric_limits<T>::quiet_NaN();  // of both signs: processors make the negative one
      const T special[] = {kNan, -kNan, kInf, -kInf, T(-0.0), T(0), -part, part};
      x = numbers == Numbers::Equal     ? static_cast<T>(bits % 3 - 1)
          : numbers == Numbers::Special ? special[bits / 64 % 8]
          : numbers == Numbers::Large   ? part * static_cast<T>(1e36)
                                        : part;
    }
  }
  return all;
}

// In exact arithmetic for integers, which wrap around, and in that of long doubles for floats.
template <class T>
std::vector<T> running(const std::vector<T>& x, const Rows& s, bool is_product, bool is_reversed, bool is_exclusive) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, long double>;
  std::vector<T> y(x.size());
  for (int64_t block = 0; block < s.outer; block++)
    for (int64_t column = 0; column < s.inner; column++) {
      Sum sum = is_product ? 1 : 0;
      for (int64_t k = 0; k < s.row; k++) {
        const auto at = static_cast<size_t>(s.at(block, is_reversed ? s.row - 1 - k : k, column));
        const Sum with = is_product ? sum * static_cast<Sum>(x[at]) : sum + static_cast<Sum>(x[at]);
        y[at] = static_cast<T>(is_exclusive ? sum : with);
        sum = with;
      }
    }
  return y;
}

// Places in each row, of which the first `count` stand in order.
template <class T>
std::vector<int64_t> top(const std::vector<T>& x, const Rows& s, int64_t count, bool is_largest) {
  const auto above = [](T a, T b) { return a != a ? b == b : a > b; };
  std::vector<int64_t> all;
  for (int64_t block = 0; block < s.outer; block++) {
    std::vector<int64_t> order(static_cast<size_t>(s.row));
    std::iota(order.begin(), order.end(), 0);
    const T* row = x.data() + block * s.row;
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return is_largest ? above(row[a], row[b]) : above(row[b], row[a]); });
    all.insert(all.end(), order.begin(), order.begin() + count);
  }
  return all;
}

// What sums of these in 64 bits may be off by.
template <class T>
double lost_by_sums(const std::vector<T>& x) {
  double all = 0;
  for (const T& own : x)
    if (std::abs(static_cast<double>(own)) < HUGE_VAL) all += std::abs(static_cast<double>(own));
  return 1e-15 * all;
}

// The first number that is not as it should be; -1: none. Of floats the last bits may differ, and by `lost`.
template <class T>
int64_t first_wrong(const std::vector<T>& got, const std::vector<T>& want, double lost) {
  for (size_t k = 0; k < want.size(); k++) {
    if constexpr (std::is_integral_v<T>) {
      if (got[k] != want[k]) return static_cast<int64_t>(k);
    } else {
      const double error = std::abs(static_cast<double>(got[k]) - static_cast<double>(want[k]));
      constexpr double kRounding = sizeof(T) == 4 ? 6.1e-8 : 1e-13;  // of floats half of the last bit
      const double allowed = kRounding * std::abs(static_cast<double>(want[k])) + lost;
      const bool is_same = got[k] == want[k] || (got[k] != got[k] && want[k] != want[k]);
      if (!is_same && !(error <= allowed)) return static_cast<int64_t>(k);
    }
  }
  return -1;
}

}  // namespace reference
