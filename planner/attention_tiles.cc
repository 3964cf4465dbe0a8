// The ways to run attention, on CUDA's tensor cores (codegen/cuda/runtime/gopt_attention.cuh) and in loops on a CPU,
// and how long they may be expected to take.
#include <algorithm>
#include <cmath>

#include "access.h"
#include "attention.h"
#include "tiles.h"

namespace gopt {

std::string to_string(const AttentionTile& tile) {
  return "attention:" + std::to_string(tile.rows) + "x" + std::to_string(tile.key_warps) +
         (tile.split > 1 ? ":" + std::to_string(tile.split) : "");
}

std::optional<AttentionTile> parse_attention_tile(std::string_view implementation) {
  AttentionTile tile;
  if (planner::read_numbers(implementation, "attention", {{':', &tile.rows}, {'x', &tile.key_warps}})) return tile;
  const bool is_split = planner::read_numbers(implementation, "attention",
                                              {{':', &tile.rows}, {'x', &tile.key_warps}, {':', &tile.split}});
  return is_split && tile.split > 1 ? std::optional(tile) : std::nullopt;
}

int64_t padded_depth(const Attention& attention) {
  constexpr int64_t kFragment = 16;
  return (std::max(attention.depth, attention.value_depth) + kFragment - 1) / kFragment * kFragment;
}

}  // namespace gopt

