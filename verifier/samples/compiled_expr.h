// An expression compiled for many evaluations at small sizes: symbols are numbered, so that no map is looked up. In
// double, or with every result rounded to float, so that what changes rounding shows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "bounded.h"
#include "gopt/expr.h"
#include "magnitude.h"

namespace gopt::verifier {

// The nearest number that the element type has: inputs are such numbers.
double rounded_to(ElementType type, double value);

// Elements of one input, row-major.
struct SampleTensor {
  std::vector<int64_t> dims;
  std::vector<double> values;
};
using SampleInputs = std::map<int, SampleTensor>;

class CompiledExpr {
 public:
  explicit CompiledExpr(const Expr& expr);
  ~CompiledExpr();
  CompiledExpr(CompiledExpr&&) noexcept;

  struct Options {
    bool round_to_float = false;
    bool truncating_division = false;
  };
  // The value where free symbols are as in `environment`. NaN where a read is out of bounds or a symbol has no value.
  double operator()(const Environment& environment, const SampleInputs& inputs, const Options& options) const;
  // The same with the size of the terms that it is the sum of.
  Magnitude magnitude(const Environment& environment, const SampleInputs& inputs) const;
  // The same with a bound on what rounding makes of it.
  Bounded enclose(const Environment& environment, const SampleInputs& inputs, const Options& options) const;

 private:
  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace gopt::verifier
