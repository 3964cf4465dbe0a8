#include "partial_pairs.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "candidate.h"
#include "general_pair.h"
#include "orientation.h"

namespace gopt::generator {
namespace {

constexpr double kLeastPart = 0.25;  // of the elements
// Where elements are compared first, as a fraction of each axis: the middle, which borders spare, and a quarter, which
// a seam in the middle spares.
constexpr double kProbes[] = {0.5, 0.25};

class PartialPairs {
 public:
  PartialPairs(Space& space, const GeneratorLimits& limits, const std::function<bool()>& is_over)
      : space_(space), limits_(limits), is_over_(is_over), evaluator_(space) {}

  std::vector<RewriteRule> find() {
    for (uint32_t rep = 0; rep < space_.rep_count() && !(is_over_ && is_over_()); rep++) {
      if (!is_wanted(rep)) continue;
      learn(rep);
      pair_up(rep);  // with those before it
    }
    return std::move(rules_);
  }

 private:
  bool is_wanted(uint32_t id) const {
    const Representative& rep = space_.rep(id);
    return rep.activation_ops > 0 && !space_.terms().type(rep.type).shape->empty();
  }

  std::vector<int64_t> dims(uint32_t rep, int assignment) const {
    return substituted(space_.terms().type(space_.rep(rep).type), sizes_of(space_.terms().family(), assignment))
        .static_shape();
  }

  // The element at this fraction of each axis in both assignments, and the type. Nothing where it is 0: padding is.
  std::optional<Fingerprint> probe(Named named, double fraction) {
    evaluator_.reset();
    const Scalar* value = evaluator_.value(named);
    if (!value) return std::nullopt;
    std::vector<Scalar> elements;
    for (int assignment : {0, 1}) {
      size_t position = 0, count = 1;
      for (int64_t extent : dims(named.rep, assignment)) {
        if (extent == 0) return std::nullopt;
        const auto at = static_cast<size_t>(fraction * static_cast<double>(extent));
        position = position * static_cast<size_t>(extent) + at;
        count *= static_cast<size_t>(extent);
      }
      elements.push_back(value[position]);
      value += count;
      if (elements.back().residue == decltype(Scalar::residue){}) return std::nullopt;
    }
    return space_.fingerprint(space_.type_key(space_.rep(named.rep).type), elements.data(), elements.size());
  }

  void learn(uint32_t rep) {
    for (Naming naming : space_.namings_of(rep))
      for (double fraction : kProbes)
        if (const auto found = probe({rep, naming}, fraction)) at_probe_[*found].push_back({rep, naming});
  }

  // Parts of the elements on which the values agree, the lesser of both assignments'; 1 where they are equal.
  double agreeing_part(Named a, Named b) {
    evaluator_.reset();
    const Scalar *left = evaluator_.value(a), *right = evaluator_.value(b);
    double least = 1;
    for (int assignment : {0, 1}) {
      size_t count = 1, agree = 0;
      for (int64_t extent : dims(a.rep, assignment)) count *= static_cast<size_t>(extent);
      for (size_t i = 0; i < count; i++) agree += left[i].residue == right[i].residue;
      least = std::min(least, static_cast<double>(agree) / static_cast<double>(count));
      left += count;
      right += count;
    }
    return least;
  }

  // What one operator makes of arguments that agree in part follows from those; what two operators make of the same
  // arguments follows from what they make of variables.
  bool follows(Named a, Named b) {
    const Application &left = space_.rep(a.rep).application, &right = space_.rep(b.rep).application;
    if (left.op < 0 || right.op < 0 || left.arity != right.arity) return false;
    bool is_in_context = left.op == right.op && left.output == right.output, have_same = true, are_leaves = true;
    for (size_t i = 0; i < left.arity; i++) {
      const uint32_t own = left.args[i].rep, other = right.args[i].rep;
      is_in_context = is_in_context && (own == other || paired_.count(std::minmax(own, other)));
      have_same = have_same && own == other;
      are_leaves = are_leaves && space_.rep(own).application.op < 0;
    }
    const auto ops = std::minmax(left.op, right.op);
    if (have_same && are_leaves) of_leaves_.insert(ops);
    return is_in_context || (have_same && !are_leaves && of_leaves_.count(ops));
  }

  void pair_up(uint32_t id) {
    const Named own{id, space_.signature_of(id).identity};
    std::optional<Named> best;
    double best_cost = 0;
    for (double fraction : kProbes) {
      const auto key = probe(own, fraction);
      if (!key) continue;
      for (const Named& other : at_probe_.at(*key)) {
        if (other.rep >= id) continue;
        const double part = agreeing_part(own, other);
        if (part < kLeastPart || part == 1) continue;
        paired_.insert(std::minmax(id, other.rep));
        if (follows(own, other)) continue;
        const double cost = space_.kernels().cost({space_.term_of(other)})[0];
        if (!best || cost < best_cost) best = other, best_cost = cost;
      }
    }
    if (best) add_rule({{space_.term_of(own)}, {space_.term_of(*best)}});
  }

  void add_rule(const TermPair& pair) {
    const auto wanted = directions(space_.terms(), space_.kernels(), pair, false);
    if (wanted.empty()) return;
    const std::string origin = fmt::format("generator seed={} max-ops={} family={}", limits_.seed, limits_.max_ops,
                                           space_.terms().family().name);
    auto found = make_candidate(space_.terms(), renamed(space_.terms(), wanted.front()), false, origin);
    if (!found.ok() || !check_rule(*found).ok()) return;
    RewriteRule rule = *std::move(found);
    complete_name(rule);
    if (names_.insert(rule.name).second) rules_.push_back(std::move(rule));
  }

  Space& space_;
  const GeneratorLimits& limits_;
  const std::function<bool()>& is_over_;
  Evaluator evaluator_;
  std::map<Fingerprint, std::vector<Named>> at_probe_;
  std::set<std::pair<uint32_t, uint32_t>> paired_;
  std::set<std::pair<int16_t, int16_t>> of_leaves_;  // operators that agree in part on variables
  std::set<std::string> names_;
  std::vector<RewriteRule> rules_;
};

}  // namespace

std::vector<RewriteRule> find_partial_pairs(Space& space, const GeneratorLimits& limits,
                                            const std::function<bool()>& is_over) {
  return PartialPairs(space, limits, is_over).find();
}

}  // namespace gopt::generator
