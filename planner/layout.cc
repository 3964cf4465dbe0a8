// Layouts: convolutions on the CPU make and take blocked tensors, and what lies between convolutions and works in any
// order keeps theirs, so that conversions are left at the borders only. On CUDA everything is plain.
#include "cover.h"

namespace gopt::planner {
namespace {

// Operators whose result may lie as their 4-D input does: a position of the output reads nearby positions of the same
// channel.
bool follows_layout(OpKind op) {
  if (op_info(op).has(kElementwise)) return true;
  switch (op) {
    case OpKind::MaxPool:
    case OpKind::AveragePool:
    case OpKind::GlobalAveragePool:
    case OpKind::GlobalMaxPool:
    case OpKind::BatchNormalization:
    case OpKind::InstanceNormalization:
    case OpKind::ReduceMean:
    case OpKind::ReduceMax:
    case OpKind::ReduceSum:
    case OpKind::Concat:
    case OpKind::Pad:
    case OpKind::Slice:
    case OpKind::Split: return true;
    default: return false;
  }
}

constexpr int kChannelLanes = 16;  // what oneDNN's convolutions take with AVX-512: a register of floats

}  // namespace

void choose_layouts(Cover& cover) {
  if (!cover.options.convolution_layout || cover.options.target.kind != TargetKind::Cpu) return;
  const Layout layout = Layout::blocked(kChannelLanes);
  for (uint32_t id = 0; id < cover.nodes.size(); id++) {
    const NodeCover& own = cover.nodes[id];
    const Node& node = cover.node(id);
    bool wanted = own.role == Role::Convolution;
    if (own.role == Role::Epilogue) wanted = cover.nodes[own.owner].role == Role::Convolution;
    if (own.role == Role::Generated && follows_layout(node.op))
      for (const Value& input : node.inputs) wanted |= input && cover.of(input).layout == layout;
    if (!wanted) continue;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      ValueCover& value = cover.values[own.first_value + o];
      if (value.dims.size() >= 3 && value.dims.size() <= 5 && value.element == ElementType::Float32 &&
          value.dims[1] > 1)
        value.layout = layout;
    }
  }
  // A generated kernel may as well write what its users want: plain, where none of them follows the layout.
  for (uint32_t id = static_cast<uint32_t>(cover.nodes.size()); id-- > 0;) {
    const NodeCover& own = cover.nodes[id];
    if (own.role != Role::Generated) continue;
    for (size_t o = 0; o < cover.node(id).outputs.size(); o++) {
      ValueCover& value = cover.values[own.first_value + o];
      if (value.layout.is_plain()) continue;
      bool wanted = false;
      for (const Use& use : value.uses) {
        const NodeCover& user = cover.nodes[use.node];
        wanted |= user.role == Role::Convolution || user.role == Role::Epilogue ||
                  (user.role == Role::Generated && follows_layout(cover.node(use.node).op));
      }
      if (!wanted) value.layout = Layout();
    }
  }
}

}  // namespace gopt::planner
