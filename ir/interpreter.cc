#include "gopt/interpreter.h"

#include "evaluator.h"

namespace gopt {

using namespace ir;

namespace {

TensorView view_of(const Tensor& t) { return {t.type(), t.dims(), t.bytes().data()}; }

// Bytes for a tensor. Attributes can ask for more than any machine has.
Result<std::vector<std::byte>> room_for(ElementType element, const std::vector<int64_t>& dims) {
  try {
    return std::vector<std::byte>(static_cast<size_t>(element_count(dims)) * size_bytes(element));
  } catch (const std::exception&) {
    return Error{"there is no memory for a tensor of " +
                 to_string(TensorType{element, Shape(dims.begin(), dims.end())})};
  }
}

// Runs the stages of one output; the last one's bytes are the result.
Result<Tensor> evaluate_output(const TensorExpr& output, std::vector<TensorView> views) {
  std::vector<ElementType> types;
  for (const TensorView& v : views) types.push_back(v.type);
  const std::vector<Stage> stages = stage(output, types, false);
  std::vector<Tensor> temporaries;
  for (const Stage& s : stages) {
    std::vector<int64_t> dims;
    for (const Index& e : s.shape) {
      if (!e.is_constant()) return Error{"an extent, " + to_string(e) + ", is not known"};
      dims.push_back(e.constant());
    }
    GOPT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, room_for(s.element, dims));
    GOPT_RETURN_IF_ERROR(evaluate_stage(s, views, bytes.data()));
    temporaries.push_back(Tensor::from_bytes(s.element, dims, std::move(bytes)));
    views.push_back(view_of(temporaries.back()));
  }
  return temporaries.back();
}

std::string describe(const Node& node) {
  const std::string kind = node.opaque ? node.opaque->op_type : op_info(node.op).name;
  return node.name.empty() ? "a node " + kind : "node " + node.name + " (" + kind + ")";
}

}  // namespace

Result<std::vector<Tensor>> interpret_node(const Node& node, const std::vector<Tensor>& inputs) {
  if (node.is(OpKind::Opaque)) return Error{describe(node) + " has no definition and cannot be interpreted"};
  if (node.is(OpKind::Constant)) return std::vector<Tensor>{node.tensor};
  GOPT_CHECK(!node.is(OpKind::Input), "interpret_node of an input");
  std::vector<TensorExpr> tensors;
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool missing = inputs[i].type() == ElementType::Undefined;
    if (!missing && !is_computable(inputs[i].type()))
      return Error{describe(node) + ": elements of type " + to_string(inputs[i].type()) + " cannot be computed with"};
    tensors.push_back(missing ? TensorExpr{} : input_tensor(static_cast<int>(i), inputs[i].tensor_type()));
    tensors.back().data = &inputs[i];
    views.push_back(missing ? TensorView{ElementType::Float32, {}, nullptr} : view_of(inputs[i]));
  }
  auto definition = define(node.op, tensors, node.attributes, static_cast<int>(node.outputs.size()));
  if (!definition) return Error{describe(node) + ": " + definition.error().message};
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < node.outputs.size(); k++) {
    auto value = evaluate_output(definition->outputs[k], views);
    if (!value) return Error{describe(node) + ": " + value.error().message};
    outputs.push_back(*std::move(value));
  }
  return outputs;
}

namespace {

// Evaluates nodes in order, dropping tensors after their last use.
class Run {
 public:
  Status step(const NodePtr& node) {
    std::vector<Tensor> inputs;
    for (const Value& v : node->inputs) inputs.push_back(v ? values_.at(v) : Tensor());
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, interpret_node(bound(*node), inputs));
    for (size_t k = 0; k < outputs.size(); k++) values_[{node, static_cast<int>(k)}] = std::move(outputs[k]);
    for (const Value& v : node->inputs)
      if (v && --uses_[v] == 0) values_.erase(v);
    return Unit{};
  }
  void set(const Value& v, Tensor t) { values_[v] = std::move(t); }
  // Symbolic extents of an input's type are those of its tensor. Errors: one symbol with two extents.
  Status bind(const TensorType& type, const Tensor& t) {
    if (!type.shape || type.shape->size() != t.dims().size()) return Unit{};  // an error by itself, found elsewhere
    for (size_t d = 0; d < t.dims().size(); d++) {
      const auto symbol = (*type.shape)[d].as_atom();
      if (!symbol || symbols_.try_emplace(*symbol, t.dims()[d]).first->second == Index(t.dims()[d])) continue;
      return Error{"extent " + to_string((*type.shape)[d]) + " is " + to_string(symbols_.at(*symbol)) +
                   " by one input and " + std::to_string(t.dims()[d]) + " by another"};
    }
    return Unit{};
  }
  void use(const Value& v) { uses_[v]++; }
  const Tensor& at(const Value& v) const { return values_.at(v); }

