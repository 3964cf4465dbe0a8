// Which nodes are library calls, and which of their users are done by the same call before the result is stored.
#include <algorithm>
#include <cmath>
#include <set>

#include "composed_activation.h"
#include "cover.h"
#include "gopt/node_attributes.h"
#include "node_work.h"

namespace gopt::planner {
namespace {

class LibraryChooser {
 public:
  explicit LibraryChooser(Cover& cover) : cover_(cover) {}

  void run() {
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) {
      if (cover_.nodes[id].role != Role::Generated) continue;
      if (is_convolution(id)) cover_.nodes[id].role = Role::Convolution;
      if (!is_matrix_product(id)) continue;
      cover_.nodes[id].role = Role::MatrixProduct;
      cover_.nodes[id].quantized = quantized_weights(cover_, cover_.node(id));
    }
    for (uint32_t id = 0; id < cover_.nodes.size(); id++)
      if (is_library(id)) cover_.nodes[id].limit = extend(id);
  }

 private:
  bool is_library(uint32_t id) const {
    return cover_.nodes[id].role == Role::Convolution || cover_.nodes[id].role == Role::MatrixProduct;
  }
  bool is_weight(const Value& value) const { return cover_.nodes[cover_.id_of(value.node.get())].weight_only; }
  bool has_library_type(const Value& value) const {
    return is_library_type(cover_.of(value).element, cover_.options.target.kind);
  }

  // One to three axes; the bias is constant.
  bool is_convolution(uint32_t id) const {
    const Node& node = cover_.node(id);
    const bool cpu = cover_.options.target.kind == TargetKind::Cpu;
    if (!node.is(OpKind::Conv) && !node.is(OpKind::ConvTranspose)) return false;
    if (!has_library_type(node.inputs[0]) || !has_number_attributes(node) || !has_own_pads(node)) return false;
    if (cpu && is_factor_a_channel(id)) return false;
    const size_t rank = cover_.of(node.inputs[0]).dims.size();
    if (rank < 3 || rank > 5) return false;
    if (cover_.of(node.inputs[0]).is_empty() || cover_.of(node.inputs[1]).is_empty() ||
        cover_.values[cover_.nodes[id].first_value].is_empty())
      return false;
    return node.inputs.size() < 3 || !node.inputs[2] || is_weight(node.inputs[2]);
  }

  // A number by which a channel is multiplied for each channel of the result: loops of our own do that with what is
  // around it.
  bool is_factor_a_channel(uint32_t id) const {
    const Node& node = cover_.node(id);
    const std::vector<int64_t>&x = cover_.of(node.inputs[0]).dims, &w = cover_.of(node.inputs[1]).dims;
    const std::vector<int64_t>& y = cover_.values[cover_.nodes[id].first_value].dims;
    if (!node.is(OpKind::Conv) || w.size() < 3 || x.size() != w.size()) return false;
    const bool is_one_tap = std::all_of(w.begin() + 1, w.end(), [](int64_t extent) { return extent == 1; });
    const bool has_same_positions = x[0] == y[0] && std::equal(x.begin() + 2, x.end(), y.begin() + 2, y.end());
    return is_one_tap && has_same_positions && int_or(node, "group", 1) == x[1];
  }

  bool is_matrix_product(uint32_t id) const {
    const Node& node = cover_.node(id);
    if (!node.is(OpKind::MatMul) && !node.is(OpKind::Gemm)) return false;
    const ValueCover &a = cover_.of(node.inputs[0]), &b = cover_.of(node.inputs[1]);
    // A few rows are a matter of memory, not of arithmetic: loops of our own take what is around them in. Of more
    // weights than a core's cache holds those of the library read each once, in order.
    constexpr int64_t kFewRows = 2, kFewWeights = 1 << 18;
    const bool transposed = node.is(OpKind::Gemm) && node.attributes.contains("transA") &&
                            std::get<Index>(node.attributes.at("transA")) != Index(0);
    if (cover_.options.target.kind == TargetKind::Cpu && is_weight(node.inputs[1]) && b.dims.size() == 2 &&
        b.count() <= kFewWeights && !transposed && has_rows_up_to(kFewRows, a))
      return false;
    if (!has_library_type(node.inputs[0]) || a.dims.size() < 2 || b.dims.size() < 2 || a.is_empty() || b.is_empty())
      return false;
    if (node.is(OpKind::MatMul)) return true;
    if (node.inputs.size() < 3 || !node.inputs[2]) return true;
    // C becomes an epilogue: a vector of weights, or a whole matrix.
    const auto beta = node.attributes.find("beta");
    if (beta != node.attributes.end() && std::get<double>(beta->second) != 1) return false;
    return is_bias(node.inputs[2], cover_.values[cover_.nodes[id].first_value].shape.back()) ||
           cover_.of(node.inputs[2]).shape == cover_.values[cover_.nodes[id].first_value].shape;
  }

