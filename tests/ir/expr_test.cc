// Scalar expressions: equal ones are equal however they were built, and neither substitution nor inlining changes a
// value or captures a binder.
#include "gopt/expr.h"

#include <gtest/gtest.h>

#include <random>

#include "naive_evaluator.h"

namespace gopt {
namespace {

const Index n = symbol("n"), i = symbol("i"), j = symbol("j");

Expr row_sum(const Index& row) {
  return reduce(ReduceKind::Sum, {n}, [&](const std::vector<Index>& k) { return read(0, {row, k[0]}); });
}

TEST(Expr, EqualOnesBuiltApartAreEqual) {
  EXPECT_EQ(row_sum(i), row_sum(i));
  EXPECT_EQ(row_sum(i)->hash, row_sum(i)->hash);
  EXPECT_FALSE(row_sum(i) == row_sum(j));
  auto nested = [] {
    return reduce(ReduceKind::Sum, {n, Index(3)}, [](const std::vector<Index>& k) {
      const Expr largest = reduce(ReduceKind::Max, {n}, [&](const std::vector<Index>& m) {
        return read(1, {k[0], m[0], k[1]});
      });
      return row_sum(k[0]) * largest;
    });
  };
  const AtomId taken = fresh_symbol();  // the second is built with other fresh symbols
  const Expr first = nested();
  const AtomId also_taken = fresh_symbol();
  EXPECT_EQ(first, nested());
  release_symbol(taken);
  release_symbol(also_taken);
}

TEST(Expr, BindersAreNotFree) {
  std::set<AtomId> symbols;
  collect_symbols(row_sum(i) + size_of(j), symbols);
  EXPECT_EQ(symbols, (std::set<AtomId>{symbol_atom("n"), symbol_atom("i"), symbol_atom("j")}));
}

TEST(Expr, AnExtentOfOneNeedsNoBinder) {
  const Expr sum = reduce(ReduceKind::Sum, {Index(1)}, [](const std::vector<Index>& k) { return read(0, {k[0]}); });
  EXPECT_EQ(sum, read(0, {Index(0)}));
}

TEST(Expr, DecidedGuardsDisappear) {
  const Expr guarded = select(less(i, n), read(0, {i}), constant(0));
  EXPECT_EQ(substitute(guarded, {{symbol_atom("i"), Index(2)}, {symbol_atom("n"), Index(3)}}), read(0, {Index(2)}));
  EXPECT_EQ(substitute(guarded, {{symbol_atom("i"), Index(3)}, {symbol_atom("n"), Index(3)}}), constant(0));
}

// The binder of the sum that is put in has the same name as the binder around it, for both are of height 1.
TEST(Expr, SubstitutionCapturesNoBinder) {
  const Expr inner = reduce(ReduceKind::Sum, {Index(2)}, [](const std::vector<Index>& k) {
    return read(0, {i, k[0]});
  });
  const Index binder = Index::from_atom(inner->binders[0].symbol);
  const Expr moved =
      substitute(inner, {{symbol_atom("i"), binder}});  // `binder` is free here: whoever is outside gives it
  const Tensor table = Tensor::vector_i64({1, 10, 100, 1000}).reshaped({2, 2});
  EXPECT_EQ(evaluate_naively(moved, {{inner->binders[0].symbol, 1}}, {table}), 1100);
  EXPECT_EQ(evaluate_naively(substitute(inner, {{symbol_atom("i"), Index(1)}}), {}, {table}), 1100);
}

TEST(Expr, InliningAReductionIntoAReductionCapturesNoBinder) {
  // sum over k of x[i, k], where x[a, b] is itself sum over k of table[a, k] table[k, b].
  const Expr outer = reduce(ReduceKind::Sum, {Index(2)}, [](const std::vector<Index>& k) {
    return read(0, {i, k[0]});
  });
  auto product = [](int, const std::vector<Index>& at) {
    return reduce(ReduceKind::Sum, {Index(2)}, [&](const std::vector<Index>& k) {
      return read(0, {at[0], k[0]}) * read(0, {k[0], at[1]});
    });
  };
  const Expr whole = replace_reads(outer, product);
  const Tensor table = Tensor::vector_i64({1, 2, 3, 4}).reshaped({2, 2});
  EXPECT_EQ(evaluate_naively(whole, {{symbol_atom("i"), 0}}, {table}), 7 + 10);
  EXPECT_EQ(evaluate_naively(whole, {{symbol_atom("i"), 1}}, {table}), 15 + 22);
  // Twice in a row: the reductions inside have grown higher than the one around them.
  const Expr twice = replace_reads(whole, product);
  EXPECT_EQ(evaluate_naively(twice, {{symbol_atom("i"), 0}}, {table}), (7 * 7 + 10 * 15) + (7 * 10 + 10 * 22));
}

TEST(Expr, ReplaceReadsKeepsWhatTheProducerLeaves) {
  const Expr sum = read(0, {i}) + read(1, {i});
  const Expr replaced =
      replace_reads(sum, [](int input, const std::vector<Index>& at) { return input == 1 ? read(5, at) : Expr(); });
  EXPECT_EQ(replaced, read(0, {i}) + read(5, {i}));
}

TEST(Expr, SubstitutionReplacesExtentsSubscriptsSizesAndGuards) {
  const Expr e = select(less(i, n), row_sum(i) * size_of(n), constant(0));
  const Expr done = substitute(e, {{symbol_atom("n"), Index(2)}, {symbol_atom("i"), j}});
  std::set<AtomId> symbols;
  collect_symbols(done, symbols);
  EXPECT_EQ(symbols, std::set<AtomId>{symbol_atom("j")});
  const Tensor table = Tensor::vector_i64({1, 2, 3, 4}).reshaped({2, 2});
  EXPECT_EQ(evaluate_naively(done, {{symbol_atom("j"), 1}}, {table}), 14);
}

// ---- random expressions ----

class RandomExprs {
 public:
  explicit RandomExprs(uint64_t seed) : random_(seed) {}

