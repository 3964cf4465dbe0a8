#include "condition_search.h"

#include <algorithm>
#include <bit>
#include <map>

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

constexpr size_t kMaxClauses = 6;
constexpr size_t kMaxCases = 16;

// A set of rows.
class Rows {
 public:
  explicit Rows(size_t count) : words_((count + 63) / 64, 0) {}
  void insert(size_t row) { words_[row / 64] |= uint64_t{1} << (row % 64); }
  bool contains(size_t row) const { return (words_[row / 64] >> (row % 64)) & 1; }
  bool is_empty() const {
    return std::all_of(words_.begin(), words_.end(), [](uint64_t w) { return w == 0; });
  }
  bool includes(const Rows& other) const {
    for (size_t i = 0; i < words_.size(); i++)
      if (other.words_[i] & ~words_[i]) return false;
    return true;
  }
  Rows without(const Rows& other) const {
    Rows r = *this;
    for (size_t i = 0; i < words_.size(); i++) r.words_[i] &= ~other.words_[i];
    return r;
  }
  Rows united(const Rows& other) const {
    Rows r = *this;
    for (size_t i = 0; i < words_.size(); i++) r.words_[i] |= other.words_[i];
    return r;
  }
  Rows intersected(const Rows& other) const { return without(without(other)); }
  size_t count() const {
    size_t n = 0;
    for (uint64_t w : words_) n += static_cast<size_t>(std::popcount(w));
    return n;
  }
  // Rows of this set that neither a nor b holds.
  size_t count_outside(const Rows& a, const Rows& b) const {
    size_t n = 0;
    for (size_t i = 0; i < words_.size(); i++)
      n += static_cast<size_t>(std::popcount(words_[i] & ~(a.words_[i] | b.words_[i])));
    return n;
  }
  friend auto operator<=>(const Rows&, const Rows&) = default;

 private:
  std::vector<uint64_t> words_;
};

struct Candidate {
  Cond cond;
  int weight;
  Rows truth;
};

// Atoms by the rows on which they are true; of those that are true on the same rows the lightest.
std::vector<Candidate> distinct_atoms(const std::vector<ConditionAtom>& atoms, const std::vector<SizeRow>& rows) {
  std::map<Rows, Candidate> lightest;
  for (const ConditionAtom& a : atoms) {
    Rows truth(rows.size());
    for (size_t i = 0; i < rows.size(); i++)
      if (evaluate(a.cond, rows[i].sizes) == true) truth.insert(i);
    auto it = lightest.find(truth);
    if (it == lightest.end()) {
      lightest.emplace(truth, Candidate{a.cond, a.weight, truth});
    } else if (a.weight < it->second.weight) {
      it->second = {a.cond, a.weight, truth};
    }
  }
  std::vector<Candidate> distinct;
  for (auto& [truth, candidate] : lightest) distinct.push_back(std::move(candidate));
  std::stable_sort(distinct.begin(), distinct.end(),
                   [](const Candidate& a, const Candidate& b) { return a.weight < b.weight; });
  return distinct;
}

struct Clause {
  std::vector<Cond> parts;
  Rows truth;
};

// Covers `wrong` by clauses that hold on all of `right`: each step takes the clause that excludes most, of those the
// lightest.
class ClauseSearch {
 public:
  ClauseSearch(const std::vector<Candidate>& atoms, const Rows& right, const Rows& wrong)
      : atoms_(atoms), right_(right), wrong_(wrong) {}

  std::optional<std::vector<Clause>> run() {
    std::vector<Clause> clauses;
    Rows left = wrong_;
    for (const bool pairs : {false, true}) {
      while (!left.is_empty() && clauses.size() < kMaxClauses) {
        auto best = pairs ? best_pair(left) : best_atom(left);
        if (!best) break;
        left = left.intersected(best->truth);
        clauses.push_back(std::move(*best));
      }
    }
    if (!left.is_empty()) return std::nullopt;
    prune(clauses);
    return clauses;
  }

 private:
  std::optional<Clause> best_atom(const Rows& left) {
    const Candidate* best = nullptr;
    size_t most = 0;
    for (const Candidate& a : atoms_) {
      if (!a.truth.includes(right_)) continue;
      const size_t excluded = left.without(a.truth).count();
      if (excluded <= most) continue;
      most = excluded;
      best = &a;
    }
    if (!best) return std::nullopt;
    return Clause{{best->cond}, best->truth};
  }

