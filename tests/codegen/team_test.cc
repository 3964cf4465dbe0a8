// Threads that share a run's kernels: each part is run once, by a thread that has no other part meanwhile.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "gopt_team.h"

namespace gopt_runtime {
namespace {

// Counts how often each part is run, and by whom.
class Counted {
 public:
  Counted(int64_t parts, int slots) : times_(static_cast<size_t>(parts)), busy_(static_cast<size_t>(slots)) {}

  void operator()(int64_t part, int slot) {
    if (slot < 0 || static_cast<size_t>(slot) >= busy_.size() || busy_[static_cast<size_t>(slot)].exchange(true)) {
      is_wrong_ = true;
      return;
    }
    times_[static_cast<size_t>(part)]++;
    busy_[static_cast<size_t>(slot)] = false;
  }
  bool is_right() const {
    return !is_wrong_ && std::all_of(times_.begin(), times_.end(), [](const auto& n) { return n == 1; });
  }

 private:
  std::vector<std::atomic<int>> times_;
  std::vector<std::atomic<bool>> busy_;
  std::atomic<bool> is_wrong_{false};
};

struct Sharing {
  int size, threads;
  int64_t parts;
};
class TeamShares : public testing::TestWithParam<Sharing> {};

TEST_P(TeamShares, EachPartOnce) {
  const auto [size, threads, parts] = GetParam();
  Team team(size);
  for (int run = 0; run < 20; run++)
    team.lead([&, threads = threads, parts = parts] {
      for (int kernel = 0; kernel < 50; kernel++) {
        Counted counted(parts, threads);
        share(parts, threads, [&](int64_t part, int slot) { counted(part, slot); });
        ASSERT_TRUE(counted.is_right()) << "run " << run << ", kernel " << kernel;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamShares,
                         testing::Values(Sharing{1, 1, 3}, Sharing{2, 2, 2}, Sharing{2, 2, 37}, Sharing{2, 1, 5},
                                         Sharing{4, 4, 3}, Sharing{4, 3, 100}, Sharing{3, 2, 2}, Sharing{5, 8, 1000}),
                         [](const auto& info) {
                           return std::to_string(info.param.size) + "Run" + std::to_string(info.param.threads) + "x" +
                                  std::to_string(info.param.parts);
                         });

TEST(Team, RangesAreAllOfIt) {
  Team team(3);
  for (const int64_t count : {0, 1, 2, 11, 1000})
    for (const int threads : {1, 2, 3})
      team.lead([&] {
        std::vector<std::atomic<int>> times(static_cast<size_t>(count));
        share_range(count, threads, [&](int64_t first, int64_t last, int) {
          for (int64_t k = first; k < last; k++) times[static_cast<size_t>(k)]++;
        });
        for (const auto& n : times) EXPECT_EQ(n, 1);
      });
}

TEST(Team, WithoutOneThreadsShareToo) {
  Counted counted(100, 3);
  share(100, 3, [&](int64_t part, int slot) { counted(part, slot); });
  EXPECT_TRUE(counted.is_right());
}

// Long enough that the others sleep before it, and that who leads sleeps until they are done.
TEST(Team, ThreadsThatSleepAreWoken) {
  constexpr std::chrono::milliseconds kLong{30};
  Team team(2);
  for (int run = 0; run < 5; run++)
    team.lead([&] {
      std::this_thread::sleep_for(kLong);
      Counted counted(2, 2);
      std::atomic<int> begun{0};
      share(2, 2, [&](int64_t part, int slot) {
        counted(part, slot);
        const auto begin = std::chrono::steady_clock::now();
        begun++;  // each has one of them, unless a thread comes very late
        while (begun < 2 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(1))
          std::this_thread::yield();
        if (slot > 0) std::this_thread::sleep_for(kLong);
      });
      EXPECT_TRUE(counted.is_right());
      EXPECT_EQ(begun, 2);
    });
}

TEST(Team, WhatIsThrownReachesTheCaller) {
  Team team(2);
  for (int run = 0; run < 3; run++) {
    EXPECT_THROW(team.lead([&] {
      share(2, 2, [](int64_t, int) {});
      throw std::runtime_error("no");
    }),
                 std::runtime_error);
    Counted counted(9, 2);
    team.lead([&] { share(9, 2, [&](int64_t part, int slot) { counted(part, slot); }); });
    EXPECT_TRUE(counted.is_right());
  }
}

TEST(Team, APartMayShareWithoutTheOthers) {
  Team team(2);
  std::atomic<int> inner{0};
  team.lead([&] { share(4, 2, [&](int64_t, int) { share(3, 2, [&](int64_t, int) { inner++; }); }); });
  EXPECT_EQ(inner, 12);
}

TEST(Team, CallersThreadsHaveTeamsOfTheirOwn) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 3; c++)
    callers.emplace_back([&] {
      Team team(2);
      for (int run = 0; run < 50; run++)
        team.lead([&] {
          for (int kernel = 0; kernel < 20; kernel++) {
            Counted counted(8, 2);
            share(8, 2, [&](int64_t part, int slot) { counted(part, slot); });
            if (!counted.is_right()) wrong++;
          }
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gopt_runtime
