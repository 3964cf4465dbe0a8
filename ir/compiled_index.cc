#include "compiled_index.h"

namespace gopt::ir {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

int64_t atom_value(const CompiledAtom& a, const Slots& slots, std::span<const TensorView> inputs) {
  switch (a.kind) {
    case AtomKind::Symbol: return slots[static_cast<size_t>(a.slot)];
    case AtomKind::FloorDiv:
      return floor_quotient(a.numerator->value(slots, inputs), a.denominator->value(slots, inputs));
    case AtomKind::Load: {
      std::vector<int64_t> s;
      for (const CompiledIndex& i : a.subscripts) s.push_back(i.value(slots, inputs));
      const TensorView& t = inputs[static_cast<size_t>(a.input)];
      return load_int(t.data, t.type, flat_offset(t, s));
    }
  }
  return 0;
}

}  // namespace

int64_t flat_offset(const TensorView& t, std::span<const int64_t> subscripts) {
  int64_t offset = 0;
  for (size_t d = 0; d < subscripts.size(); d++) {
    if (subscripts[d] < 0 || subscripts[d] >= t.dims[d])
      throw EvaluationError("index " + std::to_string(subscripts[d]) + " is out of bounds for an extent of " +
                            std::to_string(t.dims[d]));
    offset = offset * t.dims[d] + subscripts[d];
  }
  return offset;
}

int64_t CompiledIndex::nonlinear(const Slots& slots, std::span<const TensorView> inputs) const {
  int64_t sum = 0;
  for (const CompiledTerm& t : terms) {
    int64_t product = t.coefficient;
    for (const CompiledAtom& a : t.atoms) product *= atom_value(a, slots, inputs);
    sum += product;
  }
  return sum;
}

bool CompiledCond::value(const Slots& slots, std::span<const TensorView> inputs) const {
  switch (kind) {
    case CondKind::True: return true;
    case CondKind::False: return false;
    case CondKind::NonNegative: return index.value(slots, inputs) >= 0;
    case CondKind::And:
      return std::all_of(parts.begin(), parts.end(), [&](const auto& p) { return p.value(slots, inputs); });
    case CondKind::Or:
      return std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return p.value(slots, inputs); });
  }
  return false;
}

}  // namespace gopt::ir
