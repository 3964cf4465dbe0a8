// What stays in the folder of built code, and what is removed.
#include "build_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <string>

#include "batch.h"

namespace gopt::codegen {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

struct Entry {
  const char* name;
  size_t bytes;  // 0: a folder
  hours age;
};

std::set<std::string> left_of(const std::string& test, const std::vector<Entry>& entries, uint64_t bytes) {
  const fs::path folder = scratch_folder(test);
  fs::create_directories(folder);
  for (const Entry& e : entries) {
    if (e.bytes == 0) fs::create_directories(folder / e.name / "inside");
    if (e.bytes > 0) std::ofstream(folder / e.name) << std::string(e.bytes, 'x');
    fs::last_write_time(folder / e.name, fs::file_time_type::clock::now() - e.age);
  }
  trim_build_cache(folder, {.bytes = bytes, .in_use = hours(1), .abandoned = hours(24)});
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.insert(entry.path().filename().string());
  return left;
}

using Names = std::set<std::string>;

TEST(BuildCache, LosesWhatWasNotUsedForTheLongestTime) {
  const std::vector<Entry> entries{{"a.o", 100, hours(5)}, {"lib.so", 100, hours(9)}, {"b.o", 100, hours(7)}};
  EXPECT_EQ(left_of("cache_full", entries, 299), (Names{"a.o", "b.o"}));
  EXPECT_EQ(left_of("cache_fuller", entries, 150), (Names{"a.o"}));
  EXPECT_EQ(left_of("cache_fits", entries, 300), (Names{"a.o", "b.o", "lib.so"}));
}

TEST(BuildCache, KeepsWhatMayBeInUse) {
  EXPECT_EQ(left_of("cache_in_use", {{"old.o", 100, hours(2)}, {"new.o", 100, hours(0)}}, 0), (Names{"new.o"}));
}

TEST(BuildCache, KeepsWhatIsNotBuilt) {
  EXPECT_EQ(left_of("cache_times", {{"cpu.kernel_times", 500, hours(90)}, {"processor_speed", 9, hours(90)}}, 0),
            (Names{"cpu.kernel_times", "processor_speed"}));
}

TEST(BuildCache, LosesFoldersOfBuildsThatWereKilled) {
  const std::vector<Entry> entries{{"work.AbCdEf", 0, hours(30)},
                                   {"work.GhIjKl", 0, hours(3)},
                                   {"lib0123.so.AbCdEf", 0, hours(30)},
                                   {"of_the_user", 0, hours(300)}};
  EXPECT_EQ(left_of("cache_killed", entries, 0), (Names{"of_the_user", "work.GhIjKl"}));
}

TEST(BuildCache, WhatIsMarkedComesLast) {
  const fs::path folder = scratch_folder("cache_marked");
  fs::create_directories(folder);
  for (const char* name : {"a.o", "b.o"}) {
    std::ofstream(folder / name) << "xx";
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - hours(name[0] == 'a' ? 9 : 5));
  }
  mark_used(folder / "a.o");
  trim_build_cache(folder, {.bytes = 2, .in_use = hours(1), .abandoned = hours(24)});
  EXPECT_TRUE(fs::exists(folder / "a.o"));
  EXPECT_FALSE(fs::exists(folder / "b.o"));
}

TEST(BuildCache, AFolderThatIsNotThereIsNoError) { trim_build_cache(scratch_folder("cache_missing") + "/none"); }

}  // namespace
}  // namespace gopt::codegen
