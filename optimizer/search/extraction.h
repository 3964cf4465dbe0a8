// Graphs out of an e-graph: a choice says which application stands for a class; what the outputs reach by it is a
// graph, unless it uses itself. What a choice costs is guessed as the sum of its applications' own costs, each counted
// once; plans cost otherwise, so that the guess only says what is worth pricing.
#pragma once

#include <functional>

#include "search/saturation.h"

namespace gopt::optimizer {

// By class (its id): the application chosen; kNoValue: none yet, what is cheapest by itself is taken.
using Choice = std::vector<EqualityId>;

struct Extracted {
  Graph graph;
  Choice choice;                       // of the classes that the outputs reach
  std::map<EqualityId, Value> values;  // by class that is reached
};

class Extractor {
 public:
  // `price` is of a graph of one node. Precondition: congruence is restored.
  Extractor(const GraphEqualities& graph, const std::function<double(const Graph&)>& price);

  // The graph as it was; of nodes that have come out as equal the first.
  Choice original() const;
  // Nothing where the choice uses itself.
  std::optional<double> guess(const Choice& choice);
  std::optional<Extracted> extract(const Choice& choice);
  // What is not common to both: the applications' own costs, of the one that has less of them.
  double changed_ms(const Extracted& a, const Extracted& b);

 private:
  struct Best {
    EqualityId node = kNoValue;
    double cost = 0;
    Value value;
  };
  void find_cheapest();
  double own_cost(EqualityId id);
  EqualityId chosen(const Choice& choice, EqualityId cls) const;
  // Classes that the outputs reach, each after what it uses.
  std::optional<std::vector<EqualityId>> reached(const Choice& choice) const;
  // Applications chosen, each once, by their first outputs.
  std::vector<EqualityId> applications(const Choice& choice, const std::vector<EqualityId>& classes) const;
  NodePtr build(EqualityId id, const std::vector<Value>& inputs);

  const GraphEqualities& graph_;
  const EqualityGraph& equalities_;
  const std::function<double(const Graph&)>& price_;
  std::vector<Best> cheapest_;                      // by class
  std::vector<EqualityId> first_original_;          // by class
  std::vector<std::optional<double>> own_;          // by application, that is its first output
  std::map<std::vector<uint64_t>, NodePtr> built_;  // by application and inputs
  GraphBuilder builder_;
};

}  // namespace gopt::optimizer