  // Where padding follows from the sizes, loops of our own work it out.
  bool has_own_pads(const Node& node) const {
    const auto automatic = node.attributes.find("auto_pad");
    const bool follows = (automatic != node.attributes.end() && std::get<std::string>(automatic->second) != "NOTSET") ||
                         node.attributes.contains("output_shape");
    return !node.is(OpKind::ConvTranspose) || !follows || cover_.options.target.open.empty();
  }

  // At any size.
  static bool has_rows_up_to(int64_t count, const ValueCover& matrix) {
    Index rows(1);
    for (size_t d = 0; d + 1 < matrix.shape.size(); d++) rows = rows * matrix.shape[d];
    return matrix.is_empty() || (rows.is_constant() && rows.constant() <= count);
  }

  // A vector of weights along the last axis.
  bool is_bias(const Value& value, const Index& width) const {
    const ValueCover& v = cover_.of(value);
    return is_weight(value) && has_library_type(value) && !v.shape.empty() && v.shape.back() == width &&
           v.elements() == width;
  }

  // Takes epilogues as long as there are any; what ends them.
  FusionLimit extend(uint32_t id) {
    if (cover_.options.target.without.contains(kEpilogues)) return FusionLimit::SwitchedOff;
    NodeCover& own = cover_.nodes[id];
    if (own.integers) return own.limit;  // integers.cc
    const bool product = own.role == Role::MatrixProduct;
    bool biased = cover_.node(id).inputs.size() > 2 && cover_.node(id).inputs[2], added = false;
    uint32_t last = id;
    if (cover_.node(id).is(OpKind::Gemm) && biased &&
        !is_bias(cover_.node(id).inputs[2], cover_.values[own.first_value].shape.back()))
      added = true;
    while (true) {
      std::vector<uint32_t> shapes;
      const ValueCover& value = past_shapes(id, cover_.values[cover_.nodes[last].first_value], shapes);
      if (value.is_output) return FusionLimit::Output;
      if (value.uses.empty()) return FusionLimit::Unused;
      const uint32_t maker = shapes.empty() ? last : shapes.back();
      if (value.uses.size() > 1 && take_composed(id, maker, shapes)) return FusionLimit::ActivationLast;
      if (value.uses.size() != 1) return FusionLimit::SeveralUsers;
      const uint32_t next = value.uses[0].node;
      if (is_library(next)) return FusionLimit::LibraryUser;
      if (cover_.nodes[next].role != Role::Generated) return FusionLimit::UserNoEpilogue;
      EpilogueStep step{Epilogue::Kind::Activation, next, -1, shapes};
      if (cover_.node(next).is(OpKind::Add)) {
        step.operand = 1 - value.uses[0].position;
        if (product && !biased && !added && is_bias(cover_.node(next).inputs[step.operand], value.shape.back()) &&
            cover_.values[cover_.nodes[next].first_value].shape == value.shape) {
          step.kind = Epilogue::Kind::Bias;
          biased = true;
        } else if (!added && can_add(id, next, step.operand, value)) {
          step.kind = Epilogue::Kind::AddTensor;
          added = true;
        } else {
          return FusionLimit::UserNoEpilogue;
        }
      } else if (const auto activation = library_activation(cover_.node(next))) {
        step.activation = *activation;
      } else {
        return FusionLimit::UserNoEpilogue;
      }
      take(id, step);
      last = next;
      if (step.kind == Epilogue::Kind::Activation) return FusionLimit::ActivationLast;
    }
  }

