#include "evaluate.h"

#include <algorithm>
#include <cmath>

namespace gopt::checker {
namespace {

constexpr int64_t kMaxAssignments = 400'000;

class NoValue : public std::exception {};

uint64_t hashed(uint64_t seed, int input, const std::vector<int64_t>& subscripts) {
  uint64_t h = seed + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(input + 1);
  for (int64_t s : subscripts) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL + static_cast<uint64_t>(s) * 0x94d049bb133111ebULL;
    h ^= h >> 27;
  }
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return h ^ (h >> 31);
}

bool is_boolean(const EvaluationInputs& inputs, int number) {
  return inputs.booleans && inputs.booleans->count(number);
}

// The integers modulo the prime.
struct Field {
  using Value = uint64_t;
  const EvaluationInputs& inputs;

  static Value add(Value a, Value b) { return a + b >= kPrime ? a + b - kPrime : a + b; }
  static Value multiply(Value a, Value b) { return static_cast<Value>(static_cast<unsigned __int128>(a) * b % kPrime); }
  static Value negate(Value a) { return a == 0 ? 0 : kPrime - a; }
  static Value inverse(Value a) {  // that of 0 is 0
    Value r = 1;
    for (uint64_t e = kPrime - 2; e > 0; e >>= 1, a = multiply(a, a))
      if (e & 1) r = multiply(r, a);
    return r;
  }
  static bool is_zero(Value a) { return a == 0; }
  static Value integer(int64_t n) {
    const auto r = n % static_cast<int64_t>(kPrime);
    return r < 0 ? static_cast<Value>(r + static_cast<int64_t>(kPrime)) : static_cast<Value>(r);
  }
  static Value number(double value) {  // the exact rational of its bits
    if (!std::isfinite(value)) throw NoValue();
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(value, &exponent), 53);
    exponent -= 53;
    Value power = 1, two = exponent < 0 ? inverse(2) : 2;
    for (int i = 0; i < std::abs(exponent); i++) power = multiply(power, two);
    return multiply(integer(static_cast<int64_t>(mantissa)), power);
  }
  Value input(int number, const std::vector<int64_t>& at) const {
    const uint64_t h = hashed(inputs.seed, number, at);
    return is_boolean(inputs, number) ? h >> 63 : h % kPrime;
  }
  static Value call(const std::string&, const std::vector<Value>&) {
    throw Fault("a function has no value in a field");
  }
  static Value largest(Value, Value) { throw Fault("a field has no order"); }
  static bool less(Value, Value) { throw Fault("a field has no order"); }
  static Value truncated(Value, Value) { throw Fault("a field has no truncation"); }
  static Value converted(int, Value) { throw Fault("a field has no conversions"); }
  static bool has_value(Value) { return true; }
  static CheckedValue scalar(Value v) { return {true, v, 0}; }
};

struct CheckedReals {
  using Value = double;
  const EvaluationInputs& inputs;

  static Value add(Value a, Value b) { return a + b; }
  static Value multiply(Value a, Value b) { return a * b; }
  static Value negate(Value a) { return -a; }
  static Value inverse(Value a) { return a == 0 ? 0 : 1 / a; }
  static bool is_zero(Value a) { return a == 0; }
  static Value integer(int64_t n) { return static_cast<double>(n); }
  static Value number(double value) { return value; }
  Value input(int number, const std::vector<int64_t>& at) const {
    const uint64_t h = hashed(inputs.seed, number, at) >> 20;
    if (is_boolean(inputs, number)) return static_cast<double>(h & 1);
    const double unit = static_cast<double>(h % 4096) / 1024;  // 0 to 4, in exact steps
    return inputs.positive ? unit + 0.125 : unit - 2;
  }
  static Value call(const std::string& f, const std::vector<Value>& x);
  static Value largest(Value a, Value b) { return a < b ? b : a; }
  static bool less(Value a, Value b) { return a < b; }
  static Value truncated(Value a, Value b) { return std::trunc(a / b); }
  static Value converted(int type, Value v) {
    constexpr int kFloat32 = 1, kFloat64 = 11, kBool = 9, kFloat16 = 10, kBfloat16 = 16;
    if (type == kBool) return v != 0;
    if (type == kFloat32 || type == kFloat64 || type == kFloat16 || type == kBfloat16) return v;
    return std::trunc(v);
  }
  static bool has_value(Value v) { return std::isfinite(v); }
  static CheckedValue scalar(Value v) { return {false, 0, v}; }
};

