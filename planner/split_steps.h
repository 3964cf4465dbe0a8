// How a graph falls apart where the caller computes some of its nodes: which nodes make which step, and the steps as
// graphs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gopt/split_model.h"

namespace gopt::planner {

// The caller's nodes, each with its cause.
using CallersNodes = std::map<const Node*, std::string>;

struct Step {
  std::vector<NodePtr> nodes;  // in the graph's order
  bool is_code = false;
  std::vector<Value> sized_by;  // of others: no node reads them, but extents are known by them
  std::vector<Value> weights;   // outputs of the model that depend on weights and sizes alone
};
// In the order in which they run. What depends on weights and sizes alone is in none: each step makes what it needs of
// that.
std::vector<Step> steps_of(const Graph& graph, const CallersNodes& callers);

// Each value that goes from one step to another, or is an input or output of the model, has a name of its own.
class ValueNames {
 public:
  explicit ValueNames(const Graph& graph);
  const std::string& of(const Value& value);

 private:
  std::string unused(const std::string& wanted);
  std::map<Value, std::string> names_;
  std::set<std::string> used_;
};

struct BuiltStep {
  Graph graph;
  std::map<const Node*, NodePtr> origins;  // of its nodes: the whole graph's; of its inputs, what makes them
};
// `outputs`: what other steps and the model take of it. Errors: a node that cannot be made again there (`failed`).
Result<BuiltStep> build_step(const Graph& graph, const Step& step, const std::vector<Value>& outputs, ValueNames& names,
                             NodePtr& failed);

}  // namespace gopt::planner