  // A product of rows is the same memory in other shapes, as long as a row is the last axis: the value that a step may
  // follow, and the nodes that were passed on the way to it.
  const ValueCover& past_shapes(uint32_t id, const ValueCover& made, std::vector<uint32_t>& passed) const {
    const bool is_of_rows =
        cover_.nodes[id].role == Role::MatrixProduct && cover_.of(cover_.node(id).inputs[1]).dims.size() == 2;
    const ValueCover* value = &made;
    while (is_of_rows && !value->is_output && value->uses.size() == 1) {
      const uint32_t next = value->uses[0].node;
      const ValueCover& shaped = cover_.values[cover_.nodes[next].first_value];
      const bool is_shape = cover_.nodes[next].role == Role::Generated && work_of(cover_.node(next)).keeps_order &&
                            !shaped.shape.empty() && shaped.shape.back() == made.shape.back();
      if (!is_shape) break;
      passed.push_back(next);
      value = &shaped;
    }
    return *value;
  }

  // x, which a node makes, times a function of x, where nobody else uses what lies between. Whether it is there.
  bool take_composed(uint32_t id, uint32_t maker, const std::vector<uint32_t>& shapes) {
    constexpr size_t kMostNodes = 12;
    const Value x{cover_.graph.nodes()[maker], 0};
    std::set<uint32_t> reached;
    const auto reach = [&](const ValueCover& value) {
      for (const Use& use : value.uses) reached.insert(use.node);
    };
    reach(cover_.of(x));
    for (size_t tried = 0; tried < kMostNodes && !reached.empty(); tried++) {
      const uint32_t node = *reached.begin();
      reached.erase(reached.begin());
      if (cover_.nodes[node].role != Role::Generated || cover_.node(node).outputs.size() != 1) continue;
      const auto composed = composed_activation(x, cover_.node(node));
      if (!composed) {
        reach(cover_.values[cover_.nodes[node].first_value]);
        continue;
      }
      std::set<uint32_t> all{node};
      for (const Node* inner : composed->inner) all.insert(cover_.id_of(inner));
      if (!is_closed(cover_.of(x), node, all)) return false;
      all.erase(node);
      EpilogueStep step{Epilogue::Kind::Activation, node, -1, shapes, composed->activation};
      step.inner.insert(step.inner.end(), all.begin(), all.end());
      take(id, step);
      return true;
    }
    return false;
  }

  // Whether x and what is made of it on the way to the last node are used by these nodes alone, element by element.
  bool is_closed(const ValueCover& x, uint32_t last, const std::set<uint32_t>& nodes) const {
    const auto is_own = [&](const ValueCover& value) {
      return !value.is_output &&
             std::ranges::all_of(value.uses, [&](const Use& use) { return nodes.contains(use.node); });
    };
    return is_own(x) && std::ranges::all_of(nodes, [&](uint32_t node) {
             const ValueCover& made = cover_.values[cover_.nodes[node].first_value];
             return cover_.nodes[node].role == Role::Generated && made.shape == x.shape && made.element == x.element &&
                    (node == last || is_own(made));
           });
  }

  void take(uint32_t id, const EpilogueStep& step) {
    cover_.nodes[id].epilogues.push_back(step);
    const auto own = [&](uint32_t node) {
      cover_.nodes[node].role = Role::Epilogue;
      cover_.nodes[node].owner = id;
    };
    std::ranges::for_each(step.inner, own);
    own(step.node);
  }

  // The other operand has the same shape and is there in time: made before, or by no library call that would take the
  // addition.
  bool can_add(uint32_t id, uint32_t add, int operand, const ValueCover& value) const {
    const Value& other = cover_.node(add).inputs[operand];
    const ValueCover& v = cover_.of(other);
    if (v.shape != value.shape || v.element != value.element) return false;
    const uint32_t maker = cover_.id_of(other.node.get());
    return !is_library(maker) || maker < id;
  }

  Cover& cover_;
};

}  // namespace

namespace {

std::optional<Activation> activation_of(const Node& node) {
  switch (node.op) {
    case OpKind::HardSwish: return Activation{ActivationKind::HardSwish};
    case OpKind::Relu: return Activation{ActivationKind::Relu};
    case OpKind::LeakyRelu: return Activation{ActivationKind::LeakyRelu, real_or(node, "alpha", 0.01)};
    case OpKind::Clip:
      return Activation{ActivationKind::Clip, real_or(node, "min", -INFINITY), real_or(node, "max", INFINITY)};
    case OpKind::Sigmoid: return Activation{ActivationKind::Sigmoid};
    case OpKind::Tanh: return Activation{ActivationKind::Tanh};
    case OpKind::Elu: return Activation{ActivationKind::Elu, real_or(node, "alpha", 1)};
    case OpKind::Gelu: {
      const auto it = node.attributes.find("approximate");
      const bool by_tanh = it != node.attributes.end() && std::get<std::string>(it->second) == "tanh";
      return Activation{by_tanh ? ActivationKind::GeluTanh : ActivationKind::GeluErf};
    }
    default: return std::nullopt;  // a kernel of its own
  }
}

}  // namespace

