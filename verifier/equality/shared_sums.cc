#include "shared_sums.h"

#include <algorithm>

namespace gopt::verifier {
namespace {

constexpr size_t kMaxBinders = 3;

std::set<std::string> literals_of(const Cond& guard) {
  std::set<std::string> texts;
  for (const Cond& literal : conjuncts(guard)) texts.insert(to_string(literal));
  return texts;
}

void collect_reads(const Factor& factor, std::set<std::string>& out) {
  if (factor.kind == FactorKind::Read) out.insert(key(factor, false));
  auto collect = [&](const NormalForm& form) {
    for (const Summand& term : form)
      for (const Factor& f : term.factors) collect_reads(f, out);
  };
  for (const NormalForm& argument : factor.args) collect(argument);
  for (const Branch& branch : factor.branches) collect(branch.value);
}
std::set<std::string> reads_of(const Summand& term) {
  std::set<std::string> reads;
  for (const Factor& f : term.factors) collect_reads(f, reads);
  return reads;
}

Summand with_binders(Summand term, const Substitution& change) {
  term.guard = substitute(term.guard, change);
  for (Factor& f : term.factors) f = substitute(f, change);
  term.binders.clear();
  return term;
}

// The order of the term's binders in which its guard is the first's, and it reads most of what the first reads.
std::optional<Substitution> change_to(const Summand& first, const Summand& term) {
  if (first.binders.size() != term.binders.size() || term.binders.size() > kMaxBinders) return std::nullopt;
  const std::set<std::string> guard = literals_of(first.guard), reads = reads_of(first);
  std::optional<Substitution> best;
  ptrdiff_t most = -1;
  std::vector<size_t> order(term.binders.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  do {
    Substitution change;
    for (size_t i = 0; i < order.size(); i++) change[term.binders[i]] = Index::from_atom(first.binders[order[i]]);
    const Summand changed = with_binders(term, change);
    if (literals_of(changed.guard) != guard) continue;
    const std::set<std::string> own = reads_of(changed);
    const auto shared = std::count_if(own.begin(), own.end(), [&](const std::string& r) { return reads.count(r) > 0; });
    if (shared <= most) continue;
    most = shared;
    best = std::move(change);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

std::optional<std::vector<SharedSum>> shared_sums(const std::vector<Summand>& terms) {
  std::vector<SharedSum> sums;
  std::vector<bool> done(terms.size(), false);
  bool has_binders = false;
  for (size_t i = 0; i < terms.size(); i++) {
    if (done[i]) continue;
    const Summand& first = terms[i];
    const bool is_sum = !first.binders.empty();
    has_binders = has_binders || is_sum;
    SharedSum sum{is_sum ? first.guard : Cond(), {}, {}};
    for (size_t j = i; j < terms.size(); j++) {
      if (done[j] || is_sum != !terms[j].binders.empty()) continue;
      const auto change = is_sum ? change_to(first, terms[j]) : std::optional(Substitution{});
      if (!change) continue;
      done[j] = true;
      sum.members.push_back({j, *change});
      sum.integrand.push_back(with_binders(terms[j], *change));
      if (is_sum) sum.integrand.back().guard = Cond();
    }
    if (is_sum && sum.members.size() < 2) return std::nullopt;
    sums.push_back(std::move(sum));
  }
  return has_binders ? std::optional(std::move(sums)) : std::nullopt;
}

}  // namespace gopt::verifier
