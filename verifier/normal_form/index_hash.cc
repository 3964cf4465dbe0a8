#include "index_hash.h"

namespace gopt::verifier {
namespace {

size_t mix(size_t seed, size_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL + (seed >> 31);
}

}  // namespace

size_t hash_of(const Index& index) {
  size_t hash = mix(7, static_cast<size_t>(index.constant()));
  for (const Index::Term& term : index.terms()) {
    hash = mix(hash, static_cast<size_t>(term.coefficient));
    for (AtomId id : term.atoms) hash = mix(hash, static_cast<size_t>(id));
  }
  return hash;
}
size_t hash_of(const Cond& cond) {
  size_t hash = mix(static_cast<size_t>(cond.kind()), hash_of(cond.index()));
  for (const Cond& part : cond.parts()) hash = mix(hash, hash_of(part));
  return hash;
}

std::optional<int64_t> value_of(const Index& index, const Assignment& assignment) {
  int64_t sum = index.constant();
  for (const Index::Term& term : index.terms()) {
    int64_t product = term.coefficient;
    for (AtomId id : term.atoms) {
      int64_t value = 0;
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Symbol) {
        auto it = assignment.find(static_cast<uint32_t>(id));
        if (it != assignment.end()) value = it->second;
      } else if (a.kind == AtomKind::FloorDiv) {
        const auto n = value_of(a.numerator, assignment), d = value_of(a.denominator, assignment);
        if (!n || !d || *d < 1) return std::nullopt;
        value = *n / *d - (*n % *d < 0 ? 1 : 0);
      } else {
        return std::nullopt;
      }
      if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<bool> truth_of(const Cond& cond, const Assignment& assignment) {
  switch (cond.kind()) {
    case CondKind::True: return true;
    case CondKind::False: return false;
    case CondKind::NonNegative: {
      const auto value = value_of(cond.index(), assignment);
      if (!value) return std::nullopt;
      return *value >= 0;
    }
    case CondKind::And:
    case CondKind::Or: {
      const bool deciding = cond.kind() == CondKind::Or;
      for (const Cond& part : cond.parts()) {
        const auto truth = truth_of(part, assignment);
        if (!truth) return std::nullopt;
        if (*truth == deciding) return deciding;
      }
      return !deciding;
    }
  }
  return std::nullopt;
}

}  // namespace gopt::verifier