  std::optional<Clause> best_pair(const Rows& left) {
    const Candidate *first = nullptr, *second = nullptr;
    size_t most = 0;
    int lightest = 0;
    for (size_t i = 0; i < atoms_.size(); i++) {
      const Rows missing = right_.without(atoms_[i].truth);
      for (size_t j = i + 1; j < atoms_.size(); j++) {
        if (!atoms_[j].truth.includes(missing)) continue;
        const size_t excluded = left.count_outside(atoms_[i].truth, atoms_[j].truth);
        const int weight = atoms_[i].weight + atoms_[j].weight;
        if (excluded < most || excluded == 0 || (excluded == most && weight >= lightest)) continue;
        most = excluded;
        lightest = weight;
        first = &atoms_[i];
        second = &atoms_[j];
      }
    }
    if (!first) return std::nullopt;
    return Clause{{first->cond, second->cond}, first->truth.united(second->truth)};
  }

  // Clauses that the others make superfluous go, the last found first.
  void prune(std::vector<Clause>& clauses) {
    for (size_t i = clauses.size(); i-- > 0;) {
      Rows left = wrong_;
      for (size_t j = 0; j < clauses.size(); j++)
        if (j != i) left = left.intersected(clauses[j].truth);
      if (left.is_empty()) clauses.erase(clauses.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  const std::vector<Candidate>& atoms_;
  Rows right_, wrong_;
};

// Clauses of one atom that exclude all of `wrong` and keep most of `right`: what is lost are sizes at which the sides
// agree by chance, as where a stride leaves out what differs. Each step takes the atom that excludes most for what it
// loses.
std::optional<std::vector<Clause>> sufficient_clauses(const std::vector<Candidate>& atoms, const Rows& right,
                                                      const Rows& wrong) {
  constexpr size_t kShareLost = 10;   // a tenth of the rows that hold
  constexpr size_t kPriceOfLoss = 4;  // excluded rows that make up for one
  std::vector<Clause> clauses;
  Rows kept = right, left = wrong;
  size_t may_lose = right.count() / kShareLost;
  while (!left.is_empty() && clauses.size() < kMaxClauses) {
    const Candidate* best = nullptr;
    size_t most = 0;
    for (const Candidate& a : atoms) {
      const size_t lost = kept.without(a.truth).count(), excluded = left.without(a.truth).count();
      if (lost > may_lose || excluded <= kPriceOfLoss * lost + most) continue;
      most = excluded - kPriceOfLoss * lost;
      best = &a;
    }
    if (!best) return std::nullopt;
    may_lose -= kept.without(best->truth).count();
    kept = kept.intersected(best->truth);
    left = left.intersected(best->truth);
    clauses.push_back({{best->cond}, best->truth});
  }
  return left.is_empty() ? std::optional(std::move(clauses)) : std::nullopt;
}

// Disjuncts that cover `open` and no row of `wrong`.
std::optional<std::vector<Cond>> cover_empty(const std::vector<Candidate>& emptiness, Rows open, const Rows& wrong) {
  std::vector<Cond> cover;
  while (!open.is_empty()) {
    const Candidate* best = nullptr;
    size_t fewest = open.count();
    for (const Candidate& e : emptiness) {
      if (!wrong.intersected(e.truth).is_empty()) continue;
      const size_t remaining = open.without(e.truth).count();
      if (remaining >= fewest) continue;
      fewest = remaining;
      best = &e;
    }
    if (!best) return std::nullopt;
    cover.push_back(best->cond);
    open = open.without(best->truth);
  }
  return cover;
}

// "e == 0", the first two comparisons, with what of the rest some wrong row needs.
Cond trimmed(const Cond& conjunction, const std::vector<SizeRow>& rows) {
  std::vector<Cond> parts = conjuncts(conjunction);
  auto all_but = [&parts](size_t skipped) {
    Cond all;
    for (size_t i = 0; i < parts.size(); i++)
      if (i != skipped) all = all && parts[i];
    return all;
  };
  for (size_t i = parts.size(); i-- > 2;) {
    const Cond shorter = all_but(i);
    const bool accepts_wrong = std::any_of(rows.begin(), rows.end(), [&](const SizeRow& row) {
      return !row.holds && evaluate(shorter, row.sizes) == true;
    });
    if (!accepts_wrong) parts.erase(parts.begin() + static_cast<ptrdiff_t>(i));
  }
  return all_but(parts.size());
}

// The cases of a conjunction of clauses.
std::vector<Cond> cases_of(const std::vector<Clause>& clauses) {
  std::vector<Cond> cases{Cond()};
  for (const Clause& clause : clauses) {
    std::vector<Cond> next;
    for (const Cond& so_far : cases)
      for (const Cond& part : clause.parts) next.push_back(so_far && part);
    cases = std::move(next);
  }
  return cases;
}

// Rows that the clauses have to explain, rows on which the rule fails, and those with an empty tensor.
struct SplitRows {
  Rows right, wrong, empty;
};
SplitRows split_rows(const std::vector<SizeRow>& rows, const std::vector<Candidate>& emptiness) {
  SplitRows split{Rows(rows.size()), Rows(rows.size()), Rows(rows.size())};
  for (size_t i = 0; i < rows.size(); i++)
    (!rows[i].holds ? split.wrong : rows[i].is_full ? split.right : split.empty).insert(i);
  // What no emptiness explains has to be explained by the clauses.
  for (size_t i = 0; i < rows.size(); i++) {
    const bool is_explained = std::any_of(emptiness.begin(), emptiness.end(), [&](const Candidate& e) {
      return e.truth.contains(i) && split.wrong.intersected(e.truth).is_empty();
    });
    if (split.empty.contains(i) && !is_explained) split.right.insert(i);
  }
  return split;
}

DerivedCondition stated(const std::vector<Clause>& clauses) {
  DerivedCondition derived;
  derived.cases = cases_of(clauses);
  for (const Clause& clause : clauses) {
    Cond any = Cond::never();
    for (const Cond& part : clause.parts) any = any || part;
    derived.clauses = derived.clauses && any;
  }
  return derived;
}

}  // namespace

std::optional<DerivedCondition> find_sufficient_condition(const std::vector<SizeRow>& rows,
                                                          const std::vector<ConditionAtom>& atoms,
                                                          const std::vector<ConditionAtom>& emptiness) {
  const auto [right, wrong, empty] = split_rows(rows, distinct_atoms(emptiness, rows));
  const auto clauses = sufficient_clauses(distinct_atoms(atoms, rows), right, wrong);
  if (!clauses) return std::nullopt;
  return stated(*clauses);
}

std::optional<DerivedCondition> find_condition(const std::vector<SizeRow>& rows,
                                               const std::vector<ConditionAtom>& atoms,
                                               const std::vector<ConditionAtom>& emptiness) {
  const std::vector<Candidate> emptiness_candidates = distinct_atoms(emptiness, rows);
  const auto [right, wrong, empty] = split_rows(rows, emptiness_candidates);
  const auto clauses = ClauseSearch(distinct_atoms(atoms, rows), right, wrong).run();
  if (!clauses) return std::nullopt;
  DerivedCondition derived = stated(*clauses);
  Rows open(rows.size());
  for (size_t i = 0; i < rows.size(); i++)
    if (empty.contains(i) && evaluate(derived.clauses, rows[i].sizes) != true) open.insert(i);
  const auto cover = cover_empty(emptiness_candidates, open, wrong);
  if (!cover) return std::nullopt;
  for (const Cond& empty_tensors : *cover) derived.empty.push_back(trimmed(empty_tensors, rows));
  if (derived.cases.size() + derived.empty.size() > kMaxCases) return std::nullopt;
  return derived;
}

// What all alternatives say is said once.
Cond DerivedCondition::condition() const {
  std::vector<std::vector<Cond>> alternatives{conjuncts(clauses)};
  for (const Cond& tensors : empty) alternatives.push_back(conjuncts(tensors));
  Cond shared, any = Cond::never();
  for (const Cond& part : std::vector<Cond>(alternatives[0])) {
    const auto says_it = [&](const std::vector<Cond>& own) {
      return std::find(own.begin(), own.end(), part) != own.end();
    };
    if (!std::all_of(alternatives.begin(), alternatives.end(), says_it)) continue;
    shared = shared && part;
    for (std::vector<Cond>& own : alternatives) std::erase(own, part);
  }
  for (const std::vector<Cond>& own : alternatives) {
    Cond all;
    for (const Cond& part : own) all = all && part;
    any = any || all;
  }
  return shared && any;
}

}  // namespace gopt::verifier
