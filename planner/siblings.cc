#include "siblings.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "channels.h"
#include "gopt/buffer_root.h"
#include "gopt/convolution_shape.h"
#include "gopt/tile.h"
#include "implementations.h"
#include "milliseconds.h"
#include "tiles.h"

namespace gopt::planner {
namespace {

constexpr size_t kMostMembers = 8;  // of gopt_tiles.h
constexpr size_t kTilesTried = 4;   // of a set of siblings

// How many kernels, one after the other, come before each at least: those of one number need nothing of each other.
std::vector<int> depths_of(const Plan& plan) {
  std::map<BufferId, int> written;  // what has to come before who reads it
  std::vector<int> depths;
  for (const Kernel& kernel : plan.kernels) {
    int depth = 0;
    for (const BufferId read : kernel.input_buffers)
      if (const auto at = written.find(root_of(plan, read).buffer); at != written.end())
        depth = std::max(depth, at->second);
    for (const BufferId made : kernel.output_buffers) {
      int& after = written[root_of(plan, made).buffer];
      after = std::max(after, depth + 1);
    }
    depths.push_back(depth);
  }
  return depths;
}

// Convolutions of whole chunks of channels are instances of one kernel, whatever their windows; pools go with them.
bool may_be_member(const Plan& plan, const Kernel& kernel) {
  constexpr size_t kImage = 4;
  if (pools_channels(plan, kernel)) return plan.buffer(kernel.input_buffers[0]).dims.size() == kImage;
  if (kernel.kind != KernelKind::Convolution || kernel.prologue || !convolves_by_tiles(plan, kernel)) return false;
  constexpr int64_t kChunk = 16;
  constexpr size_t kAxes = 2;
  const Buffer& x = plan.buffer(kernel.input_buffers[0]);
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const auto size = static_cast<int64_t>(size_bytes(x.element));
  return shape.groups == 1 && shape.axes() == kAxes && x.layout.is_channels_last() &&
         plan.buffer(kernel.input_buffers[1]).place == BufferPlace::Weight && x.dims[1] * size % kChunk == 0 &&
         x.layout.line() * size % kChunk == 0;
}

bool is_convolution(const Kernel& kernel) { return kernel.kind == KernelKind::Convolution; }

// Numbers of kernels that could be launched together: of convolutions and pools, and of the convolutions alone.
using Siblings = std::vector<std::vector<size_t>>;  // from most to fewest
std::vector<Siblings> siblings_of(const Plan& plan) {
  const std::vector<int> depths = depths_of(plan);
  std::map<std::pair<int, ElementType>, std::vector<size_t>> alike;
  for (size_t k = 0; k < plan.kernels.size(); k++)
    if (may_be_member(plan, plan.kernels[k]))
      alike[{depths[k], plan.buffer(plan.kernels[k].input_buffers[0]).element}].push_back(k);
  std::vector<std::vector<size_t>> sets;
  for (const auto& [_, all] : alike)
    for (size_t first = 0; first + 1 < all.size(); first += kMostMembers)
      sets.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(first),
                        all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), first + kMostMembers)));
  std::vector<Siblings> all_siblings;
  for (const std::vector<size_t>& set : sets) {
    std::vector<size_t> convolutions;
    std::ranges::copy_if(set, std::back_inserter(convolutions),
                         [&](size_t number) { return is_convolution(plan.kernels[number]); });
    if (convolutions.empty()) continue;
    const bool has_others = convolutions.size() < set.size() && convolutions.size() > 1;
    all_siblings.push_back(has_others ? Siblings{set, convolutions} : Siblings{set});
  }
  return all_siblings;
}

Kernel with_tile(const Kernel& kernel, std::string_view tile) {
  Kernel other = kernel;
  other.implementation = is_convolution(kernel) ? tile : kByChannels;
  return other;
}

Kernel group_of(const Plan& plan, const std::vector<size_t>& numbers, std::string_view tile) {
  Kernel group{KernelKind::Group};
  group.device = plan.kernels[numbers[0]].device;
  group.name = plan.kernels[numbers[0]].name + "_and_" + std::to_string(numbers.size() - 1) + "_beside";
  group.implementation = tile;
  for (const size_t number : numbers) {
    const Kernel& member = group.members.emplace_back(with_tile(plan.kernels[number], tile));
    group.nodes.insert(group.nodes.end(), member.nodes.begin(), member.nodes.end());
    for (size_t i = 0; i < member.inputs.size(); i++) {
      if (std::ranges::count(group.input_buffers, member.input_buffers[i]) > 0) continue;
      group.inputs.push_back(member.inputs[i]);
      group.input_buffers.push_back(member.input_buffers[i]);
    }
    group.outputs.insert(group.outputs.end(), member.outputs.begin(), member.outputs.end());
    group.output_buffers.insert(group.output_buffers.end(), member.output_buffers.begin(), member.output_buffers.end());
  }
  return group;
}

