// Convolutions: by cuDNN's algorithms, or as a matrix product over unfolded windows, or, transposed, over taps that are
// folded after; of all families, by the fastest.
#include <utility>

#include "gopt_primitive.h"

namespace gopt_runtime {
namespace {

using TensorDescriptor =
    Handle<cudnnTensorDescriptor_t, cudnnStatus_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Handle<cudnnFilterDescriptor_t, cudnnStatus_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Handle<cudnnConvolutionDescriptor_t, cudnnStatus_t, cudnnCreateConvolutionDescriptor,
                                     cudnnDestroyConvolutionDescriptor>;
using ActivationDescriptor = Handle<cudnnActivationDescriptor_t, cudnnStatus_t, cudnnCreateActivationDescriptor,
                                    cudnnDestroyActivationDescriptor>;

// What follows the convolution, by a kernel of ours.
void finish(const Convolution& c, const Operands& o, const void* addend, cudaStream_t stream) {
  if (o.bias || addend || c.activation.kind != ActivationKind::None)
    apply_epilogue({c.element, o.dst, c.dst[0] * c.dst[1] * positions_of(c.dst), o.bias, c.dst[1],
                    c.channels_last ? 1 : positions_of(c.dst), addend, c.activation},
                   stream);
}

// ---- cuDNN ----

cudnnTensorFormat_t format_of(const Convolution& c) { return c.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW; }

cudnnDataType_t type_of(Element element) {
  switch (element) {
    case Element::Float32: return CUDNN_DATA_FLOAT;
    case Element::Float16: return CUDNN_DATA_HALF;
    case Element::BFloat16: return CUDNN_DATA_BFLOAT16;
  }
  return CUDNN_DATA_FLOAT;
}

std::vector<int> narrowed(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

void describe(cudnnTensorDescriptor_t descriptor, const Convolution& c, const std::vector<int64_t>& dims) {
  check(cudnnSetTensorNdDescriptorEx(descriptor, format_of(c), type_of(c.element), static_cast<int>(dims.size()),
                                     narrowed(dims).data()));
}

// One that is transposed is what cuDNN has for the gradient of another convolution's image.
class DnnConvolution : public Primitive {
 public:
  DnnConvolution(Shared& shared, const Convolution& c) : handle_(shared.dnn), workspace_(shared.workspace), c_(c) {
    const size_t rank = c.src.size(), axes = rank - 2;
    const auto of_axes = [&](const int64_t* numbers) { return narrowed({numbers, numbers + axes}); };
    describe(src_, c, c.src);
    describe(dst_, c, c.dst);
    std::vector<int64_t> bias(rank, 1);
    bias[1] = c.dst[1];
    describe(bias_, c, bias);
    check(cudnnSetFilterNdDescriptor(weights_, type_of(c.element), format_of(c), static_cast<int>(rank),
                                     narrowed(c.weights).data()));
    check(cudnnSetConvolutionNdDescriptor(convolution_, static_cast<int>(axes), of_axes(c.pads).data(),
                                          of_axes(c.strides).data(), of_axes(c.dilations).data(),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionGroupCount(convolution_, static_cast<int>(c.groups)));
    check(cudnnSetConvolutionMathType(convolution_,
                                      c.tf32 || c.element != Element::Float32 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
    const bool is_identity = c.activation.kind == ActivationKind::None;
    check(cudnnSetActivationDescriptor(activation_, is_identity ? CUDNN_ACTIVATION_IDENTITY : CUDNN_ACTIVATION_RELU,
                                       CUDNN_NOT_PROPAGATE_NAN, 0));
  }

  // cuDNN pads both sides alike; what lies beyond the last window does not matter.
  static bool can_do(const Convolution& c) {
    const std::vector<int64_t>&image = c.transposed ? c.dst : c.src, &positions = c.transposed ? c.src : c.dst;
    for (size_t a = 0; a + 2 < image.size(); a++) {
      const int64_t window = c.dilations[a] * (c.weights[2 + a] - 1) + 1, room = image[2 + a] + 2 * c.pads[a] - window;
      if (c.pads[a] < 0 || room < 0 || room / c.strides[a] + 1 != positions[2 + a]) return false;
    }
    return true;
  }

  // The plan's algorithm, with what follows in it where it can; without one, what is fastest.
  bool choose(const Operands& operands, cudaStream_t stream) override {
    float best = -1;
    Algorithm kept;
    constexpr int kLeast = CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 + 1;  // whose sums are in no fixed order
    const int count =
        c_.transposed ? int{CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT} : int{CUDNN_CONVOLUTION_FWD_ALGO_COUNT};
    for (int kind = c_.transposed ? kLeast : 0; kind < count; kind++) {
      if (c_.algorithm >= 0 && kind != c_.algorithm) continue;
      size_t size = 0;
      if (!has_workspace(kind, size) || size > kMaxWorkspace) continue;
      workspace_.at_least(size);
      for (const bool fused : {true, false}) {
        if ((fused && !can_fuse(operands)) || (c_.algorithm >= 0 && best >= 0)) continue;
        algorithm_ = {kind, fused, size};
        const float time = time_launch([&](cudaStream_t s) { return launch(operands, s); }, stream);
        if (time < 0 || (best >= 0 && time >= best)) continue;
        best = time;
        kept = algorithm_;
      }
    }
    algorithm_ = kept;
    return best >= 0;
  }

  bool launch(const Operands& o, cudaStream_t stream) override {
    const float one = 1, zero = 0;
    const auto [kind, fused, size] = algorithm_;
    void* space = workspace_.at_least(size);
    check(cudnnSetStream(handle_, stream));
    if (fused)
      return cudnnConvolutionBiasActivationForward(handle_, &one, src_, o.src, weights_, o.weights, convolution_,
                                                   forward(kind), space, size, o.addend ? &one : &zero, dst_,
                                                   o.addend ? o.addend : o.dst, bias_, o.bias, activation_, dst_,
                                                   o.dst) == CUDNN_STATUS_SUCCESS;
    // An addend that lies in dst is added by the convolution itself.
    const bool in_place = o.addend == o.dst;
    const float* kept = in_place ? &one : &zero;
    const cudnnStatus_t status =
        c_.transposed ? cudnnConvolutionBackwardData(handle_, &one, weights_, o.weights, src_, o.src, convolution_,
                                                     backward(kind), space, size, kept, dst_, o.dst)
                      : cudnnConvolutionForward(handle_, &one, src_, o.src, weights_, o.weights, convolution_,
                                                forward(kind), space, size, kept, dst_, o.dst);
    if (status != CUDNN_STATUS_SUCCESS) return false;
    finish(c_, o, in_place ? nullptr : o.addend, stream);
    return cudaGetLastError() == cudaSuccess;
  }

 private:
  struct Algorithm {
    int kind = 0;  // by its number in cuDNN
    bool fused = false;
    size_t workspace = 0;
  };

  static cudnnConvolutionFwdAlgo_t forward(int kind) { return static_cast<cudnnConvolutionFwdAlgo_t>(kind); }
  static cudnnConvolutionBwdDataAlgo_t backward(int kind) { return static_cast<cudnnConvolutionBwdDataAlgo_t>(kind); }

  // Whether it has the algorithm; how many bytes that needs.
  bool has_workspace(int kind, size_t& size) const {
    const cudnnStatus_t status = c_.transposed ? cudnnGetConvolutionBackwardDataWorkspaceSize(
                                                     handle_, weights_, src_, convolution_, dst_, backward(kind), &size)
                                               : cudnnGetConvolutionForwardWorkspaceSize(
                                                     handle_, src_, weights_, convolution_, dst_, forward(kind), &size);
    return status == CUDNN_STATUS_SUCCESS;
  }

  // cuDNN's fused form always has a bias, and ReLU or, with some algorithms, nothing after it.
  bool can_fuse(const Operands& o) const {
    return !c_.transposed && o.bias &&
           (c_.activation.kind == ActivationKind::Relu || c_.activation.kind == ActivationKind::None);
  }

  const Dnn& handle_;
  Workspace& workspace_;
  Convolution c_;
  TensorDescriptor src_, dst_, bias_;
  FilterDescriptor weights_;
  ConvolutionDescriptor convolution_;
  ActivationDescriptor activation_;
  Algorithm algorithm_;
};

// ---- products ----

// A 1x1 kernel at every position: the source is its own windows.
bool is_pointwise(const Convolution& c) {
  bool plain = true;
  for (size_t a = 0; a + 2 < c.src.size(); a++)
    plain = plain && c.weights[2 + a] == 1 && c.strides[a] == 1 && c.pads[a] == 0 && c.src[2 + a] == c.dst[2 + a];
  return plain;
}

// Positions times channels, by the weights, which lie as [out, in]: with all that follows, which a product takes along.
MatrixProduct product_of_positions(const Convolution& c) {
  MatrixProduct p;
  p.rows = c.dst[0] * positions_of(c.dst);
  p.columns = c.dst[1];
  p.depth = c.src[1];
  p.left_line = c.src_line, p.dst_line = c.dst_line, p.addend_line = c.addend_line;
  p.right_transposed = true;
  p.activation = c.activation;
  p.operands = p.result = c.element;
  p.tf32 = c.tf32;
  return p;
}

// weights [out, in / groups * h * w] times windows [in / groups * h * w, positions], for each image and group. At batch
// 1 the product fills the device better than a convolution's tiles do.
class UnfoldedConvolution : public Primitive {
 public:
  UnfoldedConvolution(Shared& shared, const Convolution& c)
      : unfolded_(shared.unfolded), c_(c), product_(make_product(shared, product_of(c))) {}

  static int64_t unfolded_bytes(const Convolution& c) {
    return is_pointwise(c) ? 0
                           : c.src[0] * c.src[1] * positions_of(c.weights) * positions_of(c.dst) * size_of(c.element);
  }
  // Windows are unfolded along two axes.
  static bool can_do(const Convolution& c) {
    constexpr size_t kRank = 4;
    return !c.transposed && c.src.size() == kRank && unfolded_bytes(c) <= static_cast<int64_t>(kMaxWorkspace);
  }

  bool choose(const Operands& operands, cudaStream_t stream) override {
    return product_->choose(product_operands(operands), stream);
  }

  bool launch(const Operands& operands, cudaStream_t stream) override {
    const Operands o = product_operands(operands);
    if (!is_pointwise(c_)) unfold(windows(), operands.src, c_, stream);
    if (!product_->launch(o, stream)) return false;
    finish(c_, operands, nullptr, stream);
    return cudaGetLastError() == cudaSuccess;
  }

 private:
  static MatrixProduct product_of(const Convolution& c) {
    MatrixProduct p;
    p.rows = c.weights[0] / c.groups;
    p.columns = positions_of(c.dst);
    p.depth = c.weights[1] * positions_of(c.weights);
    p.operands = p.result = c.element;
    p.tf32 = c.tf32;
    if (c.src[0] > 1) p.batch.push_back({c.src[0], 0, c.groups * p.depth * p.columns});
    if (c.groups > 1) p.batch.push_back({c.groups, p.rows * p.depth, p.depth * p.columns});
    return p;
  }

  void* windows() const { return unfolded_.at_least(static_cast<size_t>(unfolded_bytes(c_))); }

  Operands product_operands(const Operands& o) const {
    return {o.weights, is_pointwise(c_) ? o.src : windows(), nullptr, o.addend, o.dst};
  }

  Workspace& unfolded_;
  Convolution c_;
  std::unique_ptr<Primitive> product_;
};

// Of a transposed convolution: what each position of the source gives to each tap, as one product that reads the source
// once, which are then added up. For few channels of the result, where tiles compute mostly columns that are not there.
class FoldedConvolution : public Primitive {
 public:
  FoldedConvolution(Shared& shared, const Convolution& c)
      : taps_(shared.unfolded), c_(c), product_(make_product(shared, product_of(c))) {}

  static int64_t taps_bytes(const Convolution& c) {
    return c.src[0] * positions_of(c.src) * c.dst[1] * positions_of(c.weights) * size_of(Element::Float32);
  }
  static bool can_do(const Convolution& c) {
    constexpr size_t kRank = 4;
    constexpr int64_t kMostResults = int64_t{1} << 31;  // they are counted in 32 bits
    return c.transposed && c.src.size() == kRank && taps_bytes(c) <= static_cast<int64_t>(kMaxWorkspace) &&
           c.dst[0] * c.dst[1] * positions_of(c.dst) < kMostResults && (c.groups == 1 || !c.channels_last);
  }

  bool choose(const Operands& operands, cudaStream_t stream) override {
    return product_->choose(product_operands(operands), stream);
  }

  bool launch(const Operands& operands, cudaStream_t stream) override {
    if (!product_->launch(product_operands(operands), stream)) return false;
    fold(static_cast<const float*>(taps()), operands, c_, stream);
    return cudaGetLastError() == cudaSuccess;
  }

 private:
  static MatrixProduct product_of(const Convolution& c) {
    const int64_t in = c.src[1] / c.groups, taps_of_out = c.weights[1] * positions_of(c.weights);
    MatrixProduct p;
    p.depth = in;
    p.operands = c.element;
    p.tf32 = c.tf32;
    if (c.channels_last) {
      p.rows = c.src[0] * positions_of(c.src);
      p.columns = taps_of_out;
      return p;
    }
    p.rows = taps_of_out;
    p.columns = positions_of(c.src);
    p.left_transposed = true;
    if (c.src[0] > 1) p.batch.push_back({c.src[0], 0, c.src[1] * p.columns});
    if (c.groups > 1) p.batch.push_back({c.groups, in * p.rows, in * p.columns});
    return p;
  }

  void* taps() const { return taps_.at_least(static_cast<size_t>(taps_bytes(c_))); }

  Operands product_operands(const Operands& o) const {
    return {c_.channels_last ? o.src : o.weights, c_.channels_last ? o.weights : o.src, nullptr, nullptr, taps()};
  }

  Workspace& taps_;
  Convolution c_;
  std::unique_ptr<Primitive> product_;
};

class Fastest : public Primitive {
 public:
  explicit Fastest(std::vector<std::unique_ptr<Primitive>> candidates) : candidates_(std::move(candidates)) {}

  bool choose(const Operands& operands, cudaStream_t stream) override {
    float best = -1;
    for (const auto& candidate : candidates_) {
      if (!candidate->choose(operands, stream)) continue;
      const float time = time_launch([&](cudaStream_t s) { return candidate->launch(operands, s); }, stream);
      if (time < 0 || (best >= 0 && time >= best)) continue;
      best = time;
      kept_ = candidate.get();
    }
    return kept_ != nullptr;
  }
  bool launch(const Operands& operands, cudaStream_t stream) override { return kept_->launch(operands, stream); }

 private:
  std::vector<std::unique_ptr<Primitive>> candidates_;
  Primitive* kept_ = nullptr;
};

}  // namespace

std::unique_ptr<Primitive> make_convolution(Shared& shared, const Convolution& c) {
  std::vector<std::unique_ptr<Primitive>> candidates;
  if (c.family != Family::Unfolded && DnnConvolution::can_do(c))
    candidates.push_back(std::make_unique<DnnConvolution>(shared, c));
  if (c.family != Family::Dnn && FoldedConvolution::can_do(c))
    candidates.push_back(std::make_unique<FoldedConvolution>(shared, c));
  if (c.family != Family::Dnn && c.channels_last && !c.transposed) return make_product(shared, product_of_positions(c));
  if (c.family != Family::Dnn && UnfoldedConvolution::can_do(c))
    candidates.push_back(std::make_unique<UnfoldedConvolution>(shared, c));
  if (candidates.size() == 1) return std::move(candidates[0]);
  return std::make_unique<Fastest>(std::move(candidates));
}

}  // namespace gopt_runtime
