// Tensors as TASO's generator has them: small, of random integers that wrap around. Strides, and the places where a
// tensor was put together, are part of it: tensors that differ in them are told apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace taso_generator {

inline constexpr int kMaxElements = 512;
inline constexpr int kBatch = 2;

inline uint64_t combine(uint64_t hash, int value) { return hash * 31 + static_cast<uint64_t>(value); }
inline int product(int a, int b) { return static_cast<int>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)); }
inline int sum(int a, int b) { return static_cast<int>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
inline int relu_stand_in(int x) { return sum(product(x, sum(x, 1)), 1); }

// Where along an axis tensors were joined, the last seam last.
struct Seams {
  int count = 0;
  std::array<int, 16> places{};
  bool operator==(const Seams& other) const {
    return count == other.count && std::equal(places.begin(), places.begin() + count, other.places.begin());
  }
  void add(int place) { places[static_cast<size_t>(count++)] = place; }
};

// A variable has a negative number; else it is output `port` of application `source`.
struct Ref {
  int8_t source = 0, port = 0;
  bool operator==(const Ref& other) const = default;
  bool is_variable() const { return source < 0; }
};

struct Tensor {
  int rank = 0;
  std::array<int, 4> extents{}, strides{};
  std::array<Seams, 4> seams{};
  Ref ref;
  uint64_t hash = 0;
  std::array<int, kMaxElements> data;

  int size() const {
    int total = 1;
    for (int axis = 0; axis < rank; axis++) total *= extents[static_cast<size_t>(axis)];
    return total;
  }
  int place(int a, int b) const { return a * strides[0] + b * strides[1]; }
  int place(int a, int b, int c, int d) const { return place(a, b) + c * strides[2] + d * strides[3]; }
  int& at(int a, int b) { return data[static_cast<size_t>(place(a, b))]; }
  int at(int a, int b) const { return data[static_cast<size_t>(place(a, b))]; }
  int& at(int a, int b, int c, int d) { return data[static_cast<size_t>(place(a, b, c, d))]; }
  int at(int a, int b, int c, int d) const { return data[static_cast<size_t>(place(a, b, c, d))]; }

  void take_form_of(const Tensor& other) {
    rank = other.rank;
    extents = other.extents;
    strides = other.strides;
    seams = other.seams;
  }
  void make_dense() {
    int step = 1;
    for (size_t axis = static_cast<size_t>(rank); axis-- > 0; step *= extents[axis]) strides[axis] = step;
  }
  void make_hash() {
    hash = combine(17, rank);
    for (size_t axis = 0; axis < static_cast<size_t>(rank); axis++) {
      hash = combine(combine(hash, extents[axis]), strides[axis]);
      uint64_t own = combine(17, seams[axis].count);
      for (int i = 0; i < seams[axis].count; i++) own = combine(own, seams[axis].places[static_cast<size_t>(i)]);
      hash = hash * 31 + own;
    }
    for (int i = 0; i < size(); i++) hash = combine(hash, data[static_cast<size_t>(i)]);
  }
  bool is_same_as(const Tensor& other) const {
    if (hash != other.hash || rank != other.rank) return false;
    for (size_t axis = 0; axis < static_cast<size_t>(rank); axis++)
      if (extents[axis] != other.extents[axis] || strides[axis] != other.strides[axis] ||
          !(seams[axis] == other.seams[axis]))
        return false;
    return std::equal(data.begin(), data.begin() + size(), other.data.begin());
  }
};

// Calls visit(place in a, place in b) for every position of the box, by the strides of each.
template <typename Visit>
void for_each_position(const Tensor& box, const std::array<int, 4>& a, const std::array<int, 4>& b,
                       const Visit& visit) {
  const int size = box.size();
  for (int i = 0; i < size; i++) {
    int at_a = 0, at_b = 0, rest = i;
    for (auto axis = static_cast<size_t>(box.rank); axis-- > 0; rest /= box.extents[axis]) {
      const int position = rest % box.extents[axis];
      at_a += position * a[axis];
      at_b += position * b[axis];
    }
    visit(static_cast<size_t>(at_a), static_cast<size_t>(at_b));
  }
}

}  // namespace taso_generator
