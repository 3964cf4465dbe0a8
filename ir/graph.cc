#include "gopt/graph.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>

namespace gopt {

std::string to_string(const Hash128& hash) {
  char text[33];
  snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
           static_cast<unsigned long long>(hash.low));
  return text;
}
Hash128 hash_bytes(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

const TensorType& Value::type() const { return node->outputs[static_cast<size_t>(output)]; }

namespace {

void append(std::string& key, uint64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }
void append(std::string& key, const std::string& text) {
  append(key, text.size());
  key += text;
}

Hash128 structural_hash(const Node& node) {
  std::string key;
  append(key, static_cast<uint64_t>(node.op));
  append(key, node.outputs.size());
  for (const auto& [name, value] : node.attributes) {
    append(key, name);
    append(key, value.index());
    if (const auto* t = std::get_if<Tensor>(&value))
      append(key, t->content_id());
    else
      append(key, to_string(value));
  }
  for (const Value& v : node.inputs) {
    append(key, v ? v.node->hash.high : 0);
    append(key, v ? v.node->hash.low : 0);
    append(key, static_cast<uint64_t>(v.output));
  }
  if (node.is(OpKind::Input)) append(key, node.name + to_string(node.outputs[0]));
  if (node.is(OpKind::Constant)) append(key, node.tensor.content_id());
  static std::atomic<uint64_t> opaque_count{0};
  if (node.is_row_function()) {
    append(key, node.opaque->payload);
    for (const TensorType& type : node.outputs) append(key, to_string(type));
  } else if (node.is(OpKind::Opaque)) {
    append(key, opaque_count++);  // may have effects or be random: never merged
  }
  return hash_bytes(key);
}

}  // namespace

// ---- Graph ----

struct Graph::Data {
  std::vector<Value> inputs;
  std::vector<GraphOutput> outputs;
  Metadata metadata;
  std::vector<NodePtr> nodes;
  std::unordered_map<const Node*, NodeId> ids;
  std::vector<std::vector<NodeId>> users;
  std::vector<bool> weights_only;
  Hash128 hash;
};

namespace {

// Nodes below `outputs`, each after what it uses. Depth first with a stack of its own: models are deeper than stacks.
std::vector<NodePtr> topological(const std::vector<GraphOutput>& outputs) {
  struct Frame {
    NodePtr node;
    size_t next = 0;
  };
  std::vector<NodePtr> order;
  std::unordered_map<const Node*, bool> seen;
  for (const GraphOutput& output : outputs) {
    std::vector<Frame> stack;
    if (seen.emplace(output.value.node.get(), true).second) stack.push_back({output.value.node});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.node->inputs.size()) {
        order.push_back(std::move(top.node));
        stack.pop_back();
        continue;
      }
      const Value& v = top.node->inputs[top.next++];
      if (v && seen.emplace(v.node.get(), true).second) stack.push_back({v.node});
    }
  }
  return order;
}

double bytes_made(const Node& node) {
  double bytes = 0;
  for (const TensorType& type : node.outputs) {
    if (!type.has_static_shape()) continue;
    double own = static_cast<double>(size_bytes(type.element));
    for (const int64_t extent : type.static_shape()) own *= static_cast<double>(extent);
    bytes += own;
  }
  return bytes;
}

// Whether a node of constants makes more than any machine has and some times as much as all constants are: a Tile of
// eight numbers, summed, may be more than there is memory.
bool makes_too_much(const Node& node, const std::vector<NodePtr>& nodes) {
  constexpr double kAlways = 1 << 30, kTimes = 4;
  const double made = node.is(OpKind::Constant) ? 0 : bytes_made(node);
  if (made <= kAlways) return false;
  double constants = 0;
  for (const NodePtr& other : nodes)
    if (other->is(OpKind::Constant)) constants += static_cast<double>(other->tensor.bytes().size());
  return made > kTimes * constants;
}

bool is_weights_only(const Node& node, const std::vector<NodePtr>& nodes, const auto& known) {
  if (node.is(OpKind::Input) || node.is(OpKind::Opaque)) return false;
  const bool is_of_constants =
      op_info(node.op).has(kShapeOnly)
          ? node.inputs.empty() || node.inputs[0].type().has_static_shape()
          : std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value& v) { return !v || known(v); });
  return is_of_constants && !makes_too_much(node, nodes);
}

}  // namespace

Graph::Graph() : Graph({}, {}, {}) {}