double CheckedReals::call(const std::string& f, const std::vector<double>& x) {
  using Unary = double (*)(double);
  static const std::map<std::string, Unary> unary{
      {"exp", std::exp},
      {"log", std::log},
      {"sqrt", std::sqrt},
      {"sin", std::sin},
      {"cos", std::cos},
      {"tan", std::tan},
      {"asin", std::asin},
      {"acos", std::acos},
      {"atan", std::atan},
      {"sinh", std::sinh},
      {"cosh", std::cosh},
      {"asinh", std::asinh},
      {"acosh", std::acosh},
      {"atanh", std::atanh},
      {"tanh", std::tanh},
      {"erf", std::erf},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"round", std::nearbyint},
      {"trunc", std::trunc},
      {"narrow", [](double v) { return static_cast<double>(static_cast<float>(v)); }},
      {"isnan", [](double v) { return v == v ? 0.0 : 1.0; }}};
  if (auto it = unary.find(f); it != unary.end() && x.size() == 1) return it->second(x[0]);
  if (f == "pow" && x.size() == 2) return std::pow(x[0], x[1]);
  if (f == "fmod" && x.size() == 2) return std::fmod(x[0], x[1]);
  throw Fault("function '" + f + "' is not known");
}

template <class T>
class LogEvaluator {
 public:
  using Value = typename T::Value;
  LogEvaluator(Values& values, const EvaluationInputs& inputs) : values_(values), seed_(inputs.seed), t_{inputs} {}

  Value operator()(const Expression& e) {
    auto arg = [&](size_t i) { return (*this)(e.args[i]); };
    if (e.kind == "const") return t_.number(e.value);
    if (e.kind == "size") return t_.integer(value_of(e.indexes[0], values_, seed_));
    if (e.kind == "read") return read(e.input, e.indexes);
    if (e.kind == "+") return t_.add(arg(0), arg(1));
    if (e.kind == "-") return t_.add(arg(0), t_.negate(arg(1)));
    if (e.kind == "*") return t_.multiply(arg(0), arg(1));
    if (e.kind == "/") return t_.multiply(arg(0), divisor(arg(1)));
    if (e.kind == "max") return t_.largest(arg(0), arg(1));
    if (e.kind == "min") return t_.negate(t_.largest(t_.negate(arg(0)), t_.negate(arg(1))));
    if (e.kind == "<") return t_.integer(t_.less(arg(0), arg(1)));
    if (e.kind == "=") return t_.integer(t_.is_zero(t_.add(arg(0), t_.negate(arg(1)))));
    if (e.kind == "if") return arg(holds(e.condition, values_, seed_) ? 0 : 1);
    if (e.kind == "choose") return arg(t_.is_zero(arg(0)) ? 2 : 1);
    if (e.kind == "convert") return t_.converted(e.input, arg(0));
    if (e.kind == "call") {
      std::vector<Value> args;
      for (size_t i = 0; i < e.args.size(); i++) args.push_back(arg(i));
      return t_.call(e.name, args);
    }
    return reduce(e);
  }

  Value operator()(const Form& form) {
    Value sum = t_.integer(0);
    for (const LogTerm& term : form) sum = t_.add(sum, (*this)(term));
    return sum;
  }

  Value operator()(const LogFactor& f) {
    Value value = base(f);
    if (f.exponent < 0) value = t_.inputs.zero_has_inverse ? t_.inverse(value) : divisor(value);
    Value power = t_.integer(1);
    for (int i = 0; i < std::abs(f.exponent); i++) power = t_.multiply(power, value);
    return power;
  }

 private:
  Value read(int input, const std::vector<Poly>& subscripts) {
    std::vector<int64_t> at;
    for (const Poly& p : subscripts) at.push_back(value_of(p, values_, seed_));
    return t_.input(input, at);
  }
  Value divisor(Value v) {
    if (t_.is_zero(v)) throw NoValue();
    return t_.inverse(v);
  }

  Value reduce(const Expression& e) {
    Condition range{Condition::Kind::And, {}, {}};
    for (size_t i = 0; i < e.binders.size(); i++) {
      const Poly k = Poly::of_text(e.binders[i]);
      range.parts.push_back({Condition::Kind::AtLeastZero, k, {}});
      range.parts.push_back({Condition::Kind::AtLeastZero, e.indexes[i] - k - Poly(1), {}});
    }
    std::optional<Value> total;
    if (e.name == "sum") total = t_.integer(0);
    if (e.name == "product") total = t_.integer(1);
    for_each_assignment(e.binders, range, values_, seed_, kMaxAssignments, [&] {
      const Value v = (*this)(e.args[0]);
      if (e.name == "sum")
        total = t_.add(*total, v);
      else if (e.name == "product")
        total = t_.multiply(*total, v);
      else if (e.name == "max")
        total = total ? t_.largest(*total, v) : v;
      else
        total = total ? t_.negate(t_.largest(t_.negate(*total), t_.negate(v))) : v;
    });
    if (!total) throw NoValue();
    return *total;
  }