 private:
  // The node with symbols in its attributes replaced by what they are bound to.
  Node bound(const Node& node) const {
    Node copy = node;
    for (auto& [name, value] : copy.attributes) {
      if (auto* number = std::get_if<Index>(&value)) *number = substitute(*number, symbols_);
      if (auto* list = std::get_if<std::vector<Index>>(&value))
        for (Index& entry : *list) entry = substitute(entry, symbols_);
    }
    return copy;
  }

  Substitution symbols_;
  std::map<Value, Tensor> values_;
  std::map<Value, int> uses_;
};

Status check_input(const Node& node, const Tensor& t) {
  const TensorType& type = node.outputs[0];
  std::string given = to_string(t.tensor_type());
  bool fits = t.type() == type.element;
  if (type.shape) {
    fits &= type.shape->size() == t.dims().size();
    for (size_t d = 0; fits && d < t.dims().size(); d++)
      fits = !(*type.shape)[d].is_constant() || (*type.shape)[d].constant() == t.dims()[d];
  }
  if (!fits) return Error{"input " + node.name + " is " + given + ", expected " + to_string(type)};
  return Unit{};
}

}  // namespace

Result<std::vector<Tensor>> interpret(const Graph& graph, const std::map<std::string, Tensor>& inputs) {
  Run run;
  for (const NodePtr& node : graph.nodes())
    for (const Value& v : node->inputs)
      if (v) run.use(v);
  for (const GraphOutput& o : graph.outputs()) run.use(o.value);
  for (const Value& v : graph.inputs())
    if (auto it = inputs.find(v.node->name); it != inputs.end()) GOPT_RETURN_IF_ERROR(run.bind(v.type(), it->second));
  for (const NodePtr& node : graph.nodes()) {
    if (!node->is(OpKind::Input)) {
      GOPT_RETURN_IF_ERROR(run.step(node));
      continue;
    }
    auto it = inputs.find(node->name);
    if (it == inputs.end()) return Error{"input " + node->name + " is missing"};
    GOPT_RETURN_IF_ERROR(check_input(*node, it->second));
    run.set({node, 0}, it->second);
  }
  std::vector<Tensor> outputs;
  for (const GraphOutput& o : graph.outputs()) outputs.push_back(run.at(o.value));
  return outputs;
}

namespace {

// A node that reads shapes alone: its inputs' types are enough.
Result<Tensor> evaluate_shape_only(const Node& node) {
  std::vector<TensorExpr> inputs;
  std::vector<TensorView> views;
  for (size_t i = 0; i < node.inputs.size(); i++) {
    inputs.push_back(input_tensor(static_cast<int>(i), node.inputs[i].type()));
    views.push_back({node.inputs[i].type().element, {}, nullptr});
  }
  GOPT_ASSIGN_OR_RETURN(Definition definition, define(node.op, inputs, node.attributes));
  return evaluate_output(definition.outputs[0], views).with_context(describe(node));
}

}  // namespace

Result<Tensor> evaluate_constant(const Value& value) {
  Graph graph({}, {{"value", value}}, {});
  Run run;
  std::set<const Node*> needed;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const NodePtr& node = graph.nodes()[i];
    if (node != value.node && !needed.contains(node.get())) continue;
    needed.insert(node.get());
    if (op_info(node->op).has(kShapeOnly)) continue;  // reads shapes, not elements
    for (const Value& v : node->inputs)
      if (v) needed.insert(v.node.get());
  }
  for (const NodePtr& node : graph.nodes()) {
    if (!needed.contains(node.get())) continue;
    if (op_info(node->op).has(kShapeOnly)) continue;
    for (const Value& v : node->inputs)
      if (v) run.use(v);
  }
  run.use(value);
  for (const NodePtr& node : graph.nodes()) {
    if (!needed.contains(node.get())) continue;
    if (node->is(OpKind::Input)) return Error{"the value depends on input " + node->name};
    if (op_info(node->op).has(kShapeOnly)) {
      GOPT_ASSIGN_OR_RETURN(Tensor t, evaluate_shape_only(*node));
      run.set({node, 0}, std::move(t));
    } else {
      GOPT_RETURN_IF_ERROR(run.step(node));
    }
  }
  return run.at(value);
}

}  // namespace gopt
