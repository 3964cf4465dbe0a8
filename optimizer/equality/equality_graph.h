// An e-graph: applications of operators to classes of equal values, kept closed under congruence. Every union remembers
// why it was made, so that an equality can be explained by the rules that were applied. What a rule finds in it is in
// equality_match.h. It grows over the two sides of a rule (derivation/derivation.cc), to tell whether they are equal,
// and over a model's graph (search/saturation.cc), to find the cheapest of its equals.
#pragma once

#include <bitset>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gopt/graph.h"
#include "matching/facts.h"

namespace gopt::optimizer {

// An application as it was made; its class is find(id). Ids of arguments are of the applications that were given.
using EqualityId = uint32_t;
constexpr EqualityId kNoValue = ~EqualityId{0};

struct EqualityNode {
  OpKind op{};
  uint32_t output = 0, output_count = 1;  // which output of the application this is
  uint32_t attributes = 0;                // number in attribute lists
  uint32_t leaf = 0;                      // Input: which; Constant: which tensor; Opaque: which
  std::vector<EqualityId> inputs = {};    // kNoValue: left out
  bool is_duplicate = false;              // equal, argument by argument, to another of its class
};

constexpr size_t kMaxOperators = 256;
using Operators = std::bitset<kMaxOperators>;

struct EqualityClass {
  std::vector<EqualityId> nodes, users;
  uint32_t type = 0;
  bool is_open = false;          // has leading axes that the rule leaves open
  EqualityId number = kNoValue;  // a Constant of one element in it
  bool is_weight = false;        // a value of it depends on weights alone
  Operators ops;
};

// Why two values are equal: output number `output` of an application of a rule, equal arguments in this order, that
// the first is an application that copies its only argument, which is the second, or that the second is the number
// that the first makes of `numbers`.
constexpr uint32_t kCongruence = ~uint32_t{0}, kCopy = kCongruence - 1, kArithmetic = kCongruence - 2;
struct EqualityReason {
  uint32_t application = kCongruence;
  uint32_t output = 0;
  std::vector<uint8_t> order;  // Congruence: argument i of the first is argument order[i] of the second
  std::vector<EqualityId> numbers = {};
};

// Terms of a model rather than of a rule: two symbolic extents that meet in a broadcast may be equal or 1, so that such
// applications have no type and are not made, and attributes are over these symbols alone.
struct ModelTerms {
  std::set<AtomId> symbols;
};

class EqualityGraph {
 public:
  explicit EqualityGraph(const Facts& facts, std::optional<ModelTerms> model = {})
      : facts_(facts), model_(std::move(model)) {}

  EqualityId add_input(const std::string& name, const TensorType& type, bool is_open, bool is_weight);
  EqualityId add_constant(const Tensor& tensor);
  // Outputs of something that no rule matches and that equals nothing else, and depends on no weights alone.
  std::vector<EqualityId> add_opaque(const std::vector<EqualityId>& inputs, const std::vector<TensorType>& types);
  // Types of an application's outputs; nothing where it would not be added.
  std::optional<std::vector<TensorType>> types_of(OpKind op, const std::vector<EqualityId>& inputs,
                                                  const Attributes& attributes, uint32_t output_count);
  // All outputs of an application: ids, in order. Nothing where the operator is not defined for these types, or, with
  // `checked`, not surely defined.
  std::optional<std::vector<EqualityId>> add(OpKind op, const std::vector<EqualityId>& inputs,
                                             const Attributes& attributes, uint32_t output_count, bool checked);
  // Another output of the same application.
  std::optional<EqualityId> find_output(EqualityId id, uint32_t output) const;

  // Which argument of the application each of these equal ones is: not as they stand where inputs may be exchanged.
  std::vector<uint8_t> order_of(EqualityId id, const std::vector<EqualityId>& inputs) const;

  EqualityId find(EqualityId id) const;
  const EqualityClass& class_of(EqualityId id) const { return classes_[find(id)]; }
  const EqualityNode& node(EqualityId id) const { return nodes_[id]; }
  const TensorType& type(EqualityId id) const { return types_[class_of(id).type]; }
  const Attributes& attributes(EqualityId id) const { return attribute_lists_[nodes_[id].attributes]; }
  const Tensor& tensor(EqualityId id) const { return tensors_[nodes_[id].leaf]; }
  const std::string& input_name(EqualityId id) const { return input_names_[nodes_[id].leaf]; }
  size_t node_count() const { return nodes_.size(); }
  size_t class_count() const { return class_count_; }
  // Classes with an application of the operator, in order, as they were when congruence was last restored.
  const std::vector<EqualityId>& classes_with(OpKind op) const { return by_op_[static_cast<size_t>(op)]; }
  const Facts& facts() const { return facts_; }

  // Joins two classes; false where they are one already. Precondition: can_merge.
  bool merge(EqualityId a, EqualityId b, EqualityReason reason);
  // Values of different types, or of which one alone has open axes, are never equal.
  bool can_merge(EqualityId a, EqualityId b) const;
  void restore_congruence();

  // The step from an id towards the root of its proof tree.
  struct Link {
    EqualityId to = kNoValue;
    EqualityReason reason;
    bool is_forward = true;  // the reason leads from this id to `to`, else back
  };
  const Link& link(EqualityId id) const { return links_[id]; }
  // The links from each of two equal ids to where their ways to the root meet, as the ids that they start from.
  struct Paths {
    std::vector<EqualityId> up, down;  // from the first, from the second
  };
  Paths paths_between(EqualityId from, EqualityId to) const;

 private:
  using Key = std::vector<uint32_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Signature {
    std::vector<uint32_t> types;
    uint32_t attributes = 0;
    std::vector<Cond> requirements;
    bool is_copy = false;
  };
  Key key_of(const EqualityNode& node) const;
  EqualityId intern(EqualityNode node, uint32_t type);
  uint32_t type_number(const TensorType& type);
  uint32_t attribute_number(const Attributes& attributes);
  const Signature* signature_of(OpKind op, const std::vector<EqualityId>& inputs, const Attributes& attributes,
                                uint32_t output_count);
  bool is_weight(const EqualityNode& node) const;
  void mark_weights(EqualityId id);
  void restore_users(EqualityId id);

  const Facts& facts_;
  const std::optional<ModelTerms> model_;
  std::vector<EqualityNode> nodes_;
  std::vector<Link> links_;
  mutable std::vector<EqualityId> parents_;  // union-find
  std::vector<EqualityClass> classes_;       // by id; those of merged ids are empty
  size_t class_count_ = 0;
  std::vector<std::vector<EqualityId>> by_op_ = std::vector<std::vector<EqualityId>>(kMaxOperators);
  std::unordered_map<Key, EqualityId, KeyHash> known_;
  std::vector<EqualityId> merged_;  // classes whose users are to be looked at again
  std::vector<TensorType> types_;
  std::map<std::string, uint32_t> type_numbers_, attribute_numbers_, input_numbers_;
  std::vector<Attributes> attribute_lists_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> input_names_;
  uint32_t opaque_count_ = 0;
  std::map<Key, std::optional<Signature>> signatures_;
};

}  // namespace gopt::optimizer