  Value operator()(const LogTerm& term) {
    if (!t_.inputs.zero_has_inverse) need_inverses(term);
    Value sum = t_.integer(0);
    for_each_assignment(term.binders, term.guard, values_, seed_, kMaxAssignments, [&] {
      Value product = t_.integer(1);
      for (const LogFactor& f : term.factors) product = t_.multiply(product, (*this)(f));
      sum = t_.add(sum, product);
    });
    return t_.multiply(sum, t_.multiply(t_.integer(term.numerator), t_.inverse(t_.integer(term.denominator))));
  }

  // A sum over nothing that is divided by 0 has no value either.
  void need_inverses(const LogTerm& term) {
    for (const LogFactor& f : term.factors) {
      if (f.exponent >= 0) continue;
      std::set<std::string> symbols;
      collect_symbols(Form{LogTerm{1, 1, {}, {}, {f}}}, symbols);
      if (std::none_of(term.binders.begin(), term.binders.end(),
                       [&](const std::string& b) { return symbols.count(b) > 0; }))
        (*this)(f);
    }
  }

  Value base(const LogFactor& f) {
    if (f.kind == "read") return read(f.number, f.subscripts);
    if (f.kind == "size") return t_.integer(value_of(f.subscripts.at(0), values_, seed_));
    if (f.kind == "literal") return t_.number(f.literal);
    if (f.kind == "max" || f.kind == "product") return over_branches(f);
    std::vector<Value> args;
    for (const Form& a : f.args) args.push_back((*this)(a));
    if (f.kind == "call") return t_.call(f.name, args);
    if (f.kind == "reciprocal" && args.size() == 1) return args[0];  // the exponent is -1
    if (f.kind == "less" && args.size() == 2) return t_.integer(t_.less(args[0], args[1]));
    if (f.kind == "equal" && args.size() == 2) return t_.integer(t_.is_zero(t_.add(args[0], t_.negate(args[1]))));
    constexpr int kTruncation = 1, kConversion = 1000;
    if (f.kind == "opaque" && f.number == kTruncation && args.size() == 2) return t_.truncated(args[0], args[1]);
    if (f.kind == "opaque" && f.number >= kConversion && args.size() == 1)
      return t_.converted(f.number - kConversion, args[0]);
    throw Fault("'" + f.kind + "' cannot be evaluated");
  }

  Value over_branches(const LogFactor& f) {
    std::optional<Value> total;
    if (f.kind == "product") total = t_.integer(1);
    for (const LogBranch& b : f.branches)
      for_each_assignment(b.binders, b.guard, values_, seed_, kMaxAssignments, [&] {
        const Value v = (*this)(b.value);
        total = !total ? v : f.kind == "product" ? t_.multiply(*total, v) : t_.largest(*total, v);
      });
    if (!total) throw NoValue();
    return *total;
  }

  Values& values_;
  uint64_t seed_;
  T t_;
};

template <class Thing>
std::optional<CheckedValue> evaluated(const Thing& thing, Values& values, const EvaluationInputs& inputs) {
  try {
    if (inputs.exact) return Field::scalar(LogEvaluator<Field>(values, inputs)(thing));
    const double v = LogEvaluator<CheckedReals>(values, inputs)(thing);
    if (!CheckedReals::has_value(v)) return std::nullopt;
    return CheckedReals::scalar(v);
  } catch (const NoValue&) {
    return std::nullopt;
  }
}

}  // namespace

bool agree(const CheckedValue& a, const CheckedValue& b) {
  constexpr double kTolerance = 1e-6;
  if (a.is_exact || b.is_exact) return a.is_exact && b.is_exact && a.residue == b.residue;
  return std::fabs(a.real - b.real) <= kTolerance * std::max({1.0, std::fabs(a.real), std::fabs(b.real)});
}

std::optional<CheckedValue> evaluate(const Expression& e, Values& values, const EvaluationInputs& inputs) {
  return evaluated(e, values, inputs);
}
std::optional<CheckedValue> evaluate(const Form& form, Values& values, const EvaluationInputs& inputs) {
  return evaluated(form, values, inputs);
}
std::optional<CheckedValue> evaluate(const SignedForm& form, Values& values, const EvaluationInputs& inputs) {
  Values drawn = values;
  const auto sign = evaluate(form.difference, drawn, inputs);
  if (!sign || sign->is_exact) return std::nullopt;
  const Form& own = sign->real < 0 ? form.where_negative : sign->real > 0 ? form.where_positive : form.where_zero;
  return evaluate(own, values, inputs);
}
std::optional<CheckedValue> evaluate(const LogFactor& factor, Values& values, const EvaluationInputs& inputs) {
  return evaluated(factor, values, inputs);
}

}  // namespace gopt::checker
