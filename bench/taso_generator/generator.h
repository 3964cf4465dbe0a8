// Walks all graphs as TASO's generator does, and collects the pairs of equal outputs that it keeps.
#pragma once

#include <unordered_map>
#include <vector>

#include "pruning.h"

namespace taso_generator {

class Generator {
 public:
  Generator();
  void walk() { walk(tensor_count_); }

  size_t graph_count() const { return graph_count_; }
  size_t fingerprint_count() const { return seen_.size(); }
  std::vector<Rule> rules() const;  // none is an instance of another
  const std::vector<Operator>& known_operators() const { return operators_; }

 private:
  // Goes on from the graph at hand, whose last application made the tensors from `old_tensors` on. None is made twice.
  void walk(size_t old_tensors);
  void extend(size_t number);
  void apply(size_t number, const Tensor* a, const Tensor* b);
  bool is_read(const Ref& ref) const;
  uint64_t fingerprint() const;
  void visit();

  const std::vector<Operator> operators_;
  const Pruning pruning_;
  std::vector<int> inputs_;  // of each operator
  std::array<Tensor, 32> tensors_{};
  size_t tensor_count_ = 0, variable_count_ = 0, graph_count_ = 0;
  Graph graph_;
  std::unordered_map<uint64_t, Graph> seen_;  // the first graph of each fingerprint
  std::vector<Rule> rules_;
};

}  // namespace taso_generator
