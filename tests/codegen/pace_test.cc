// When one thread alone runs a model, on machines that are simulated.
#include <gtest/gtest.h>

#include "gopt_pace.h"

namespace gopt_runtime {
namespace {

// Milliseconds of a run by all threads, and by one; the share of it in which a thread that is awake runs.
struct Machine {
  double together, alone, share = 1;
};

// How many of so many runs one thread makes.
int runs_alone(Pace& pace, const Machine& machine, int runs) {
  int alone = 0;
  for (int run = 0; run < runs; run++) {
    alone += pace.is_alone() ? 1 : 0;
    const double ms = pace.is_alone() ? machine.alone : machine.together;
    pace.ran(ms, ms * machine.share);
  }
  return alone;
}

constexpr Machine kQuiet{1, 1.9}, kBusy{20, 6, 0.5}, kSlowBoth{4, 6, 0.5};

TEST(Pace, ThreadsStayTogetherOnAQuietMachine) {
  Pace pace;
  EXPECT_EQ(runs_alone(pace, kQuiet, 10000), 0);
}

TEST(Pace, OneSlowRunChangesNothing) {
  Pace pace;
  int alone = 0;
  for (int k = 0; k < 100; k++) alone += runs_alone(pace, kQuiet, 90) + runs_alone(pace, {60, 60, 0.5}, 1);
  EXPECT_EQ(alone, 0);
}

TEST(Pace, OneIsFasterOnABusyMachine) {
  Pace pace;
  runs_alone(pace, kQuiet, 20);
  runs_alone(pace, kBusy, 20);
  EXPECT_GE(runs_alone(pace, kBusy, 1000), 900);
}

TEST(Pace, AllAreBackSoonAfterItIsQuietAgain) {
  Pace pace;
  runs_alone(pace, kQuiet, 20);
  runs_alone(pace, kBusy, 500);
  runs_alone(pace, kQuiet, 300);
  EXPECT_EQ(runs_alone(pace, kQuiet, 1000), 0);
}

TEST(Pace, WhereOneIsNoFasterItIsSeldomTried) {
  Pace pace;
  runs_alone(pace, kQuiet, 20);
  EXPECT_LE(runs_alone(pace, kSlowBoth, 10000), 500);
}

TEST(Pace, OneIsFasterWhereItWasBusyFromTheStart) {
  Pace pace;
  runs_alone(pace, kBusy, 20);
  EXPECT_GE(runs_alone(pace, kBusy, 1000), 900);
}

// A caller's function that waits looks like others that run.
TEST(Pace, TrialsThatAreLostCostLittle) {
  for (const Machine& machine : {Machine{40, 1000, 0.7}, {10, 60, 0.6}, {1, 10, 0.5}}) {
    Pace pace;
    double lost = 0, all = 0;
    while (all < 1e5) {
      const double ms = pace.is_alone() ? machine.alone : machine.together;
      lost += ms - machine.together;
      all += ms;
      pace.ran(ms, ms * machine.share);
    }
    EXPECT_LT(lost, 0.05 * all) << machine.together;
  }
}

TEST(Pace, WithoutAnotherWayAllThreadsRunAll) {
  Pace pace;
  int runs = 0;
  for (; !pace.is_alone(); runs++) pace.ran(kBusy.together, kBusy.together / 2);
  EXPECT_LT(runs, 100);
  pace.give_up();
  EXPECT_EQ(runs_alone(pace, kBusy, 1000), 0);
}

TEST(Pace, LongRunsAreNotTried) {
  Pace pace;
  runs_alone(pace, {100, 190}, 20);
  EXPECT_EQ(runs_alone(pace, {400, 300}, 100), 0);
}

}  // namespace
}  // namespace gopt_runtime
