// Orders the nodes of a graph and imports them one by one.
#include <algorithm>
#include <queue>
#include <stdexcept>

#include "import_state.h"
#include "opaque.h"

namespace gopt::ir {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

struct Order {
  std::unordered_map<std::string, int> producers;  // by value name
  std::vector<std::vector<std::string>> reads;     // by node
};

Result<Order> read_names(const Nodes& nodes, NameScope& scope) {
  Order order;
  for (int i = 0; i < nodes.size(); i++) {
    const onnx::NodeProto& node = nodes[i];
    std::vector<std::string>& reads = order.reads.emplace_back();
    for (const std::string& name : node.input())
      if (!name.empty()) reads.push_back(name);
    const std::set<std::string> captured = captured_names(node);
    reads.insert(reads.end(), captured.begin(), captured.end());
    scope.used.insert(reads.begin(), reads.end());
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      if (scope.values.contains(name))
        return Error{describe(node) + " defines '" + name + "', which is an input or initializer already"};
      const auto [it, added] = order.producers.emplace(name, i);
      if (!added)
        return Error{"value '" + name + "' is defined twice: by " + describe(nodes[it->second]) + " and by " +
                     describe(node)};
    }
  }
  for (int i = 0; i < nodes.size(); i++)
    for (const std::string& name : order.reads[static_cast<size_t>(i)])
      if (!order.producers.contains(name) && !scope.find(name))
        return Error{describe(nodes[i]) + " reads '" + name + "', which nothing defines"};
  return order;
}

// A cycle among nodes that could not be ordered, in words.
std::string describe_cycle(const Nodes& nodes, const Order& order, const std::vector<int>& waiting) {
  const auto blocked = [&](int i) { return waiting[static_cast<size_t>(i)] > 0; };
  int at = 0;
  while (!blocked(at)) at++;
  std::vector<int> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (const std::string& name : order.reads[static_cast<size_t>(at)]) {
      const auto it = order.producers.find(name);
      if (it == order.producers.end() || !blocked(it->second)) continue;
      at = it->second;
      break;
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(path.size(), 5); i++) text += (i ? " <- " : "") + describe(nodes[path[i]]);
  return text + (path.size() > 5 ? " <- ..." : "") + " <- " + describe(nodes[at]);
}

// File order wherever that is valid already.
Result<std::vector<int>> sort_nodes(const Nodes& nodes, const Order& order) {
  std::vector<int> waiting(static_cast<size_t>(nodes.size()));
  std::vector<std::vector<int>> users(waiting.size());
  for (size_t i = 0; i < waiting.size(); i++)
    for (const std::string& name : order.reads[i])
      if (const auto it = order.producers.find(name); it != order.producers.end()) {
        waiting[i]++;
        users[static_cast<size_t>(it->second)].push_back(static_cast<int>(i));
      }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < waiting.size(); i++)
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  std::vector<int> sorted;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    sorted.push_back(next);
    for (const int user : users[static_cast<size_t>(next)])
      if (--waiting[static_cast<size_t>(user)] == 0) ready.push(user);
  }
  if (sorted.size() < waiting.size()) return Error{"the graph has a cycle: " + describe_cycle(nodes, order, waiting)};
  return sorted;
}

// The type that the file declares must not contradict what was inferred.
Status check_declared(const ImportState& state, const std::string& name, const TensorType& type) {
  const auto it = state.declared.find(name);
  if (it == state.declared.end()) return Unit{};
  const TensorType& declared = it->second;
  if (declared.element == ElementType::Undefined || type.element == ElementType::Undefined) return Unit{};
  bool fits = declared.element == type.element;
  if (fits && declared.shape && type.shape) {
    fits = declared.shape->size() == type.shape->size();
    for (size_t axis = 0; fits && axis < type.shape->size(); axis++) {
      const Index& a = (*declared.shape)[axis];
      const Index& b = (*type.shape)[axis];
      fits = !a.is_constant() || !b.is_constant() || a == b;
    }
  }
  if (fits) return Unit{};
  return Error{"'" + name + "' is declared as " + to_string(declared) + ", but is " + to_string(type)};
}

