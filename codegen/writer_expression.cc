// Text of single operations, indexes and guards.
#include <algorithm>
#include <cmath>

#include "gopt/contains.h"
#include "gopt/wide_integers.h"
#include "sizes.h"
#include "transform.h"
#include "writer.h"

namespace gopt::codegen {
namespace {

constexpr size_t kMaxInlineNodes = 24;

size_t node_count(const Expr& e) {
  size_t n = 1;
  for (const Expr& a : e->args) {
    n += node_count(a);
    if (n > kMaxInlineNodes) return n;
  }
  return n;
}

}  // namespace

std::string Writer::atom_text(AtomId id, const Scope& scope) const {
  const Atom& a = atom(id);
  switch (a.kind) {
    case AtomKind::Symbol:
      for (const Scope* s = &scope; s; s = s->parent)
        for (const auto& [symbol, name] : s->bound)
          if (symbol == id) return name;
      return size_name(id, body_.open);
    case AtomKind::FloorDiv: {
      const std::string n = index_text(a.numerator, scope), d = index_text(a.denominator, scope);
      const bool is_one_number = a.denominator.is_constant() && a.denominator.constant() >= 0;
      if (is_surely_nonnegative(a.numerator, known_))
        return "((" + n + ") / " + (is_one_number ? d : "(" + d + ")") + ")";
      return "gopt_floor_div(" + n + ", " + d + ")";
    }
    case AtomKind::Load: {
      std::string text = "(int64_t)in" + std::to_string(a.input) + "[" + index_text(a.subscripts[0], scope) + "]";
      if (a.subscripts.size() > 1) text = "gopt_clamp(" + text + ", " + index_text(a.subscripts[1], scope) + ")";
      return text;
    }
  }
  return "";
}

std::string Writer::index_text(const Index& index, const Scope& scope) const {
  return codegen::index_text(index, [&](AtomId id) { return atom_text(id, scope); });
}

std::string Writer::cond_text(const Cond& cond, const Scope& scope) const {
  switch (cond.kind()) {
    case CondKind::True: return "true";
    case CondKind::False: return "false";
    case CondKind::NonNegative: return "(" + index_text(cond.index(), scope) + " >= 0)";
    case CondKind::And:
    case CondKind::Or: break;
  }
  std::string text;
  for (const Cond& part : cond.parts())
    text += (text.empty() ? "" : cond.kind() == CondKind::And ? " && " : " || ") + cond_text(part, scope);
  return "(" + text + ")";
}

std::string Writer::read_text(const Expr& e, const Scope& scope) const {
  const bool widens = is_half(body_.inputs[static_cast<size_t>(e->input)]);
  return std::string(widens ? "(float)in" : "in") + std::to_string(e->input) + "[" +
         index_text(e->subscripts[0], scope) + "]";
}

// What the arguments are computed in, for a result of that type.
std::vector<Scalar> Writer::argument_types(const Expr& e, Scalar type) {
  std::vector<Scalar> types(e->args.size(), type);
  if (e->kind == ExprKind::Less || e->kind == ExprKind::Equal) {
    std::optional<Scalar> a = own_type(e->args[0]), b = own_type(e->args[1]);
    // What is chosen among constants is compared as what it is beside.
    const bool is_a = is_of_constants(e->args[0]), is_b = is_of_constants(e->args[1]);
    if (a && b && is_a != is_b) (is_a ? a : b) = type_of(e->args[is_a ? 0 : 1], *(is_a ? b : a));
    const Scalar both = std::max(a.value_or(Scalar::Bool), b.value_or(Scalar::Bool));
    // A comparison with a number that is no integer must not truncate it.
    types.assign(2, both == Scalar::Bool ? Scalar::Int : both);
  }
  if (e->kind == ExprKind::Choose) types[0] = type_of(e->args[0], Scalar::Float);
  if (e->kind == ExprKind::Convert) types[0] = type_of(e->args[0], Scalar::Double);
  if (e->kind == ExprKind::Call && e->function == Function::IsNan) types[0] = type_of(e->args[0], Scalar::Float);
  return types;
}

namespace {

// Whether it is cut off at numbers that 32 bits hold: what is no number becomes 0 in types of fewer bits either way.
bool is_cut_off(const Expr& e) {
  constexpr double kMost = 1 << 24;
  const auto is_bound = [](const Expr& bound) {
    return bound->kind == ExprKind::Constant && std::abs(bound->value) <= kMost;
  };
  const auto other = [&](const Expr& pair) { return is_bound(pair->args[1]) ? pair->args[0] : pair->args[1]; };
  const auto has_bound = [&](const Expr& pair) { return is_bound(pair->args[0]) || is_bound(pair->args[1]); };
  if (e->kind != ExprKind::Minimum || !has_bound(e)) return false;
  const Expr inner = other(e);
  return inner->kind == ExprKind::Maximum && has_bound(inner);
}
bool is_short(ElementType type) {
  return type == ElementType::UInt8 || type == ElementType::Int8 || type == ElementType::UInt16 ||
         type == ElementType::Int16;
}

bool is_one(const Expr& e) { return e->kind == ExprKind::Constant && e->value == 1; }

// x of ln(1 + x), which the sum may round to 1; else null.
const Expr* more_than_one(const Expr& e) {
  if (e->kind != ExprKind::Call || e->function != Function::Log || e->args[0]->kind != ExprKind::Add) return nullptr;
  const std::vector<Expr>& sum = e->args[0]->args;
  return is_one(sum[0]) ? &sum[1] : is_one(sum[1]) ? &sum[0] : nullptr;
}

// What gopt_elementary.h computes for many at once libm computes sooner for one; else empty.
std::string lone_call(Function function, const std::vector<std::string>& args) {
  constexpr Function kMany[] = {Function::Log,  Function::Sin,  Function::Cos,  Function::Tan,
                                Function::Asin, Function::Acos, Function::Atan, Function::Pow};
  if (!contains(kMany, function)) return "";
  std::string text = "std::" + std::string(function_text(function)) + "(" + args[0];
  for (size_t i = 1; i < args.size(); i++) text += ", " + args[i];
  return text + ")";
}

}  // namespace

std::string arithmetic(const char* sign, Scalar type, const std::vector<std::string>& a) {
  if (type != Scalar::Int) return "(" + a[0] + sign + a[1] + ")";
  return "(int64_t)((uint64_t)" + a[0] + sign + "(uint64_t)" + a[1] + ")";
}

// Whether it is a product that was rounded, or one of several that are chosen among.
bool Writer::is_rounded_product(const Expr& e) {
  const auto is_power_of_two = [&](const Expr& factor) {
    int exponent = 0;
    return factor->kind == ExprKind::Constant && std::abs(std::frexp(fold(factor), &exponent)) == 0.5;
  };
  const auto is_one_of = [&](size_t first) {
    return std::any_of(e->args.begin() + static_cast<std::ptrdiff_t>(first), e->args.end(),
                       [&](const Expr& a) { return is_rounded_product(a); });
  };
  switch (e->kind) {
    case ExprKind::Multiply: return std::ranges::none_of(e->args, is_power_of_two) || is_one_of(0);
    case ExprKind::Divide: return !is_power_of_two(e->args[1]) || is_one_of(0);  // perhaps by the reciprocal
    case ExprKind::Choose: return is_one_of(1);
    case ExprKind::Select:
    case ExprKind::Maximum:
    case ExprKind::Minimum: return is_one_of(0);
    default: return false;
  }
}

// A sum or difference of products as they are rounded, though one instruction might make both of exact ones. What is
// computed again, in another loop or kernel, has to be the same number: the largest of a row is one of its numbers, and
// x * c less the largest, without being rounded, is not zero where it is that, but as far from it as the last digits of
// 1e30 are.
std::string Writer::sum_of_rounded(const Expr& e, Scalar type, const std::vector<std::string>& a) {
  const bool is_real = type == Scalar::Float || type == Scalar::Double;
  std::vector<std::string> rounded = a;
  bool has_products = false;
  for (size_t k = 0; is_real && k < a.size(); k++)
    if (is_rounded_product(e->args[k])) {
      rounded[k] = "gopt_rounded<" + type_name(type) + ">(" + a[k] + ")";
      has_products = true;
    }
  const bool is_sum = e->kind == ExprKind::Add;
  if (!has_products) return arithmetic(is_sum ? " + " : " - ", type, a);
  return (is_sum ? "gopt_sum<" : "gopt_difference<") + type_name(type) + ">(" + rounded[0] + ", " + rounded[1] + ")";
}

// Of integers of 64 bits without a sign, where that makes a difference; else empty.
std::string Writer::unsigned_operation(const Expr& e, const std::vector<std::string>& a) const {
  const auto has_no_sign = [&](const Expr& argument) { return is_unsigned(argument, body_.inputs); };
  const bool is_call = e->kind == ExprKind::Call && e->function != Function::Fmod;
  if (is_call || std::none_of(e->args.begin(), e->args.end(), has_no_sign)) return "";
  const auto pair = [&](const std::string& middle) { return "(uint64_t)" + a[0] + middle + "(uint64_t)" + a[1]; };
  const auto unless_zero = [&](const char* sign) { return "(int64_t)(" + a[1] + " == 0 ? 0 : " + pair(sign) + ")"; };
  switch (e->kind) {
    case ExprKind::Divide: return unless_zero(" / ");
    case ExprKind::Call: return unless_zero(" % ");
    case ExprKind::Maximum: return "(int64_t)gopt_max<uint64_t>(" + pair(", ") + ")";
    case ExprKind::Minimum: return "(int64_t)gopt_min<uint64_t>(" + pair(", ") + ")";
    case ExprKind::Less: return "(" + pair(" < ") + ")";
    default: return "";
  }
}

std::string Writer::operation(const Expr& e, Scalar type, const std::vector<std::string>& a) {
  const bool integer = type == Scalar::Int || type == Scalar::Bool;
  const bool takes_integers = integer && (e->args.empty() || type_of(e->args[0], Scalar::Int) == Scalar::Int);
  if (takes_integers)
    if (const std::string own = unsigned_operation(e, a); !own.empty()) return own;
  // The short forms of exp, tanh and 1/x have nothing below the normal numbers of a float, nor do halves.
  const bool is_zero_below_normal = takes_short_functions && body_.output == ElementType::Float16;
  const std::string deduced = integer ? "<" + type_name(type) + ">" : "";  // a literal integer is an int
  switch (e->kind) {
    case ExprKind::Add:
    case ExprKind::Subtract: return sum_of_rounded(e, type, a);
    case ExprKind::Multiply: return arithmetic(" * ", type, a);
    case ExprKind::Divide:
      if (integer) return "gopt_divide(" + a[0] + ", " + a[1] + ")";
      if (is_zero_below_normal && type == Scalar::Float && is_one(e->args[0]))
        return "gopt_short_reciprocal(" + a[1] + ")";
      return "(" + a[0] + " / " + a[1] + ")";
    case ExprKind::Maximum: return "gopt_max" + deduced + "(" + a[0] + ", " + a[1] + ")";
    case ExprKind::Minimum: return "gopt_min" + deduced + "(" + a[0] + ", " + a[1] + ")";
    case ExprKind::Less: return "(" + a[0] + " < " + a[1] + ")";
    case ExprKind::Equal: return "(" + a[0] + " == " + a[1] + ")";
    case ExprKind::Choose: return "(" + a[0] + " != 0 ? " + a[1] + " : " + a[2] + ")";
    case ExprKind::Convert: {
      const Scalar from = type_of(e->args[0], Scalar::Double);
      const bool is_real = from == Scalar::Float || from == Scalar::Double;
      if (is_real && e->type == ElementType::UInt64) return "gopt_to_unsigned(" + a[0] + ")";
      if (from == Scalar::Int && is_floating(e->type) && is_unsigned(e->args[0], body_.inputs))
        return (is_half(e->type) ? "(float)" : "") + stored("(uint64_t)" + a[0], from, e->type);
      // Loops over numbers of 32 bits have four times the lanes of those over doubles, which 64 bits are made of.
      const std::string value = from == Scalar::Float && is_short(e->type) && is_cut_off(e->args[0])
                                    ? "(" + storage_name(e->type) + ")(int32_t)" + a[0]
                                    : stored(a[0], from, e->type);
      if (is_half(e->type)) return "(float)" + value;  // rounded as it is where it is stored
      return type == Scalar::Int ? "(int64_t)" + value : value;
    }
    case ExprKind::Call: {
      const bool has_short_form =
          (takes_short_functions && e->function == Function::Erf) ||
          (is_zero_below_normal && (e->function == Function::Exp || e->function == Function::Tanh));
      const bool is_short = has_short_form && type == Scalar::Float;
      std::string text =
          std::string(is_short ? "gopt_short_" : "gopt_") + std::string(function_text(e->function)) + "(";
      for (size_t i = 0; i < a.size(); i++) text += (i ? ", " : "") + a[i];
      return text + ")";
    }
    default: GOPT_CHECK(false, "no operation: " + to_string(e));
  }
}

// A quotient as a product, where the divisor's reciprocal is a number or computed outside this loop: division takes ten
// times as long. Only for divisors whose reciprocal is finite where the quotient is: square roots, and sums of
// exponentials, one of which is 1 (softmax). Empty: a division.
std::string Writer::by_reciprocal(const Expr& e, Scope& scope, Scalar type) {
  if (e->kind != ExprKind::Divide || type != Scalar::Float || !own_type(e->args[0])) return "";
  const Expr& divisor = e->args[1];
  if (!own_type(divisor)) {
    const double number = fold(divisor), reciprocal = 1 / number;
    if (!(std::abs(reciprocal) >= 1e-30 && std::abs(reciprocal) <= 1e30)) return "";
    const std::string x = value(e->args[0], scope, type), factor = literal(reciprocal, type);
    int exponent = 0;
    const bool is_exact = std::abs(std::frexp(number, &exponent)) == 0.5;
    return is_exact ? "(" + x + " * " + factor + ")"
                    : "gopt_quotient(" + x + ", " + literal(number, type) + ", " + factor + ")";
  }
  const bool root = divisor->kind == ExprKind::Call && divisor->function == Function::Sqrt;
  const bool exponentials = divisor->kind == ExprKind::Reduce && divisor->reduce == ReduceKind::Sum &&
                            divisor->args[0]->kind == ExprKind::Call && divisor->args[0]->function == Function::Exp;
  if (!(root || exponentials) || own_type(divisor) != Scalar::Float) return "";
  const bool is_kept = scope.lanes && scope.lane_count > 0 && scope.lane_count <= kMaxArray &&
                       array_home(divisor, scope) != scope.parent;  // with the other lanes'
  if (target(divisor, scope) == &scope && !is_kept) return "";
  if (is_kept) (void)value(divisor, scope, type);  // first: it may leave the dividend behind
  const std::string dividend = value(e->args[0], scope, type);
  return "(" + dividend + " * " + value(constant(1) / divisor, scope, type) + ")";
}

// One expression whose arguments have names of their own.
std::string Writer::compute(const Expr& e, Scope& scope, Scalar type) {
  if (const std::string text = by_reciprocal(e, scope, type); !text.empty()) return text;
  if (e->kind == ExprKind::Read) return read_text(e, scope);
  if (e->kind == ExprKind::Size) return "(" + type_name(type) + ")(" + index_text(e->index, scope) + ")";
  if (e->kind == ExprKind::Select) {
    if (!has_reduction(e) && node_count(e) <= kMaxInlineNodes) return inline_text(e, scope, type);
    return branch(e, scope, type);
  }
  if (e->kind == ExprKind::Reduce) return value(e, scope, type);
  if (const Expr* more = more_than_one(e); more && type == Scalar::Float && !takes_short_functions)
    return (is_lone(scope) ? "std::log1p(" : "gopt_log1p(") + value(*more, scope, type) + ")";
  const std::vector<Scalar> types = argument_types(e, type);
  std::vector<std::string> args;
  for (size_t i = 0; i < e->args.size(); i++) args.push_back(value(e->args[i], scope, types[i]));
  if (e->kind == ExprKind::Call && type == Scalar::Float && is_lone(scope))
    if (const std::string own = lone_call(e->function, args); !own.empty()) return own;
  return operation(e, type, args);
}

// Whether one number at a time is computed there on a CPU: in no loop over lanes nor over what is reduced.
bool Writer::is_lone(const Scope& scope) const {
  const auto is_of_body = [&](const auto& bound) {
    return std::ranges::any_of(body_.loops, [&](const Loop& loop) { return loop.symbol == bound.first; });
  };
  for (const Scope* s = &scope; s; s = s->parent)
    if (s->lanes || !std::ranges::all_of(s->bound, is_of_body)) return false;
  return pragmas;
}

// The same within one C++ expression: reads stay behind the guards around them.
std::string Writer::inline_text(const Expr& e, Scope& scope, Scalar want) {
  if (!reads(e) && e->kind != ExprKind::Select) return value(e, scope, want);
  Scope* where = nullptr;
  const Scalar type = type_of(e, want);
  if (const Scope::Entry* entry = find(e, scope, type, &where))
    return converted(entry_text(*entry, scope), entry->type, want);
  if (e->kind == ExprKind::Read) return converted(read_text(e, scope), type, want);
  if (e->kind == ExprKind::Select) {
    const std::string text = "(" + cond_text(e->cond, scope) + " ? " + inline_text(e->args[0], scope, type) + " : " +
                             inline_text(e->args[1], scope, type) + ")";
    return converted(text, type, want);
  }
  if (e->kind == ExprKind::Size) return converted("(" + index_text(e->index, scope) + ")", Scalar::Int, want);
  const std::vector<Scalar> types = argument_types(e, type);
  std::vector<std::string> args;
  for (size_t i = 0; i < e->args.size(); i++) args.push_back(inline_text(e->args[i], scope, types[i]));
  return converted(operation(e, type, args), type, want);
}

std::string Writer::branch(const Expr& e, Scope& scope, Scalar type) {
  const std::string name = fresh("s");
  scope.code += type_name(type) + " " + name + ";\nif " + cond_text(e->cond, scope) + " {\n";
  for (size_t side = 0; side < 2; side++) {
    Scope& inside = add_scope(scope);
    inside.guard = true;
    const std::string text = value(e->args[side], inside, type);
    scope.code += inside.code + name + " = " + text + ";\n" + (side == 0 ? "} else {\n" : "}\n");
  }
  scope.has_loop = true;
  return name;
}

}  // namespace gopt::codegen
