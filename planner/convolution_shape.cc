#include "gopt/convolution_shape.h"

#include <algorithm>

#include "gopt/node_attributes.h"

namespace gopt {

std::vector<int64_t> pads_before(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const std::vector<int64_t>&x = plan.buffer(kernel.input_buffers[0]).dims,
        &w = plan.buffer(kernel.input_buffers[1]).dims, &y = plan.buffer(kernel.output_buffers[0]).dims;
  const size_t axes = x.size() - 2;
  std::vector<int64_t> pads = ints_or(node, "pads", std::vector<int64_t>(2 * axes, 0));
  pads.resize(axes);
  const auto it = node.attributes.find("auto_pad");
  const std::string automatic = it == node.attributes.end() ? "NOTSET" : std::get<std::string>(it->second);
  if (!node.is(OpKind::ConvTranspose) || (automatic == "NOTSET" && !node.attributes.contains("output_shape")))
    return pads;
  const std::vector<int64_t> ones(axes, 1), strides = ints_or(node, "strides", ones),
                                            dilations = ints_or(node, "dilations", ones),
                                            extra = ints_or(node, "output_padding", std::vector<int64_t>(axes, 0));
  for (size_t d = 0; d < axes; d++) {
    const int64_t full = strides[d] * (x[2 + d] - 1) + extra[d] + (w[2 + d] - 1) * dilations[d] + 1;
    const int64_t total = std::max<int64_t>(0, full - y[2 + d]);
    pads[d] = automatic == "VALID" && !node.attributes.contains("output_shape") ? 0
              : automatic == "SAME_UPPER"                                       ? total / 2
                                                                                : total - total / 2;
  }
  return pads;
}

bool ConvolutionShape::is_pointwise(size_t axis) const {
  return weights[2 + axis] == 1 && strides[axis] == 1 && pads[axis] == 0 && src[2 + axis] == dst[2 + axis];
}
bool ConvolutionShape::is_pointwise() const {
  for (size_t a = 0; a < axes(); a++)
    if (!is_pointwise(a)) return false;
  return true;
}

bool ConvolutionShape::pads_alike() const {
  const std::vector<int64_t>&image = transposed ? dst : src, &positions = transposed ? src : dst;
  for (size_t a = 0; a < axes(); a++) {
    const int64_t window = dilations[a] * (weights[2 + a] - 1) + 1;
    const int64_t room = image[2 + a] + 2 * pads[a] - window;
    if (pads[a] < 0 || room < 0 || room / strides[a] + 1 != positions[2 + a]) return false;
  }
  return true;
}

namespace {

void erase_axis(ConvolutionShape& shape, size_t a) {
  const auto erase = [](std::vector<int64_t>& numbers, size_t at) {
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::vector<int64_t>* dims : {&shape.src, &shape.weights, &shape.dst}) erase(*dims, 2 + a);
  for (std::vector<int64_t>* numbers : {&shape.strides, &shape.dilations, &shape.pads}) erase(*numbers, a);
}

void insert_axis(ConvolutionShape& shape) {
  for (std::vector<int64_t>* dims : {&shape.src, &shape.weights, &shape.dst}) dims->insert(dims->begin() + 2, 1);
  for (std::vector<int64_t>* numbers : {&shape.strides, &shape.dilations}) numbers->insert(numbers->begin(), 1);
  shape.pads.insert(shape.pads.begin(), 0);
}

void merge_axes(ConvolutionShape& shape, bool channels_last) {
  for (size_t a = 0; a + 1 < shape.axes();) {
    if (!shape.is_pointwise(a) || !shape.is_pointwise(a + 1)) {
      a++;
      continue;
    }
    for (std::vector<int64_t>* dims : {&shape.src, &shape.dst}) (*dims)[3 + a] *= (*dims)[2 + a];
    erase_axis(shape, a);
  }
  if (channels_last && shape.axes() > 1 && shape.is_pointwise(0)) {
    for (std::vector<int64_t>* dims : {&shape.src, &shape.dst}) (*dims)[0] *= (*dims)[2];
    erase_axis(shape, 0);
  }
}

void merge_lines_of_windows(ConvolutionShape& shape, int64_t element_bytes) {
  const auto follows = [&](size_t a) {
    return shape.strides[a] == shape.weights[2 + a] && shape.dilations[a] == 1 && shape.pads[a] == 0 &&
           shape.src[2 + a] == shape.dst[2 + a] * shape.strides[a];
  };
  const int64_t high = shape.weights[2], wide = shape.weights[3];
  constexpr int64_t kChunk = 16;
  if (shape.transposed || shape.groups != 1 || wide == 1 || !follows(0) || !follows(1)) return;
  if (shape.src[1] * wide * element_bytes % kChunk != 0) return;
  const int64_t lines = shape.dst[2];
  shape.src = {shape.src[0] * lines, shape.src[1] * wide, high, shape.dst[3]};
  shape.dst = {shape.dst[0] * lines, shape.dst[1], 1, shape.dst[3]};
  shape.weights = {shape.weights[0], shape.weights[1] * wide, high, 1};
  shape.strides = {1, 1};
}

// Whether an image's positions follow one another, each with all of its channels.
bool has_whole_positions(const Buffer& image) {
  return image.layout.is_channels_last() ? image.layout.line() == 0
                                         : image.layout.is_blocked() && image.dims[1] <= image.layout.lanes();
}

}  // namespace

bool is_transposed(const Kernel& kernel) {
  return kernel.kind == KernelKind::Convolution && kernel.nodes[0]->is(OpKind::ConvTranspose);
}

ConvolutionShape convolution_shape(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const auto stored = [&](BufferId id) {
    const Buffer& buffer = plan.buffer(id);
    std::vector<int64_t> dims = buffer.dims;
    if (buffer.layout.is_blocked()) dims[1] = buffer.layout.lanes();
    return dims;
  };
  ConvolutionShape shape;
  shape.src = stored(kernel.input_buffers[0]);
  shape.weights = stored(kernel.input_buffers[1]);
  shape.dst = plan.buffer(kernel.output_buffers[0]).dims;
  const std::vector<int64_t> ones(shape.src.size() - 2, 1);
  shape.strides = ints_or(node, "strides", ones);
  shape.dilations = ints_or(node, "dilations", ones);
  shape.pads = pads_before(plan, kernel);
  shape.groups = int_or(node, "group", 1);
  shape.transposed = is_transposed(kernel);
  constexpr size_t kUsualAxes = 2;
  if (shape.axes() == kUsualAxes) return shape;
  merge_axes(shape, plan.buffer(kernel.output_buffers[0]).layout.is_channels_last());
  while (shape.axes() < kUsualAxes) insert_axis(shape);
  return shape;
}

ConvolutionShape lines_of_windows(const Plan& plan, const Kernel& kernel) {
  ConvolutionShape shape = convolution_shape(plan, kernel);
  constexpr size_t kAxes = 2;
  const Buffer& image = plan.buffer(kernel.input_buffers[0]);
  if (shape.axes() == kAxes && plan.buffer(kernel.output_buffers[0]).layout.is_channels_last() &&
      has_whole_positions(image))
    merge_lines_of_windows(shape, static_cast<int64_t>(size_bytes(image.element)));
  return shape;
}

}  // namespace gopt
