// In which order a tensor's elements lie in memory: what a plan says of each of its buffers, apart from the tensor's
// type. Who needs offsets, sizes or lanes asks the layout.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "gopt/index.h"
#include "gopt/type.h"

namespace gopt {

class Layout {
 public:
  Layout() = default;  // plain: the last axis varies fastest
  // Channels (axis 1) in blocks of so many, rounded up, the rest zero: N, C/lanes, spatial..., lanes.
  static Layout blocked(int lanes);
  // N, spatial..., C. The channels of a position may be a part of a longer line in memory, of so many elements: 0 means
  // that they are the line.
  static Layout channels_last(int64_t line = 0);
  // A choice for the values of a class rather than the layout of one: channels last, and what is cut from channels or
  // joined along them lies in the lines of the whole.
  static Layout channels_last_in_parts();
  static Layout transposed();  // the last two axes exchanged (weights only)
  // As this one, but numbers of 4 or 8 bits in chunks of sixteen words of 32 bits, in the order in which kernels for
  // CUDA read them (codegen/cuda/runtime/gopt_quantized_vectors.cuh). Weights of bytes only, whose last axis in memory
  // has whole chunks.
  Layout in_chunks(int bits) const;

  bool is_plain() const { return order_ == Order::Plain; }
  bool is_transposed() const { return order_ == Order::Transposed; }
  bool is_channels_last() const { return order_ == Order::ChannelsLast; }
  bool is_blocked() const { return order_ == Order::Blocked; }
  bool is_in_parts() const { return is_in_parts_; }
  int chunk_bits() const { return chunk_bits_; }  // 0: elements are as they are
  int64_t line() const { return line_; }          // as channels_last has it
  // Channels last or not, with the line in place of what was said of parts.
  Layout with_line(int64_t line) const;
  int lanes() const { return lanes_; }  // of a block; 1 where there are none

  // Axes in memory, slowest first. A blocked one occurs twice: as its blocks, and last as their lanes.
  std::vector<size_t> axes(size_t rank) const;
  // Their extents, parallel to axes().
  std::vector<int64_t> extents(const std::vector<int64_t>& dims) const;
  Shape extents(const Shape& shape) const;
  // Of the whole tensor with what is rounded up.
  int64_t bytes(const std::vector<int64_t>& dims, ElementType element) const;
  Index elements(const Shape& shape) const;
  // In elements, of the element at these subscripts.
  Index offset(const Shape& shape, const std::vector<Index>& subscripts) const;

  friend auto operator<=>(const Layout&, const Layout&) = default;

 private:
  enum class Order { Plain, Blocked, ChannelsLast, Transposed };
  Layout(Order order, int lanes) : order_(order), lanes_(lanes) {}
  Order order_ = Order::Plain;
  int lanes_ = 1;
  int64_t line_ = 0;
  bool is_in_parts_ = false;
  int chunk_bits_ = 0;
};
std::string to_string(const Layout& layout);  // "plain", "blocked16", "channels-last", "channels-last/512", "transposed
                                              // in chunks of 4 bits"

}  // namespace gopt
