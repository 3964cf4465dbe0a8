// Which generated nodes are computed inside their users' kernels.
#include <algorithm>

#include "cover.h"
#include "node_work.h"

namespace gopt::planner {

namespace {

constexpr double kCheapRecompute = 6;  // scalar operations an element that may be done again rather than stored
constexpr int kMaxNodesInKernel = 48;  // covered by one generated kernel
constexpr int kMaxInputsOfKernel = 24;

// Scalar operations an element of the output, reductions apart.
double operations_of(OpKind op) {
  if (op_info(op).has(kDataMovement) || op_info(op).has(kShapeOnly)) return 0;
  switch (op) {
    case OpKind::Identity:
    case OpKind::Cast: return 0.5;
    case OpKind::Exp:
    case OpKind::Log:
    case OpKind::Tanh:
    case OpKind::Sigmoid:
    case OpKind::Erf:
    case OpKind::Gelu:
    case OpKind::Elu:
    case OpKind::Selu:
    case OpKind::Celu:
    case OpKind::Mish:
    case OpKind::Softplus:
    case OpKind::Pow: return 12;
    case OpKind::Div:
    case OpKind::Sqrt: return 3;
    case OpKind::BatchNormalization: return 2;
    default: return 1;
  }
}

class FusionChooser {
 public:
  explicit FusionChooser(Cover& cover) : cover_(cover), cost_(cover.nodes.size(), 0), size_(cover.nodes.size(), 1) {}

  void run() {
    // Users have larger ids, so that what a kernel has taken in is known before its inputs are looked at.
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) cost_[id] = own_cost(id);
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;) {
      if (cover_.nodes[id].role == Role::Generated && may_inline(id)) inline_node(id);
    }
  }

 private:
  const ValueCover& input(uint32_t id, size_t position) const { return cover_.of(cover_.node(id).inputs[position]); }
  const ValueCover& result(uint32_t id) const { return cover_.values[cover_.nodes[id].first_value]; }

  double own_cost(uint32_t id) const {
    double cost = operations_of(cover_.node(id).op);
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

  // How often the user reads each element.
  double reads_per_element(const Use& use) const {
    const Node& user = cover_.node(use.node);
    const double in = static_cast<double>(std::max<int64_t>(1, input(use.node, use.position).count()));
    const double ratio = static_cast<double>(result(use.node).count()) / in;
    switch (user.op) {
      case OpKind::Softmax:
      case OpKind::LogSoftmax:
      case OpKind::LayerNormalization:
      case OpKind::InstanceNormalization:
      case OpKind::ReduceLogSumExp: return 3;
      case OpKind::MatMul:
      case OpKind::Gemm:
      case OpKind::Conv:
      case OpKind::ConvTranspose: return 1e9;
      case OpKind::MaxPool:
      case OpKind::AveragePool: {
        double window = 1;
        for (const Index& extent : std::get<std::vector<Index>>(user.attributes.at("kernel_shape")))
          window *= static_cast<double>(extent.constant());
        return ratio * window;
      }
      default: break;
    }
    return op_info(user.op).has(kElementwise) || op_info(user.op).has(kDataMovement) ? std::max(1.0, ratio)
           : work_of(user).reduces                                                   ? 1
                                                                                     : std::max(1.0, ratio);
  }

  bool may_inline(uint32_t id) const {
    const Node& node = cover_.node(id);
    const bool movement = op_info(node.op).has(kDataMovement);
    int used_outputs = 0;
    double reads = 0;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      const ValueCover& value = cover_.values[cover_.nodes[id].first_value + o];
      if (value.is_output) return false;
      used_outputs += !value.uses.empty();
      double own_reads = 0;
      for (const Use& use : value.uses) {
        if (!user_takes(use)) return false;
        own_reads += reads_per_element(use);
      }
      if (value.uses.size() > 1 && large_inputs(id) > 1 && node.op != OpKind::Concat) return false;
      reads = std::max(reads, own_reads);
    }
    if (used_outputs == 0 || (used_outputs > 1 && !movement)) return false;
    if (!fits(id)) return false;
    if (work_of(node).reduces) return reads <= 1 && only_elementwise_user(id);
    return (reads - 1) * cost_[id] <= kCheapRecompute;
  }

  bool user_takes(const Use& use) const {
    const NodeCover& user = cover_.nodes[use.node];
    if (user.role != Role::Generated && user.role != Role::Inlined) return false;
    return !is_index_operand(cover_.node(use.node).op, use.position);
  }

  bool only_elementwise_user(uint32_t id) const {
    const ValueCover& value = result(id);
    return value.uses.size() == 1 && op_info(cover_.node(value.uses[0].node).op).has(kElementwise) &&
           result(value.uses[0].node).dims == value.dims && value.layout == result(value.uses[0].node).layout;
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
