#include "operators.h"

namespace taso_generator {

namespace {

bool convolve(const Operator& op, const Tensor& x, const Tensor& w, Tensor& out) {
  if (x.rank != 4 || w.rank != 4 || w.extents[2] != op.first || w.extents[3] != op.second) return false;
  if (x.extents[1] % w.extents[1] != 0) return false;
  const int groups = x.extents[1] / w.extents[1];
  if (w.extents[0] % groups != 0) return false;
  out.rank = 4;
  out.extents = {x.extents[0], w.extents[0], x.extents[2], x.extents[3]};
  out.seams = {x.seams[0], w.seams[0], x.seams[2], x.seams[3]};
  out.make_dense();
  if (out.size() > kMaxElements) return false;
  const int pad_h = (op.first - 1) / 2, pad_w = (op.second - 1) / 2, height = x.extents[2], width = x.extents[3];
  for (int n = 0; n < out.extents[0]; n++)
    for (int c = 0; c < out.extents[1]; c++) {
      const int channel = c / (w.extents[0] / groups) * w.extents[1];
      for (int h = 0; h < height; h++)
        for (int v = 0; v < width; v++) {
          int value = 0;
          for (int i = 0; i < w.extents[1]; i++)
            for (int kh = std::max(0, pad_h - h); kh < std::min(op.first, height + pad_h - h); kh++)
              for (int kw = std::max(0, pad_w - v); kw < std::min(op.second, width + pad_w - v); kw++)
                value = sum(value, product(w.at(c, i, kh, kw), x.at(n, channel + i, h + kh - pad_h, v + kw - pad_w)));
          out.at(n, c, h, v) = op.flag ? relu_stand_in(value) : value;
        }
    }
  return true;
}

// The average is the sum; the maximum is 0 at least.
bool pool(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 4) return false;
  out.take_form_of(x);
  out.seams[1] = {};
  out.make_dense();
  const int height = x.extents[2], width = x.extents[3];
  for (int n = 0; n < x.extents[0]; n++)
    for (int c = 0; c < x.extents[1]; c++)
      for (int h = 0; h < height; h++)
        for (int v = 0; v < width; v++) {
          int value = 0;
          for (int i = std::max(0, h - 1); i <= std::min(height - 1, h + 1); i++)
            for (int j = std::max(0, v - 1); j <= std::min(width - 1, v + 1); j++)
              value = op.kind == Kind::MaxPool ? std::max(value, x.at(n, c, i, j)) : sum(value, x.at(n, c, i, j));
          out.at(n, c, h, v) = value;
        }
  return true;
}

bool multiply(const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.rank != 2 || b.rank != 2 || a.extents[1] != b.extents[0] || b.extents[0] == kBatch) return false;
  if (&a == &b) return false;
  out.rank = 2;
  out.extents = {a.extents[0], b.extents[1]};
  out.seams = {a.seams[0], b.seams[1]};
  out.make_dense();
  for (int i = 0; i < out.extents[0]; i++)
    for (int j = 0; j < out.extents[1]; j++) {
      int value = 0;
      for (int k = 0; k < a.extents[1]; k++) value = sum(value, product(a.at(i, k), b.at(k, j)));
      out.at(i, j) = value;
    }
  return true;
}

bool pointwise(const Operator& op, const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.rank != b.rank) return false;
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (a.extents[axis] != b.extents[axis] || a.strides[axis] != b.strides[axis]) return false;
  out.take_form_of(a);
  for (size_t axis = 0; axis < 4; axis++)
    if (!(a.seams[axis] == b.seams[axis])) out.seams[axis] = {};
  const auto size = static_cast<size_t>(a.size());
  for (size_t i = 0; i < size; i++)
    out.data[i] = op.kind == Kind::Add ? sum(a.data[i], b.data[i]) : product(a.data[i], b.data[i]);
  return true;
}

bool scale(const Tensor& a, const Tensor& scalar, Tensor& out) {
  if (scalar.rank != 0) return false;
  out.take_form_of(a);
  for (size_t i = 0; i < static_cast<size_t>(a.size()); i++) out.data[i] = product(a.data[i], scalar.data[0]);
  return true;
}

bool concat(const Operator& op, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto joined = static_cast<size_t>(op.first);
  if (a.rank != op.second || b.rank != op.second) return false;
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (axis != joined && a.extents[axis] != b.extents[axis]) return false;
  out.take_form_of(a);
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (axis != joined && !(a.seams[axis] == b.seams[axis])) out.seams[axis] = {};
  for (int i = 0; i < b.seams[joined].count; i++)
    out.seams[joined].add(a.extents[joined] + b.seams[joined].places[static_cast<size_t>(i)]);
  out.seams[joined].add(a.extents[joined]);
  out.extents[joined] += b.extents[joined];
  if (out.size() > kMaxElements) return false;
  out.make_dense();
  for_each_position(a, out.strides, a.strides, [&](size_t to, size_t from) { out.data[to] = a.data[from]; });
  const auto start = static_cast<size_t>(a.extents[joined] * out.strides[joined]);
  for_each_position(b, out.strides, b.strides, [&](size_t to, size_t from) { out.data[start + to] = b.data[from]; });
  return true;
}

