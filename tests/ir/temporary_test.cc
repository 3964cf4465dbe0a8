#include "gopt/temporary.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

mode_t permissions(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(TemporaryFile, HasItsNameOnceItIsCommitted) {
  const TestFolder folder;
  const std::string path = folder.file("a.txt");
  write_file(path, "old");
  auto made = TemporaryFile::create(path);
  ASSERT_TRUE(made.ok()) << made.error().message;
  TemporaryFile file = *std::move(made);
  ASSERT_TRUE(file.write("new").ok());
  EXPECT_EQ(file.position(), 3u);
  EXPECT_EQ(read_file(path), "old");
  ASSERT_TRUE(file.commit().ok());
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(permissions(path), permissions(write_file(folder.file("b.txt"), ""))) << "those of any new file";
  EXPECT_EQ(folder.count(), 2u);
}

TEST(TemporaryFile, IsGoneUnlessItIsCommitted) {
  const TestFolder folder;
  {
    auto made = TemporaryFile::create(folder.file("a.txt"));
    ASSERT_TRUE(made.ok());
    TemporaryFile file = *std::move(made);
    ASSERT_TRUE(file.write("half of it").ok());
    EXPECT_EQ(folder.count(), 1u);
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(TemporaryFile, TwoOfOneNameAreTwo) {
  const TestFolder folder;
  auto first = TemporaryFile::create(folder.file("a.txt")), second = TemporaryFile::create(folder.file("a.txt"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(folder.count(), 2u);
}

TEST(WriteWhole, SaysWhyItCannot) {
  const TestFolder folder;
  const Status status = write_whole(folder.file("none/a.txt"), "a");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("none/a.txt: cannot be written: No such file"), std::string::npos)
      << status.error().message;
}

TEST(TemporaryFolder, IsGoneWithWhatIsInIt) {
  fs::path path;
  {
    const auto folder = TemporaryFolder::create();
    ASSERT_TRUE(folder.ok());
    path = folder->path();
    EXPECT_EQ(permissions(path), mode_t{0700});
    write_file(path / "a.txt", "a");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, BesideAPathMayTakeItsName) {
  const TestFolder folder;
  const fs::path target = folder.path() / "parent" / "target", plain = folder.path() / "plain";
  fs::create_directory(plain);
  {
    const auto made = TemporaryFolder::beside(target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(permissions(made->path()), permissions(plain)) << "those of any new folder";
    write_file(made->path() / "a.txt", "a");
    fs::rename(made->path(), target);
  }
  EXPECT_EQ(read_file(target / "a.txt"), "a");
}

void stage(StagedFiles& staged, const std::string& path, const std::string& text) {
  auto made = TemporaryFile::create(path);
  ASSERT_TRUE(made.ok()) << made.error().message;
  TemporaryFile file = *std::move(made);
  ASSERT_TRUE(file.write(text).ok());
  ASSERT_TRUE(staged.add(std::move(file)).ok());
}

TEST(StagedFiles, AppearTogether) {
  const TestFolder folder;
  write_file(folder.file("a"), "old a");
  write_file(folder.file("gone"), "old");
  StagedFiles staged;
  stage(staged, folder.file("a"), "new a");
  stage(staged, folder.file("b"), "new b");
  staged.remove(folder.file("gone"));
  EXPECT_EQ(read_file(folder.file("a")), "old a");
  ASSERT_TRUE(staged.commit().ok());
  EXPECT_EQ(read_file(folder.file("a")), "new a");
  EXPECT_EQ(read_file(folder.file("b")), "new b");
  EXPECT_EQ(folder.count(), 2u);
}

// The last one cannot take its place: a folder that holds something has it.
TEST(StagedFiles, LeaveAllAsItWasWhereOneCannotAppear) {
  const TestFolder folder;
  write_file(folder.file("a"), "old a");
  write_file(folder.file("kept"), "old");
  fs::create_directories(folder.path() / "empty");
  fs::create_directories(folder.path() / "full" / "inner");
  {
    StagedFiles staged;
    stage(staged, folder.file("a"), "new a");
    stage(staged, folder.file("b"), "new b");
    staged.remove(folder.file("kept"));
    auto made = TemporaryFolder::beside(folder.path() / "empty");
    ASSERT_TRUE(made.ok());
    staged.add(made->path(), folder.path() / "empty");
    staged.keep(*std::move(made));
    stage(staged, folder.file("full"), "new full");
    const Status status = staged.commit();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("full: cannot be written"), std::string::npos) << status.error().message;
  }
  EXPECT_EQ(read_file(folder.file("a")), "old a");
  EXPECT_EQ(read_file(folder.file("kept")), "old");
  EXPECT_FALSE(fs::exists(folder.file("b")));
  EXPECT_TRUE(fs::is_empty(folder.path() / "empty"));
  EXPECT_EQ(folder.count(), 5u);  // a, kept, empty, full and what is in it
}

TEST(StagedFiles, AreGoneUnlessTheyAreCommitted) {
  const TestFolder folder;
  {
    StagedFiles staged;
    stage(staged, folder.file("a"), "new a");
    EXPECT_EQ(folder.count(), 1u);
  }
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace gopt
