// What values are stored as where the precision is of 16 bits: those that kernels hand to each other lie in 16 bits,
// but for what must not be rounded.
#include <algorithm>

#include "cover.h"
#include "node_work.h"

namespace gopt::planner {
namespace {

class StorageChooser {
 public:
  explicit StorageChooser(Cover& cover)
      : cover_(cover),
        narrow_(storage_of(cover.options.target.precision)),
        is_wide_(cover.values.size()),
        is_of_convolution_(cover.values.size()) {}

  void run() {
    if (narrow_ == ElementType::Float32) return;
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) look_at(id);
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;) hand_back(id);
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) hand_on(id);
    for (uint32_t value = 0; value < cover_.values.size(); value++)
      if (!is_wide_[value]) cover_.values[value].stored = narrow_;
  }

 private:
  static bool is_library(Role role) {
    return role == Role::Convolution || role == Role::MatrixProduct || role == Role::Attention;
  }

  bool is_for_cuda() const { return cover_.options.target.kind == TargetKind::Cuda; }

  bool is_residual(const ValueCover& value) const {
    return std::ranges::any_of(value.uses, [&](const Use& use) {
      const NodeCover& user = cover_.nodes[use.node];
      if (user.role != Role::Epilogue || cover_.nodes[user.owner].role != Role::MatrixProduct) return false;
      return std::ranges::any_of(cover_.nodes[user.owner].epilogues, [&](const EpilogueStep& step) {
        return step.node == use.node && step.operand == use.position;
      });
    });
  }

  // Matrices that loops of our own multiply by on a CPU: they are bound by reading these.
  bool is_matrix_of_loops(const ValueCover& value) const {
    return !is_for_cuda() && value.dims.size() == 2 && !value.uses.empty() &&
           std::ranges::all_of(value.uses, [&](const Use& use) {
             const Node& node = cover_.node(use.node);
             return use.position == 1 && (node.is(OpKind::MatMul) || node.is(OpKind::Gemm)) &&
                    cover_.nodes[use.node].role == Role::Generated;
           });
  }

  // What is the graph's: inputs, which are not ours to round, outputs, weights as other loops of our own read them,
  // what is no float. What was seen to leave the range of 16 bits. On a CPU also products that loops of ours alone
  // read, scores and sums before a normalization, since oneDNN stores floats as fast, and what is added to products: in
  // such a stream errors add up.
  void look_at(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    const bool is_matrix = own.weight_only && is_matrix_of_loops(cover_.values[own.first_value]);
    const bool is_given = (own.weight_only && !is_matrix) ||
                          (own.role == Role::Input && !cover_.options.has_free_borders) ||
                          own.role == Role::Unplanned || own.role == Role::External || own.role == Role::Whole;
    const Role maker = own.role == Role::Epilogue ? cover_.nodes[own.owner].role : own.role;
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++) {
      const uint32_t index = own.first_value + static_cast<uint32_t>(o);
      ValueCover& value = cover_.values[index];
      const bool is_end = value.is_output && !cover_.options.has_free_borders;
      const Value key{cover_.graph.nodes()[id], static_cast<int>(o)};
      is_of_convolution_[index] = maker == Role::Convolution && is_for_cuda();
      value.is_kept = cover_.options.target.in_fp32.contains(key_of(key)) && value.element == ElementType::Float32;
      is_wide_[index] =
          value.element != ElementType::Float32 || integers_of(cover_, id) || is_given || value.is_kept ||
          is_statistic(id, value) || (is_end && !is_of_convolution_[index]) ||
          (!is_for_cuda() && ((maker == Role::MatrixProduct && !feeds_library(value, true)) || is_residual(value)));
    }
  }

  // Means, variances and other sums of many, which are small beside what they are of, and lose by rounding.
  bool is_statistic(uint32_t id, const ValueCover& value) const {
    constexpr int64_t kMany = 8;
    const Node& node = cover_.node(id);
    if (cover_.nodes[id].role != Role::Generated || !work_of(node).reduces || !node.inputs[0]) return false;
    return cover_.of(node.inputs[0]).count() >= kMany * value.count() && !feeds_library(value);
  }
  // Through other shapes of it, and, where moves count, through what only moves it.
  bool feeds_library(const ValueCover& value, bool through_moves = false) const {
    return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      const Role role = cover_.nodes[use.node].role;
      if (is_library(role) || role == Role::Epilogue || role == Role::Covered) return true;
      const Node& node = cover_.node(use.node);
      const bool is_moved = through_moves && op_info(node.op).has(kDataMovement);
      return (is_moved || work_of(node).keeps_order) &&
             feeds_library(cover_.values[cover_.nodes[use.node].first_value], through_moves);
    });
  }

  // What a truth value or an integer is made of is not rounded, as far back as elements are only computed with or
  // moved; nor is what an output is only another shape of. cuDNN's convolutions make what they read.
  void hand_back(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    const Node& node = cover_.node(id);
    if (own.role != Role::Generated) return;
    bool decides = false, is_end = false;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      const uint32_t index = own.first_value + static_cast<uint32_t>(o);
      const ValueCover& value = cover_.values[index];
      decides |= !is_floating(value.element) || decides_.contains(index);
      is_end |= is_wide_[index] && value.is_output && work_of(node).keeps_order;
    }
    const bool is_moved = op_info(node.op).has(kElementwise) || op_info(node.op).has(kDataMovement);
    for (const Value& input : node.inputs) {
      if (!input) continue;
      const uint32_t index = cover_.index_of(input);
      const bool is_first = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [](const TensorType& type) { return !is_floating(type.element); });
      const bool follows = (decides && (is_first || is_moved)) || (is_end && cover_.values[index].uses.size() == 1);
      if (!follows || is_of_convolution_[index] || cover_.values[index].element != ElementType::Float32) continue;
      if (decides) decides_.insert(index);
      is_wide_[index] = true;
    }
  }

  // Another shape of what is stored in 32 bits is the same memory. A library kernel that reads what left the range of
  // 16 bits computes in 32.
  void hand_on(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    const Node& node = cover_.node(id);
    if (own.role == Role::Generated && work_of(node).keeps_order) {
      const uint32_t input = cover_.index_of(node.inputs[0]);
      if (!is_wide_[input] || cover_.nodes[cover_.id_of(node.inputs[0].node.get())].weight_only) return;
      is_wide_[own.first_value] = true;
      cover_.values[own.first_value].is_kept = cover_.values[input].is_kept;
    }
    if (!is_library(own.role)) return;
    const auto is_kept = [&](const Value& value) { return value && cover_.of(value).is_kept; };
    bool stays = std::any_of(node.inputs.begin(), node.inputs.end(), is_kept);
    for (const EpilogueStep& step : own.epilogues)
      stays |= step.operand >= 0 && is_kept(cover_.node(step.node).inputs[static_cast<size_t>(step.operand)]);
    const uint32_t end = own.epilogues.empty() ? id : own.epilogues.back().node;
    if (stays) is_wide_[cover_.nodes[end].first_value] = true;
  }

  Cover& cover_;
  ElementType narrow_;
  std::vector<bool> is_wide_, is_of_convolution_;
  std::set<uint32_t> decides_;
};

