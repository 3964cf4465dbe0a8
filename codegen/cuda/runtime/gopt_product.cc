// Matrix products by cuBLASLt.
#include "gopt_primitive.h"

namespace gopt_runtime {
namespace {

cudaDataType_t type_of(Element element) {
  switch (element) {
    case Element::Float32: return CUDA_R_32F;
    case Element::Float16: return CUDA_R_16F;
    case Element::BFloat16: return CUDA_R_16BF;
  }
  return CUDA_R_32F;
}

class MatrixLayout {
 public:
  // `line`: elements from one column to the next; 0: as many as there are rows.
  MatrixLayout(Element element, int64_t rows, int64_t columns, int64_t line, int32_t count, int64_t step) {
    check(cublasLtMatrixLayoutCreate(&layout_, type_of(element), static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), line > 0 ? line : rows));
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

// Of a pointer and of all others that are so many elements after it.
uint32_t alignment_of(const void* pointer, Element element, const std::vector<int64_t>& steps) {
  auto bits = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  for (int64_t step : steps) bits |= static_cast<uint64_t>(step * size_of(element));
  uint32_t alignment = 256;
  while (bits % alignment != 0) alignment /= 2;
  return alignment;
}

// cuBLASLt's matrices are column-major: the transpose of the product is computed, right times left.
class LtProduct : public Primitive {
 public:
  LtProduct(Shared& shared, const MatrixProduct& p)
      : handle_(shared.blas),
        workspace_(shared.workspace),
        p_(p),
        inner_(p.batch.empty() ? MatrixProduct::Axis{1, 0, 0} : p.batch.back()),
        right_(p.operands, p.right_transposed ? p.depth : p.columns, p.right_transposed ? p.columns : p.depth, 0,
               count(), inner_.right_step),
        left_(p.operands, p.left_transposed ? p.rows : p.depth, p.left_transposed ? p.depth : p.rows, p.left_line,
              count(), inner_.left_step),
        dst_(p.result, p.columns, p.rows, p.dst_line, count(), p.rows * p.columns),
        addend_(p.result, p.columns, p.rows, p.addend_line, count(), p.rows * p.columns) {
    check(cublasLtMatmulDescCreate(&description_, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F));
    const cublasOperation_t right = p.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            left = p.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, right);
    set(CUBLASLT_MATMUL_DESC_TRANSB, left);
    if (!p_.batch.empty()) p_.batch.pop_back();
    list_offsets(0, 0, 0);
  }
  ~LtProduct() override { cublasLtMatmulDescDestroy(description_); }

  // With what follows fused where the library can, else without.
  bool choose(const Operands& operands, cudaStream_t stream) override {
    fuse(operands);
    // The kernel that does the rest knows of no lines.
    const bool is_packed = p_.dst_line == 0 || p_.dst_line == p_.columns;
    if (activation_left_ && !is_packed) return false;
    if (choose_algorithm(operands, stream)) return true;
    if (!is_packed) return false;
    fuse_nothing(operands);
    return choose_algorithm(operands, stream);
  }

  bool launch(const Operands& o, cudaStream_t stream) override {
    const float beta = o.addend ? 1 : 0;
    const int64_t size = p_.rows * p_.columns * inner_.count, bytes = size * size_of(p_.result);
    void* space = workspace_.at_least(workspace_size_);
    for (size_t i = 0; i < offsets_.size(); i++) {
      char* dst = static_cast<char*>(o.dst) + static_cast<int64_t>(i) * bytes;
      const char* addend = o.addend ? static_cast<const char*>(o.addend) + static_cast<int64_t>(i) * bytes : dst;
      if (cublasLtMatmul(handle_, description_, &p_.scale, right(o, offsets_[i]), right_, left(o, offsets_[i]), left_,
                         &beta, addend, o.addend ? addend_ : dst_, dst, dst_, &algorithm_, space, workspace_size_,
                         stream) != CUBLAS_STATUS_SUCCESS)
        return false;
    }
    if (bias_left_ || activation_left_)
      apply_epilogue({p_.result, o.dst, size * static_cast<int64_t>(offsets_.size()), bias_left_ ? o.bias : nullptr,
                      p_.columns, 1, nullptr, p_.activation},
                     stream);
    return cudaGetLastError() == cudaSuccess;
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
    if (o.bias)
      epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : gelu ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    else if (relu || gelu)
      epilogue = relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
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

  bool choose_algorithm(const Operands& o, cudaStream_t stream) {
    constexpr int kCandidates = 32;
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
    std::vector<int64_t> left_steps{inner_.left_step, p_.left_line}, right_steps{inner_.right_step};
    const int64_t dst_step = p_.batch.empty() && inner_.count == 1 ? 0 : p_.rows * p_.columns;
    const std::vector<int64_t> dst_steps{dst_step, p_.dst_line}, addend_steps{dst_step, p_.addend_line};
    for (const MatrixProduct::Axis& axis : p_.batch)
      left_steps.push_back(axis.left_step), right_steps.push_back(axis.right_step);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(o.weights, p_.operands, right_steps));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(o.src, p_.operands, left_steps));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
           o.addend ? alignment_of(o.addend, p_.result, addend_steps) : alignment_of(o.dst, p_.result, dst_steps));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(o.dst, p_.result, dst_steps));
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, description_, right_, left_, o.addend ? addend_ : dst_, dst_, preference, limit, candidates, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    return status == CUBLAS_STATUS_SUCCESS && found > 0;
  }

  const char* left(const Operands& o, const Offsets& at) const {
    return static_cast<const char*>(o.src) + at.left * size_of(p_.operands);
  }
  const char* right(const Operands& o, const Offsets& at) const {
    return static_cast<const char*>(o.weights) + at.right * size_of(p_.operands);
  }

  const Blas& handle_;
  Workspace& workspace_;
  MatrixProduct p_;
  MatrixProduct::Axis inner_;
  MatrixLayout right_, left_, dst_, addend_;
  cublasLtMatmulDesc_t description_ = nullptr;
  std::vector<Offsets> offsets_;
  bool bias_left_ = false, activation_left_ = false;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_size_ = 0;
};

}  // namespace

std::unique_ptr<Primitive> make_product(Shared& shared, const MatrixProduct& product) {
  return std::make_unique<LtProduct>(shared, product);
}

}  // namespace gopt_runtime
