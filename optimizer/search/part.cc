#include "search/part.h"

#include "gopt/excerpt.h"

namespace gopt::optimizer {
namespace {

// How far a plan looks around a node: a library kernel's epilogues below it, what is inlined into it above.
constexpr int kAbove = 3, kBelow = 4;
constexpr size_t kMostNodes = 96;

// In breadth from the match, ancestors and descendants apart.
class Surroundings {
 public:
  Surroundings(const Graph& graph, const Binding& binding)
      : graph_(graph), matched_(binding.nodes.begin(), binding.nodes.end()), chosen_(matched_) {}

  std::set<NodeId> run() && {
    std::set<NodeId> front = matched_;
    for (int step = 0; step < kAbove; step++) {
      std::set<NodeId> next;
      for (NodeId id : front)
        for (const Value& input : graph_.node(id)->inputs)
          if (input) take(graph_.id_of(input.node), next);
      front = std::move(next);
    }
    front = matched_;
    for (int step = 0; step < kBelow; step++) {
      std::set<NodeId> next;
      for (NodeId id : front)
        for (NodeId user : graph_.users()[static_cast<uint32_t>(id)]) take(user, next);
      front = std::move(next);
    }
    return std::move(chosen_);
  }

 private:
  void take(NodeId id, std::set<NodeId>& next) {
    if (graph_.depends_on_weights_only(id) || graph_.node(id)->is(OpKind::Input) || chosen_.size() >= kMostNodes)
      return;
    if (chosen_.insert(id).second) next.insert(id);
  }

  const Graph& graph_;
  const std::set<NodeId> matched_;
  std::set<NodeId> chosen_;
};

}  // namespace

Part part_around(const Graph& graph, const Binding& binding) {
  const Excerpt excerpt = excerpt_of(graph, Surroundings(graph, binding).run());
  Part part{excerpt.graph, binding};
  for (NodeId& id : part.binding.nodes) id = excerpt.graph.id_of(excerpt.of({graph.node(id), 0}).node);
  for (Value& variable : part.binding.variables)
    if (variable) variable = excerpt.of(variable);
  return part;
}

}  // namespace gopt::optimizer