Graph::Graph(std::vector<Value> inputs, std::vector<GraphOutput> outputs, Metadata metadata) {
  auto data = std::make_shared<Data>();
  data->nodes = topological(outputs);
  std::string key;
  for (size_t i = 0; i < data->nodes.size(); i++) data->ids[data->nodes[i].get()] = NodeId{static_cast<uint32_t>(i)};
  data->users.resize(data->nodes.size());
  for (size_t i = 0; i < data->nodes.size(); i++) {
    const Node& node = *data->nodes[i];
    for (const Value& v : node.inputs) {
      if (!v) continue;
      auto& users = data->users[static_cast<uint32_t>(data->ids[v.node.get()])];
      if (users.empty() || users.back() != NodeId{static_cast<uint32_t>(i)})
        users.push_back(NodeId{static_cast<uint32_t>(i)});
    }
    data->weights_only.push_back(is_weights_only(node, data->nodes, [&](const Value& v) {
      return bool{data->weights_only[static_cast<uint32_t>(data->ids[v.node.get()])]};
    }));
  }
  for (const GraphOutput& o : outputs) {
    append(key, o.name);
    append(key, o.value.node->hash.high);
    append(key, o.value.node->hash.low);
    append(key, static_cast<uint64_t>(o.value.output));
  }
  data->hash = hash_bytes(key);
  data->inputs = std::move(inputs);
  data->outputs = std::move(outputs);
  data->metadata = std::move(metadata);
  data_ = std::move(data);
}

const std::vector<NodePtr>& Graph::nodes() const { return data_->nodes; }
const NodePtr& Graph::node(NodeId id) const { return data_->nodes[static_cast<uint32_t>(id)]; }
NodeId Graph::id_of(const NodePtr& node) const {
  auto it = data_->ids.find(node.get());
  GOPT_CHECK(it != data_->ids.end(), "id_of a node of another graph");
  return it->second;
}
bool Graph::contains(const NodePtr& node) const { return data_->ids.contains(node.get()); }
const std::vector<Value>& Graph::inputs() const { return data_->inputs; }
const std::vector<GraphOutput>& Graph::outputs() const { return data_->outputs; }
const Metadata& Graph::metadata() const { return data_->metadata; }
const std::vector<std::vector<NodeId>>& Graph::users() const { return data_->users; }
const Hash128& Graph::hash() const { return data_->hash; }
bool Graph::depends_on_weights_only(NodeId id) const { return data_->weights_only[static_cast<uint32_t>(id)]; }

std::set<AtomId> input_symbols(const Graph& graph) {
  std::set<AtomId> symbols;
  for (const Value& input : graph.inputs())
    if (input.type().shape)
      for (const Index& extent : *input.type().shape)
        if (const auto symbol = extent.as_atom()) symbols.insert(*symbol);
  return symbols;
}

// ---- GraphBuilder ----

namespace {

// Nodes release their inputs one after another, not by recursion: chains are deeper than stacks.
void release(Node* node) {
  static thread_local std::vector<Value>* pending = nullptr;
  std::vector<Value> inputs = std::move(node->inputs);
  delete node;
  if (pending) {
    std::move(inputs.begin(), inputs.end(), std::back_inserter(*pending));
    return;
  }
  pending = &inputs;
  while (!inputs.empty()) {
    const Value last = std::move(inputs.back());
    inputs.pop_back();
  }
  pending = nullptr;
}
std::shared_ptr<Node> new_node() { return {new Node, release}; }

}  // namespace

NodePtr GraphBuilder::intern(std::shared_ptr<Node> node) {
  node->hash = structural_hash(*node);
  auto [it, inserted] = interned_.try_emplace(node->hash, node);
  return it->second;
}

Value GraphBuilder::input(std::string name, TensorType type) {
  auto node = new_node();
  node->op = OpKind::Input;
  node->name = name;
  node->outputs = {std::move(type)};
  node->output_names = {std::move(name)};
  inputs_.push_back({intern(std::move(node)), 0});
  return inputs_.back();
}

Value GraphBuilder::constant(Tensor tensor, std::string name) {
  auto node = new_node();
  node->op = OpKind::Constant;
  node->outputs = {tensor.tensor_type()};
  node->tensor = std::move(tensor);
  node->name = name;
  node->output_names = {std::move(name)};
  return {intern(std::move(node)), 0};
}