namespace gopt::planner {
namespace {

constexpr AttentionTile kTiles[] = {{16, 4}, {16, 8}, {16, 8, 2}, {16, 8, 4}, {16, 8, 8},
                                    {32, 2}, {32, 4}, {64, 1},    {64, 2},    {128, 1}};

// Of a warp in a stage.
int64_t keys_of_warp(const AttentionTile& tile, int64_t pitch) {
  constexpr int64_t kWide = 300, kFewest = 16;
  const int64_t most = tile.key_warps == 1 ? 64 : tile.key_warps < 8 ? 32 : kFewest;
  return pitch > kWide ? std::max(kFewest, most / 2) : most;
}

// Of queries and two stages of keys and values, as the kernel lays them out.
int64_t shared_bytes(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  constexpr int64_t kChunk = 16;
  const int64_t pitch =
      padded_depth(*kernel.attention) * (is_half(plan.buffer(kernel.input_buffers[0]).element) ? 2 : 4) + kChunk;
  return pitch * (tile.rows + 4 * keys_of_warp(tile, pitch) * tile.key_warps);
}
// At the sizes that plans are for.
double number_at(const Plan& plan, const Index& size) {
  const auto number = evaluate(size, usual_sizes(plan.target));
  return static_cast<double>(std::max<int64_t>(number.value_or(1), 1));
}

// Stages of keys that a line passes by.
double steps_of(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  return std::ceil(number_at(plan, kernel.attention->keys) /
                   (static_cast<double>(keys_of_warp(tile, 0)) * tile.key_warps));
}

bool computes_attention(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  constexpr int64_t kMostShared = 227 * 1024;  // of a block, on Hopper
  if (tile.split > steps_of(plan, kernel, tile)) return false;
  return shared_bytes(plan, kernel, tile) <= kMostShared;
}

double operations_of(const Plan& plan, const Attention& a) {
  return 2 * number_at(plan, product_of(a.batch)) * number_at(plan, a.rows) * number_at(plan, a.keys) *
         static_cast<double>(a.depth + a.value_depth);
}

// A multiprocessor of an H100: operations of halves and bytes in a microsecond, and the exponentials beside them.
constexpr double kMultiprocessors = 132, kOperationsPerUs = 5e6, kBytesPerUs = 36e3, kExponentialsPerUs = 15e3;
constexpr double kStartUs = 2.5, kLeastStepUs = 0.8, kJoinUs = 0.3, kSplitUs = 1;

double expected_us(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  const Attention& a = *kernel.attention;
  const bool halves = is_half(plan.buffer(kernel.input_buffers[0]).element);
  const double products = halves ? 1 : is_tf32(plan, kernel) ? 2 : 6;
  const double blocks =
      number_at(plan, product_of(a.batch)) * std::ceil(number_at(plan, a.rows) / tile.rows) * tile.split;
  const double step_keys = static_cast<double>(keys_of_warp(tile, 0)) * tile.key_warps;
  const double steps = std::ceil(steps_of(plan, kernel, tile) / tile.split);
  const auto depth = static_cast<double>(a.depth + a.value_depth);
  const double arithmetic =
      2 * tile.rows * step_keys * depth * products / kOperationsPerUs + tile.rows * step_keys / kExponentialsPerUs;
  const double memory = step_keys * depth * (halves ? 2 : 4) / kBytesPerUs;
  const double waves = std::ceil(blocks / kMultiprocessors);
  return kStartUs + (tile.key_warps > 1 ? kJoinUs : 0) + (tile.split > 1 ? kSplitUs : 0) +
         waves * steps * std::max(kLeastStepUs, arithmetic + memory);
}

bool is_worth_trying(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  constexpr double kWithin = 2;
  constexpr int kFewRows = 16;
  if (tile.rows > kFewRows && 2 * number_at(plan, kernel.attention->rows) <= tile.rows) return false;
  double least = INFINITY;
  for (const AttentionTile& other : kTiles)
    if (computes_attention(plan, kernel, other)) least = std::min(least, expected_us(plan, kernel, other));
  return expected_us(plan, kernel, tile) <= kWithin * least;
}

template <size_t kTile>
Implementation row() {
  static const std::string name = to_string(kTiles[kTile]);
  Implementation row{
      name, KernelKind::Attention, TargetKind::Cuda,
      [](const Plan& plan, const Kernel& kernel) { return computes_attention(plan, kernel, kTiles[kTile]); },
      [](const Plan& plan, const Kernel& kernel) {
        const double us = expected_us(plan, kernel, kTiles[kTile]) - kStartUs;
        const bool halves = is_half(plan.buffer(kernel.input_buffers[0]).element);
        // Of the peak that the analytic costs take for what is multiplied.
        const double speed = halves ? 6 : is_tf32(plan, kernel) ? 3 : 1;
        return operations_of(plan, *kernel.attention) / (us * 40e6 * speed);
      }};
  row.is_likely = [](const Plan& plan, const Kernel& kernel) { return is_worth_trying(plan, kernel, kTiles[kTile]); };
  return row;
}
template <size_t... kNumbers>
std::vector<Implementation> all_rows(std::index_sequence<kNumbers...>) {
  return {row<kNumbers>()...};
}

bool is_of(const Plan& plan, const Kernel& kernel, ElementType operands) {
  const size_t choice = kernel.input_buffers.size() - (kernel.attention->choice ? 1 : 0);
  for (size_t k = 0; k < choice; k++)
    if (plan.buffer(kernel.input_buffers[k]).element != (k < 3 ? operands : ElementType::Float32)) return false;
  return true;
}
bool is_of_floats(const Plan& plan, const Kernel& kernel) {
  return is_of(plan, kernel, ElementType::Float32) &&
         plan.buffer(kernel.output_buffers[0]).element == ElementType::Float32;
}
bool takes_six(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && is_for_tiles(*kernel.attention) && is_of(plan, kernel, ElementType::Float32);
}
bool takes_three(const Plan& plan, const Kernel& kernel) {
  return takes_six(plan, kernel) && may_lose_digits(plan, kernel);
}
bool takes_one(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && is_for_tiles(*kernel.attention) && is_of(plan, kernel, ElementType::BFloat16);
}
// Lanes are lines of the query; exponentials take as long as a dozen multiply-adds each.
double rows_efficiency(const Plan& plan, const Kernel& kernel) {
  constexpr double kLanes = 16, kExponential = 24;
  const Attention& a = *kernel.attention;
  const double rows = number_at(plan, a.rows), depths = 2 * static_cast<double>(a.depth + a.value_depth);
  return 0.75 * rows / (kLanes * std::ceil(rows / kLanes)) * depths / (depths + kExponential);
}

// Of what loops reach.
template <int kTimes>
double tiles_efficiency(const Plan& plan, const Kernel& kernel) {
  return kTimes * 0.5 * rows_efficiency(plan, kernel);
}

}  // namespace

double attention_operations(const Plan& plan, const Kernel& kernel) { return operations_of(plan, *kernel.attention); }

std::vector<Implementation> attention_implementations() {
  std::vector<Implementation> rows = all_rows(std::make_index_sequence<std::size(kTiles)>());
  rows.push_back({kAttentionRows, KernelKind::Attention, TargetKind::Cpu, is_of_floats, rows_efficiency});
  rows.push_back({kAttentionOfSix, KernelKind::Attention, TargetKind::Cpu, takes_six, tiles_efficiency<3>});
  rows.push_back({kAttentionOfThree, KernelKind::Attention, TargetKind::Cpu, takes_three, tiles_efficiency<4>});
  rows.push_back({kAttentionOfHalves, KernelKind::Attention, TargetKind::Cpu, takes_one, tiles_efficiency<6>});
  return rows;
}

}  // namespace gopt::planner