  int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  // An expression whose reads of the 3x3 inputs 0 and 1 are in bounds, for subscripts in [0, 3).
  Expr expr(int depth, const std::vector<Index>& subscripts) {
    const auto at = [&] {
      return subscripts[static_cast<size_t>(uniform(0, static_cast<int>(subscripts.size()) - 1))];
    };
    if (depth == 0) return uniform(0, 3) == 0 ? size_of(at() * Index(2) + Index(1)) : read(uniform(0, 1), {at(), at()});
    auto below = [&] { return expr(depth - 1, subscripts); };
    switch (uniform(0, 6)) {
      case 0: return below() + below();
      case 1: return below() * constant(0.5) - below();
      case 2: return maximum(below(), below());
      case 3: return select(less(at(), at() + Index(uniform(-1, 1))), below(), below());
      case 4: return choose(is_less(below(), below()), below(), constant(uniform(-2, 2)));
      default: {
        std::vector<Index> extents(static_cast<size_t>(uniform(1, 2)));
        for (Index& extent : extents) extent = Index(uniform(1, 3));
        const auto kind = static_cast<ReduceKind>(uniform(0, 2));
        return reduce(kind, extents, [&](const std::vector<Index>& k) {
          std::vector<Index> inner = subscripts;
          inner.insert(inner.end(), k.begin(), k.end());
          return expr(depth - 1, inner);
        });
      }
    }
  }

  Tensor table() {
    std::vector<double> values(9);
    for (double& v : values) v = uniform(-4, 4);
    return Tensor::from_values(ElementType::Float64, {3, 3}, values);
  }

 private:
  std::mt19937_64 random_;
};

TEST(Expr, SubstitutionIsEvaluationElsewhere) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    RandomExprs random(seed);
    const std::vector<Tensor> inputs{random.table(), random.table()};
    const Expr e = random.expr(3, {i, j});
    for (int64_t a = 0; a < 3; a++) {
      const Environment swapped{{symbol_atom("i"), 2 - a}, {symbol_atom("j"), a}},
          given{{symbol_atom("i"), a}, {symbol_atom("j"), 2 - a}};
      const Expr exchanged =
          substitute(e, {{symbol_atom("i"), j}, {symbol_atom("j"), i}});  // at once, not one after the other
      EXPECT_EQ(evaluate_naively(exchanged, swapped, inputs), evaluate_naively(e, given, inputs))
          << "seed " << seed << ": " << to_string(e);
    }
  }
}

TEST(Expr, InliningIsEvaluationOfTheProducerFirst) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    RandomExprs random(seed);
    const std::vector<Tensor> inputs{random.table(), random.table()};
    const Expr consumer = random.expr(3, {i, j}), producer = random.expr(2, {i, j});
    const TensorExpr produced{ElementType::Float64, {3, 3}, [&](const std::vector<Index>& at) {
                                return substitute(producer, {{symbol_atom("i"), at[0]}, {symbol_atom("j"), at[1]}});
                              }};
    const Tensor first = evaluate_naively(produced, inputs);
    const Expr inlined = replace_reads(
        consumer, [&](int input, const std::vector<Index>& at) { return input == 1 ? produced.at(at) : Expr(); });
    const Environment where{{symbol_atom("i"), 1}, {symbol_atom("j"), 2}};
    EXPECT_EQ(evaluate_naively(inlined, where, inputs), evaluate_naively(consumer, where, {inputs[0], first}))
        << "seed " << seed << ": " << to_string(consumer) << " with " << to_string(producer);
  }
}

TEST(Expr, RandomOnesBuiltTwiceAreEqual) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    const Expr first = RandomExprs(seed).expr(3, {i, j});
    const AtomId taken = fresh_symbol();
    EXPECT_EQ(first, RandomExprs(seed).expr(3, {i, j})) << to_string(first);
    release_symbol(taken);
    // Substitution and its inverse come back to the same expression, binders and all.
    const Expr renamed = substitute(first, {{symbol_atom("i"), symbol("elsewhere")}});
    EXPECT_EQ(substitute(renamed, {{symbol_atom("elsewhere"), i}}), first) << to_string(first);
  }
}

}  // namespace
}  // namespace gopt
