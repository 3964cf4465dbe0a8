// The rows of tiles among the implementations of CUDA's library kernels.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "implementations.h"

namespace gopt::planner {

// Whether there are tiles for a convolution: not transposed, channels last, several channels in a group.
bool convolves_by_tiles(const Plan& plan, const Kernel& kernel);

// Likewise for a transposed convolution.
bool transposes_by_tiles(const Plan& plan, const Kernel& kernel);

// Likewise for a matrix product: the left operand as it lies, batches of three axes at most.
bool multiplies_by_tiles(const Plan& plan, const Kernel& kernel);

// A row of a tile for what it convolves, and one for what it multiplies.
using Accepts = bool (*)(const Plan& plan, const Kernel& kernel);
void add_tile_rows(std::vector<Implementation>& rows, Implementation row, Accepts convolves, Accepts multiplies);
// Of the peak that the analytic costs take: 40 TFLOP/s of floats, `speed` times that of what is multiplied.
double share_of_peak(double operations, double us, double speed);

// One for each shape of a tile and each number of blocks that share its depth, for convolutions and for products.
std::vector<Implementation> tile_implementations();

// Reads the name of a row of a family, with a number after each mark ("tiles:64x32:2"); false: another's name.
bool read_numbers(std::string_view implementation, std::string_view family,
                  std::initializer_list<std::pair<char, int*>> numbers);

}  // namespace gopt::planner
