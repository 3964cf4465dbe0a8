// Labels at least cost: as good as trying all, where few variables meet.
#include "../../planner/labelling.h"

#include <gtest/gtest.h>

#include <random>

namespace gopt::planner {
namespace {

struct Problem {
  std::vector<std::vector<double>> own;
  std::vector<PairCost> pairs;
};

Problem random_problem(int variables, int pair_count, std::mt19937& random) {
  Problem problem;
  auto cost = [&] { return static_cast<double>(random() % 1000); };
  for (int v = 0; v < variables; v++) {
    problem.own.emplace_back();
    for (unsigned label = 0; label < 2 + random() % 2; label++) problem.own.back().push_back(cost());
  }
  for (int p = 0; p < pair_count && variables > 1; p++) {
    PairCost pair;
    pair.a = static_cast<int>(random() % static_cast<unsigned>(variables));
    pair.b = static_cast<int>((static_cast<unsigned>(pair.a) + 1 + random() % static_cast<unsigned>(variables - 1)) %
                              static_cast<unsigned>(variables));
    for (size_t a = 0; a < problem.own[static_cast<size_t>(pair.a)].size(); a++) {
      pair.cost.emplace_back();
      for (size_t b = 0; b < problem.own[static_cast<size_t>(pair.b)].size(); b++) pair.cost.back().push_back(cost());
    }
    problem.pairs.push_back(pair);
  }
  return problem;
}

double cost_of(const Problem& problem, const std::vector<int>& labels) {
  auto at = [&](int v) { return static_cast<size_t>(labels[static_cast<size_t>(v)]); };
  double sum = 0;
  for (size_t v = 0; v < labels.size(); v++) sum += problem.own[v][static_cast<size_t>(labels[v])];
  for (const PairCost& pair : problem.pairs) sum += pair.cost[at(pair.a)][at(pair.b)];
  return sum;
}

double least_of_all(const Problem& problem) {
  std::vector<int> labels(problem.own.size(), 0);
  double least = cost_of(problem, labels);
  while (true) {
    size_t v = 0;
    for (; v < labels.size(); v++) {
      if (++labels[v] < static_cast<int>(problem.own[v].size())) break;
      labels[v] = 0;
    }
    if (v == labels.size()) return least;
    least = std::min(least, cost_of(problem, labels));
  }
}

TEST(Labelling, IsAsGoodAsTryingAll) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; trial++) {
    const int variables = static_cast<int>(random() % 9);
    const Problem problem = random_problem(variables, static_cast<int>(random() % 14), random);
    const std::vector<int> labels = least_cost_labels(problem.own, problem.pairs);
    ASSERT_EQ(labels.size(), problem.own.size());
    EXPECT_EQ(cost_of(problem, labels), least_of_all(problem)) << "trial " << trial;
  }
}

TEST(Labelling, IsStillValidWhereTooManyMeet) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 100; trial++) {
    const Problem problem = random_problem(8, 20, random);
    const std::vector<int> labels = least_cost_labels(problem.own, problem.pairs, 1);
    ASSERT_EQ(labels.size(), problem.own.size());
    for (size_t v = 0; v < labels.size(); v++) {
      EXPECT_GE(labels[v], 0);
      EXPECT_LT(labels[v], static_cast<int>(problem.own[v].size()));
    }
  }
}

TEST(Labelling, AChainOfHundredsIsNoTrouble) {
  std::mt19937 random(7);
  Problem problem = random_problem(800, 0, random);
  for (int v = 0; v + 1 < 800; v++) {
    PairCost pair{v, v + 1, {}};
    for (size_t a = 0; a < problem.own[static_cast<size_t>(v)].size(); a++) {
      pair.cost.emplace_back();
      for (size_t b = 0; b < problem.own[static_cast<size_t>(v) + 1].size(); b++)
        pair.cost.back().push_back(a == b ? 0 : 1e6);
    }
    problem.pairs.push_back(pair);
  }
  const std::vector<int> labels = least_cost_labels(problem.own, problem.pairs);
  EXPECT_EQ(std::count(labels.begin(), labels.end(), labels[0]), 800);
}

}  // namespace
}  // namespace gopt::planner
