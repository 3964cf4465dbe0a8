#include "gopt/wide_integers.h"

#include <algorithm>

namespace gopt {

bool is_unsigned(const Expr& e, const std::vector<ElementType>& types) {
  switch (e->kind) {
    case ExprKind::Read: return types.at(static_cast<size_t>(e->input)) == ElementType::UInt64;
    case ExprKind::Convert: return e->type == ElementType::UInt64;
    case ExprKind::Less:
    case ExprKind::Equal: return false;
    case ExprKind::Call:
      if (e->function != Function::Fmod) return false;
      break;
    default: break;
  }
  const auto first = e->args.begin() + (e->kind == ExprKind::Choose ? 1 : 0);
  return std::any_of(first, e->args.end(), [&](const Expr& argument) { return is_unsigned(argument, types); });
}

bool has_wide_integers(const Tensor& tensor) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (tensor.type() != ElementType::Int64 && tensor.type() != ElementType::UInt64) return false;
  const int64_t least = tensor.type() == ElementType::UInt64 ? 0 : -kExact;  // those beyond 63 bits come negative
  return std::ranges::any_of(tensor.to_ints(), [least](int64_t v) { return v > kExact || v < least; });
}

}  // namespace gopt
