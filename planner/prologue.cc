// Which nodes before a convolution of one tap could be done by its kernel, as the source goes through registers, in 16
// bits: a normalization by channels with the activation behind it, or a factor for each image and channel. The node is
// stored by the rule; costs may say otherwise (fusion_by_cost.cc).
#include "prologue.h"

#include <algorithm>

#include "cover.h"
#include "gopt/node_attributes.h"

namespace gopt::planner {
namespace {

constexpr size_t kRank = 4, kChannelAxis = 1;

class PrologueFinder {
 public:
  explicit PrologueFinder(Cover& cover) : cover_(cover) {}

  void run() {
    const Target& target = cover_.options.target;
    if (target.kind != TargetKind::Cuda || target.without.contains(kPrologues)) return;
    for (uint32_t id = 0; id < cover_.nodes.size(); id++)
      if (is_pointwise(id)) look_before(id);
  }

 private:
  const ValueCover& made_by(uint32_t id) const { return cover_.values[cover_.nodes[id].first_value]; }
  bool is_weight(const Value& value) const { return cover_.nodes[cover_.id_of(value.node.get())].weight_only; }

  // A convolution of 16 bits, channels last, whose windows are positions of the image.
  bool is_pointwise(uint32_t id) const {
    const Node& node = cover_.node(id);
    if (cover_.nodes[id].role != Role::Convolution || !node.is(OpKind::Conv)) return false;
    const ValueCover &x = cover_.of(node.inputs[0]), &w = cover_.of(node.inputs[1]);
    const auto automatic = node.attributes.find("auto_pad");
    const bool has_own_pads =
        automatic == node.attributes.end() || std::get<std::string>(automatic->second) == "NOTSET";
    const std::vector<int64_t> pads = ints_or(node, "pads", {0, 0, 0, 0});
    const ElementType operands = library_types(cover_, id).operands;
    return x.dims.size() == kRank && w.dims[2] == 1 && w.dims[3] == 1 && int_or(node, "group", 1) == 1 &&
           has_own_pads && std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; }) && is_half(operands) &&
           is_weight(node.inputs[1]) && x.layout.is_channels_last() && made_by(id).layout.is_channels_last();
  }

  // The node that makes a value, if nobody else reads this and it would lie in the type that is multiplied.
  std::optional<uint32_t> own_maker(const Value& value, ElementType type) const {
    const ValueCover& made = cover_.of(value);
    const uint32_t maker = cover_.id_of(value.node.get());
    const bool is_own = cover_.nodes[maker].role == Role::Generated && value.node->outputs.size() == 1 &&
                        made.uses.size() == 1 && !made.is_output && made.stored == type && !made.is_kept;
    return is_own ? std::optional(maker) : std::nullopt;
  }

  // A number for each channel, so many axes before the last.
  bool is_of_channels(const Value& value, int64_t channels, size_t axes_behind) const {
    const ValueCover& v = cover_.of(value);
    return is_weight(value) && v.element == ElementType::Float32 && v.stored == ElementType::Float32 &&
           v.count() == channels && v.dims.size() > axes_behind && v.dims[v.dims.size() - 1 - axes_behind] == channels;
  }

  bool is_gate(const Value& value, const ValueCover& source, ElementType type) const {
    const ValueCover& v = cover_.of(value);
    return !is_weight(value) && v.stored == type && !v.is_kept && v.element == ElementType::Float32 &&
           v.dims == std::vector<int64_t>{source.dims[0], source.dims[1], 1, 1} &&
           cover_.nodes[cover_.id_of(value.node.get())].role != Role::Input;
  }

