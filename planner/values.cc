// Extents, element types and uses of every value, and what makes a graph unplannable.
#include <algorithm>
#include <set>

#include "access.h"
#include "cover.h"
#include "gopt/node_attributes.h"
#include "gopt/wide_integers.h"
#include "meeting_extents.h"

namespace gopt::planner {

int64_t ValueCover::count() const { return element_count(dims); }
Index ValueCover::elements() const { return product_of(shape); }
bool ValueCover::is_empty() const { return elements() == Index(0); }

std::string describe(const Node& node) {
  const std::string op = node.opaque ? external_name(node) : op_info(node.op).name;
  std::string name = node.name;
  if (name.empty() && !node.output_names.empty()) name = node.output_names[0];
  return name.empty() ? "a node (" + op + ")" : "node `" + name + "` (" + op + ")";
}

bool is_small_constant(const Value& value) {
  return value.node->is(OpKind::Constant) && value.node->tensor.count() == 1 &&
         is_computable(value.node->tensor.type()) && !has_wide_integers(value.node->tensor);
}

namespace {

// What tolerant costs take symbols to be.
Environment assumed_sizes(const Graph& graph) {
  std::set<AtomId> leading, all;
  for (const Value& input : graph.inputs()) {
    const TensorType& type = input.type();
    if (!type.shape || type.shape->empty()) continue;
    if (auto symbol = (*type.shape)[0].as_atom()) leading.insert(*symbol);
  }
  for (const NodePtr& node : graph.nodes())
    for (const TensorType& type : node->outputs)
      if (type.shape)
        for (const Index& extent : *type.shape) collect_symbols(extent, all);
  Environment sizes;
  for (AtomId symbol : all) sizes[symbol] = leading.contains(symbol) ? 1 : 64;
  return sizes;
}

// Of extents that meet and may or may not be equal. Empty: there are none.
std::string why_undecided(const Node& node) {
  const auto meeting = undecided_extents(node);
  return meeting.empty() ? ""
                         : ": " + to_string(meeting[0].first) + " and " + to_string(meeting[0].second) +
                               " may be equal, or one of them 1";
}

class Describer {
 public:
  explicit Describer(Cover& cover) : cover_(cover) {}

  Status run() {
    const auto& nodes = cover_.graph.nodes();
    if (cover_.options.tolerant) cover_.sizes = assumed_sizes(cover_.graph);
    for (const auto& [symbol, size] : usual_sizes(cover_.options.target)) cover_.sizes[symbol] = size;
    cover_.nodes.resize(nodes.size());
    for (uint32_t id = 0; id < nodes.size(); id++) {
      cover_.node_ids[nodes[id].get()] = id;
      add_node(id, *nodes[id]);
    }
    for (const GraphOutput& output : cover_.graph.outputs()) {
      ValueCover& value = cover_.values[cover_.index_of(output.value)];
      value.is_output = true;
      if (!cover_.options.tolerant && !is_computable(value.element))
        add_cause(cover_.node_ids.at(output.value.node.get()), no_code(*output.value.node, value.element).message);
    }
    drop_causes_of_inputs();
    return cover_.without_code.empty() ? Status(Unit{}) : why_no_plan(cover_.without_code);
  }

 private:
  // Every node without code, so that all can be mended at once; not those that only take what such a node makes.
  void add_node(uint32_t id, const Node& node) {
    NodeCover& own = cover_.nodes[id];
    own.first_value = static_cast<uint32_t>(cover_.values.size());
    own.weight_only = cover_.graph.depends_on_weights_only(NodeId{id}) && !depends_on_sizes(node);
    own.role = node.is(OpKind::Input) ? Role::Input : own.weight_only ? Role::Weight : Role::Generated;
    if (node.is_whole()) {
      own.role = Role::Whole;
    } else if (node.is(OpKind::Opaque)) {
      own.role = cover_.options.tolerant ? Role::Unplanned : Role::External;
      const auto why = cover_.options.tolerant ? std::nullopt : why_no_call(cover_, cover_.graph.nodes()[id]);
      if (why) add_cause(id, describe(node) + *why);
    }
    if (!cover_.options.tolerant && node.is(OpKind::Gather))
      if (const auto beyond = index_beyond_axis(node))
        add_cause(id, describe(node) + ": index " + std::to_string(*beyond) + " lies beyond the axis of " +
                          to_string(node.inputs[0].type()));
    // Of what a function gives, what matters is known, or that it is not is said above.
    for (const TensorType& type : node.outputs)
      if (const Status status = add_value(own, node, type); !status.ok() && own.role != Role::External)
        add_cause(id, status.error().message);
    for (size_t i = 0; i < node.inputs.size(); i++)
      if (node.inputs[i]) cover_.values[cover_.index_of(node.inputs[i])].uses.push_back({id, static_cast<int>(i)});
  }

