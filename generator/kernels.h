// Applications of a family's operators to types, as tapes for both assignments of sizes. A value of a type is flat: its
// elements in the first assignment, then those in the second.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tape.h"
#include "term.h"

namespace gopt::generator {

struct TermKernel {
  TypeId type;
  Tape tapes[2];
  std::vector<size_t> first_sizes;  // of each input, in the first assignment

  bool run(const Scalar* const* inputs, Scalar* output, Values& registers) const;
};

class Kernels {
 public:
  explicit Kernels(TermStore& terms) : terms_(terms) {}
  // Null where the types do not fit or the definition cannot be unrolled. Kernels stay where they are.
  const TermKernel* find(int op, int output, const std::vector<TypeId>& inputs);
  // Operators and the types of their inputs.
  using Wanted = std::pair<int, std::vector<TypeId>>;
  // Makes what find() will be asked for, on several threads. It numbers types in the order in which it is asked, so
  // nothing depends on what was made beforehand.
  void prepare(const std::vector<Wanted>& wanted, int threads);
  size_t first_size(TypeId type) { return sizes(type)[0]; }
  size_t size(TypeId type) { return sizes(type)[0] + sizes(type)[1]; }
  // Operations, elements and a fixed part of the applications in a term that depend on activations, those that several
  // parts share counted once, in each assignment.
  std::array<double, 2> cost(const std::vector<TermId>& roots);

 private:
  using Tapes = std::optional<std::array<Tape, 2>>;  // nothing where the definition cannot be unrolled
  struct Prepared {
    std::optional<std::vector<TensorType>> types;
    std::vector<Tapes> tapes;  // of each output
  };
  std::array<size_t, 2> sizes(TypeId type);
  Prepared prepared(const Wanted& wanted) const;
  Tapes tapes_of(int op, int output, const std::vector<TypeId>& inputs) const;

  TermStore& terms_;
  std::map<Wanted, Prepared> prepared_;
  std::map<std::pair<std::pair<int, int>, std::vector<TypeId>>, std::unique_ptr<TermKernel>> kernels_;
  std::vector<std::optional<std::array<size_t, 2>>> sizes_;
};

// Work of a fixed size that each application is taken to cost beside its operations.
inline constexpr double kApplicationCost = 200;

}  // namespace gopt::generator
