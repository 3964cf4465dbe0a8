#include "tile_functions.h"

#include <array>
#include <cctype>

namespace gopt::codegen {
namespace {

// "make_warpgroups<Half, Right::Columns, Warpgroups64x64>" as "warpgroups_Half_Columns_Warpgroups64x64".
std::string name_of(std::string_view maker) {
  constexpr std::string_view kMake = "make";
  std::string name;
  std::string word;
  auto add_word = [&] {
    if (!word.empty()) name += "_" + word;
    word.clear();
  };
  maker.remove_prefix(kMake.size());
  for (size_t i = 0; i < maker.size(); i++) {
    const char c = maker[i];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (c == ':') {
      word.clear();  // the name of an enumeration
    } else {
      add_word();
    }
  }
  add_word();
  return name;
}

// The header that an instance is of.
std::string_view header_of(const std::string& maker) {
  struct Of {
    std::string_view maker, header;
  };
  constexpr std::array kHeaders{
      Of{"make_attention<", "gopt_attention.cuh"},  Of{"make_channels<", "gopt_channels.cuh"},
      Of{"make_patches<", "gopt_patches.cuh"},      Of{"make_quantized<", "gopt_quantized_vectors.cuh"},
      Of{"make_vectors<", "gopt_vectors.cuh"},      Of{"make_warpgroups<", "gopt_warpgroups.cuh"},
      Of{"make_whole_means<", "gopt_channels.cuh"}, Of{"make_channel_tiles<", "gopt_channel_tiles.cuh"}};
  for (const Of& of : kHeaders)
    if (maker.starts_with(of.maker)) return of.header;
  return "gopt_tiles.cuh";
}

}  // namespace

const std::string& TileFunctions::name_for(const std::string& maker) {
  return names_.try_emplace(maker, "gopt_tile" + name_of(maker)).first->second;
}

std::vector<EmittedFile> TileFunctions::files() const {
  if (names_.empty()) return {};
  std::vector<EmittedFile> files{
      {"tiles.h", "// Tile kernels, one function for each.\n#pragma once\n\n#include \"gopt_tiles.h\"\n\n"}};
  for (const auto& [maker, name] : names_) {
    const std::string head = "const gopt_runtime::TileKernel& " + name + "()";
    files[0].text += head + ";\n";
    std::string text = "#include \"" + std::string(header_of(maker)) + "\"\n\n";
    text += head + ";\n" + head +
            " {\n  using namespace gopt_runtime::tiles;\n  static const gopt_runtime::TileKernel kernel = " + maker +
            "();\n  return kernel;\n}\n";
    files.push_back({"tiles_" + name.substr(std::string_view("gopt_tile_").size()) + ".cu", text});
  }
  return files;
}

}  // namespace gopt::codegen
