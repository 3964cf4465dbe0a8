// How many axes of a list with integers of their own a counterexample needs.
#include <algorithm>

#include "scheme_layout.h"

namespace gopt::rules {
namespace {

// A side written as trees: each read of a variable, and the pads that it passes on its way.
struct Reads {
  std::vector<std::pair<std::string, std::vector<size_t>>> reads;
  std::vector<std::vector<size_t>> pads;  // those above each
};

constexpr size_t kMaxReads = 64, kMaxPads = 10;

void collect_reads(const SchemeSide& side, const std::string& value, const std::vector<size_t>& above, Reads& out) {
  if (out.reads.size() > kMaxReads || out.pads.size() > kMaxPads) return;
  const auto makes = [&](const SchemeNode& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
  };
  const auto node = std::find_if(side.nodes.begin(), side.nodes.end(), makes);
  if (node == side.nodes.end()) {
    out.reads.emplace_back(value, above);
    return;
  }
  std::vector<size_t> path = above;
  if (node->op == OpKind::Pad) {
    path.push_back(out.pads.size());
    out.pads.push_back(above);
  }
  for (const std::string& input : node->inputs) collect_reads(side, input, path, out);
}

bool meets(const std::vector<size_t>& path, size_t set) {
  return std::any_of(path.begin(), path.end(), [&](size_t pad) { return (set >> pad) & 1; });
}

// One axis for each pad that is known to be outside, and one fewer than the places that a variable is read at.
int witnesses(const Reads& all, size_t outside) {
  int count = 0;
  for (size_t pad = 0; pad < all.pads.size(); pad++)
    if (((outside >> pad) & 1) && !meets(all.pads[pad], outside)) count++;
  std::map<std::string, int> live;
  for (const auto& [variable, path] : all.reads)
    if (!meets(path, outside)) live[variable]++;
  for (const auto& [variable, reads] : live) count += reads - 1;
  return count;
}

}  // namespace

int witness_axes(const Scheme& scheme) {
  int most = 1;
  for (size_t k = 0; k < scheme.left.outputs.size() && k < scheme.right.outputs.size(); k++) {
    Reads all;
    collect_reads(scheme.left, scheme.left.outputs[k], {}, all);
    collect_reads(scheme.right, scheme.right.outputs[k], {}, all);
    if (all.reads.size() > kMaxReads || all.pads.size() > kMaxPads) throw SchemeError("its sides read too much");
    for (size_t outside = 0; outside < size_t{1} << all.pads.size(); outside++)
      most = std::max(most, witnesses(all, outside));
  }
  return most;
}

}  // namespace gopt::rules
