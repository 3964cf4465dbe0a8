// Tiles: how kernels of our own on CUDA's tensor cores divide a matrix product or a convolution of channels last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gopt {

// A block makes `rows` positions by `columns` channels of the result; `split` blocks share the depth of a tile.
struct Tile {
  int rows = 0, columns = 0, split = 1;
  friend bool operator==(const Tile&, const Tile&) = default;
};
// As Kernel::implementation names it: "tiles:64x32:4".
std::string to_string(const Tile& tile);
std::optional<Tile> parse_tile(std::string_view implementation);  // the inverse; none where it is no tile's name

// The same by warpgroups (wgmma) of a Hopper GPU: "wgmma:128x128:2".
std::string warpgroup_name(const Tile& tile);
std::optional<Tile> parse_warpgroup_tile(std::string_view implementation);

// A convolution of an image of few channels by patches: rows and columns of a tile, "patches:128x64".
std::string patch_name(const Tile& tile);
std::optional<Tile> parse_patch_tile(std::string_view implementation);

// A convolution by loops of our own.
inline constexpr const char* kGenerated = "generated";

struct Kernel;
struct Plan;
// Whether the numbers of a column of a product's right operand lie one after another in memory, rather than those of a
// line. Precondition: a matrix product.
bool is_by_columns(const Plan& plan, const Kernel& kernel);

// Whether a kernel for CUDA is one of our own: it gets ready before the one before it has ended, and lets the next one
// do so. A library's does neither.
bool is_launched_ahead(const Kernel& kernel);

// Whether blocks of a kernel for CUDA may take so much of a multiprocessor that none of the next kernel's gets ready
// beside them: of tiles of more than 64x64 results, by warpgroups of more than 64x32.
bool fills_multiprocessors(const Kernel& kernel);

// Whether several blocks of a kernel for CUDA divide the depth of a tile.
bool divides_depth(const Kernel& kernel);

// How many groups of a convolution, of so many output channels each, a tile takes together, as if they were one with
// zeros for weights between them: as many as its columns hold, and divide the groups.
int64_t joined_groups(const Tile& tile, int64_t groups, int64_t group_columns);

// Likewise of tiles of warpgroups, whose depth comes in slices of 128 bytes of channels: as many groups as fill a
// slice, or all where they do not; 1 where a group fills whole slices. 0: slices would end within a group.
int64_t groups_of_slice(int64_t groups, int64_t group_channels, int64_t element_bytes);

}  // namespace gopt
