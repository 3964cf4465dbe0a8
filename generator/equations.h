// What is derivable in a space: applications that are equal to representatives are nodes, joined where a proved rule
// leads from one to the other. A rule is matched at a node's root; below, a representative stands for all nodes that
// are joined to it, so that derivations through equal subterms are found too (as by saturation, within the space).
#pragma once

#include <set>

#include "enumerate.h"
#include "gopt/rule.h"

namespace gopt::generator {

// A proved rule, in the store of the family that it was found in; as many outputs on both sides.
struct KeptRule {
  const TermStore* terms;
  std::vector<TermId> left, right;
  Cond condition;
};

using NodeId = uint32_t;
constexpr size_t kNoNumber = ~size_t{0};

class Equations {
 public:
  explicit Equations(Space& space) : space_(space) {}

  // Every output of a rule is used in both directions, as far as the variables allow. `number` is for the caller.
  void add_rule(const KeptRule& rule, size_t number = kNoNumber);
  size_t rule_count() const { return rewritings_.size(); }
  void forget_rules(size_t first);

  // Nodes for what a level brought: representatives, then equal applications (ids in that order, from `first`).
  NodeId add_level(const Level& level, bool is_final);
  NodeId node_count() const { return static_cast<NodeId>(nodes_.size()); }
  const EqualApplication& node(NodeId id) const { return nodes_[id].content; }
  const EqualApplication* find(const Application& application) const;
  std::optional<NodeId> find_node(const Application& application) const;

  // What rules number `first_rule` on make of a node at its root; below it, joined nodes count only where not
  // `only_representatives`. May run in parallel with itself.
  struct Derived {
    NodeId node;   // whose value is that of
    Named result;  // its representative under this naming, in the node's variables
    size_t rule;   // its number
    bool is_reversed;
  };
  void derive(NodeId id, size_t first_rule, std::vector<Derived>& out, bool only_representatives = false) const;

  // Joins what was derived. A node that stands for a symmetry of its representative is joined to nothing else.
  void join(NodeId id, const std::vector<Derived>& derived);
  void join_to_representative(NodeId id);
  bool is_joined(NodeId id) const;
  NodeId root(NodeId id) const;
  // Nodes joined to a representative can stand for it from here on.
  void settle(NodeId first, NodeId end);

 private:
  friend class RewritingCompiler;
  friend class NodeMatcher;
  struct IndexPattern {
    int slot;  // of a bare symbol; else -1
    Index index;
  };
  struct VariablePattern {
    bool is_weight, has_prefix;
    std::vector<IndexPattern> extents;
  };
  // What a representative is, or what an argument may be: bit i of `ops` for what operator i of the family makes, and
  // bits of `kinds` for what a variable or a constant asks for. They fit where they have a bit in common.
  struct Facts {
    uint64_t ops = 0, kinds = 0;
  };
  static bool fit(const Facts& a, const Facts& b) { return (a.ops & b.ops) != 0 || (a.kinds & b.kinds) != 0; }
  // The arguments of a step, in one place since nearly every rule is asked for them at nearly every node.
  struct Arguments {
    uint8_t count = 0;
    bool commutes = false;
    std::array<uint8_t, kMaxArguments> steps{};
    std::array<Facts, kMaxArguments> facts{};
  };
  struct Step {
    enum class Kind : uint8_t { Variable, Constant, Application } kind;
    int variable = 0;
    double constant = 0;
    uint8_t output = 0;
    uint64_t ops = 0;  // as in Facts
    std::vector<IndexPattern> attributes;
    Arguments arguments;
  };
  struct Rewriting {
    std::vector<Step> from, to;  // each after what applies it
    std::vector<VariablePattern> variables;
    std::vector<AtomId> symbols;
    Cond condition;
    size_t rule = kNoNumber;
    bool is_reversed = false;
  };
  struct Node {
    EqualApplication content;
    NodeId parent;
    bool is_symmetry = false;  // equal to itself under other names
    bool is_derived = false;   // a symmetry that follows
  };
  struct RootPattern {
    size_t rewriting;
    Arguments arguments;
  };
  // Of a representative, what matching reads.
  struct Target {
    Facts facts;  // the operators are those of its members
    TypeId type{};
    bool is_weight = true, is_open = false;
  };
  struct FamilyOp {
    std::string form;  // all but the numbers
    std::vector<int> numbers;
  };

  // Whether members of the arguments may be what a step's arguments are to be.
  bool may_fit(const Arguments& arguments, const Application& application, bool exchanged) const;
  static uint64_t kinds_of(const Representative& rep, size_t rank);
  static uint64_t kinds_for(const VariablePattern& pattern);
  int number_of(const Index& index);
  void add_member(uint32_t rep, NodeId node);
  void learn_types();
  const FamilyOp& family_op(int op);

  Space& space_;
  std::vector<Rewriting> rewritings_;
  std::vector<std::vector<RootPattern>> by_root_;  // rewritings by the family's operator
  std::vector<Node> nodes_;
  std::vector<NodeId> slots_;                 // a hash table of nodes by application
  std::vector<std::vector<NodeId>> members_;  // of each representative
  std::vector<Target> targets_;               // the same representatives
  std::vector<uint32_t> constants_;           // representatives
  std::map<Index, int> numbers_;
  std::vector<Index> indexes_;
  std::vector<std::vector<int>> type_extents_;
  std::vector<FamilyOp> family_ops_;
};

}  // namespace gopt::generator