namespace {

std::vector<TensorExpr> typed_inputs(const std::vector<Value>& inputs) {
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs[i]) {
      tensors.emplace_back();
      continue;
    }
    tensors.push_back(input_tensor(static_cast<int>(i), inputs[i].type()));
    if (inputs[i].node->is(OpKind::Constant)) tensors.back().data = &inputs[i].node->tensor;
  }
  return tensors;
}

}  // namespace

Result<NodePtr> GraphBuilder::add(OpKind kind, std::vector<Value> inputs, Attributes attributes, int output_count,
                                  std::string name, std::vector<std::string> output_names) {
  GOPT_CHECK(kind != OpKind::Input && kind != OpKind::Constant && kind != OpKind::Opaque,
             "add of a node that applies no operator");
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::vector<TensorType> types;
  bool ranked = true;
  for (const Value& v : inputs) {
    types.push_back(v ? v.type() : TensorType{});
    ranked &= !v || v.type().shape.has_value();
  }
  auto node = new_node();
  GOPT_ASSIGN_OR_RETURN(node->attributes, canonical_attributes(kind, types, attributes, output_count));
  if (!ranked) return Error{op_info(kind).name + ": an input has an unknown rank"};
  GOPT_ASSIGN_OR_RETURN(Definition definition, define(kind, typed_inputs(inputs), node->attributes, output_count));
  bool unknown = false;
  for (const Requirement& r : definition.requirements) unknown |= r.from_broadcast && broadcast_unknown_;
  node->op = kind;
  node->inputs = std::move(inputs);
  for (int k = 0; k < output_count; k++) {
    TensorExpr& t = definition.outputs[static_cast<size_t>(k)];
    node->outputs.push_back({t.element, unknown ? std::nullopt : std::optional(std::move(t.shape))});
  }
  node->name = std::move(name);
  node->output_names = std::move(output_names);
  node->output_names.resize(node->outputs.size());
  node->annotations = annotations_;
  return intern(std::move(node));
}

Result<Value> GraphBuilder::apply(OpKind kind, std::vector<Value> inputs, Attributes attributes) {
  GOPT_ASSIGN_OR_RETURN(NodePtr node, add(kind, std::move(inputs), std::move(attributes)));
  return Value{std::move(node), 0};
}

NodePtr GraphBuilder::opaque(std::shared_ptr<const OpaqueOp> op, std::vector<Value> inputs,
                             std::vector<TensorType> outputs, std::string name, std::vector<std::string> output_names) {
  auto node = new_node();
  node->op = OpKind::Opaque;
  node->opaque = std::move(op);
  node->inputs = std::move(inputs);
  node->outputs = std::move(outputs);
  node->name = std::move(name);
  node->output_names = std::move(output_names);
  node->output_names.resize(node->outputs.size());
  return intern(std::move(node));
}

NodePtr GraphBuilder::copy(const Node& node, std::vector<Value> inputs) {
  auto made = new_node();
  made->op = node.op;
  made->inputs = std::move(inputs);
  made->attributes = node.attributes;
  made->outputs = node.outputs;
  made->opaque = node.opaque;
  made->name = node.name;
  made->output_names = node.output_names;
  made->annotations = node.annotations;
  return intern(std::move(made));
}

void GraphBuilder::output(std::string name, Value value) { outputs_.push_back({std::move(name), std::move(value)}); }
Graph GraphBuilder::build() const { return Graph(inputs_, outputs_, metadata_); }

void GraphBuilder::adopt(const Graph& graph) {
  interned_.reserve(interned_.size() + graph.nodes().size());
  for (const NodePtr& node : graph.nodes()) interned_.try_emplace(node->hash, node);
}

// ---- rewriting ----

namespace {

// One replacement of values, bottom-up and without recursion.
class Replacer {
 public:
  Replacer(const Graph& graph, const std::map<Value, Value>& replacements) : replacements_(replacements) {
    builder_.adopt(graph);
    done_.reserve(graph.nodes().size());
  }

  Result<Value> resolve(const Value& root) {
    std::vector<Value> stack{root};
    while (!stack.empty()) {
      const Value v = stack.back();
      if (done_.contains(v)) {
        stack.pop_back();
        continue;
      }
      std::vector<Value> needed;
      const Value* replacement = replacement_of(v);
      if (replacement) {
        needed.push_back(*replacement);
      } else {
        for (const Value& i : v.node->inputs)
          if (i) needed.push_back(i);
      }
      bool ready = true;
      for (const Value& n : needed) {
        if (done_.contains(n)) continue;
        if (open_.contains(n)) return Error{"the replacement depends on what it replaces"};
        ready = false;
        stack.push_back(n);
      }
      if (!ready) {
        open_.insert(v);
        continue;
      }
      open_.erase(v);
      stack.pop_back();
      if (replacement) {
        done_[v] = done_.at(*replacement);
      } else {
        GOPT_RETURN_IF_ERROR(rebuild(v.node));
      }
    }
    return done_.at(root);
  }
  ValueMap became() && { return std::move(done_); }

