#include "gopt/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace gopt {
namespace {

class ParallelFor : public testing::TestWithParam<int> {};

TEST_P(ParallelFor, TakesEveryItemOnceAndInOrder) {
  std::vector<int> seen(1000, 0);
  std::mutex mutex;
  size_t last_of_first = 0;
  parallel_for(GetParam(), seen.size(), [&](int thread, size_t item) {
    const std::lock_guard lock(mutex);
    seen[item]++;
    EXPECT_LT(thread, GetParam());
    if (thread > 0) return;
    EXPECT_GE(item, last_of_first);
    last_of_first = item;
  });
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
}

// More threads than there are processors, too: none of them goes on before all are there.
TEST_P(ParallelFor, RunsOnAllThreadsThatAreAskedFor) {
  std::barrier meeting(GetParam());
  std::vector<std::thread::id> ids(static_cast<size_t>(GetParam()));
  parallel_for(GetParam(), ids.size(), [&](int thread, size_t) {
    ids[static_cast<size_t>(thread)] = std::this_thread::get_id();
    meeting.arrive_and_wait();
  });
  EXPECT_EQ(ids[0], std::this_thread::get_id()) << "thread 0 is the calling one";
  for (size_t i = 0; i < ids.size(); i++) EXPECT_EQ(std::count(ids.begin(), ids.end(), ids[i]), 1);
}

// What belongs to a thread is used by one item at a time, also where an item starts tasks itself.
TEST_P(ParallelFor, WaitingForInnerTasksTakesNoOtherItem) {
  std::vector<std::atomic<int>> open(static_cast<size_t>(GetParam()));
  std::atomic<int> sum{0};
  parallel_for(GetParam(), 200, [&](int thread, size_t) {
    EXPECT_EQ(open[static_cast<size_t>(thread)]++, 0);
    parallel_for(3, 10, [&](int, size_t item) { sum += static_cast<int>(item); });
    open[static_cast<size_t>(thread)]--;
  });
  EXPECT_EQ(sum, 200 * 45);
}

TEST_P(ParallelFor, ThrowsWhatACallThrew) {
  std::atomic<int> taken{0};
  const auto work = [&](int, size_t item) {
    taken++;
    if (item == 20) throw std::runtime_error("the twentieth");
  };
  EXPECT_THROW(parallel_for(GetParam(), 1'000'000'000, work), std::runtime_error);
  EXPECT_LT(taken, 1'000'000'000);
}

// An interruption is for the threads that the program has made itself.
TEST_P(ParallelFor, LeavesSignalsToTheCallingThread) {
  std::barrier meeting(GetParam());
  std::vector<int> is_blocked(static_cast<size_t>(GetParam()));
  parallel_for(GetParam(), is_blocked.size(), [&](int thread, size_t) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    is_blocked[static_cast<size_t>(thread)] = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM);
    meeting.arrive_and_wait();
  });
  EXPECT_EQ(is_blocked[0], 0);
  EXPECT_EQ(std::accumulate(is_blocked.begin(), is_blocked.end(), 0), GetParam() - 1);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(1, 2, 5));

TEST(ParallelForOf, NothingCallsNothing) {
  parallel_for(3, 0, [](int, size_t) { FAIL(); });
}

TEST(BackgroundTasks, RunWhileTheCallerGoesOn) {
  BackgroundTasks tasks(2);
  std::barrier meeting(3);
  for (int task = 0; task < 2; task++) tasks.run([&] { meeting.arrive_and_wait(); });
  meeting.arrive_and_wait();
  tasks.wait();
  EXPECT_FALSE(tasks.has_failed());
}

TEST(BackgroundTasks, ThrowWhatOneOfThemThrew) {
  BackgroundTasks tasks(2);
  std::atomic<int> done{0};
  tasks.run([] { throw std::runtime_error("a task"); });
  for (int task = 0; task < 5; task++) tasks.run([&] { done++; });
  EXPECT_THROW(tasks.wait(), std::runtime_error);
  EXPECT_TRUE(tasks.has_failed());
  EXPECT_EQ(done, 5);
}

}  // namespace
}  // namespace gopt
