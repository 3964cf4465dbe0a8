// TASO's operators, as its generator evaluates them: relu is a polynomial, an average a sum.
#pragma once

#include <vector>

#include "tensor.h"

namespace taso_generator {

enum class Kind {
  MatMul,
  Add,
  Mul,
  Conv,
  AveragePool,
  MaxPool,
  PoolKernel,
  IdentityKernel,
  IdentityMatrix,
  Ones,
  Enlarge,
  ScalarMul,
  Relu,
  Concat,
  Split,
  Transpose
};

struct Operator {
  Kind kind;
  int first = 0, second = 0;  // a kernel's size; the axis and rank of Concat and Split
  bool flag = false;          // Conv: with relu; Transpose: the data is moved, too

  int inputs() const {
    switch (kind) {
      case Kind::MatMul:
      case Kind::Add:
      case Kind::Mul:
      case Kind::Conv:
      case Kind::ScalarMul:
      case Kind::Concat: return 2;
      case Kind::PoolKernel:
      case Kind::IdentityKernel:
      case Kind::IdentityMatrix:
      case Kind::Ones: return 0;
      default: return 1;
    }
  }
  int outputs() const { return kind == Kind::Split ? 2 : 1; }
};

// Writes what the operator gives for its inputs (as many as it has), but for the references, to `outs`. False where it
// takes no such inputs.
bool evaluate(const Operator& op, const Tensor* a, const Tensor* b, Tensor* outs);

// In TASO's order.
std::vector<Operator> operators();

}  // namespace taso_generator
