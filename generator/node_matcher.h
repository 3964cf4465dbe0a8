// Matches directions of rules at a node of the space, one after another, and finds the nodes that they lead to. See
// equations.h.
#pragma once

#include "equations.h"

namespace gopt::generator {

class NodeMatcher {
 public:
  NodeMatcher(const Equations& equations, bool only_representatives, std::vector<Equations::Derived>& out);
  // Appends what instances at the application's root lead to, until one is joined to its representative. Whether one
  // is.
  bool match(const Equations::Rewriting& rule, const Application& application);

 private:
  using Step = Equations::Step;
  static constexpr size_t kMaxSteps = 24;
  static constexpr int kMaxVisits = 2000;  // of applications

  void step(size_t at);
  void enter(size_t at, const Application& application, const NameMap* map);
  bool unify(const Equations::IndexPattern& pattern, int number);
  bool bind(const Step& step, Named target);
  bool is_settled() const;
  Substitution substitution() const;
  void finish();
  std::optional<Named> build(size_t at, std::optional<NodeId>& node) const;
  bool is_op(const Step& step, int op) const;

  const Equations& equations_;
  const Space& space_;
  const Equations::Rewriting* rule_ = nullptr;
  const bool only_representatives_;
  std::vector<Equations::Derived>& out_;
  std::array<Named, kMaxSteps> targets_{};
  std::array<Named, 8> variables_{};
  std::array<bool, 8> is_bound_{};
  std::array<int, 32> symbols_{};
  int visits_ = 0;
  bool is_done_ = false;
  std::vector<size_t> trail_;                          // symbols bound so far
  std::vector<std::pair<const Index*, int>> waiting_;  // equations that need all symbols
  std::vector<int> prefix_;
  bool has_prefix_ = false, is_open_ = false;
  mutable std::optional<Substitution> substitution_;
};

}  // namespace gopt::generator
