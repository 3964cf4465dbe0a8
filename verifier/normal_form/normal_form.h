// The normal form of a scalar expression: a finite sum of terms
//     coefficient * SUM over binders in Z^n of [guard] * product of factors.
// Domains of sums are guards; concat, pad and split are guards; nested sums are flattened and products distributed. A
// factor is a read, a size, or an uninterpreted function, reciprocal or maximum of normal forms. normalize.h builds it,
// match.h compares.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gopt/expr.h"
#include "rational.h"

namespace gopt::verifier {

struct Summand;
using NormalForm = std::vector<Summand>;

enum class FactorKind {
  Read,        // of `input` at `subscripts`
  Size,        // subscripts[0] as a number
  Literal,     // a number that is no small rational
  Call,        // function of args
  Reciprocal,  // of args[0]; that of 0 is 0 here, and no rule may depend on it (see well_formed.h)
  Maximum,     // over branches: the largest value of any branch over its domain
  Product,     // over branches[0]
  IsLess,      // args[0] < args[1], 1 or 0
  IsEqual,     // args[0] == args[1], 1 or 0
  Opaque,      // an operation without laws, told apart by `tag`, of args
};

// One part of a Maximum: value over all binders that satisfy the guard.
struct Branch {
  std::vector<AtomId> binders;
  Cond guard;
  NormalForm value;
};

struct Factor {
  FactorKind kind = FactorKind::Read;
  int input = 0;
  std::vector<Index> subscripts;
  double literal = 0;
  Function function = Function::Exp;
  int tag = 0;
  std::vector<NormalForm> args;
  std::vector<Branch> branches;
  int exponent = 1;  // of Size, Read and exp factors; -1 for Reciprocal
};

struct Summand {
  Rational coefficient = 1;
  std::vector<AtomId> binders;
  Cond guard;
  std::vector<Factor> factors;
};

// Binders that depend on how many were made before and on nothing else, so that a proof is the same in every process.
class BinderPool {
 public:
  AtomId fresh();
  Index fresh_index() { return Index::from_atom(fresh()); }

 private:
  size_t used_ = 0;
};

NormalForm one();                   // the term 1
NormalForm as_form(Factor factor);  // 1 * factor
Factor make_call(Function function, std::vector<NormalForm> args);

Factor substitute(const Factor& factor, const Substitution& substitution);
NormalForm substitute(const NormalForm& form, const Substitution& substitution);
Summand freshen(Summand term, BinderPool& pool);  // with binders of its own
void collect_symbols(const Factor& factor, std::set<AtomId>& out);
void collect_symbols(const NormalForm& form, std::set<AtomId>& out);
NormalForm negated(NormalForm form);

// The same with one atom (a floor division, say) replaced wherever it occurs.
Index replace_atom(const Index& index, AtomId replaced, const Index& value);
Cond replace_atom(const Cond& cond, AtomId replaced, const Index& value);
void replace_atom(Summand& term, AtomId replaced, const Index& value);

// Equal texts mean equal values: binders are renamed by position, terms and factors sorted.
std::string key(const Factor& factor, bool with_exponent = true);
std::string key(const NormalForm& form);

// Parts of a conjunction (none for true).
std::vector<Cond> conjuncts(const Cond& cond);
// So that what is tried first does not depend on which symbols the process made before.
std::vector<AtomId> sorted_by_name(std::vector<AtomId> symbols);
bool depends_on(const Index& index, AtomId symbol);
bool depends_on(const Cond& cond, AtomId symbol);
// The integer coefficient of `symbol` where the index is coefficient * symbol + rest and rest is free of it.
struct LinearSplit {
  int64_t coefficient;
  Index rest;
};
std::optional<LinearSplit> split_linear(const Index& index, AtomId symbol);

}  // namespace gopt::verifier