  void look_before(uint32_t library) {
    const ElementType type = library_types(cover_, library).operands;
    PrologueCover found{.source = cover_.node(library).inputs[0]};
    if (const auto maker = own_maker(found.source, type)) {
      const std::optional<Activation> activation = library_activation(cover_.node(*maker));
      if (activation && (activation->kind == ActivationKind::Relu || activation->kind == ActivationKind::Clip)) {
        found.prologue.activation = activation;
        take(found, *maker, 0);
      }
    }
    if (!take_normalization(found, type)) take_factors(found, type);
    const ValueCover& source = cover_.of(found.source);
    const bool lies_well = source.stored == type && !source.is_kept && source.layout.is_channels_last() &&
                           source.dims == cover_.of(cover_.node(library).inputs[0]).dims && !is_weight(found.source);
    if (found.operands.empty() || !lies_well) return;
    const uint32_t last = found.nodes.back();
    cover_.prologues[library] = std::move(found);
    cover_.open.push_back({last, FusionWay::Before});
    const auto way = cover_.ways.find(last);
    if (way != cover_.ways.end() && way->second == FusionWay::Before) take_prologue(cover_, library);
  }

  // The node before what was found so far, of which an input becomes the source.
  void take(PrologueCover& found, uint32_t node, size_t input) const {
    found.nodes.insert(found.nodes.begin(), node);
    found.source = cover_.node(node).inputs[input];
  }

  static int add_operand(PrologueCover& found, const Value& value) {
    found.operands.push_back(value);
    return static_cast<int>(found.operands.size()) - 1;
  }

  bool take_normalization(PrologueCover& found, ElementType type) const {
    const auto maker = own_maker(found.source, type);
    if (!maker || !cover_.node(*maker).is(OpKind::BatchNormalization)) return false;
    const Node& node = cover_.node(*maker);
    const int64_t channels = cover_.of(found.source).dims[kChannelAxis];
    for (size_t i = 1; i < node.inputs.size(); i++)
      if (!node.inputs[i] || !is_of_channels(node.inputs[i], channels, 0)) return false;
    Prologue& p = found.prologue;
    p.scale = add_operand(found, node.inputs[1]), p.shift = add_operand(found, node.inputs[2]);
    p.mean = add_operand(found, node.inputs[3]), p.variance = add_operand(found, node.inputs[4]);
    p.epsilon = real_or(node, "epsilon", 1e-5);
    take(found, *maker, 0);
    return true;
  }

  // x gates, alone; or x scale + shift, of which one may be missing.
  void take_factors(PrologueCover& found, ElementType type) const {
    const ValueCover& image = cover_.of(found.source);
    const int64_t channels = image.dims[kChannelAxis];
    for (const OpKind op : {OpKind::Add, OpKind::Mul}) {
      const auto maker = own_maker(found.source, type);
      if (!maker || !cover_.node(*maker).is(op)) continue;
      const Node& node = cover_.node(*maker);
      for (size_t of = 0; of < 2; of++) {
        const Value &other = node.inputs[of], &source = node.inputs[1 - of];
        if (cover_.of(source).dims != image.dims) continue;
        if (is_of_channels(other, channels, kRank - 1 - kChannelAxis)) {
          (op == OpKind::Add ? found.prologue.shift : found.prologue.scale) = add_operand(found, other);
        } else if (op == OpKind::Mul && found.nodes.empty() && is_gate(other, image, type)) {
          found.prologue.gates = add_operand(found, other);
        } else {
          continue;
        }
        take(found, *maker, 1 - of);
        break;
      }
    }
  }

  Cover& cover_;
};

}  // namespace

void take_prologue(Cover& cover, uint32_t library) {
  cover.nodes[library].has_prologue = true;
  for (const uint32_t node : cover.prologues.at(library).nodes) {
    cover.nodes[node].role = Role::Covered;
    cover.nodes[node].owner = library;
  }
}

void find_prologues(Cover& cover) { PrologueFinder(cover).run(); }

bool has_prologue_of_tiles(const Plan& plan, const Kernel& kernel) {
  if (!kernel.prologue || kernel.prologue->gates < 0) return true;
  // Of several images, one after another; in pairs.
  const Buffer& gates = plan.buffer(kernel.input_buffers[static_cast<size_t>(kernel.prologue->gates)]);
  const bool is_packed = gates.dims[0] == 1 || gates.layout.line() == 0;
  return is_packed && gates.dims[1] % 2 == 0 && gates.offset % 4 == 0;
}

}  // namespace gopt::planner
