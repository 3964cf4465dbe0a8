#include "gopt/layout.h"

#include <algorithm>
#include <numeric>

namespace gopt {

Layout Layout::blocked(int lanes) { return {Order::Blocked, lanes}; }
Layout Layout::channels_last(int64_t line) { return Layout(Order::ChannelsLast, 1).with_line(line); }
Layout Layout::channels_last_in_parts() {
  Layout layout = channels_last();
  layout.is_in_parts_ = true;
  return layout;
}
Layout Layout::with_line(int64_t line) const {
  Layout layout = *this;
  if (is_channels_last()) layout.line_ = line;
  layout.is_in_parts_ = false;
  return layout;
}
Layout Layout::transposed() { return {Order::Transposed, 1}; }
Layout Layout::in_chunks(int bits) const {
  Layout layout = *this;
  layout.chunk_bits_ = bits;
  return layout;
}

std::vector<size_t> Layout::axes(size_t rank) const {
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  switch (order_) {
    case Order::Plain: break;
    case Order::Blocked: axes.push_back(1); break;
    case Order::ChannelsLast: std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end()); break;
    case Order::Transposed: std::swap(axes[rank - 1], axes[rank - 2]); break;
  }
  return axes;
}

std::vector<int64_t> Layout::extents(const std::vector<int64_t>& dims) const {
  std::vector<int64_t> extents;
  for (size_t axis : axes(dims.size())) extents.push_back(dims[axis]);
  if (is_blocked()) {
    extents[1] = (dims[1] + lanes_ - 1) / lanes_;
    extents.back() = lanes_;
  }
  return extents;
}

Shape Layout::extents(const Shape& shape) const {
  Shape extents;
  for (size_t axis : axes(shape.size())) extents.push_back(shape[axis]);
  if (is_blocked()) {
    extents[1] = ceil_div(shape[1], Index(lanes_));
    extents.back() = Index(lanes_);
  }
  return extents;
}

Index Layout::elements(const Shape& shape) const {
  const Shape sizes = extents(shape);
  Index count(1);
  if (line_ > 0) {
    for (size_t d = 0; d + 1 < sizes.size(); d++) count = count * sizes[d];
    return (count - Index(1)) * Index(line_) + sizes.back();
  }
  for (const Index& extent : sizes) count = count * extent;
  return count;
}

int64_t Layout::bytes(const std::vector<int64_t>& dims, ElementType element) const {
  const std::vector<int64_t> sizes = extents(dims);
  int64_t count = element_count(sizes);
  if (line_ > 0 && count > 0) count = (count / sizes.back() - 1) * line_ + sizes.back();
  constexpr int64_t kByte = 8;
  if (chunk_bits_ > 0) return count * chunk_bits_ / kByte;
  return count * static_cast<int64_t>(size_bytes(element));
}

Index Layout::offset(const Shape& shape, const std::vector<Index>& subscripts) const {
  std::vector<Index> at;
  for (size_t axis : axes(shape.size())) at.push_back(subscripts[axis]);
  if (is_blocked()) {
    at[1] = floor_div(subscripts[1], Index(lanes_));
    at.back() = modulo(subscripts[1], Index(lanes_));
  }
  const Shape sizes = extents(shape);
  Index offset, stride(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    offset += at[d] * stride;
    stride = stride * (line_ > 0 && d + 1 == sizes.size() ? Index(line_) : sizes[d]);
  }
  return offset;
}

std::string to_string(const Layout& layout) {
  if (layout.is_blocked()) return "blocked" + std::to_string(layout.lanes());
  if (layout.is_channels_last())
    return std::string("channels-last") + (layout.is_in_parts() ? " in parts"
                                           : layout.line() > 0  ? "/" + std::to_string(layout.line())
                                                                : "");
  return std::string(layout.is_transposed() ? "transposed" : "plain") +
         (layout.chunk_bits() > 0 ? " in chunks of " + std::to_string(layout.chunk_bits()) + " bits" : "");
}

}  // namespace gopt
