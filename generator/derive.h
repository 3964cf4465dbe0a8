// Rewrites terms by rules already kept, to tell whether a new pair follows from them.
#pragma once

#include <functional>
#include <set>
#include <unordered_set>

#include "term.h"

namespace gopt::generator {

// A kept rule, in the store of the family that it was found in.
struct KeptRule {
  const TermStore* terms;
  TermId left, right;
};

// The term by every one rewrite of `id`, at any place.
std::vector<TermId> rewrites_of(TermStore& terms, TermId id, const std::vector<KeptRule>& rules);

// Names of terms, equal for terms that differ by the order of commutative inputs and by weight-only subterms of equal
// value alone. `weight_name` names a weight-only application.
class TermKeys {
 public:
  TermKeys(const TermStore& terms, std::function<std::string(TermId)> weight_name)
      : terms_(terms), weight_name_(std::move(weight_name)) {}
  const std::string& key(TermId id);

 private:
  const TermStore& terms_;
  std::function<std::string(TermId)> weight_name_;
  std::unordered_map<uint32_t, std::string> known_;
};

using KeySet = std::unordered_set<std::string>;

// Whether at most `max_steps` rewrites lead from `from` to a term whose key is in `targets`.
bool leads_to(TermStore& terms, TermKeys& keys, TermId from, const KeySet& targets, const std::vector<KeptRule>& rules,
              int max_steps = 3, size_t max_terms = 150);

}  // namespace gopt::generator