// At the last seam; those behind it keep their numbers.
bool split(const Operator& op, const Tensor& x, Tensor* outs) {
  const auto axis = static_cast<size_t>(op.first);
  if (x.rank == 0 || x.seams[axis].count == 0) return false;
  const Seams& all = x.seams[axis];
  const int middle = all.places[static_cast<size_t>(all.count - 1)];
  for (int k = 0; k < 2; k++) {
    outs[k].take_form_of(x);
    outs[k].seams[axis] = {};
    outs[k].extents[axis] = k == 0 ? middle : x.extents[axis] - middle;
    outs[k].make_dense();
    const auto start = static_cast<size_t>(k == 0 ? 0 : middle * x.strides[axis]);
    for_each_position(outs[k], outs[k].strides, x.strides,
                      [&](size_t to, size_t from) { outs[k].data[to] = x.data[start + from]; });
  }
  int next = 0;
  while (next < all.count && all.places[static_cast<size_t>(next)] < middle)
    outs[0].seams[axis].add(all.places[static_cast<size_t>(next++)]);
  while (next < all.count - 1) outs[1].seams[axis].add(all.places[static_cast<size_t>(next++)]);
  return true;
}

bool transpose(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 2) return false;
  out.take_form_of(x);
  std::swap(out.extents[0], out.extents[1]);
  std::swap(out.strides[0], out.strides[1]);
  std::swap(out.seams[0], out.seams[1]);
  const std::array<int, 4> from_strides = out.strides;
  if (op.flag) out.make_dense();
  for_each_position(out, out.strides, from_strides, [&](size_t to, size_t from) { out.data[to] = x.data[from]; });
  return true;
}

bool enlarge(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 4 || !x.ref.is_variable() || x.extents[2] > op.first || x.extents[3] > op.second) return false;
  if (x.extents[2] == op.first && x.extents[3] == op.second) return false;
  out.rank = 4;
  out.extents = {x.extents[0], x.extents[1], op.first, op.second};
  out.seams = {x.seams[0], x.seams[1]};
  out.make_dense();
  std::fill(out.data.begin(), out.data.begin() + out.size(), 0);
  const int above = (op.first - x.extents[2]) / 2, left = (op.second - x.extents[3]) / 2;
  const auto start = static_cast<size_t>(out.place(0, 0, above, left));
  for_each_position(x, out.strides, x.strides, [&](size_t to, size_t from) { out.data[start + to] = x.data[from]; });
  return true;
}

void constant(const Operator& op, Tensor& out) {
  out.rank = op.kind == Kind::IdentityMatrix ? 2 : 4;
  out.extents = op.kind == Kind::PoolKernel ? std::array{4, 1, 3, 3}
                : op.kind == Kind::Ones     ? std::array{kBatch, 4, 5, 5}
                                            : std::array{4, 4, 3, 3};
  out.seams = {};
  out.make_dense();
  const bool is_identity = op.kind == Kind::IdentityKernel || op.kind == Kind::IdentityMatrix;
  std::fill(out.data.begin(), out.data.begin() + out.size(), is_identity ? 0 : 1);
  for (int i = 0; is_identity && i < 4; i++) (out.rank == 2 ? out.at(i, i) : out.at(i, i, 1, 1)) = 1;
}

}  // namespace

bool evaluate(const Operator& op, const Tensor* a, const Tensor* b, Tensor* outs) {
  switch (op.kind) {
    case Kind::MatMul: return multiply(*a, *b, *outs);
    case Kind::Add:
    case Kind::Mul: return pointwise(op, *a, *b, *outs);
    case Kind::Conv: return convolve(op, *a, *b, *outs);
    case Kind::AveragePool:
    case Kind::MaxPool: return pool(op, *a, *outs);
    case Kind::PoolKernel:
    case Kind::IdentityKernel:
    case Kind::IdentityMatrix:
    case Kind::Ones: constant(op, *outs); return true;
    case Kind::Enlarge: return enlarge(op, *a, *outs);
    case Kind::ScalarMul: return scale(*a, *b, *outs);
    case Kind::Relu:
      outs->take_form_of(*a);
      for (size_t i = 0; i < static_cast<size_t>(a->size()); i++) outs->data[i] = relu_stand_in(a->data[i]);
      return true;
    case Kind::Concat: return concat(op, *a, *b, *outs);
    case Kind::Split: return split(op, *a, outs);
    case Kind::Transpose: return transpose(op, *a, *outs);
  }
  return false;
}

// No tensor is a kernel of 1x1; TASO's list has these convolutions all the same.
std::vector<Operator> operators() {
  std::vector<Operator> all{{Kind::MatMul}, {Kind::Add}, {Kind::Mul}};
  const std::vector<std::pair<int, int>> kernels{{3, 3}, {1, 1}, {1, 3}};
  for (auto [h, w] : kernels)
    for (bool relu : {false, true}) all.push_back({Kind::Conv, h, w, relu});
  for (Kind kind : {Kind::AveragePool, Kind::MaxPool, Kind::PoolKernel, Kind::IdentityKernel, Kind::IdentityMatrix,
                    Kind::Ones, Kind::Enlarge})
    all.push_back({kind, 3, 3});
  all.push_back({Kind::ScalarMul});
  all.push_back({Kind::Relu});
  for (int rank : {2, 4})
    for (int axis : {1, 0}) all.push_back({Kind::Concat, axis, rank});
  for (int axis : {1, 0}) all.push_back({Kind::Split, axis});
  for (bool moved : {false, true}) all.push_back({Kind::Transpose, 0, 0, moved});
  return all;
}

}  // namespace taso_generator
