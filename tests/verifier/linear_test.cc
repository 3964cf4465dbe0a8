// Linear constraints: what elimination says is compared with all points of a box.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "equality/real_cells.h"
#include "solver/linear_question.h"
#include "solver/linear_system.h"

namespace gopt {

using namespace verifier;

namespace {

using Answer = LinearSystem::Answer;
using Numbers = LinearSystem::Numbers;

struct Row {
  std::vector<int64_t> coefficients;
  int64_t constant;
  bool is_strict;
  bool holds(const std::vector<int64_t>& at) const {
    int64_t sum = constant;
    for (size_t i = 0; i < at.size(); i++) sum += coefficients[i] * at[i];
    return is_strict ? sum > 0 : sum >= 0;
  }
};

LinearSystem system_of(const std::vector<Row>& rows, Numbers numbers) {
  LinearSystem system(numbers);
  for (const Row& row : rows) {
    LinearSystem::Terms terms;
    for (size_t i = 0; i < row.coefficients.size(); i++)
      if (row.coefficients[i] != 0) terms.emplace_back(static_cast<LinearSystem::Variable>(i), row.coefficients[i]);
    system.require(terms, Rational(row.constant), row.is_strict);
  }
  return system;
}

constexpr size_t kVariables = 3;
constexpr int64_t kSide = 7;  // points of the box on each axis

bool holds_at(const std::vector<Row>& rows, const std::vector<int64_t>& point) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return row.holds(point); });
}
bool holds_in_box(const std::vector<Row>& rows) {
  for (int64_t flat = 0; flat < kSide * kSide * kSide; flat++)
    if (holds_at(rows, {flat % kSide - 3, flat / kSide % kSide - 3, flat / kSide / kSide - 3})) return true;
  return false;
}

std::vector<Row> random_rows(std::mt19937_64& random) {
  auto within = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<Row> rows;
  for (int64_t count = within(2, 7); count > 0; count--) {
    Row row{{}, within(-6, 3), within(0, 3) == 0};
    for (size_t i = 0; i < kVariables; i++) row.coefficients.push_back(within(0, 2) == 0 ? 0 : within(-3, 3));
    rows.push_back(row);
    if (within(0, 3) != 0) continue;
    for (int64_t& c : row.coefficients) c = -c;
    rows.push_back({row.coefficients, -row.constant, false});  // an equation, where the row is not strict
  }
  return rows;
}

// Whatever holds somewhere is not infeasible, and points that are found are points.
TEST(LinearSystem, AgreesWithEveryPointOfABox) {
  std::mt19937_64 random(1);
  int infeasible = 0, found = 0;
  for (int k = 0; k < 4000; k++) {
    const std::vector<Row> rows = random_rows(random);
    for (const Numbers numbers : {Numbers::Integers, Numbers::Reals}) {
      LinearSystem system = system_of(rows, numbers);
      const Answer answer = system.solve();
      if (holds_in_box(rows)) {
        ASSERT_EQ(answer, Answer::Feasible);
      }
      infeasible += answer == Answer::Infeasible;
      if (answer != Answer::Feasible) continue;
      for (int choice = 0; choice < 3; choice++) {
        const auto point = system.integer_point(choice);
        if (!point) continue;
        std::vector<int64_t> at(kVariables, 0);
        for (const auto& [variable, value] : *point) at[variable] = value;
        found++;
        ASSERT_TRUE(holds_at(rows, at));
      }
    }
  }
  EXPECT_GT(infeasible, 500);
  EXPECT_GT(found, 2000);
}

// Boxes that are put in as constraints: then what holds nowhere among whole numbers is seen to, but for few cases.
TEST(LinearSystem, FindsMostBoundedContradictions) {
  std::mt19937_64 random(2);
  int empty = 0, seen = 0;
  for (int k = 0; k < 2000; k++) {
    std::vector<Row> rows = random_rows(random);
    for (size_t axis = 0; axis < kVariables; axis++)
      for (const int64_t sign : {-1, 1}) {
        std::vector<int64_t> coefficients(kVariables, 0);
        coefficients[axis] = sign;
        rows.push_back({coefficients, 3, false});
      }
    const bool is_infeasible = system_of(rows, Numbers::Integers).solve() == Answer::Infeasible;
    const bool holds = holds_in_box(rows);
    ASSERT_FALSE(is_infeasible && holds);
    empty += !holds;
    seen += is_infeasible;
  }
  EXPECT_GT(seen, empty * 8 / 10);
}

TEST(LinearSystem, TellsStrictFromNot) {
  // x >= 0, -x >= 0: one point; none where one of them is strict.
  for (const bool is_strict : {false, true}) {
    LinearSystem system(Numbers::Reals);
    system.require({{0, 1}}, 0, is_strict);
    system.require({{0, -1}}, 0, false);
    EXPECT_EQ(system.solve(), is_strict ? Answer::Infeasible : Answer::Feasible);
  }
}

TEST(LinearSystem, WholeNumbersLeaveGaps) {
  // 1 <= 2 x <= 1 has a solution, but no whole one.
  for (const Numbers numbers : {Numbers::Integers, Numbers::Reals}) {
    LinearSystem system(numbers);
    system.require({{0, 2}}, -1);
    system.require({{0, -2}}, 1);
    EXPECT_EQ(system.solve(), numbers == Numbers::Integers ? Answer::Infeasible : Answer::Feasible);
  }
}

