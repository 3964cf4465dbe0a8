#include "mutation/mutant_alphabet.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "gopt/node_attributes.h"
#include "mutation/extent_names.h"
#include "mutation/operator_line.h"

namespace gopt::driver {
namespace {

constexpr size_t kMostOfAClass = 2;  // variables of one type; each more has many more namings
constexpr int64_t kLongestReach = 14;

bool is_enumerable(const TensorType& type) { return type.element == ElementType::Float32 && type.has_static_shape(); }

class AlphabetWriter {
 public:
  AlphabetWriter(const Graph& graph, const std::set<NodeId>& nodes) : graph_(graph), nodes_(nodes) {}

  std::optional<std::string> run() {
    for (NodeId id : nodes_)
      if (!take(*graph_.node(id))) return std::nullopt;
    ExtentNames names(windows(), has_products_);
    add_extents(names);
    std::set<std::string> lines;
    for (NodeId id : nodes_) {
      const auto own = operator_lines(*graph_.node(id), weight_inputs(*graph_.node(id)), names);
      if (!own) return std::nullopt;
      lines.insert(own->begin(), own->end());
    }
    for (const std::string& line : composed_windows(chains(), names)) lines.insert(line);
    for (const std::string& line : lines_of_operands(names)) lines.insert(line);
    return fmt::format("family {}\n{}{}{}max-vars {}\nmax-weight-ops {}\n{}\n", family_name(),
                       has_padding_ ? "partial\n" : "", names.sizes(), classes(names), kMostVariables,
                       has_several_weights_ ? 2 : 1, fmt::join(lines, "\n"));
  }

 private:
  static constexpr int kMostVariables = 5;
  struct Operand {
    Value value;
    bool is_weight, is_kernel;  // kernel: of a window, whose extents beyond the second axis are numbers
  };

  // Looks at a node; whether it can be enumerated.
  bool take(const Node& node) {
    if (node.opaque || node.inputs.empty() || node.inputs.size() > kMostInputs) return false;
    for (const TensorType& type : node.outputs)
      if (!is_enumerable(type)) return false;
    has_padding_ = has_padding_ || (is_window(node) && has_pads(node));
    has_products_ = has_products_ || op_info(node.op).find_attribute("shape") || int_or(node, "group", 1) > 1;
    for (size_t k = 0; k < node.inputs.size(); k++) {
      const Value& input = node.inputs[k];
      if (!input || !is_enumerable(input.type())) return false;
      const NodeId id = graph_.id_of(input.node);
      if (nodes_.contains(id)) continue;
      const bool is_weight = graph_.depends_on_weights_only(id);
      if (is_weight && is_scalar(input)) {
        constants_.insert(input.node->tensor.to_doubles().front());
        continue;
      }
      if (std::ranges::none_of(operands_, [&](const Operand& o) { return o.value == input; }))
        operands_.push_back({input, is_weight, is_window(node) && k == 1});
    }
    return true;
  }
  static bool is_scalar(const Value& value) { return value.node->is(OpKind::Constant) && value.type().shape->empty(); }

  ExtentNames::Windows windows() const {
    ExtentNames::Windows windows;
    int64_t reach = 2;
    for (NodeId id : nodes_) {
      const Node& node = *graph_.node(id);
      if (!is_window(node)) continue;
      int64_t own = 0;
      for (const auto& [extent, dilation, stride] : windows_of(node)) {
        windows.step = std::lcm(windows.step, std::lcm(dilation, stride));
        own = std::max(own, (extent - 1) * dilation);
      }
      reach += own;
    }
    windows.reach = std::min(reach, kLongestReach);
    return windows;
  }

  ExtentRole role(const Operand& operand, size_t axis) const {
    if (operand.is_weight) return ExtentRole::Plain;
    if (axis == 0) return ExtentRole::Batch;
    const bool has_windows = std::ranges::any_of(nodes_, [&](NodeId id) { return is_window(*graph_.node(id)); });
    return has_windows && axis > 1 ? ExtentRole::Spatial : ExtentRole::Plain;
  }
  static bool is_number(const Operand& operand, size_t axis) { return operand.is_kernel && axis > 1; }

  void add_extents(ExtentNames& names) const {
    for (const Operand& operand : operands_) {
      const std::vector<int64_t> dims = operand.value.type().static_shape();
      for (size_t axis = 0; axis < dims.size(); axis++)
        if (!is_number(operand, axis)) names.add(role(operand, axis), dims[axis]);
    }
    for (NodeId id : nodes_) {
      const Node& node = *graph_.node(id);
      names.add(ExtentRole::Plain, int_or(node, "group", 1));
      if (op_info(node.op).find_attribute("shape"))
        for (int64_t extent : node.outputs.front().static_shape()) names.add(ExtentRole::Plain, extent);
    }
  }

