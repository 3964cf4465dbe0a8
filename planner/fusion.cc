// Which generated nodes are computed inside their users' kernels.
#include <algorithm>

#include "cover.h"
#include "node_work.h"

namespace gopt::planner {

namespace {

constexpr double kCheapRecompute = 6;  // scalar operations an element that may be done again rather than stored
constexpr double kUnknownReads = 1e18;
constexpr int kMaxNodesInKernel = 48;  // covered by one generated kernel
constexpr int kMaxInputsOfKernel = 24;

class FusionChooser {
 public:
  explicit FusionChooser(Cover& cover) : cover_(cover), cost_(cover.nodes.size(), 0), size_(cover.nodes.size(), 1) {}

  void run() {
    // Users have larger ids, so that what a kernel has taken in is known before its inputs are looked at.
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) cost_[id] = own_cost(id);
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;) {
      if (cover_.nodes[id].role != Role::Generated) continue;
      cover_.nodes[id].limit = limit_of(id);
      if (cover_.nodes[id].limit == FusionLimit::None) inline_node(id);
    }
  }

 private:
  const ValueCover& input(uint32_t id, size_t position) const { return cover_.of(cover_.node(id).inputs[position]); }
  const ValueCover& result(uint32_t id) const { return cover_.values[cover_.nodes[id].first_value]; }

  double own_cost(uint32_t id) const {
    double cost = work_of(cover_.node(id)).operations_an_element;
    for (const Value& in : cover_.node(id).inputs) {
      if (!in) continue;
      const uint32_t maker = cover_.id_of(in.node.get());
      const Role role = cover_.nodes[maker].role;
      if (role == Role::Generated && cover_.of(in).uses.size() == 1) cost += cost_[maker];
    }
    return cost;
  }

  // Inputs with as many elements as the output: reading them again costs as much as reading the stored output.
  int large_inputs(uint32_t id) const {
    int large = 0;
    for (const Value& in : cover_.node(id).inputs)
      large += in && !is_small_constant(in) && 2 * cover_.of(in).count() > result(id).count();
    return large;
  }

  // How often the user's kernels read each element.
  double reads_per_element(const Use& use) const {
    const NodeWork& work = work_of(cover_.node(use.node));
    if (work.reads.empty()) return kUnknownReads;
    double reads = 0;
    for (size_t o = 0; o < work.reads.size(); o++) {
      const ValueCover& made = cover_.values[cover_.nodes[use.node].first_value + o];
      if (made.uses.empty() && !made.is_output) continue;
      const auto number = evaluate(work.reads[o][static_cast<size_t>(use.position)], cover_.sizes);
      reads += number ? static_cast<double>(*number) : kUnknownReads;
    }
    return reads / static_cast<double>(std::max<int64_t>(1, input(use.node, use.position).count()));
  }

  // What keeps a node from being computed inside its users' kernels.
  FusionLimit limit_of(uint32_t id) const {
    if (cover_.options.target.without.contains(kInlining)) return FusionLimit::SwitchedOff;
    const Node& node = cover_.node(id);
    const bool movement = op_info(node.op).has(kDataMovement);
    int used_outputs = 0;
    double reads = 0;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      const ValueCover& value = cover_.values[cover_.nodes[id].first_value + o];
      if (value.is_output) return FusionLimit::Output;
      used_outputs += !value.uses.empty();
      double own_reads = 0;
      for (const Use& use : value.uses) {
        if (!user_takes(use)) return FusionLimit::LibraryUser;
        own_reads += reads_per_element(use);
      }
      if (value.uses.size() > 1 && large_inputs(id) > 1 && node.op != OpKind::Concat) return FusionLimit::ReadAgain;
      reads = std::max(reads, own_reads);
    }
    if (used_outputs == 0) return FusionLimit::Unused;
    if (used_outputs > 1 && !movement) return FusionLimit::SeveralOutputs;
    if (!fits(id)) return FusionLimit::KernelFull;
    const bool is_read_once = reads <= 1 && only_elementwise_user(id);
    if (work_of(node).reduces) return is_read_once ? FusionLimit::None : FusionLimit::Reduction;
    return (reads - 1) * cost_[id] <= kCheapRecompute ? FusionLimit::None : FusionLimit::ComputedAgain;
  }

  bool user_takes(const Use& use) const {
    const NodeCover& user = cover_.nodes[use.node];
    if (user.role != Role::Generated && user.role != Role::Inlined) return false;
    return !work_of(cover_.node(use.node)).is_index[static_cast<size_t>(use.position)];
  }

  bool only_elementwise_user(uint32_t id) const {
    const ValueCover& value = result(id);
    return value.uses.size() == 1 && op_info(cover_.node(value.uses[0].node).op).has(kElementwise) &&
           result(value.uses[0].node).shape == value.shape && value.layout == result(value.uses[0].node).layout;
  }

  bool fits(uint32_t id) const {
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++)
      for (const Use& use : cover_.values[cover_.nodes[id].first_value + o].uses)
        if (size_[use.node] + size_[id] > kMaxNodesInKernel ||
            static_cast<int>(cover_.node(use.node).inputs.size() + cover_.node(id).inputs.size()) > kMaxInputsOfKernel)
          return false;
    return true;
  }

  // Sizes are those of the kernel that a node ends in, seen from the node: what its users have taken so far.
  void inline_node(uint32_t id) {
    cover_.nodes[id].role = Role::Inlined;
    int largest = 0;
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++)
      for (const Use& use : cover_.values[cover_.nodes[id].first_value + o].uses)
        largest = std::max(largest, size_[use.node] + 1);
    size_[id] = std::max(size_[id], largest);
  }

  Cover& cover_;
  std::vector<double> cost_;
  std::vector<int> size_;
};

}  // namespace

void choose_fusion(Cover& cover) { FusionChooser(cover).run(); }

}  // namespace gopt::planner
