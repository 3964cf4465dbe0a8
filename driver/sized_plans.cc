#include "gopt/sized_plans.h"

#include <algorithm>
#include <set>

#include "gopt/runnable_model.h"

namespace gopt {
namespace {

// The symbols that inputs have as an extent of their own, in their order.
std::vector<AtomId> open_extents(const Graph& graph) {
  std::vector<AtomId> symbols;
  for (const Value& input : graph.inputs())
    for (const Index& extent : *input.type().shape)
      if (const auto symbol = extent.as_atom();
          symbol && atom(*symbol).kind == AtomKind::Symbol && std::ranges::find(symbols, *symbol) == symbols.end())
        symbols.push_back(*symbol);
  return symbols;
}

Status check_inputs_say_all(const Graph& open, const std::vector<AtomId>& extents) {
  for (const Value& input : open.inputs()) {
    std::set<AtomId> symbols;
    for (const Index& extent : *input.type().shape) collect_symbols(extent, symbols);
    for (const AtomId symbol : symbols)
      if (std::ranges::find(extents, symbol) == extents.end())
        return Error{"input " + input.node->name + " is " + to_string(input.type()) + ": no input has the extent " +
                     atom(symbol).name + " by itself, which would say how large it is; fix it with --shape"};
  }
  return Unit{};
}

// Values of the open extents at a size.
Result<Environment> extents_at(const Graph& open, const Graph& sized) {
  Environment values;
  for (size_t i = 0; i < open.inputs().size(); i++) {
    const Value &input = open.inputs()[i], &there = sized.inputs().at(i);
    const Shape &shape = *input.type().shape, &numbers = *there.type().shape;
    for (size_t d = 0; d < shape.size(); d++)
      if (const auto symbol = shape[d].as_atom()) values.try_emplace(*symbol, numbers.at(d).constant());
    for (size_t d = 0; d < shape.size(); d++)
      if (evaluate(shape[d], values) != numbers.at(d).constant())
        return Error{"input " + input.node->name + " is " + to_string(input.type()) + ", which cannot be " +
                     to_string(there.type())};
  }
  return values;
}

// An output's type at any size: what the open graph says of it, as far as that is so at each size.
TensorType output_type(const Graph& open, size_t number, const std::vector<SizedPlans::Size>& sizes,
                       const std::vector<Environment>& values) {
  const TensorType& declared = open.outputs()[number].value.type();
  TensorType type = sizes[0].plan.graph.outputs()[number].value.type();
  for (size_t d = 0; d < type.shape->size(); d++) {
    const bool is_known = declared.shape && declared.shape->size() == type.shape->size();
    bool is_equal = true, is_declared = is_known;
    for (size_t k = 0; k < sizes.size(); k++) {
      const Index& extent = (*sizes[k].plan.graph.outputs()[number].value.type().shape)[d];
      is_equal = is_equal && extent == (*type.shape)[d];
      is_declared = is_declared && evaluate((*declared.shape)[d], values[k]) == extent.constant();
    }
    if (is_declared)
      (*type.shape)[d] = (*declared.shape)[d];
    else if (!is_equal)
      (*type.shape)[d] = symbol(open.outputs()[number].name + "_dim" + std::to_string(d));
  }
  return type;
}

Extents named(const SizedPlans& plans, const SizedPlans::Size& size) {
  Extents extents;
  for (size_t k = 0; k < plans.extents.size(); k++) extents[plans.extents[k]] = size.extents[k];
  return extents;
}

}  // namespace

Result<SizedPlans> join_sizes(const Graph& open, const std::vector<Plan>& plans) {
  GOPT_CHECK(!plans.empty(), "a model has a size");
  SizedPlans joined;
  for (const Value& input : open.inputs())
    if (!input.type().shape) return Error{"input " + input.node->name + " has no known rank; give it with --shape"};
  const std::vector<AtomId> extents = open_extents(open);
  GOPT_RETURN_IF_ERROR(check_inputs_say_all(open, extents));
  for (const AtomId symbol : extents) joined.extents.push_back(atom(symbol).name);
  std::vector<Environment> values;
  for (const Plan& plan : plans) {
    GOPT_ASSIGN_OR_RETURN(values.emplace_back(), extents_at(open, plan.graph));
    std::vector<int64_t> numbers;
    for (const AtomId symbol : extents) numbers.push_back(values.back().at(symbol));
    joined.sizes.push_back({std::move(numbers), plan});
    for (size_t k = 0; k + 1 < joined.sizes.size(); k++)
      if (joined.sizes[k].extents == joined.sizes.back().extents)
        return Error{"the size " + to_string(named(joined, joined.sizes[k])) + " is given twice"};
  }
  joined.inputs = graph_inputs(open);
  joined.outputs = graph_outputs(joined.sizes[0].plan.graph);
  for (size_t i = 0; i < joined.outputs.size(); i++)
    joined.outputs[i].type = output_type(open, i, joined.sizes, values);
  return joined;
}

Status check_sizes(const SizedPlans& plans, const DriverOptions& options) {
  const int threads = options.target.threads;
  GOPT_ASSIGN_OR_RETURN(const auto joint, compile_sizes(plans, threads));
  for (const SizedPlans::Size& size : plans.sizes) {
    GOPT_ASSIGN_OR_RETURN(const auto own, compile_plan(size.plan, threads));
    GOPT_ASSIGN_OR_RETURN(const auto inputs, own->draw(options.seed + 1));
    GOPT_ASSIGN_OR_RETURN(const auto expected, own->run(inputs));
    GOPT_ASSIGN_OR_RETURN(const auto found, joint->run(inputs));
    for (size_t i = 0; i < expected.size(); i++) {
      const Difference d = difference(plans.outputs[i].name, expected[i], found[i], options.check.tolerance);
      if (!d.passed)
        return Error{
            "output " + d.output + ", at " + to_string(named(plans, size)) +
            ": the code for all sizes computes something else than that for this size (max |a-b| / max |a| = " +
            std::to_string(d.max_relative) + "); nothing is written"};
    }
  }
  return Unit{};
}

}  // namespace gopt