std::optional<Activation> library_activation(const Node& node) {
  const auto activation = activation_of(node);
  return activation && is_of_libraries(*activation) ? activation : std::nullopt;
}

bool is_library_type(ElementType type, TargetKind target) {
  if (target == TargetKind::Cpu) return type == ElementType::Float32 || type == ElementType::BFloat16;
  return type == ElementType::Float32 || (target == TargetKind::Cuda && is_half(type));
}

void choose_library_kernels(Cover& cover) { LibraryChooser(cover).run(); }

namespace {

// What activations cost a library kernel is lost in its loads and stores, but for those with a function in them.
bool is_dear(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::Relu:
    case ActivationKind::LeakyRelu:
    case ActivationKind::Clip:
    case ActivationKind::HardSwish: return false;
    case ActivationKind::Sigmoid:
    case ActivationKind::Tanh:
    case ActivationKind::Elu:
    case ActivationKind::GeluErf:
    case ActivationKind::GeluTanh:
    case ActivationKind::Swish: return true;
  }
  return true;
}

bool is_open(const EpilogueStep& step) {
  if (step.kind == Epilogue::Kind::Activation) return is_dear(step.activation);
  return step.kind == Epilogue::Kind::AddTensor;
}

// The steps from this one on are nodes like others. What was to be stored in full width is so before them, too.
void cut(Cover& cover, NodeCover& library, std::vector<EpilogueStep>::iterator from) {
  const ValueCover& end = cover.values[cover.nodes[library.epilogues.back().node].first_value];
  for (auto step = from; step != library.epilogues.end(); ++step) {
    cover.nodes[step->node].role = Role::Generated;
    for (const uint32_t inner : step->inner) cover.nodes[inner].role = Role::Generated;
  }
  library.epilogues.erase(from, library.epilogues.end());
  library.limit = FusionLimit::Costs;
  const uint32_t last =
      library.epilogues.empty() ? static_cast<uint32_t>(&library - cover.nodes.data()) : library.epilogues.back().node;
  ValueCover& stored = cover.values[cover.nodes[last].first_value];
  stored.stored = end.stored;
  stored.is_kept = end.is_kept;
}

}  // namespace

void cut_epilogues(Cover& cover) {
  for (uint32_t id = static_cast<uint32_t>(cover.nodes.size()); id-- > 0;) {
    NodeCover& own = cover.nodes[id];
    for (const EpilogueStep& step : own.epilogues)
      if (is_open(step)) cover.open.push_back({step.node, FusionWay::Apart});
    const auto is_cut = [&](const EpilogueStep& step) {
      const auto way = cover.ways.find(step.node);
      return way != cover.ways.end() && way->second == FusionWay::Apart;
    };
    const auto from = std::find_if(own.epilogues.begin(), own.epilogues.end(), is_cut);
    if (from != own.epilogues.end()) cut(cover, own, from);
  }
}

// Blocked tensors have lanes of channels: there loops of our own are as fast, and take in what is around them.
void choose_pooling(Cover& cover) {
  if (cover.options.target.kind != TargetKind::Cpu) return;
  for (uint32_t id = 0; id < cover.nodes.size(); id++) {
    const Node& node = cover.node(id);
    if (cover.nodes[id].role != Role::Generated || !(node.is(OpKind::MaxPool) || node.is(OpKind::AveragePool)))
      continue;
    const ValueCover &x = cover.of(node.inputs[0]), &y = cover.values[cover.nodes[id].first_value];
    const size_t rank = x.dims.size();
    const bool is_of_floats = x.element == ElementType::Float32 && x.stored == y.stored;
    if (has_number_attributes(node) && is_of_floats && rank >= 3 && rank <= 5 && node.outputs.size() == 1 &&
        !y.is_empty() && x.layout.is_plain() && y.layout.is_plain())
      cover.nodes[id].role = Role::Pooling;
  }
}

}  // namespace gopt::planner