  std::string type_text(const Operand& operand, ExtentNames& names) const {
    const std::vector<int64_t> dims = operand.value.type().static_shape();
    std::vector<std::string> texts;
    for (size_t axis = 0; axis < dims.size(); axis++)
      texts.push_back(is_number(operand, axis) ? std::to_string(dims[axis])
                                               : names.text(role(operand, axis), dims[axis]));
    return fmt::format("[{}]", fmt::join(texts, ","));
  }

  // Operands by their types.
  std::string classes(ExtentNames& names) const {
    std::map<std::pair<bool, std::string>, size_t> counts;
    for (const Operand& operand : operands_) counts[{operand.is_weight, type_text(operand, names)}]++;
    std::string lines;
    for (const auto& [type, count] : counts)
      lines +=
          fmt::format("{} {} {}\n", type.first ? "weight" : "activation", std::min(count, kMostOfAClass), type.second);
    if (!constants_.empty()) lines += fmt::format("constant {}\n", fmt::join(constants_, " "));
    return lines;
  }

  // From which input on all are weights; the number of inputs where the last is none.
  size_t weight_inputs(const Node& node) const {
    size_t from = node.inputs.size();
    while (from > 0 && graph_.depends_on_weights_only(graph_.id_of(node.inputs[from - 1].node))) from--;
    return from;
  }

  std::vector<std::pair<const Node*, const Node*>> chains() const {
    std::vector<std::pair<const Node*, const Node*>> found;
    for (NodeId id : nodes_)
      for (const Value& input : graph_.node(id)->inputs)
        if (nodes_.contains(graph_.id_of(input.node))) found.emplace_back(input.node.get(), graph_.node(id).get());
    return found;
  }

  // What puts operands together and takes them apart: along each axis in which alone two of a kind may differ.
  std::vector<std::string> lines_of_operands(ExtentNames& names) {
    std::vector<std::string> lines;
    for (size_t a = 0; a < operands_.size(); a++)
      for (size_t b = a + 1; b < operands_.size(); b++) {
        const Operand &own = operands_[a], &other = operands_[b];
        if (own.is_weight != other.is_weight) continue;
        has_several_weights_ = has_several_weights_ || own.is_weight;
        for (size_t axis : joinable_axes(own, other)) {
          lines.push_back(fmt::format("op Concat {}inputs=2 axis={}", own.is_weight ? "weights-only " : "", axis));
          if (!own.is_weight && own.value.type() == other.value.type()) {
            const std::string part = names.text(role(own, axis), own.value.type().static_shape()[axis]);
            lines.push_back(fmt::format("op Split outputs=2 axis={} split=[{},{}]", axis, part, part));
          }
        }
      }
    for (const std::string& line : lines_of_siblings(names)) lines.push_back(line);
    return lines;
  }
  static std::vector<size_t> joinable_axes(const Operand& own, const Operand& other) {
    constexpr size_t kOuterAxes = 2;  // batches or outputs, channels or inputs
    const std::vector<int64_t> dims = own.value.type().static_shape(), its = other.value.type().static_shape();
    std::vector<size_t> axes;
    if (dims.size() != its.size()) return axes;
    for (size_t axis = 0; axis < std::min(dims.size(), kOuterAxes); axis++) {
      bool agree = true;
      for (size_t k = 0; k < dims.size(); k++) agree = agree && (k == axis || dims[k] == its[k]);
      if (agree) axes.push_back(axis);
    }
    return axes;
  }

  // Results of operators that share an input, taken out of one that computes both.
  std::vector<std::string> lines_of_siblings(ExtentNames& names) const {
    std::vector<std::string> lines;
    for (NodeId a : nodes_)
      for (NodeId b : nodes_) {
        const Node &own = *graph_.node(a), &other = *graph_.node(b);
        if (a >= b || own.op != other.op || own.outputs.size() != 1 || own.inputs.size() < 2) continue;
        const std::vector<int64_t> dims = own.outputs[0].static_shape(), its = other.outputs[0].static_shape();
        if (own.inputs[0] != other.inputs[0] || dims.size() != its.size() || dims.size() < 2) continue;
        const size_t axis = is_window(own) ? 1 : dims.size() - 1;
        lines.push_back(fmt::format("op Split outputs=2 axis={} split=[{},{}]", axis, names.text_of_any(dims[axis]),
                                    names.text_of_any(its[axis])));
      }
    return lines;
  }

  std::string family_name() const {
    std::string name = "mutants";
    for (NodeId id : nodes_) {
      name += '-';
      for (char letter : op_info(graph_.node(id)->op).name)
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return name;
  }

  static constexpr size_t kMostInputs = 5;  // of an operator of an alphabet
  const Graph& graph_;
  const std::set<NodeId>& nodes_;
  std::vector<Operand> operands_;
  std::set<double> constants_;
  bool has_padding_ = false, has_products_ = false, has_several_weights_ = false;
};

}  // namespace

std::optional<std::string> mutant_alphabet(const Graph& graph, const std::set<NodeId>& nodes) {
  return AlphabetWriter(graph, nodes).run();
}

}  // namespace gopt::driver