// What is kept for its range is multiplied as it is.
LibraryTypes attention_types(const Cover& cover, const AttentionCover& attention) {
  const ElementType result = cover.of(attention.result).stored, graph = cover.of(attention.query).element;
  bool is_kept = graph != ElementType::Float32;
  for (const Value& operand : {attention.query, attention.key, attention.value}) is_kept |= cover.of(operand).is_kept;
  return {is_kept ? graph : storage_of(cover.options.target.precision), result};
}

}  // namespace

LibraryTypes library_types(const Cover& cover, uint32_t id) {
  const NodeCover& own = cover.nodes[id];
  if (own.role == Role::Attention) return attention_types(cover, cover.attentions.at(id));
  const Node& node = cover.node(id);
  const uint32_t end = own.epilogues.empty() ? id : own.epilogues.back().node;
  const ElementType result = cover.values[cover.nodes[end].first_value].stored,
                    graph = cover.of(node.inputs[0]).element;
  const bool is_cuda = cover.options.target.kind == TargetKind::Cuda;
  const ElementType bias = is_cuda ? result : ElementType::Float32;
  if ((own.role == Role::Convolution && is_cuda) || graph != ElementType::Float32) return {result, result, bias};
  const bool is_kept =
      (own.quantized && !is_cuda) || cover.of(node.inputs[0]).is_kept || cover.of(node.inputs[1]).is_kept;
  return {is_kept ? ElementType::Float32 : storage_of(cover.options.target.precision), result, bias};
}

void choose_storage(Cover& cover) { StorageChooser(cover).run(); }

}  // namespace gopt::planner
