// Terms: operators applied to variables, constants and terms, each kept once, so that an id stands for the term. Types
// are symbolic, inferred from the definitions. Variables are numbered within their class.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "alphabet.h"

namespace gopt::generator {

enum class TermId : uint32_t {};
enum class TypeId : uint32_t {};

struct Term {
  // Exactly one of: a variable (variable_class >= 0), a scalar constant (op < 0), an output of an operator.
  int variable_class = -1, variable_number = 0;
  double constant = 0;
  int op = -1, output = 0;
  std::vector<TermId> args;
  // derived
  TypeId type{};
  bool is_weight = true;                   // depends on no activation
  int activation_ops = 0, weight_ops = 0;  // applications, shared ones counted once for each use

  bool is_variable() const { return variable_class >= 0; }
  bool is_application() const { return op >= 0; }
};

// Number of variables of each class.
using Renaming = std::map<std::pair<int, int>, int>;  // (class, number) to number

class TermStore {
 public:
  explicit TermStore(Family family) : family_(std::move(family)) {}
  const Family& family() const { return family_; }
  const Term& term(TermId id) const { return terms_[static_cast<uint32_t>(id)]; }
  const TensorType& type(TermId id) const { return types_[static_cast<uint32_t>(term(id).type)]; }
  const TensorType& type(TypeId id) const { return types_[static_cast<uint32_t>(id)]; }
  uint32_t type_count() const { return static_cast<uint32_t>(types_.size()); }
  const AlphabetOp& op(int number) const { return ops_[static_cast<size_t>(number)]; }

  TermId variable(int variable_class, int number);
  TermId constant(double value);
  int add_op(const AlphabetOp& op);  // the same number for equal ones
  // Nothing where the types do not fit, symbolically and in both assignments.
  std::optional<TermId> apply(int op, int output, const std::vector<TermId>& args);

  // Types of an operator's outputs. Nothing as for apply(). `known`: what inferred_types() gave, where it was asked.
  std::optional<std::vector<TypeId>> infer(int op, const std::vector<TypeId>& inputs,
                                           const std::optional<std::vector<TensorType>>* known = nullptr);
  // The same, not numbered. May run in parallel with itself.
  std::optional<std::vector<TensorType>> inferred_types(int op, const std::vector<TypeId>& inputs) const;
  // A class of variables of that type and kind beside the family's own, which patterns may use.
  int class_for(const TensorType& type, VariableKind kind, bool has_prefix);
  // Makes `symbol` a size with the values of `extent`, drawn as `model` is.
  void add_size_like(AtomId symbol, const Index& extent, AtomId model);

  TermId rename(TermId id, const Renaming& renaming);
  // Variables in order of first occurrence.
  std::vector<std::pair<int, int>> variables_of(TermId id) const;
  // Sizes that the attributes of its operators speak of.
  void collect_attribute_symbols(TermId id, std::set<AtomId>& out) const;
  // Equal for terms that differ by renaming and by the order of commutative inputs alone.
  std::string canonical_key(TermId id) const;
  const std::string& op_text(int number) const { return op_texts_[static_cast<size_t>(number)]; }
  std::string to_string(TermId id) const;  // "MatMul(Relu(x0),y1)"

 private:
  TermId intern(Term term);
  TypeId intern(const TensorType& type);
  void collect_variables(TermId id, std::vector<std::pair<int, int>>& out) const;
  std::vector<std::string> spellings(TermId id) const;

  Family family_;
  std::vector<Term> terms_;
  std::vector<TensorType> types_;
  std::map<std::string, TypeId> type_of_;
  std::vector<AlphabetOp> ops_;
  std::vector<std::string> op_texts_;
  std::map<std::string, int> op_of_;
  std::unordered_map<std::string, TermId> interned_;
  std::map<std::pair<int, std::vector<TypeId>>, std::optional<std::vector<TypeId>>> inferred_;
};

// Values of the family's symbols in one of its assignments.
Substitution sizes_of(const Family& family, int assignment);
TensorType substituted(const TensorType& type, const Substitution& sizes);

}  // namespace gopt::generator