// ONNX's own shape inference long counted, with ceil_mode, a last window that no kernel computes. Files declare such
// extents, of the node's values or only of what comes of them, and runtimes run them: the declared shapes are void from
// there on. Of an STFT without a frame's length it counts frequencies of the step between frames.
bool may_declare_too_much(const onnx::NodeProto& node) {
  constexpr int kLengthOfFrame = 3;
  return (node.op_type() == "STFT" && (node.input_size() <= kLengthOfFrame || node.input(kLengthOfFrame).empty())) ||
         std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.name() == "ceil_mode" && attribute.i() != 0; });
}
void drop_declared_shapes(ImportState& state, const std::string& reason) {
  state.warn(reason + "; the declared shapes of values are left out of account");
  for (auto& [name, type] : state.declared) type.shape.reset();
}

// A shape that no extent is a number of says nothing but how many there are: where that is wrong, as exporters have it
// around operators whose rank they do not know, it is left out of account, as runtimes do.
bool is_of_names(const TensorType& declared) {
  return declared.shape &&
         std::ranges::none_of(*declared.shape, [](const Index& extent) { return extent.is_constant(); });
}
void drop_declared_shape(ImportState& state, const std::string& name, const std::string& reason) {
  state.warn(reason + "; the declared shape is left out of account");
  state.declared.at(name).shape.reset();
}

Status bind_outputs(ImportState& state, const onnx::NodeProto& node, const std::vector<Value>& values,
                    NameScope& scope) {
  for (int i = 0; i < node.output_size(); i++) {
    const std::string& name = node.output(i);
    if (name.empty() || static_cast<size_t>(i) >= values.size() || !values[static_cast<size_t>(i)]) continue;
    const Value& value = values[static_cast<size_t>(i)];
    scope.values[name] = value;
    if (scope.depth > 0) continue;
    state.seen_types[name] = value.type();
    const Status fits = check_declared(state, name, value.type());
    state.declares_too_much |= may_declare_too_much(node);
    if (!fits.ok() && state.declares_too_much)
      drop_declared_shapes(state, describe(node) + ": " + fits.error().message);
    else if (!fits.ok() && is_of_names(state.declared.at(name)))
      drop_declared_shape(state, name, describe(node) + ": " + fits.error().message);
    GOPT_RETURN_IF_ERROR(check_declared(state, name, value.type()));
  }
  return Unit{};
}

// Extents whose product no integer holds are the file's error, or that of --shape.
Result<std::vector<Value>> import_in_range(ImportState& state, onnx::NodeProto& node, int position, NameScope& scope) {
  try {
    GOPT_ASSIGN_OR_RETURN(std::vector<Value> values, import_node(state, node, position, scope));
    for (const Value& value : values)
      if (value && value.type().has_static_shape()) element_count(value.type().static_shape());
    return values;
  } catch (const std::overflow_error& e) {
    return Error{e.what()};
  }
}

// What the node became, where the graph does not hold it as it stands in the file.
void note_change(ImportState& state, const onnx::NodeProto& node, const std::vector<Value>& values) {
  FileNode own{node.name(), node.op_type(), {node.output().begin(), node.output().end()}, values, {}};
  std::vector<const Node*> open;
  const auto take = [&](const Value& value) {
    if (value && state.attributed.insert(value.node.get()).second) open.push_back(value.node.get());
  };
  std::ranges::for_each(values, take);
  bool is_kept = false;
  while (!open.empty()) {
    const Node& made = *open.back();
    open.pop_back();
    if (made.is(OpKind::Constant) || made.is(OpKind::Input)) continue;
    const std::string op = made.opaque ? made.opaque->op_type : op_info(made.op).name;
    is_kept |= op == own.op && made.name == own.name;
    own.made[op]++;
    std::ranges::for_each(made.inputs, take);
  }
  const bool is_same = is_kept && own.made.size() == 1 && own.made.begin()->second == 1;
  if (!is_same) state.changed.push_back(std::move(own));
}

}  // namespace

Status import_nodes(ImportState& state, Nodes& nodes, NameScope& scope) {
  GOPT_ASSIGN_OR_RETURN(const Order order, read_names(nodes, scope));
  GOPT_ASSIGN_OR_RETURN(const std::vector<int> sorted, sort_nodes(nodes, order));
  for (const int position : sorted) {
    onnx::NodeProto& node = nodes[position];
    auto values = import_in_range(state, node, position, scope);
    if (!values.ok()) return Error{describe(node) + ": " + values.error().message};
    if (const Status status = bind_outputs(state, node, *values, scope); !status.ok())
      return Error{describe(node) + ": " + status.error().message};
    if (scope.depth == 0 && node.op_type() != "Constant") note_change(state, node, *values);
    node.Clear();  // its tensors have been taken; what is left would only cost memory
  }
  return Unit{};
}

}  // namespace gopt::ir
