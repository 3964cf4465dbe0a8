#include "gopt/wide_integers.h"

#include <algorithm>
#include <set>

namespace gopt {

namespace {

// `seen`: parts that are not, since expressions share them.
bool is_unsigned_part(const Expr& e, const std::vector<ElementType>& types, std::set<const Expr::Node*>& seen) {
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
  if (!seen.insert(e.get()).second) return false;
  const auto first = e->args.begin() + (e->kind == ExprKind::Choose ? 1 : 0);
  return std::any_of(first, e->args.end(),
                     [&](const Expr& argument) { return is_unsigned_part(argument, types, seen); });
}

}  // namespace

bool is_unsigned(const Expr& e, const std::vector<ElementType>& types) {
  std::set<const Expr::Node*> seen;
  return is_unsigned_part(e, types, seen);
}

bool has_no_sign(ElementType type) {
  return type == ElementType::UInt8 || type == ElementType::UInt16 || type == ElementType::UInt32 ||
         type == ElementType::UInt64;
}

namespace {

// `seen`: parts that do not, since expressions share them.
bool may_leave_bits(const Expr& e, std::set<const Expr::Node*>& seen) {
  const auto any_of = [&](size_t first) {
    if (!seen.insert(e.get()).second) return false;
    return std::any_of(e->args.begin() + static_cast<std::ptrdiff_t>(first), e->args.end(),
                       [&](const Expr& argument) { return may_leave_bits(argument, seen); });
  };
  switch (e->kind) {
    case ExprKind::Read:
    case ExprKind::Constant:
    case ExprKind::Convert:
    case ExprKind::Less:
    case ExprKind::Equal: return false;
    // One of what they choose from.
    case ExprKind::Maximum:
    case ExprKind::Minimum:
    case ExprKind::Select: return any_of(0);
    case ExprKind::Choose: return any_of(1);
    case ExprKind::Reduce: return e->reduce == ReduceKind::Sum || e->reduce == ReduceKind::Product || any_of(0);
    default: return true;
  }
}

}  // namespace

bool may_leave(const Expr& e, ElementType type) {
  std::set<const Expr::Node*> seen;
  return is_integer(type) && size_bytes(type) < sizeof(int64_t) && may_leave_bits(e, seen);
}

bool has_wide_integers(const Tensor& tensor) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (tensor.type() != ElementType::Int64 && tensor.type() != ElementType::UInt64) return false;
  const int64_t least = tensor.type() == ElementType::UInt64 ? 0 : -kExact;  // those beyond 63 bits come negative
  return std::ranges::any_of(tensor.to_ints(), [least](int64_t v) { return v > kExact || v < least; });
}

}  // namespace gopt
