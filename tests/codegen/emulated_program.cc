#include "emulated_program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "gopt/codegen.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

// The operands' part of the runtime's header, by instructions of the emulation.
std::string emulated_fragments() {
  const std::string text = read_file(std::string(GOPT_CUDA_RUNTIME) + "/gopt_fragments.cuh");
  const auto between = [&](const std::string& begin, const std::string& end) {
    return text.substr(text.find(begin), text.find(end) - text.find(begin));
  };
  return text.substr(0, text.find("// ---- operands ----")) + "#include \"instructions.h\"\n" +
         between("__device__ __forceinline__ unsigned as_bits", "// Of two numbers") +
         between("// Sets one element of a chunk", "__device__ __forceinline__ unsigned load_word") +
         text.substr(text.find("// Up to four elements"));
}

}  // namespace

bool has_cuda_headers() { return cuda_toolkit() && std::filesystem::exists(*cuda_toolkit() + "/include/cuda_fp16.h"); }

std::string without_includes(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#include") && !line.starts_with("#pragma once") && !line.starts_with("struct gopt_"))
      kept += line + "\n";
  return kept;
}

void build_emulated(const std::string& program, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const char* place : {GOPT_CUDA_RUNTIME, GOPT_EMULATION})
    for (const auto& file : std::filesystem::directory_iterator(place))
      if (file.path().extension() == ".cuh" || file.path().extension() == ".h")
        std::filesystem::copy(file.path(), folder, std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder + "/gopt_fragments.cuh") << emulated_fragments();
  std::ofstream(folder + "/program.cc") << program;
  const Outcome built =
      run_command("g++ -std=c++20 -O1 -w -fsanitize=address,undefined -fno-sanitize-recover=undefined -I" + folder +
                  " -isystem " + *cuda_toolkit() + "/include " + folder + "/program.cc -o " + folder + "/program");
  ASSERT_EQ(built.status, 0) << built.text.substr(0, 3000);
}

void expect_all_right(const std::vector<std::string>& headers, const std::vector<std::string>& files,
                      const std::string& program) {
  if (!has_cuda_headers()) GTEST_SKIP() << "no CUDA toolkit";
  std::string text = "#include \"device.h\"\n", kernels;
  for (const std::string& header : headers) text += "#include \"" + header + "\"\n";
  for (const std::string& file : files)
    kernels += without_includes(read_file(std::string(GOPT_CUDA_RUNTIME) + "/" + file));
  const std::regex shared(R"(extern __shared__ __align__\(\d+\) char (\w+)\[\];)");
  ASSERT_TRUE(std::regex_search(kernels, shared));
  text += std::regex_replace(kernels, shared, "char* $1 = emulation::own_block().memory;") + program;
  const TestFolder folder;
  build_emulated(text, folder.file("program"));
  if (testing::Test::HasFatalFailure()) return;
  const Outcome outcome = run_command(folder.file("program") + "/program");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("all are right"), std::string::npos) << outcome.text;
}

}  // namespace gopt
