// Applications of a family's operators to types, as tapes for both assignments of sizes. A value of a type is flat: its
// elements in the first assignment, then those in the second.
#pragma once

#include <memory>

#include "tape.h"
#include "term.h"

namespace gopt::generator {

struct Kernel {
  TypeId type;
  Tape tapes[2];
  std::vector<size_t> first_sizes;  // of each input, in the first assignment

  bool run(const Scalar* const* inputs, Scalar* output, Values& registers) const;
};

class Kernels {
 public:
  explicit Kernels(TermStore& terms) : terms_(terms) {}
  // Null where the types do not fit or the definition cannot be unrolled. Kernels stay where they are.
  const Kernel* find(int op, int output, const std::vector<TypeId>& inputs);
  size_t first_size(TypeId type) { return sizes(type)[0]; }
  size_t size(TypeId type) { return sizes(type)[0] + sizes(type)[1]; }
  // Operations, elements and a fixed part of the applications in a term that depend on activations, those that several
  // parts share counted once, in each assignment.
  std::array<double, 2> cost(const std::vector<TermId>& roots);

 private:
  std::array<size_t, 2> sizes(TypeId type);

  TermStore& terms_;
  std::map<std::pair<std::pair<int, int>, std::vector<TypeId>>, std::unique_ptr<Kernel>> kernels_;
  std::vector<std::optional<std::array<size_t, 2>>> sizes_;
};

// Work of a fixed size that each application is taken to cost beside its operations.
inline constexpr double kApplicationCost = 200;

}  // namespace gopt::generator
