#include "exponent.h"

#include <vector>

namespace gopt::generator {
namespace {

uint32_t random_exponent(uint64_t residue) {
  return static_cast<uint32_t>(mix(residue ^ 0x2545f4914f6cdd1dULL) % kExponentOrder);
}

uint64_t difference(uint64_t a, uint64_t b) { return a >= b ? a - b : a + kPrime - b; }
uint64_t sum(uint64_t a, uint64_t b) { return difference(a, b == 0 ? 0 : kPrime - b); }

// Values of the functions of all exponents.
struct Tables {
  std::vector<uint64_t> exp, sinh, cosh, tanh;

  Tables() : exp(kExponentOrder, 1), sinh(kExponentOrder), cosh(kExponentOrder), tanh(kExponentOrder) {
    // What is no q-th power root itself becomes one of order q.
    const uint64_t generator = power(37, (kPrime - 1) / kExponentOrder), half = inverse(2);
    for (uint32_t e = 1; e < kExponentOrder; e++) exp[e] = multiply(exp[e - 1], generator);
    for (uint32_t e = 0; e < kExponentOrder; e++) {
      const uint64_t up = exp[e], down = exp[(kExponentOrder - e) % kExponentOrder];
      sinh[e] = multiply(difference(up, down), half);
      cosh[e] = multiply(sum(up, down), half);  // not 0: -1 is no power of an element of odd order
      tanh[e] = multiply(sinh[e], inverse(cosh[e]));
    }
  }
};

const std::vector<uint64_t>& inverses() {
  static const std::vector<uint64_t> table = [] {
    std::vector<uint64_t> made(kExponentOrder, 1);
    for (uint64_t e = 2; e < kExponentOrder; e++)
      made[e] = (kExponentOrder - (kExponentOrder / e) * made[kExponentOrder % e] % kExponentOrder) % kExponentOrder;
    return made;
  }();
  return table;
}

// Whether the exponent decides the function's value.
bool is_exponential(Function function) {
  return function == Function::Exp || function == Function::Sinh || function == Function::Cosh ||
         function == Function::Tanh;
}

// The function of what has that exponent; precondition: is_exponential(function).
uint64_t exponential(Function function, uint32_t exponent) {
  static const Tables tables;
  const std::vector<uint64_t>& table = function == Function::Exp    ? tables.exp
                                       : function == Function::Sinh ? tables.sinh
                                       : function == Function::Cosh ? tables.cosh
                                                                    : tables.tanh;
  return table[exponent];
}

}  // namespace

void set_exponents_of_sum(const Scalar& a, const Scalar& b, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++) {
    const uint32_t own = uint32_t{a.exponent[lane]} + b.exponent[lane];
    result.exponent[lane] = static_cast<uint16_t>(own >= kExponentOrder ? own - kExponentOrder : own);
  }
}

void set_exponents_of_difference(const Scalar& a, const Scalar& b, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++) {
    const uint32_t own = uint32_t{a.exponent[lane]} + kExponentOrder - b.exponent[lane];
    result.exponent[lane] = static_cast<uint16_t>(own >= kExponentOrder ? own - kExponentOrder : own);
  }
}

void set_exponents_of_product(const Scalar& a, const Scalar& b, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++)
    result.exponent[lane] = static_cast<uint16_t>(uint32_t{a.exponent[lane]} * b.exponent[lane] % kExponentOrder);
}

void set_exponents_of_quotient(const Scalar& a, const Scalar& b, Scalar& result) {
  for (int lane = 0; lane < kLanes; lane++)
    result.exponent[lane] = static_cast<uint16_t>(
        b.exponent[lane] == 0 ? random_exponent(result.residue[lane])
                              : uint32_t{a.exponent[lane]} * inverses()[b.exponent[lane]] % kExponentOrder);
}

void set_exponents_of_call(Function function, const Scalar& a, Scalar& result) {
  const bool is_power = is_exponential(function);
  for (int lane = 0; lane < kLanes; lane++) {
    if (is_power) result.residue[lane] = exponential(function, a.exponent[lane]);
    result.exponent[lane] = static_cast<uint16_t>(random_exponent(result.residue[lane]));
  }
}

}  // namespace gopt::generator
