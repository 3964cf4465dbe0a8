// How many processors control groups allow, from files as Linux writes them.
#include <gtest/gtest.h>

#include <fstream>

#include "gopt_threads.h"
#include "test_folder.h"

namespace gopt_runtime {
namespace {

class Groups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::ofstream(at(path)) << text;
  }
  std::string at(const std::string& path) const { return folder_.file(path); }
  int allowed() const { return processors_of_groups(at("cgroup"), at("fs")); }

 private:
  gopt::TestFolder folder_;
};

TEST_F(Groups, NoQuotaNoFileAndNoGroupsAllowAll) {
  EXPECT_EQ(allowed(), 0);
  write("cgroup", "0::/\n");
  EXPECT_EQ(allowed(), 0);
  write("fs/cpu.max", "max 100000\n");
  EXPECT_EQ(allowed(), 0);
}

TEST_F(Groups, AQuotaIsRoundedUp) {
  write("cgroup", "0::/\n");
  for (const auto& [text, expected] : std::vector<std::pair<std::string, int>>{
           {"200000 100000", 2}, {"250000 100000", 3}, {"50000 100000", 1}, {"1000 50000", 1}, {"100000 50000", 2}}) {
    write("fs/cpu.max", text + "\n");
    EXPECT_EQ(allowed(), expected) << text;
  }
}

TEST_F(Groups, TheLeastOfAGroupAndThoseThatItIsInHolds) {
  write("cgroup", "0::/outer/inner\n");
  write("fs/outer/cpu.max", "300000 100000\n");
  write("fs/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(allowed(), 3);
  write("fs/outer/inner/cpu.max", "200000 100000\n");
  EXPECT_EQ(allowed(), 2);
  write("fs/outer/cpu.max", "100000 100000\n");
  EXPECT_EQ(allowed(), 1);
}

TEST_F(Groups, APathOfOutsideAContainerLeavesTheRoot) {
  write("cgroup", "0::/docker/0123\n");
  write("fs/cpu.max", "400000 100000\n");
  EXPECT_EQ(allowed(), 4);
}

TEST_F(Groups, VersionOneHasTwoFiles) {
  write("cgroup", "11:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/job\n");
  write("fs/cpu/job/cpu.cfs_quota_us", "150000\n");
  write("fs/cpu/job/cpu.cfs_period_us", "100000\n");
  write("fs/cpu/cpu.cfs_quota_us", "-1\n");
  write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(allowed(), 2);
}

TEST(DefaultThreads, AreNoMoreThanOpenMPs) {
  EXPECT_GE(default_threads(), 1);
  EXPECT_LE(default_threads(), omp_get_max_threads());
}

}  // namespace
}  // namespace gopt_runtime
