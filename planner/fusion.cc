// Which generated nodes are computed inside their users' kernels.
#include <algorithm>
#include <set>

#include "access.h"
#include "cover.h"
#include "node_work.h"

namespace gopt::planner {

namespace {

constexpr double kCheapRecompute = 6;  // scalar operations an element that may be done again rather than stored
constexpr double kUnknownReads = 1e18;
constexpr int kMaxNodesInKernel = 48;  // covered by one generated kernel
constexpr int kMaxInputsOfKernel = 24;

// What costs may decide otherwise.
constexpr double kDearRecompute = 64;  // scalar operations an element that are hardly worth being done again
constexpr size_t kMostUsers = 4;       // that would each compute it

class FusionChooser {
 public:
  explicit FusionChooser(Cover& cover) : cover_(cover), cost_(cover.nodes.size(), 0), size_(cover.nodes.size(), 1) {}

  void run() {
    // Users have larger ids, so that what a kernel has taken in is known before its inputs are looked at.
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) cost_[id] = own_cost(id);
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;) {
      if (cover_.nodes[id].role != Role::Generated) continue;
      cover_.nodes[id].limit = hard_limit_of(id);
      if (cover_.nodes[id].limit == FusionLimit::None) decide(id);
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

  struct Reads {
    double all = 0, of_one_use = 0;  // of each element, at most
    bool has_several_users = false;  // some output
  };
  Reads reads_of(uint32_t id) const {
    Reads reads;
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++) {
      const ValueCover& value = cover_.values[cover_.nodes[id].first_value + o];
      double of_value = 0;
      for (const Use& use : value.uses) {
        const double own = reads_per_element(use);
        of_value += own;
        reads.of_one_use = std::max(reads.of_one_use, own);
      }
      reads.all = std::max(reads.all, of_value);
      reads.has_several_users |= value.uses.size() > 1;
    }
    return reads;
  }

  // Puts pieces together, or is such a piece.
  bool is_joined(uint32_t id) const {
    const auto joins = [&](uint32_t node) { return cover_.node(node).is(OpKind::Concat); };
    return joins(id) || std::ranges::any_of(result(id).uses, [&](const Use& use) { return joins(use.node); });
  }

  // What keeps a node from being computed inside its users' kernels, whatever that costs.
  FusionLimit hard_limit_of(uint32_t id) const {
    const std::set<std::string>& without = cover_.options.target.without;
    if (without.contains(kInlining) || (without.contains(kPieces) && is_joined(id))) return FusionLimit::SwitchedOff;
    const Node& node = cover_.node(id);
    if (is_scattered(id)) return FusionLimit::Reduction;
    int used_outputs = 0;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      const ValueCover& value = cover_.values[cover_.nodes[id].first_value + o];
      if (value.is_output) return FusionLimit::Output;
      used_outputs += !value.uses.empty();
      for (const Use& use : value.uses)
        if (!user_takes(use)) return FusionLimit::LibraryUser;
    }
    if (used_outputs == 0) return FusionLimit::Unused;
    return used_outputs > 1 && !op_info(node.op).has(kDataMovement) ? FusionLimit::SeveralOutputs : FusionLimit::None;
  }

  // By rules that stand for what it costs, unless costs themselves have said what to do.
  void decide(uint32_t id) {
    const Reads reads = reads_of(id);
    const FusionLimit limit = soft_limit_of(id, reads);
    leave_open(id, limit, reads);
    const auto way = cover_.ways.find(id);
    const bool is_decided =
        way != cover_.ways.end() && (way->second == FusionWay::Stored || way->second == FusionWay::Inside);
    if (is_decided ? way->second == FusionWay::Inside : limit == FusionLimit::None)
      inline_node(id);
    else
      cover_.nodes[id].limit = is_decided ? FusionLimit::Costs : limit;
  }

  FusionLimit soft_limit_of(uint32_t id, const Reads& reads) const {
    const Node& node = cover_.node(id);
    if (reads.has_several_users && large_inputs(id) > 1 && node.op != OpKind::Concat) return FusionLimit::ReadAgain;
    if (!fits(id, 1)) return FusionLimit::KernelFull;
    const bool is_read_once =
        (reads.all <= 1 && (only_elementwise_user(id) || only_moves_lines(id)) && !is_read_again_behind(id)) ||
        ends_in_one_kernel(id);
    if (work_of(node).reduces) return is_read_once ? FusionLimit::None : FusionLimit::Reduction;
    return (reads.all - 1) * cost_[id] <= kCheapRecompute ? FusionLimit::None : FusionLimit::ComputedAgain;
  }

  // Notes the node where what the rule says may well cost more.
  void leave_open(uint32_t id, FusionLimit limit, const Reads& reads) {
    const bool is_again = reads.of_one_use > 1, reduces = work_of(cover_.node(id)).reduces;
    if (limit == FusionLimit::None) {
      const bool moves = op_info(cover_.node(id).op).has(kDataMovement);
      if (reads.all > 1 || reduces || moves) cover_.open.push_back({id, FusionWay::Stored});
      return;
    }
    const bool is_cheap = (reads.of_one_use - 1) * cost_[id] <= kDearRecompute && users(id) <= kMostUsers;
    const bool may_be_inside = reduces ? is_same_along_last_axes(id) : is_cheap;
    if (may_be_inside && fits(id, 2)) cover_.open.push_back({id, FusionWay::Inside, is_again || reduces});
  }

