// What is written, and what goes wrong: existing folders, unwritable places, inputs and weights that do not fit.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "batch.h"
#include "build_folder.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

EmittedCode small_model() {
  const BatchCase c =
      make_case("small", "input x : f32[2,3]\ninput w1 : f32[3,4]\na = MatMul(x, w1)\ny = Relu(a)\noutput y = y", 1);
  LayoutCosts costs(false);
  auto plan = make_plan(c.graph, {TargetKind::Cpu, 1}, costs);
  EXPECT_TRUE(plan.ok());
  auto code = emit(*plan);
  EXPECT_TRUE(code.ok());
  return *code;
}

TEST(EmittedFolder, HoldsAllThatABuildNeeds) {
  const std::string folder = scratch_folder("complete");
  ASSERT_TRUE(write_emitted(small_model(), folder, false).ok());
  for (const char* file : {"model.h", "model.cc", "kernels.h", "gopt_dnnl.cc", "gopt_math.h", "CMakeLists.txt",
                           "example.cc", "weights.bin"})
    EXPECT_TRUE(fs::exists(fs::path(folder) / file)) << file;
  EXPECT_EQ(fs::file_size(fs::path(folder) / "weights.bin"), 64u);
}

TEST(EmittedFolder, IsNotReplacedWithoutForce) {
  const std::string folder = scratch_folder("twice");
  ASSERT_TRUE(write_emitted(small_model(), folder, false).ok());
  const auto again = write_emitted(small_model(), folder, false);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, folder + " exists already; --force replaces what was emitted there");
  EXPECT_TRUE(write_emitted(small_model(), folder, true).ok());
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

TEST(EmittedFolder, WhatWasNotEmittedStays) {
  const std::string folder = scratch_folder("built");
  EmittedCode code = small_model();
  code.files.push_back({"kernels_99.cc", "// of an earlier model\n"});
  ASSERT_TRUE(write_emitted(code, folder, false).ok());
  const std::set<std::string> before = files_in(folder);
  EXPECT_TRUE(before.count("kernels_99.cc"));
  fs::create_directory(folder + "/build");
  std::ofstream(folder + "/build/library") << "made";
  std::ofstream(folder + "/notes.txt") << "mine";
  ASSERT_TRUE(write_emitted(small_model(), folder, true).ok());
  std::set<std::string> expected = before;
  expected.erase("kernels_99.cc");
  expected.insert({"build", "notes.txt"});
  EXPECT_EQ(files_in(folder), expected);
  EXPECT_TRUE(fs::exists(folder + "/build/library"));
}

TEST(EmittedFolder, AFolderOfOtherFilesIsNeverTaken) {
  const std::string folder = scratch_folder("project");
  fs::create_directories(folder);
  std::ofstream(folder + "/model.cc") << "mine";
  for (const bool force : {false, true}) {
    const auto written = write_emitted(small_model(), folder, force);
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find("not emitted, model.cc for one"), std::string::npos)
        << written.error().message;
  }
  EXPECT_EQ(files_in(folder), std::set<std::string>{"model.cc"});
  std::ofstream(folder + "/emitted_files.txt") << "model.h\n../model.cc\n";
  EXPECT_FALSE(write_emitted(small_model(), folder, true).ok()) << "model.cc is not in the list";
  std::ifstream in(folder + "/model.cc");
  std::string text;
  EXPECT_TRUE(std::getline(in, text) && text == "mine");
}

TEST(EmittedFolder, AnEmptyFolderIsTaken) {
  const std::string folder = scratch_folder("empty");
  fs::create_directories(folder);
  EXPECT_TRUE(write_emitted(small_model(), folder, false).ok());
}

TEST(EmittedFolder, UnwritablePlaceIsAnErrorAndLeavesNothing) {
  const std::string file = scratch_folder("a_file");
  std::ofstream(file) << "text";
  const auto written = write_emitted(small_model(), file + "/model", false);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("cannot make the folder"), std::string::npos) << written.error().message;
}

TEST(EmittedFolder, InputsThatDoNotFitAreErrors) {
  const std::string folder = scratch_folder("inputs");
  ASSERT_TRUE(write_emitted(small_model(), folder, false).ok());
  auto model = LoadedModel::build_and_load(folder, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  LoadedModel loaded = *model;
  EXPECT_EQ(loaded.run({}).error().message, "0 inputs given, the model has 1");
  const Tensor other = Tensor::from_values<double>(ElementType::Float32, {3, 2}, std::vector<double>(6));
  EXPECT_EQ(loaded.run({other}).error().message, "input `x` is f32[3,2], the model wants f32[2,3]");
}

TEST(EmittedFolder, AnotherModelsWeightsAreAnError) {
  const std::string folder = scratch_folder("weights");
  ASSERT_TRUE(write_emitted(small_model(), folder, false).ok());
  std::ofstream(folder + "/weights.bin", std::ios::app) << "more";
  const auto model = LoadedModel::build_and_load(folder, 1);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("its size differs"), std::string::npos) << model.error().message;
}

TEST(EmittedFolder, ProfileNamesEachKernel) {
  const std::string folder = scratch_folder("profile");
  const EmittedCode code = small_model();
  ASSERT_TRUE(write_emitted(code, folder, false).ok());
  auto model = LoadedModel::build_and_load(folder, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  LoadedModel loaded = *model;
  auto profile = loaded.profile({Tensor::from_values<double>(ElementType::Float32, {2, 3}, std::vector<double>(6))}, 3);
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->size(), code.plans[0].kernels.size());
  EXPECT_EQ((*profile)[0].first, code.plans[0].kernels[0].name);
  EXPECT_GT((*profile)[0].second, 0);
}

// What is kept is found again as long as the source and the headers that it includes, directly or not, are the same.
TEST(BuiltSources, DependOnTheHeadersThatTheyInclude) {
  const auto built = [](const std::string& direct, const std::string& indirect, const std::string& unrelated) {
    const auto library =
        codegen::build_sources({{"one.cc", "#include \"direct.h\"\nint one() { return kDirect + kIndirect; }\n"},
                                {"direct.h", "#include \"indirect.h\"\nconstexpr int kDirect = " + direct + ";\n"},
                                {"indirect.h", "constexpr int kIndirect = " + indirect + ";\n"},
                                {"unrelated.h", "constexpr int kUnrelated = " + unrelated + ";\n"}});
    EXPECT_TRUE(library.ok()) << (library.ok() ? "" : library.error().message);
    return library.ok() ? *library : "";
  };
  const std::string library = built("1", "2", "3");
  EXPECT_NE(library, built("4", "2", "3"));
  EXPECT_NE(library, built("1", "4", "3"));
  EXPECT_EQ(library, built("1", "2", "4"));
}

}  // namespace
}  // namespace gopt
