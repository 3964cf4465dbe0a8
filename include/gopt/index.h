// Integer index arithmetic: Index is a polynomial with integer coefficients over atoms (symbols, floor divisions, loads
// from integer tensors); Cond is a condition over such polynomials in negation normal form. Tensor extents, attributes,
// subscripts and guards are all made of these, so one definition serves numbers and symbols alike. See expr.h next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gopt {

// An interned atom. Two atoms are the same value if and only if their ids are equal.
enum class AtomId : uint32_t {};

class Index {
 public:
  // A product of atoms (sorted, repeated for powers) with its coefficient, never zero.
  struct Term {
    std::vector<AtomId> atoms;
    int64_t coefficient;
    friend auto operator<=>(const Term&, const Term&) = default;
  };

  Index() = default;
  Index(int64_t constant) : constant_(constant) {}
  static Index from_atom(AtomId atom);

  bool is_constant() const { return terms_.empty(); }
  int64_t constant() const { return constant_; }             // the constant part
  const std::vector<Term>& terms() const { return terms_; }  // the rest, sorted by atoms
  std::optional<int64_t> as_constant() const;
  std::optional<AtomId> as_atom() const;  // when it is exactly one atom

  Index& operator+=(const Index& other);
  friend Index operator+(Index a, const Index& b) { return a += b; }
  friend Index operator-(const Index& a);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, const Index& b);
  friend bool operator==(const Index&, const Index&) = default;
  friend auto operator<=>(const Index&, const Index&) = default;  // a total order for containers, not a numeric one

 private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

enum class AtomKind { Symbol, FloorDiv, Load };

struct Atom {
  AtomKind kind;
  std::string name;   // Symbol
  Index numerator;    // FloorDiv: floor(numerator / denominator); the denominator is positive by requirement
  Index denominator;  // FloorDiv
  int input = 0;      // Load: the element of integer input number `input` at `subscripts`
  std::vector<Index> subscripts;  // Load
};

const Atom& atom(AtomId id);

// The symbol of that name: the same symbol for the same name, everywhere.
AtomId symbol_atom(std::string_view name);
Index symbol(std::string_view name);
// A symbol that no other call returns and whose name no text can spell. Recycled by release_symbol.
AtomId fresh_symbol();
void release_symbol(AtomId id);
Index load_index(int input, std::vector<Index> subscripts);

// floor(a / b), simplified where it is exact or splits off a multiple of b; for b a positive constant or symbolic.
Index floor_div(const Index& a, const Index& b);
Index ceil_div(const Index& a, const Index& b);
// a - b * floor(a / b), in [0, b).
Index modulo(const Index& a, const Index& b);

using Substitution = std::map<AtomId, Index>;  // from symbol to value
Index substitute(const Index& index, const Substitution& substitution);
void collect_symbols(const Index& index, std::set<AtomId>& out);  // also below floor divisions and loads
bool has_load(const Index& index);

// Numeric values of symbols. Returns nothing where a symbol has none, or on division by a number below one.
using Environment = std::map<AtomId, int64_t>;
// Value of Load atoms, where they may occur.
using LoadFunction = std::function<int64_t(int input, std::span<const int64_t> subscripts)>;
std::optional<int64_t> evaluate(const Index& index, const Environment& environment, const LoadFunction& load = {});

// Constant ranges [low, high] of symbols, as loops give them, and of loads, where what is loaded is known.
struct Range {
  int64_t low, high;
};
using Ranges = std::map<AtomId, Range>;
std::optional<Range> range_of(const Index& index, const Ranges& ranges);
// The same value with floor divisions resolved that the ranges decide.
Index simplify(const Index& index, const Ranges& ranges);

std::string to_string(const Index& index);
// Text in double quotes; a name as the text form has it: quoted where it is no plain word or is a word of the grammar.
std::string quoted(std::string_view text);
std::string name_text(std::string_view name);

// ---- conditions ----

enum class CondKind { True, False, NonNegative, And, Or };

class Cond {
 public:
  struct Node {
    CondKind kind;
    Index index;              // NonNegative: index >= 0
    std::vector<Cond> parts;  // And, Or: at least two
  };
  Cond();  // true
  explicit Cond(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Cond never();
  static Cond make(Node node);

  CondKind kind() const { return node_->kind; }
  const Index& index() const { return node_->index; }
  const std::vector<Cond>& parts() const { return node_->parts; }
  bool is_true() const { return kind() == CondKind::True; }
  bool is_false() const { return kind() == CondKind::False; }

 private:
  std::shared_ptr<const Node> node_;
};

bool operator==(const Cond& a, const Cond& b);

Cond at_least(const Index& a, const Index& b);  // a >= b
Cond less(const Index& a, const Index& b);      // a < b
Cond equal(const Index& a, const Index& b);
Cond within(const Index& x, const Index& low, const Index& high);  // low <= x < high
Cond operator&&(const Cond& a, const Cond& b);
Cond operator||(const Cond& a, const Cond& b);
Cond operator!(const Cond& a);

Cond substitute(const Cond& cond, const Substitution& substitution);
void collect_symbols(const Cond& cond, std::set<AtomId>& out);
std::optional<bool> evaluate(const Cond& cond, const Environment& environment, const LoadFunction& load = {});
Cond simplify(const Cond& cond, const Ranges& ranges);
// The same condition, comparisons divided by what their symbols' coefficients share: 2 i + 3 >= 0 is i + 1 >= 0.
Cond in_lowest_terms(const Cond& cond);
std::string to_string(const Cond& cond);

}  // namespace gopt
