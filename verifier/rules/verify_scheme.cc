#include "verify_scheme.h"

#include <algorithm>
#include <random>

#include "gopt/scheme.h"
#include "rule_meaning.h"
#include "rule_verifier.h"

namespace gopt::verifier {
namespace {

constexpr int kMaxRank = 6;            // of sampled instances
constexpr size_t kMaxInstances = 256;  // to be proved
constexpr int kDraws = 24;

std::vector<Index> shuffled(int count, std::mt19937_64& random) {
  std::vector<Index> places;
  for (int k = 0; k < count; k++) {
    places.emplace_back(k);
    std::swap(places.back(), places[random() % places.size()]);
  }
  return places;
}

// Lists of up to three axes, permutations and disjoint subsets of them.
RankAssignment random_ranks(const Scheme& scheme, std::mt19937_64& random) {
  RankAssignment ranks;
  for (const std::string& list : scheme.lists) {
    const int length = static_cast<int>(random() % 4);
    ranks.lengths[list] = length;
    std::vector<Index> left = shuffled(length, random);
    for (const AxisSymbol& symbol : scheme.symbols) {
      if (symbol.list != list || symbol.kind == AxisSymbolKind::Integers) continue;
      std::vector<Index>& places = ranks.places[symbol.name];
      if (symbol.kind == AxisSymbolKind::Permutation) {
        places = shuffled(length, random);
        continue;
      }
      for (size_t count = random() % (left.size() + 1); count > 0; count--) {
        places.push_back(left.back());
        left.pop_back();
      }
    }
  }
  return ranks;
}

size_t largest_rank(const RewriteRule& rule) {
  size_t rank = 0;
  for (const RuleVariable& variable : rule.variables) rank = std::max(rank, variable.type.shape->size());
  return rank;
}

std::optional<Counterexample> difference_of(const RewriteRule& instance, int samples, uint64_t seed) {
  if (instance.condition.is_false()) return std::nullopt;
  const auto left = meaning_of(instance.left), right = meaning_of(instance.right);
  if (!left || !right) return std::nullopt;
  const SamplingResult result = sample_rule(instance, *left, *right, instance.condition, samples, seed);
  return result.difference ? result.difference : result.right_undefined;
}

// Types of both; empty stands for all.
std::vector<ElementType> common_types(const std::vector<ElementType>& a, const std::vector<ElementType>& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  std::vector<ElementType> common;
  std::copy_if(a.begin(), a.end(), std::back_inserter(common),
               [&](ElementType type) { return std::find(b.begin(), b.end(), type) != b.end(); });
  return common;
}

// The proof of one instance, as it stands: a condition that it needs is no condition of all ranks.
Verification verify_instance(const RewriteRule& instance, const VerifyOptions& options) {
  RuleVerifier verifier(instance, options);
  Verification v = verifier.run();
  attach_proof(v, {&verifier.solver()});
  if (!v.proof) return v;
  v.log = verifier.log().text();
  Solver solver({options.rlimit, false, nullptr});
  if (solver.entails(variable_domain(instance) && instance.condition, v.condition)) return v;
  return unknown_verdict("it needs " + to_string(v.condition) + ", which is to be said of all ranks");
}

}  // namespace

std::optional<RefutedInstance> sample_scheme(const RewriteRule& rule, int samples, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < kDraws; draw++) {
    const RankAssignment ranks = random_ranks(*rule.scheme, random);
    const auto instance = instance_of(rule, ranks);
    if (!instance || largest_rank(*instance) > kMaxRank) continue;
    if (const auto found = difference_of(*instance, std::max(1, samples / 4), seed + static_cast<uint64_t>(draw)))
      return RefutedInstance{to_string(ranks), *found};
  }
  return std::nullopt;
}

Verification verify_scheme(const RewriteRule& rule, const VerifyOptions& options) {
  const Scheme& scheme = *rule.scheme;
  if (options.samples > 0)
    if (const auto found = sample_scheme(rule, options.samples, options.seed))
      return refuted_verdict("under " + found->ranks + ": the sides differ", found->counterexample);
  if (!holds_for(rule, ElementType::Float32)) return unknown_verdict("a rule at any rank is proved for f32 first");
  if (!scheme.objection.empty()) return unknown_verdict("not for every rank: " + scheme.objection);
  const std::vector<RankAssignment> all = ranks_to_prove(scheme);
  if (all.size() > kMaxInstances) return unknown_verdict("its lists of axes have too many instances");
  Verification total;
  for (const RankAssignment& ranks : all) {
    const auto instance = instance_of(rule, ranks);
    if (!instance) return unknown_verdict("under " + to_string(ranks) + ": " + instance.error().message);
    if (instance->condition.is_false()) return unknown_verdict("under " + to_string(ranks) + " it never holds");
    Verification v = verify_instance(*instance, options);
    if (options.keep_log) v.log = log_case("ranks", {}) + v.log;
    if (v.verdict != Verdict::Proved) {
      v.reason = "under " + to_string(ranks) + ": " + v.reason;
      return v;
    }
    find_real_types(*instance, options, v);
    const int questions = total.questions + v.questions;
    if (total.proof) {
      total.real_types = common_types(total.real_types, v.real_types);
      add_proof(total, v);
    } else {
      total = std::move(v);
    }
    total.questions = questions;
  }
  total.condition = rule.condition;
  total.conditions = conjuncts(total.condition);
  return total;
}

}  // namespace gopt::verifier