  // Of constant indices the first that is none of the axis, where anything is read.
  static std::optional<int64_t> index_beyond_axis(const Node& node) {
    const Shape& shape = *node.inputs[0].type().shape;
    const int64_t axis = int_or(node, "axis", 0);
    const Index& extent = shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
    const bool reads_any = std::ranges::find(*node.outputs[0].shape, Index(0)) == node.outputs[0].shape->end();
    if (!reads_any || !node.inputs[1].node->is(OpKind::Constant) || !extent.is_constant()) return std::nullopt;
    for (const int64_t index : node.inputs[1].node->tensor.to_ints())
      if (index >= extent.constant() || index < -extent.constant()) return index;
    return std::nullopt;
  }

  void add_cause(uint32_t id, const std::string& cause) {
    const auto has_none = [&](const Value& input) {
      return input && !input.node->is(OpKind::Input) && without_code_.contains(cover_.node_ids.at(input.node.get()));
    };
    const NodePtr& node = cover_.graph.nodes()[id];
    const bool follows = std::ranges::any_of(node->inputs, has_none);
    if (without_code_.insert(id).second) cover_.without_code.push_back({node, follows ? "" : cause});
  }

  // What is said of all that reads an input need not be said of the input.
  void drop_causes_of_inputs() {
    std::erase_if(cover_.without_code, [&](const NodeWithoutCode& own) {
      const uint32_t id = cover_.node_ids.at(own.node.get());
      const std::vector<NodeId>& users = cover_.graph.users()[id];
      return own.node->is(OpKind::Input) && !cover_.values[cover_.nodes[id].first_value].is_output && !users.empty() &&
             std::ranges::all_of(users,
                                 [&](NodeId user) { return without_code_.contains(static_cast<uint32_t>(user)); });
    });
  }

  // What is made of weights alone, but as much of it as an open extent says.
  bool depends_on_sizes(const Node& node) const {
    if (cover_.options.target.open.empty()) return false;
    const auto is_static = [](const TensorType& type) { return type.has_static_shape(); };
    const auto is_weight = [&](const Value& v) {
      return !v || cover_.nodes[cover_.node_ids.at(v.node.get())].weight_only;
    };
    return !has_number_attributes(node) || !std::ranges::all_of(node.outputs, is_static) ||
           !std::ranges::all_of(node.inputs, is_weight);
  }

  static Error no_code(const Node& node, ElementType element) {
    return {describe(node) + ": there is no code for tensors of type " + to_string(element)};
  }

  Status add_value(NodeCover& own, const Node& node, const TensorType& type) {
    ValueCover value;
    value.element = value.stored = type.element;
    const bool known = resolve(type, value.dims);
    if (known && !cover_.options.target.open.empty())
      value.shape = *type.shape;
    else
      value.shape.assign(value.dims.begin(), value.dims.end());
    const bool code = is_computable(type.element);
    cover_.values.push_back(std::move(value));
    if (cover_.options.tolerant) {
      if (!known || !code) own.role = Role::Unplanned;
    } else if (!known) {
      return Error{describe(node) + ": extents " + to_string(type) + " are not numbers" +
                   (cover_.options.target.open.empty() ? "" : ", nor follow from the extents that stay open") +
                   why_undecided(node) + "; fix them with --shape NAME=1x3x224x224"};
    } else if (!code && !own.weight_only) {
      return no_code(node, type.element);
    }
    return Unit{};
  }

  bool resolve(const TensorType& type, std::vector<int64_t>& dims) const {
    if (!type.shape) return false;
    for (const Index& extent : *type.shape) {
      const auto number = evaluate(extent, cover_.sizes);
      if (!number) return false;
      dims.push_back(*number);
    }
    return true;
  }

  Cover& cover_;
  std::set<uint32_t> without_code_;
};

}  // namespace

Status describe_values(Cover& cover) { return Describer(cover).run(); }

Result<Cover> describe_graph(const Graph& graph, const CoverOptions& options) {
  Cover cover;
  cover.graph = graph;
  cover.options = options;
  GOPT_RETURN_IF_ERROR(describe_values(cover));
  choose_attention(cover);
  choose_integer_kernels(cover);
  choose_library_kernels(cover);
  find_layout_classes(cover);
  choose_storage(cover);
  return cover;
}

Cover cover_with(Cover cover, CoverChoices choices) {
  cover.layouts = std::move(choices.layouts);
  cover.layout = choices.layout;
  cover.ways = std::move(choices.ways);
  cut_epilogues(cover);
  choose_layouts(cover);
  choose_pooling(cover);
  find_prologues(cover);
  choose_views(cover);
  choose_fusion(cover);
  return cover;
}

}  // namespace gopt::planner
