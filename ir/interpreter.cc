#include "gopt/interpreter.h"

#include <algorithm>

#include "contraction.h"
#include "evaluator.h"
#include "gopt/recurrence.h"
#include "gopt/row_function.h"

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

// A stage whose sums of products are computed first, all of them, and then what is made of them.
Status evaluate_with_product(const Stage& stage, const FoundProduct& found, std::vector<TensorView> views,
                             const std::vector<int64_t>& dims, std::byte* out) {
  if (found.is_all && stage.element == ElementType::Float32) {
    evaluate_product(found.product, reinterpret_cast<float*>(out));
    return Unit{};
  }
  GOPT_ASSIGN_OR_RETURN(std::vector<std::byte> sums, room_for(ElementType::Float32, dims));
  evaluate_product(found.product, reinterpret_cast<float*>(sums.data()));
  views.push_back({ElementType::Float32, dims, sums.data()});
  return evaluate_stage({stage.element, stage.shape, stage.axes, found.rest}, views, out);
}

Status evaluate(const Stage& stage, const std::vector<TensorView>& views, const std::vector<int64_t>& dims,
                Products products, std::byte* out) {
  if (products == Products::Floats)
    if (const auto found = find_product(stage, views, static_cast<int>(views.size())))
      return evaluate_with_product(stage, *found, views, dims, out);
  return evaluate_stage(stage, views, out);
}

// Runs the stages of one output; the last one's bytes are the result.
Result<Tensor> evaluate_output(const TensorExpr& output, std::vector<TensorView> views,
                               Products products = Products::Exact) {
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
    GOPT_RETURN_IF_ERROR(evaluate(s, views, dims, products, bytes.data()));
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

Result<std::vector<Tensor>> interpret_node(const Node& node, const std::vector<Tensor>& inputs, Products products) {
  if (node.is_recurrence()) return interpret_recurrence(*node.opaque->recurrence, inputs, products);
  if (node.is_row_function()) {
    auto outputs = interpret_row_function(node, inputs[0]);
    if (!outputs) return Error{describe(node) + ": " + outputs.error().message};
    return outputs;
  }
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
    auto value = evaluate_output(definition->outputs[k], views, products);
    if (!value) return Error{describe(node) + ": " + value.error().message};
    outputs.push_back(*std::move(value));
  }
  return outputs;
}

namespace {

// Evaluates nodes in order, dropping tensors after their last use.
class Run {
 public:
  explicit Run(Products products) : products_(products) {}
  Status step(const NodePtr& node) {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, computed(*node));
    take(node, std::move(outputs));
    return Unit{};
  }
  Result<std::vector<Tensor>> computed(const Node& node) const {
    std::vector<Tensor> inputs;
    for (const Value& v : node.inputs) inputs.push_back(v ? values_.at(v) : Tensor());
    return interpret_node(bound(node), inputs, products_);
  }
  // What a node was computed to be; its inputs are used.
  void take(const NodePtr& node, std::vector<Tensor> outputs) {
    for (size_t k = 0; k < outputs.size(); k++) values_[{node, static_cast<int>(k)}] = std::move(outputs[k]);
    for (const Value& v : node->inputs)
      if (v && --uses_[v] == 0) values_.erase(v);
  }
  bool has_symbols() const { return !symbols_.empty(); }
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
  // The node with its symbols replaced by what they are bound to.
  Node bound(const Node& node) const {
    Node copy = node;
    for (auto& [name, value] : copy.attributes) {
      if (auto* number = std::get_if<Index>(&value)) *number = substitute(*number, symbols_);
      if (auto* list = std::get_if<std::vector<Index>>(&value))
        for (Index& entry : *list) entry = substitute(entry, symbols_);
    }
    if (node.is_row_function())  // how many are taken of a row is an extent of its result
      for (TensorType& output : copy.outputs)
        for (Index& extent : *output.shape) extent = substitute(extent, symbols_);
    return copy;
  }

  const Products products_;
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

Result<std::vector<Tensor>> interpret(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                                      Products products) {
  GOPT_ASSIGN_OR_RETURN(auto outputs, interpret_all(graph, {&inputs, 1}, products));
  return std::move(outputs[0]);
}

namespace {

Result<Run> start_run(const Graph& graph, const std::map<std::string, Tensor>& inputs, Products products) {
  Run run(products);
  for (const NodePtr& node : graph.nodes())
    for (const Value& v : node->inputs)
      if (v) run.use(v);
  for (const GraphOutput& o : graph.outputs()) run.use(o.value);
  for (const Value& v : graph.inputs())
    if (auto it = inputs.find(v.node->name); it != inputs.end()) GOPT_RETURN_IF_ERROR(run.bind(v.type(), it->second));
  return run;
}

Status set_input(Run& run, const NodePtr& node, const std::map<std::string, Tensor>& inputs) {
  const auto it = inputs.find(node->name);
  if (it == inputs.end()) return Error{"input " + node->name + " is missing"};
  GOPT_RETURN_IF_ERROR(check_input(*node, it->second));
  run.set({node, 0}, it->second);
  return Unit{};
}

// Weights that lie in a file are in memory while nodes read them.
void let_go_of_weights(const Node& node) {
  for (const Value& v : node.inputs)
    if (v && v.node->is(OpKind::Constant)) let_go(v.node->tensor);
}

}  // namespace

Result<std::vector<std::vector<Tensor>>> interpret_all(const Graph& graph,
                                                       std::span<const std::map<std::string, Tensor>> inputs,
                                                       Products products) {
  std::vector<Run> runs;
  for (const auto& own : inputs) {
    GOPT_ASSIGN_OR_RETURN(Run run, start_run(graph, own, products));
    runs.push_back(std::move(run));
  }
  const bool has_symbols = std::ranges::any_of(runs, &Run::has_symbols);
  for (uint32_t at = 0; at < graph.nodes().size(); at++) {
    const NodePtr& node = graph.nodes()[at];
    if (node->is(OpKind::Input)) {
      for (size_t k = 0; k < runs.size(); k++) GOPT_RETURN_IF_ERROR(set_input(runs[k], node, inputs[k]));
    } else if (graph.depends_on_weights_only(NodeId{at}) && !has_symbols) {
      GOPT_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, runs[0].computed(*node));
      for (Run& run : runs) run.take(node, outputs);
    } else {
      for (Run& run : runs) GOPT_RETURN_IF_ERROR(run.step(node));
    }
    let_go_of_weights(*node);
  }
  std::vector<std::vector<Tensor>> outputs(runs.size());
  for (size_t k = 0; k < runs.size(); k++)
    for (const GraphOutput& o : graph.outputs()) outputs[k].push_back(runs[k].at(o.value));
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
  Run run(Products::Exact);
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
      let_go_of_weights(*node);
    }
  }
  return run.at(value);
}

}  // namespace gopt