  size_t users(uint32_t id) const {
    size_t all = 0;
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++)
      all += cover_.values[cover_.nodes[id].first_value + o].uses.size();
    return all;
  }

  // Its only user broadcasts it along the last axes: loops compute it once before they run along those.
  bool is_same_along_last_axes(uint32_t id) const {
    const ValueCover& value = result(id);
    if (users(id) != 1 || value.uses.empty() || !op_info(cover_.node(value.uses[0].node).op).has(kElementwise))
      return false;
    const ValueCover& user = result(value.uses[0].node);
    if (!value.layout.is_plain() || !user.layout.is_plain() || value.dims.size() != user.dims.size()) return false;
    size_t d = 0;
    while (d < value.dims.size() && value.dims[d] == user.dims[d]) d++;
    return std::all_of(value.dims.begin() + static_cast<std::ptrdiff_t>(d), value.dims.end(),
                       [](int64_t extent) { return extent == 1; });
  }

  // Its only user puts its lines elsewhere, each as it is, and stores them: they are computed where they are stored.
  bool only_moves_lines(uint32_t id) const {
    const ValueCover& value = result(id);
    if (users(id) != 1 || value.uses.empty() || cover_.nodes[value.uses[0].node].role != Role::Generated) return false;
    const NodeWork& user = work_of(cover_.node(value.uses[0].node));
    const ValueCover& moved = result(value.uses[0].node);
    if (user.moved_from.size() != 1 || user.moved_from[0].empty() || moved.count() != value.count()) return false;
    const std::vector<AtomId> symbols = axis_symbols(moved.dims.size());
    return !symbols.empty() && user.moved_from[0].back() == Index::from_atom(symbols.back()) &&
           moved.dims.back() == value.dims.back();
  }

  // Written update by update: nothing is computed inside it, nor it inside another.
  bool is_scattered(uint32_t id) const {
    return cover_.options.target.kind == TargetKind::Cpu && cover_.node(id).is(OpKind::ScatterAlong);
  }
  bool user_takes(const Use& use) const {
    const NodeCover& user = cover_.nodes[use.node];
    if ((user.role != Role::Generated && user.role != Role::Inlined) || is_scattered(use.node)) return false;
    return !work_of(cover_.node(use.node)).is_index[static_cast<size_t>(use.position)];
  }

  bool only_elementwise_user(uint32_t id) const {
    const ValueCover& value = result(id);
    return value.uses.size() == 1 && op_info(cover_.node(value.uses[0].node).op).has(kElementwise) &&
           result(value.uses[0].node).shape == value.shape && value.layout == result(value.uses[0].node).layout;
  }

  // Which have kernels of their own.
  bool is_pool(uint32_t id) const {
    const Node& node = cover_.node(id);
    return node.is(OpKind::MaxPool) || node.is(OpKind::AveragePool) || result(id).count() < input(id, 0).count();
  }

  // Whether all that becomes of it, element by element, is stored by one kernel on CUDA, whose threads then compute it
  // once: a normalization of groups before an activation that reads it twice.
  bool ends_in_one_kernel(uint32_t id) const {
    if (cover_.options.target.kind != TargetKind::Cuda || is_pool(id)) return false;
    std::set<uint32_t> ends, seen;
    std::vector<uint32_t> left{id};
    while (!left.empty()) {
      const ValueCover& value = result(left.back());
      left.pop_back();
      for (const Use& use : value.uses) {
        const Node& user = cover_.node(use.node);
        const bool is_alike = op_info(user.op).has(kElementwise) || work_of(user).keeps_order;
        if (!is_alike || result(use.node).count() != value.count()) return false;
        if (cover_.nodes[use.node].role != Role::Inlined)
          ends.insert(use.node);
        else if (seen.insert(use.node).second)
          left.push_back(use.node);
      }
    }
    return ends.size() == 1 && cover_.nodes[*ends.begin()].role == Role::Generated;
  }

  // Whether its only user is computed within others on CUDA, several times or in several of them.
  bool is_read_again_behind(uint32_t id) const {
    if (cover_.options.target.kind != TargetKind::Cuda) return false;
    uint32_t user = result(id).uses[0].node;
    while (cover_.nodes[user].role == Role::Inlined && !result(user).uses.empty()) {
      if (reads_of(user).all > 1) return !ends_in_one_kernel(user);
      user = result(user).uses[0].node;
    }
    return false;
  }

  bool fits(uint32_t id, int kernels) const {
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++)
      for (const Use& use : cover_.values[cover_.nodes[id].first_value + o].uses)
        if (size_[use.node] + size_[id] > kernels * kMaxNodesInKernel ||
            static_cast<int>(cover_.node(use.node).inputs.size() + cover_.node(id).inputs.size()) >
                kernels * kMaxInputsOfKernel)
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