 private:
  // What stands for v, if it is something else.
  const Value* replacement_of(const Value& v) const {
    const auto it = replacements_.find(v);
    return it == replacements_.end() || it->second == v ? nullptr : &it->second;
  }

  // Inference sees types, and the elements of constants.
  static bool infers_alike(const Node& node, const std::vector<Value>& inputs) {
    for (size_t i = 0; i < inputs.size(); i++) {
      const Value &before = node.inputs[i], &after = inputs[i];
      if (before == after) continue;
      if (before.node->is(OpKind::Constant) || after.node->is(OpKind::Constant) || !(before.type() == after.type()))
        return false;
    }
    return true;
  }

  Status rebuild(const NodePtr& node) {
    std::vector<Value> inputs;
    bool changed = false;
    for (const Value& i : node->inputs) {
      inputs.push_back(i ? done_.at(i) : i);
      changed |= !(inputs.back() == i);
    }
    NodePtr result = node;
    if (changed && node->is(OpKind::Opaque)) {
      result = builder_.opaque(node->opaque, inputs, node->outputs, node->name, node->output_names);
    } else if (changed && infers_alike(*node, inputs)) {
      result = builder_.copy(*node, std::move(inputs));
    } else if (changed) {
      builder_.annotate(node->annotations);
      auto made = builder_.add(node->op, inputs, node->attributes, static_cast<int>(node->outputs.size()), node->name,
                               node->output_names);
      builder_.annotate("");
      if (!made) return Error{"node " + node->name + ": " + made.error().message};
      result = *std::move(made);
    }
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) {
      const Value old{node, k};
      if (!replacement_of(old)) done_[old] = {result, k};
    }
    return Unit{};
  }

  const std::map<Value, Value>& replacements_;
  GraphBuilder builder_;
  ValueMap done_;
  std::unordered_set<Value, HashOfValue> open_;
};

}  // namespace

Result<Graph> replace_values(const Graph& graph, const std::map<Value, Value>& replacements, ValueMap* became) {
  Replacer replacer(graph, replacements);
  std::vector<GraphOutput> outputs;
  bool changed = false;
  for (const GraphOutput& o : graph.outputs()) {
    GOPT_ASSIGN_OR_RETURN(Value v, replacer.resolve(o.value));
    changed |= !(v == o.value);
    outputs.push_back({o.name, std::move(v)});
  }
  if (became) *became = std::move(replacer).became();
  if (!changed) return graph;
  return Graph(graph.inputs(), std::move(outputs), graph.metadata());
}

Status validate(const Graph& graph) {
  std::set<const Node*> seen;
  for (const NodePtr& node : graph.nodes()) {
    const std::string where = "node " + (node->name.empty() ? op_info(node->op).name : node->name) + ": ";
    std::vector<TensorType> types;
    for (const Value& v : node->inputs) {
      if (v && !seen.contains(v.node.get())) return Error{where + "an input is used before it is made"};
      if (v && v.output >= static_cast<int>(v.node->outputs.size()))
        return Error{where + "an input is an output that its node lacks"};
    }
    seen.insert(node.get());
    if (node->is(OpKind::Input) || node->is(OpKind::Constant) || node->is(OpKind::Opaque)) continue;
    auto definition =
        define(node->op, typed_inputs(node->inputs), node->attributes, static_cast<int>(node->outputs.size()));
    if (!definition) return Error{where + definition.error().message};
    for (size_t k = 0; k < node->outputs.size(); k++) {
      const TensorType inferred{definition->outputs[k].element, definition->outputs[k].shape};
      if (node->outputs[k].shape && inferred != node->outputs[k])
        return Error{where + "output " + std::to_string(k) + " is " + to_string(node->outputs[k]) + ", inferred is " +
                     to_string(inferred)};
    }
  }
  for (const GraphOutput& o : graph.outputs())
    if (!o.value) return Error{"output " + o.name + " has no value"};
  return Unit{};
}

}  // namespace gopt
