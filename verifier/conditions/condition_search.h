// Deriving the condition under which a rule holds, where it does not hold for all sizes: a table over sizes says for
// which it does, and the smallest formula of the language of conditions that says the same is taken. It is a guess
// until verify_rule proves the rule under it.
#pragma once

#include <optional>
#include <vector>

#include "condition_atoms.h"
#include "size_table.h"

namespace gopt::verifier {

// A condition with its cases: it holds where its clauses do, which is in one of `cases`, or where one of `empty` does,
// which makes tensors empty.
struct DerivedCondition {
  Cond clauses;
  std::vector<Cond> cases, empty;
  Cond condition() const;
};

// The formula that is true on the rows that hold and false on the others, if the language has one of few clauses.
std::optional<DerivedCondition> find_condition(const std::vector<SizeRow>& rows,
                                               const std::vector<ConditionAtom>& atoms,
                                               const std::vector<ConditionAtom>& emptiness);

// The same by clauses of one atom, but false also on a tenth of the rows that hold at most: enough, and not needed, for
// a rule that holds at some further sizes by chance.
std::optional<DerivedCondition> find_sufficient_condition(const std::vector<SizeRow>& rows,
                                                          const std::vector<ConditionAtom>& atoms,
                                                          const std::vector<ConditionAtom>& emptiness);

// What must hold of the sizes, beside the rule's own condition, for the sides to be equal; where the language has no
// formula for that, what is enough. Nothing where the rule holds on degenerate sizes alone, or where the language does
// not say on which it does. `wrong` are sizes at which it
// is known not to hold. `telling`, if given, is set where it holds
// on sizes that matter, whether the language says on which or not.
std::optional<DerivedCondition> derive_condition(const RewriteRule& rule, const SideMeaning& left,
                                                 const SideMeaning& right, const std::vector<SizeRow>& wrong,
                                                 uint64_t seed, bool* telling = nullptr);

}  // namespace gopt::verifier
