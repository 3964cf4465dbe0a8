// Classes of equal terms: which terms are new, and for the others what pairs they make. A pair that is an instance of a
// smaller one or follows from rules already kept is dropped here, before anybody proves it.
#pragma once

#include <set>

#include "candidate.h"
#include "derive.h"
#include "gopt/generator.h"
#include "world.h"

namespace gopt::generator {

class Classes {
 public:
  // `offer` decides a pair that is left: true keeps it as a rule. `rules` are those of earlier families, and grow.
  Classes(TermStore& terms, uint64_t seed, std::vector<KeptRule>& rules, GeneratorStats& stats,
          std::function<bool(const TermPair&)> offer);

  // Takes the next term; whether it represents its class.
  bool take(TermId id);
  // Decides the pairs since the last call, the most general first, so that their instances follow from them.
  void decide_pairs();

 private:
  struct Class {
    TermId best;  // the cheapest
    double cost[2];
    KeySet members;  // keys of those that are known to follow from each other
  };
  struct PendingPair {
    TermPair pair;
    size_t own_class;
    bool to_best;  // else to the one term on the right
    int generality;
  };
  std::optional<Fingerprint> fingerprint(TermId id, bool keep);
  std::vector<Renaming> permutations_of(TermId id) const;
  void join(size_t found, TermId id);
  void join_with_itself(size_t own, TermId id, const Fingerprint& identity);
  void add_pair(const TermPair& pair, size_t own_class, bool to_best);
  void decide(const PendingPair& pending);
  bool may_go_both_ways(const TermPair& pair) const;
  std::string weight_name(TermId id);
  std::optional<TermPair> generalised(const TermPair& pair);

  TermStore& terms_;
  World first_, second_;
  TermKeys keys_;
  std::vector<KeptRule>& rules_;
  GeneratorStats& stats_;
  std::function<bool(const TermPair&)> offer_;
  std::map<Fingerprint, size_t> class_of_;
  std::vector<Class> classes_;
  std::vector<PendingPair> pending_;
  std::set<std::string> seen_, offered_;
};

}  // namespace gopt::generator
