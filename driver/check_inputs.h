// Inputs that a result is checked on beside ordinary ones: those that the user gives; large, tiny and shifted numbers,
// masked rows, numbers around the constants that a rewrite removed, and integers at the ends of their types and around
// the integers that the original holds. What overflows, vanishes or cancels after a rewrite shows there.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gopt/driver.h"

namespace gopt::driver {

enum class InputKind { Ordinary, Given, Large, Tiny, Shifted, Masked, NearConstants, Integers };
std::string_view to_string(InputKind kind);
constexpr InputKind kInputKinds[] = {InputKind::Ordinary,      InputKind::Given,   InputKind::Large,
                                     InputKind::Tiny,          InputKind::Shifted, InputKind::Masked,
                                     InputKind::NearConstants, InputKind::Integers};

// How far results may be apart on such inputs, where `tolerance` is that of ordinary ones.
Tolerance tolerance_for(InputKind kind, Tolerance tolerance);
// Adds to the report how far the outputs of two models, of `original`'s names, are apart on one draw; of extreme
// integers those that are computed in integers alone. `nudged`: the
// reference's outputs where roundings differ (quantization_step.h), by which they may be off beside.
void add_draw(CheckReport& report, const Graph& original, InputKind kind, const std::vector<Tensor>& reference,
              const std::vector<Tensor>& other, const Tolerance& tolerance,
              const std::vector<Tensor>* nudged = nullptr);

// Numbers that the first graph's nodes hold, as small tensors or attributes, and the second's do not.
std::vector<double> removed_constants(const Graph& original, const Graph& optimized);

// What extreme integers are drawn for: the names of inputs that may be any (no places in a tensor) and lead to outputs
// that are computed in integers alone, and the integers that the graph holds, as small tensors or attributes. A float
// on the way would make of such numbers what no two right ways to compute agree on (the sine of 2^60).
struct IntegerDraws {
  std::set<std::string> inputs;
  std::set<int64_t> constants;
};
IntegerDraws integer_draws(const Graph& graph);

// Ordinary inputs of a model, and others of each kind that is asked about.
class InputDraws {
 public:
  // `constants`: those that a rewrite removed. `integers`: none where what runs may not survive any of them.
  InputDraws(std::map<std::string, Tensor> ordinary, const CheckOptions& options, std::vector<double> constants,
             uint64_t seed, IntegerDraws integers = {})
      : ordinary_(std::move(ordinary)),
        options_(options),
        constants_(std::move(constants)),
        seed_(seed),
        integers_(std::move(integers)) {}

  bool has(InputKind kind) const;  // there is something to try
  // How many such inputs differ by their round: of small tensors of integers several.
  int rounds(InputKind kind) const;
  // Precondition: has(kind). What is no floating-point tensor stays as it is, unless it is given.
  std::map<std::string, Tensor> of(InputKind kind, int round = 0) const;

 private:
  std::map<std::string, Tensor> ordinary_;
  const CheckOptions& options_;
  std::vector<double> constants_;
  uint64_t seed_;
  IntegerDraws integers_;
};

// The reference's outputs, those that the options expect in place of its own. Errors: one that is expected and that the
// graph lacks.
Result<std::vector<Tensor>> expected_outputs(const Graph& original, InputKind kind, std::vector<Tensor> reference,
                                             const CheckOptions& options);

}  // namespace gopt::driver
