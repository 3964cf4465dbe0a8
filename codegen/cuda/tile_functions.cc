#include "tile_functions.h"

#include <algorithm>

namespace gopt::codegen {

const std::string& TileFunctions::name_for(const std::string& maker) {
  return names_.try_emplace(maker, "gopt_tile_" + std::to_string(names_.size())).first->second;
}

std::vector<EmittedFile> TileFunctions::files() const {
  if (names_.empty()) return {};
  constexpr size_t kMostFiles = 16;  // compiled at once
  const size_t count = std::min(kMostFiles, names_.size());
  std::string header = "// Tile kernels, one function for each.\n#pragma once\n\n#include \"gopt_tiles.h\"\n\n";
  std::vector<EmittedFile> files(count + 1);
  files[0].name = "tiles.h";
  for (size_t f = 0; f < count; f++)
    files[f + 1] = {"tiles_" + std::to_string(f) + ".cu",
                    "#include \"tiles.h\"\n\n#include \"gopt_attention.cuh\"\n#include \"gopt_channels.cuh\"\n#include "
                    "\"gopt_tiles.cuh\"\n#include \"gopt_warpgroups.cuh\"\n\n"};
  size_t number = 0;
  for (const auto& [maker, name] : names_) {
    const std::string head = "const gopt_runtime::TileKernel& " + name + "()";
    header += head + ";\n";
    files[number++ % count + 1].text += head +
                                        " {\n  using namespace gopt_runtime::tiles;\n  static const "
                                        "gopt_runtime::TileKernel kernel = " +
                                        maker + "();\n  return kernel;\n}\n";
  }
  files[0].text = header;
  return files;
}

}  // namespace gopt::codegen