// The tiles that all convolutions may be made by, those of the least sum of times first.
std::vector<std::string_view> tiles_for(const Plan& plan, std::vector<size_t> numbers, KernelCosts& costs) {
  std::erase_if(numbers, [&](size_t number) { return !is_convolution(plan.kernels[number]); });
  std::vector<std::pair<double, std::string_view>> tiles;
  for (const Implementation& row : implementations()) {
    if (row.kind != KernelKind::Convolution || row.target != TargetKind::Cuda || !parse_tile(row.name)) continue;
    const auto takes = [&](size_t number) { return row.accepts(plan, plan.kernels[number]); };
    const auto is_likely = [&](size_t number) { return row.is_likely(plan, plan.kernels[number]); };
    if (is_switched_off(plan.target, row) || !std::ranges::all_of(numbers, takes)) continue;
    const bool are_all_tried = costs.prices_unlikely() || lacks_sizes(plan.target, row);
    if (!are_all_tried && std::ranges::none_of(numbers, is_likely)) continue;
    double together = 0;
    for (const size_t number : numbers) together += costs.time_ms(plan, with_tile(plan.kernels[number], row.name));
    tiles.emplace_back(together, row.name);
  }
  std::ranges::stable_sort(tiles, {}, &std::pair<double, std::string_view>::first);
  std::vector<std::string_view> names;
  for (const auto& [_, name] : tiles) names.push_back(name);
  if (names.size() > kTilesTried) names.resize(kTilesTried);
  return names;
}

bool is_grouped(const Target& target) {
  return target.kind == TargetKind::Cuda && !target.without.contains(kGroupedLaunch);
}

}  // namespace

std::vector<Kernel> possible_groups(const Plan& plan, KernelCosts& costs) {
  std::vector<Kernel> groups;
  if (!is_grouped(plan.target)) return groups;
  for (const Siblings& siblings : siblings_of(plan))
    for (const std::vector<size_t>& some : siblings)
      for (const std::string_view tile : tiles_for(plan, some, costs)) groups.push_back(group_of(plan, some, tile));
  return groups;
}

void group_siblings(Plan& plan, KernelCosts& costs) {
  if (!is_grouped(plan.target)) return;
  std::map<size_t, Kernel> groups;  // in the place of their first members
  std::vector<bool> is_member(plan.kernels.size());
  for (const Siblings& siblings : siblings_of(plan)) {
    double most_saved_ms = 0;
    std::optional<Kernel> best;
    const std::vector<size_t>* members = nullptr;
    for (const std::vector<size_t>& some : siblings) {
      double apart_ms = 0;
      for (const size_t number : some) apart_ms += plan.kernels[number].estimated_ms;
      for (const std::string_view tile : tiles_for(plan, some, costs)) {
        Kernel group = group_of(plan, some, tile);
        if (!costs.is_measured(plan, group)) continue;
        group.estimated_ms = costs.time_ms(plan, group);
        if (apart_ms - group.estimated_ms <= most_saved_ms) continue;
        most_saved_ms = apart_ms - group.estimated_ms, best = std::move(group), members = &some;
      }
    }
    if (!best) continue;
    for (const size_t number : *members) is_member[number] = true;
    plan.estimated_ms -= most_saved_ms;
    groups.emplace((*members)[0], *std::move(best));
  }
  if (groups.empty()) return;
  // Those before which as many have to come stand together.
  const std::vector<int> depths = depths_of(plan);
  std::vector<size_t> order(plan.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t number) { return depths[number]; });
  std::vector<Kernel> kernels;
  for (const size_t number : order) {
    if (const auto group = groups.find(number); group != groups.end())
      kernels.push_back(std::move(group->second));
    else if (!is_member[number])
      kernels.push_back(std::move(plan.kernels[number]));
  }
  plan.kernels = std::move(kernels);
}

}  // namespace gopt::planner