TEST(LinearSystem, NumbersThatOverflowAreLeftOpen) {
  const int64_t large = (int64_t{1} << 61) + 1;
  LinearSystem system(Numbers::Integers);
  system.require({{0, large}, {1, -3}}, 0);
  system.require({{0, -5}, {1, large - 2}}, 0);
  system.require({{0, 7}, {1, large - 4}}, -1);
  EXPECT_NE(system.solve(), Answer::Infeasible);
}

TEST(LinearQuestion, SettlesAlternativesDivisionsAndProducts) {
  const Index a = symbol("a"), b = symbol("b"), q = floor_div(a, b);
  const Cond positive = at_least(a, Index(1)) && at_least(b, Index(1));
  EXPECT_TRUE(ask_linear(equal(a, b) && less(a, Index(4)), {less(b, a), at_least(b, Index(4))}).is_infeasible);
  EXPECT_TRUE(ask_linear((less(a, Index(0)) || less(Index(9), a)) && positive, {less(a, Index(9))}).is_infeasible);
  EXPECT_TRUE(ask_linear(positive, {less(a * b, Index(1))}).is_infeasible);
  EXPECT_TRUE(ask_linear(positive && less(a, Index(3) * b), {less(Index(2), q)}).is_infeasible);
  const LinearAnswer open = ask_linear(positive && less(a, Index(5)), {less(b, a)});
  EXPECT_FALSE(open.is_infeasible);
  ASSERT_FALSE(open.points.empty());
  EXPECT_EQ(truth_of(positive && less(b, a) && less(a, Index(5)), open.points[0]), true);
}

TEST(LinearQuestion, CountsAreZeroWhereEveryWayIsRuledOut) {
  const Index a = symbol("a");
  const Cond small = less(a, Index(3)), large = at_least(a, Index(3)), any = less(a, Index(9));
  EXPECT_TRUE(where_not_zero(any, {{2, any && small}, {-2, small}})->empty());
  const auto ways = where_not_zero(Cond(), {{1, Cond()}, {-1, small}, {-1, large}});
  EXPECT_TRUE(ask_linear(Cond(), *ways).is_infeasible);
  EXPECT_FALSE(ask_linear(Cond(), *where_not_zero(Cond(), {{1, Cond()}, {-1, small}})).is_infeasible);
}

// max(x, y) = x where x >= y, which the cells say without a question; of x * y linear arithmetic knows little.
TEST(RealCells, AsksOnlyWhatIsNotLinear) {
  using Kind = RealExpr::Kind;
  auto make = [](RealExpr e) { return std::make_shared<const RealExpr>(std::move(e)); };
  auto variable = [&](const char* name) { return make({Kind::Variable, {}, name, {}, {}}); };
  auto minus = [&](const RealExprPtr& a, const RealExprPtr& b) {
    return make(
        {Kind::Add, {}, "", {a, make({Kind::Multiply, {}, "", {make({Kind::Constant, -1, "", {}, {}}), b}, {}})}, {}});
  };
  auto largest = [&](const RealExprPtr& a, const RealExprPtr& b) { return make({Kind::Maximum, {}, "", {a, b}, {}}); };
  const RealExprPtr x = variable("x"), y = variable("y"), z = variable("z");
  int asked = 0;
  const CellQuestion never = [&](const std::vector<RealSign>&, const RealExprPtr&) {
    asked++;
    return false;
  };
  auto is_zero = [&](const RealExprPtr& value) {
    return is_zero_in_cells(
        value, {}, never, [] { return true; }, [](uint64_t) {}, CellLimits());
  };
  EXPECT_TRUE(is_zero(minus(largest(largest(x, y), z), largest(x, largest(z, y)))));
  EXPECT_TRUE(
      is_zero(minus(largest(x, largest(minus(x, y), minus(y, x))), largest(largest(x, minus(y, x)), minus(x, y)))));
  EXPECT_FALSE(is_zero(minus(largest(largest(x, y), z), largest(x, y))));
  auto times = [&](const RealExprPtr& a, const RealExprPtr& b) { return make({Kind::Multiply, {}, "", {a, b}, {}}); };
  const RealExprPtr zero = minus(x, x), xz = largest(x, z), zx = largest(z, x);
  // A cell in which x and z are equal; products of signs; squares.
  EXPECT_TRUE(is_zero(minus(times(xz, zx), times(xz, xz))));
  EXPECT_TRUE(is_zero(
      minus(largest(times(largest(x, zero), largest(y, zero)), zero), times(largest(x, zero), largest(y, zero)))));
  EXPECT_TRUE(is_zero(minus(largest(times(x, x), zero), times(x, x))));
  EXPECT_FALSE(is_zero(minus(largest(times(x, y), zero), times(x, y))));
  EXPECT_EQ(asked, 0);
  // x^2 - 2xy + 2y^2 is (x - y)^2 + y^2.
  const RealExprPtr form =
      minus(minus(minus(times(x, x), times(x, y)), times(x, y)), minus(minus(zero, times(y, y)), times(y, y)));
  EXPECT_FALSE(is_zero(minus(largest(form, zero), form)));
  EXPECT_GT(asked, 0);
}

}  // namespace
}  // namespace gopt
