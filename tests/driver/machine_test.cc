// Whose kernel times a plan for CUDA is made by.
#include "../../driver/machine.h"

#include <gtest/gtest.h>

#include "../../driver/machine_speed.h"
#include "cuda_code_hash.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt::driver {
namespace {

const std::string kOwnCode = "; code " GOPT_CUDA_CODE_HASH;

struct ChoiceRow {
  const char* name;
  std::optional<std::string> here;
  std::vector<std::string> machines;
  const char* gpu;
  const char* machine;  // without what follows the GPU's name
  bool is_here, has_note;
};
std::ostream& operator<<(std::ostream& os, const ChoiceRow& row) { return os << row.name; }

class ChooseGpuTest : public testing::TestWithParam<ChoiceRow> {};
TEST_P(ChooseGpuTest, IsTheOneMeant) {
  const ChoiceRow& row = GetParam();
  const auto chosen = choose_gpu(row.here, row.machines, row.gpu);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_EQ(chosen->machine.substr(0, chosen->machine.find(';')), row.machine);
  EXPECT_EQ(chosen->is_here, row.is_here);
  EXPECT_EQ(!chosen->note.empty(), row.has_note) << chosen->note;
}
const std::string kThisH100 = "cuda: NVIDIA H100 PCIe; CUDA 13.0" + kOwnCode, kCpu = "cpu: some; oneDNN 3.1.0; code 0";
const ChoiceRow kChoices[] = {
    {"NoneAtAll", std::nullopt, {kCpu}, "", "", false, true},
    {"TheOneOfTheCache", std::nullopt, {kCpu, kThisH100}, "", "cuda: NVIDIA H100 PCIe", false, false},
    {"TheOneHere", kThisH100, {"cuda: A100" + kOwnCode}, "", "cuda: NVIDIA H100 PCIe", true, false},
    {"TheOneHereByItsName", kThisH100, {}, "h100", "cuda: NVIDIA H100 PCIe", true, false},
    {"AnotherThanTheOneHere", kThisH100, {"cuda: A100" + kOwnCode}, "a100", "cuda: A100", false, false},
    {"OneOfTwo", std::nullopt, {"cuda: A100" + kOwnCode, kThisH100}, "A1", "cuda: A100", false, false},
    {"OfOtherCode", std::nullopt, {"cuda: A100; code 0"}, "", "cuda: A100", false, true},
};
INSTANTIATE_TEST_SUITE_P(Rows, ChooseGpuTest, testing::ValuesIn(kChoices),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ChooseGpu, PrefersTimesOfItsOwnCode) {
  const std::string own = "cuda: A100; CUDA 12.9" + kOwnCode;
  const auto chosen = choose_gpu(std::nullopt, {"cuda: A100; code 0", own, "cuda: A100; code 1"}, "");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->machine, own);
  EXPECT_EQ(choose_gpu(std::nullopt, {"cuda: A100; code 0", "cuda: A100; code 1"}, "")->machine, "cuda: A100; code 1");
}

TEST(ChooseGpu, SeveralAreAnErrorThatListsThem) {
  const std::vector<std::string> machines{"cuda: A100; code 0", "cuda: H100; code 0", kCpu};
  for (const char* gpu : {"", "100"}) {
    const auto chosen = choose_gpu(std::nullopt, machines, gpu);
    ASSERT_FALSE(chosen.ok());
    EXPECT_NE(chosen.error().message.find("--gpu: A100, H100"), std::string::npos) << chosen.error().message;
  }
}

TEST(ChooseGpu, AnUnknownOneIsAnErrorThatListsWhatThereIs) {
  const auto chosen = choose_gpu(kThisH100, {"cuda: A100; code 0"}, "B200");
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.error().message.find("A100"), std::string::npos) << chosen.error().message;
}

TEST(Machine, NamesTheCodeThatItsTimesAreOf) {
  EXPECT_EQ(cpu_machine().substr(0, 5), "cpu: ");
  EXPECT_NE(cpu_machine().find("; code "), std::string::npos);
  if (const auto gpu = cuda_machine()) {
    EXPECT_TRUE(gpu->starts_with("cuda: ") && gpu->ends_with(kOwnCode)) << *gpu;
  }
}

TEST(KeptGflops, IsTheFastestThatWasMeasured) {
  const TestFolder folder;
  const std::string path = folder.file("speed");
  EXPECT_EQ(kept_gflops(path, "A 1", 100), 100);
  EXPECT_EQ(kept_gflops(path, "A 1", 60), 100);   // busy
  EXPECT_EQ(kept_gflops(path, "A 1", 104), 100);  // noise
  EXPECT_EQ(kept_gflops(path, "A 12", 50), 50);
  const double kept = kept_gflops(path, "A 1", 110.123456789);
  EXPECT_NEAR(kept, 110.123, 1e-3);
  EXPECT_EQ(kept_gflops(path, "A 1", 1), kept);
  EXPECT_EQ(kept_gflops(path, "A 12", 40), 50);
  write_file(path, "not a number\nfast A 1\n\n");
  EXPECT_EQ(kept_gflops(path, "A 1", 70), 70);
  EXPECT_EQ(kept_gflops(folder.file("no/such/folder"), "A 1", 70), 70);
}

}  // namespace
}  // namespace gopt::driver
