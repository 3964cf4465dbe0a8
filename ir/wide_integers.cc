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

bool has_no_sign(ElementType type) {
  return type == ElementType::UInt8 || type == ElementType::UInt16 || type == ElementType::UInt32 ||
         type == ElementType::UInt64;
}

bool may_leave(const Expr& e, ElementType type) {
  if (!is_integer(type) || size_bytes(type) == sizeof(int64_t)) return false;
  switch (e->kind) {
    case ExprKind::Read:
    case ExprKind::Constant:
    case ExprKind::Convert:
    case ExprKind::Less:
    case ExprKind::Equal: return false;
    // One of what they choose from.
    case ExprKind::Maximum:
    case ExprKind::Minimum:
    case ExprKind::Select: break;
    case ExprKind::Choose: return may_leave(e->args[1], type) || may_leave(e->args[2], type);
    case ExprKind::Reduce:
      if (e->reduce == ReduceKind::Sum || e->reduce == ReduceKind::Product) return true;
      break;
    default: return true;
  }
  return std::ranges::any_of(e->args, [&](const Expr& argument) { return may_leave(argument, type); });
}

bool has_wide_integers(const Tensor& tensor) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (tensor.type() != ElementType::Int64 && tensor.type() != ElementType::UInt64) return false;
  const int64_t least = tensor.type() == ElementType::UInt64 ? 0 : -kExact;  // those beyond 63 bits come negative
  return std::ranges::any_of(tensor.to_ints(), [least](int64_t v) { return v > kExact || v < least; });
}

}  // namespace gopt
