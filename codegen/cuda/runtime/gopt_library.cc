#include "gopt_library.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace gopt_runtime {
namespace {

constexpr size_t kMaxWorkspace = size_t{256} << 20;
constexpr int kTimedRuns = 5;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string("cuDNN: ") + cudnnGetErrorString(status));
}
void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string("cuBLASLt: ") + cublasLtGetStatusString(status));
}

// A library's object with its functions to make and to destroy it.
template <class T, class Status, Status (*create)(T*), Status (*destroy)(T)>
class Handle {
 public:
  Handle() { check(create(&object_)); }
  ~Handle() { destroy(object_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator T() const { return object_; }

 private:
  T object_{};
};
using Dnn = Handle<cudnnHandle_t, cudnnStatus_t, cudnnCreate, cudnnDestroy>;
using Blas = Handle<cublasLtHandle_t, cublasStatus_t, cublasLtCreate, cublasLtDestroy>;
using TensorDescriptor = Handle<cudnnTensorDescriptor_t, cudnnStatus_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnStatus_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Handle<cudnnConvolutionDescriptor_t, cudnnStatus_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;
using ActivationDescriptor =
    Handle<cudnnActivationDescriptor_t, cudnnStatus_t, cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor>;

// Device memory that grows while algorithms are chosen; one call after another uses it.
class Workspace {
 public:
  ~Workspace() { cudaFree(data_); }
  void* at_least(size_t size) {
    if (size > size_) {
      check(cudaFree(data_));
      data_ = nullptr;
      check(cudaMalloc(&data_, size));
      size_ = size;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Milliseconds of one launch; negative: it cannot be launched.
float time_launch(const std::function<bool(cudaStream_t)>& launch, cudaStream_t stream) {
  if (!launch(stream) || cudaStreamSynchronize(stream) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  check(cudaEventRecord(start, stream));
  for (int i = 0; i < kTimedRuns; i++) launch(stream);
  check(cudaEventRecord(stop, stream));
  check(cudaEventSynchronize(stop));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return milliseconds / kTimedRuns;
}

class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual void run(const Operands& operands, cudaStream_t stream) = 0;
};

// ---- convolutions ----

void describe(cudnnTensorDescriptor_t descriptor, const std::vector<int64_t>& dims) {
  auto at = [&](size_t i) { return static_cast<int>(dims[i]); };
  check(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, at(0), at(1), at(2), at(3)));
}

class DnnConvolution : public Primitive {
 public:
  DnnConvolution(const Dnn& handle, Workspace& workspace, const Convolution& c) : handle_(handle), workspace_(workspace), c_(c) {
    auto number = [](int64_t i) { return static_cast<int>(i); };
    describe(src_, c.src);
    describe(dst_, c.dst);
    describe(bias_, {1, c.dst[1], 1, 1});
    check(cudnnSetFilter4dDescriptor(weights_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, number(c.weights[0]), number(c.weights[1]),
                                     number(c.weights[2]), number(c.weights[3])));
    check(cudnnSetConvolution2dDescriptor(convolution_, number(c.pads[0]), number(c.pads[1]), number(c.strides[0]), number(c.strides[1]),
                                          number(c.dilations[0]), number(c.dilations[1]), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionGroupCount(convolution_, number(c.groups)));
    check(cudnnSetConvolutionMathType(convolution_, CUDNN_FMA_MATH));
    check(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  }

  void run(const Operands& operands, cudaStream_t stream) override {
    check(cudnnSetStream(handle_, stream));
    if (!chosen_) choose(operands, stream);
    if (!launch(algorithm_, fused_, operands, stream)) throw std::runtime_error("cuDNN: a convolution failed");
  }

 private:
  // One call for all: cuDNN's fused form always has a bias, and only ReLU after it.
  bool can_fuse(const Operands& o) const { return o.bias && c_.activation.kind == ActivationKind::Relu; }

  void choose(const Operands& operands, cudaStream_t stream) {
    float best = -1;
    for (int a = 0; a < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; a++) {
      const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(a);
      size_t size = 0;
      const auto status = cudnnGetConvolutionForwardWorkspaceSize(handle_, src_, weights_, convolution_, dst_, algorithm, &size);
      if (status != CUDNN_STATUS_SUCCESS || size > kMaxWorkspace) continue;
      workspace_.at_least(size);
      for (const bool fused : {false, true}) {
        if (fused && !can_fuse(operands)) continue;
        const size_t before = std::exchange(workspace_size_, size);
        const float time = time_launch([&](cudaStream_t s) { return launch(algorithm, fused, operands, s); }, stream);
        if (time < 0 || (best >= 0 && time >= best)) {
          workspace_size_ = before;
          continue;
        }
        best = time;
        algorithm_ = algorithm;
        fused_ = fused;
      }
    }
    if (best < 0) throw std::runtime_error("cuDNN has no algorithm for a convolution");
    chosen_ = true;
  }

  bool launch(cudnnConvolutionFwdAlgo_t algorithm, bool fused, const Operands& o, cudaStream_t stream) {
    const float one = 1, zero = 0;
    void* space = workspace_.at_least(workspace_size_);
    if (fused) {
      const void* addend = o.addend ? o.addend : o.dst;
      return cudnnConvolutionBiasActivationForward(handle_, &one, src_, o.src, weights_, o.weights, convolution_, algorithm, space,
                                                   workspace_size_, o.addend ? &one : &zero, dst_, addend, bias_, o.bias, relu_, dst_,
                                                   o.dst) == CUDNN_STATUS_SUCCESS;
    }
    // An addend that lies in dst is added by the convolution itself.
    const bool in_place = o.addend == o.dst;
    if (cudnnConvolutionForward(handle_, &one, src_, o.src, weights_, o.weights, convolution_, algorithm, space, workspace_size_,
                                in_place ? &one : &zero, dst_, o.dst) != CUDNN_STATUS_SUCCESS)
      return false;
    const auto* addend = static_cast<const float*>(in_place ? nullptr : o.addend);
    if (o.bias || addend || c_.activation.kind != ActivationKind::None)
      apply_epilogue(static_cast<float*>(o.dst), c_.dst[0] * c_.dst[1] * c_.dst[2] * c_.dst[3], static_cast<const float*>(o.bias),
                     c_.dst[1], c_.dst[2] * c_.dst[3], addend, c_.activation, stream);
    return cudaGetLastError() == cudaSuccess;
  }

  const Dnn& handle_;
  Workspace& workspace_;
  Convolution c_;
  TensorDescriptor src_, dst_, bias_;
  FilterDescriptor weights_;
  ConvolutionDescriptor convolution_;
  ActivationDescriptor relu_;
  bool chosen_ = false, fused_ = false;
  cudnnConvolutionFwdAlgo_t algorithm_{};
  size_t workspace_size_ = 0;
};

// ---- matrix products ----

class MatrixLayout {
 public:
  MatrixLayout(int64_t rows, int64_t columns, int32_t count, int64_t step) {
    check(cublasLtMatrixLayoutCreate(&layout_, CUDA_R_32F, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows));
    check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
  }
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  operator cublasLtMatrixLayout_t() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

// cuBLASLt's matrices are column-major: the transpose of the product is computed, right times left.
class LtProduct : public Primitive {
 public:
  LtProduct(const Blas& handle, Workspace& workspace, const MatrixProduct& p)
      : handle_(handle), workspace_(workspace), p_(p), inner_(p.batch.empty() ? MatrixProduct::Axis{1, 0, 0} : p.batch.back()),
        right_(p.right_transposed ? p.depth : p.columns, p.right_transposed ? p.columns : p.depth, count(), inner_.right_step),
        left_(p.left_transposed ? p.rows : p.depth, p.left_transposed ? p.depth : p.rows, count(), inner_.left_step),
        dst_(p.columns, p.rows, count(), p.rows * p.columns) {
    check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t right = p.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, left = p.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, right);
    set(CUBLASLT_MATMUL_DESC_TRANSB, left);
    if (!p_.batch.empty()) p_.batch.pop_back();
    list_offsets(0, 0, 0);
  }
  ~LtProduct() override { cublasLtMatmulDescDestroy(description_); }

  void run(const Operands& operands, cudaStream_t stream) override {
    if (!chosen_) choose(operands, stream);
    if (!launch(operands, stream)) throw std::runtime_error("cuBLASLt: a matrix product failed");
  }

 private:
  struct Offsets {
    int64_t left, right;
  };

  int32_t count() const { return static_cast<int32_t>(inner_.count); }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value));
  }

  void list_offsets(size_t axis, int64_t left, int64_t right) {
    if (axis == p_.batch.size()) {
      offsets_.push_back({left, right});
      return;
    }
    for (int64_t i = 0; i < p_.batch[axis].count; i++)
      list_offsets(axis + 1, left + i * p_.batch[axis].left_step, right + i * p_.batch[axis].right_step);
  }

  // The bias and what activations the library has; the rest is left to a kernel of ours.
  void fuse(const Operands& o) {
    const ActivationKind kind = p_.activation.kind;
    const bool relu = kind == ActivationKind::Relu, gelu = kind == ActivationKind::GeluTanh;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (o.bias) epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : gelu ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    else if (relu || gelu) epilogue = relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (o.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
    activation_left_ = !relu && !gelu && kind != ActivationKind::None;
    bias_left_ = false;
  }
  void fuse_nothing(const Operands& o) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
    activation_left_ = p_.activation.kind != ActivationKind::None;
    bias_left_ = o.bias != nullptr;
  }

  void choose(const Operands& operands, cudaStream_t stream) {
    fuse(operands);
    if (!choose_algorithm(operands, stream)) {
      fuse_nothing(operands);
      if (!choose_algorithm(operands, stream)) throw std::runtime_error("cuBLASLt has no algorithm for a matrix product");
    }
    chosen_ = true;
  }

  bool choose_algorithm(const Operands& o, cudaStream_t stream) {
    constexpr int kCandidates = 8;
    cublasLtMatmulHeuristicResult_t candidates[kCandidates];
    int found = 0;
    if (!ask_heuristic(o, candidates, kCandidates, found)) return false;
    float best = -1;
    cublasLtMatmulHeuristicResult_t kept{};
    for (int i = 0; i < found; i++) {
      algorithm_ = candidates[i].algo;
      workspace_size_ = candidates[i].workspaceSize;
      workspace_.at_least(workspace_size_);
      const float time = time_launch([&](cudaStream_t s) { return launch(o, s); }, stream);
      if (time < 0 || (best >= 0 && time >= best)) continue;
      best = time;
      kept = candidates[i];
    }
    algorithm_ = kept.algo;
    workspace_size_ = kept.workspaceSize;
    return best >= 0;
  }

  bool ask_heuristic(const Operands& o, cublasLtMatmulHeuristicResult_t* candidates, int limit, int& found) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference));
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(right(o, offsets_.back())));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(left(o, offsets_.back())));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(o.addend ? o.addend : o.dst));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(o.dst));
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_, right_, left_, dst_, dst_, preference, limit, candidates, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    return status == CUBLAS_STATUS_SUCCESS && found > 0;
  }

  const float* left(const Operands& o, const Offsets& at) const { return static_cast<const float*>(o.src) + at.left; }
  const float* right(const Operands& o, const Offsets& at) const { return static_cast<const float*>(o.weights) + at.right; }

  bool launch(const Operands& o, cudaStream_t stream) {
    const float beta = o.addend ? 1 : 0;
    const int64_t size = p_.rows * p_.columns * inner_.count;
    void* space = workspace_.at_least(workspace_size_);
    for (size_t i = 0; i < offsets_.size(); i++) {
      float* dst = static_cast<float*>(o.dst) + static_cast<int64_t>(i) * size;
      const float* addend = o.addend ? static_cast<const float*>(o.addend) + static_cast<int64_t>(i) * size : dst;
      if (cublasLtMatmul(handle_, description_, &p_.scale, right(o, offsets_[i]), right_, left(o, offsets_[i]), left_, &beta, addend, dst_,
                         dst, dst_, &algorithm_, space, workspace_size_, stream) != CUBLAS_STATUS_SUCCESS)
        return false;
    }
    if (bias_left_ || activation_left_)
      apply_epilogue(static_cast<float*>(o.dst), size * static_cast<int64_t>(offsets_.size()),
                     bias_left_ ? static_cast<const float*>(o.bias) : nullptr, p_.columns, 1, nullptr, p_.activation, stream);
    return cudaGetLastError() == cudaSuccess;
  }

  const Blas& handle_;
  Workspace& workspace_;
  MatrixProduct p_;
  MatrixProduct::Axis inner_;
  MatrixLayout right_, left_, dst_;
  cublasLtMatmulDesc_t description_ = nullptr;
  std::vector<Offsets> offsets_;
  bool chosen_ = false, bias_left_ = false, activation_left_ = false;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_size_ = 0;
};

}  // namespace

struct Library::State {
  Dnn dnn;
  Blas blas;
  Workspace workspace;
  std::vector<std::unique_ptr<Primitive>> primitives;
};

Library::Library() : state_(std::make_unique<State>()) {}
Library::~Library() = default;
void Library::add(const Convolution& c) { state_->primitives.push_back(std::make_unique<DnnConvolution>(state_->dnn, state_->workspace, c)); }
void Library::add(const MatrixProduct& p) { state_->primitives.push_back(std::make_unique<LtProduct>(state_->blas, state_->workspace, p)); }
void Library::run(size_t number, const Operands& operands, cudaStream_t stream) { state_->primitives.at(number)->run(operands, stream); }

}  // namespace gopt_runtime
