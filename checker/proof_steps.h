// The steps of a log as values, each found by what it shows.
#pragma once

#include "smt.h"

namespace gopt::checker {

// The parts of a condition by their texts; "true" is none.
using Hypotheses = std::set<std::string>;
Hypotheses hypotheses_of(const Condition& context);
// Whether what holds under `some` holds under `all`.
bool includes(const Hypotheses& all, const Hypotheses& some);

struct Implication {
  std::string what;
  Condition context, goal;
  Hypotheses hypotheses;
};
struct Cancellation {
  std::string what;
  Condition context;
  Counts counts;
  Hypotheses hypotheses;
};
// A term of a sum, and how its binders are written.
struct LoggedMember {
  size_t term = 0;
  PolySubstitution change;
};
// Sums over one range, and what is summed.
struct LoggedSum {
  Condition guard;
  Form integrand;
  std::vector<LoggedMember> members;
};
struct LoggedEquality {
  Condition context;
  Form left, right, terms;
  enum class Way { ByClasses, ByCases, Rearranged, EitherWay, BySign, Inside, Pointwise } way = Way::ByClasses;
  Condition guard;                                              // EitherWay
  Form difference, where_positive, where_zero, where_negative;  // BySign
  std::vector<std::vector<LoggedMember>> classes;
  std::vector<LoggedSum> sums;  // Inside
  Hypotheses hypotheses;
};

struct ProofSteps {
  std::string rule;
  std::set<int> booleans;                                          // inputs of truth values
  std::map<std::string, std::vector<Implication>> implications;    // by the goal's text
  std::map<std::string, std::vector<Cancellation>> cancellations;  // by key_of() the counts
  std::map<std::string, std::vector<LoggedEquality>> equalities;   // by equality_key()
};
std::string key_of(const Counts& counts);
std::string equality_key(const Form& left, const Form& right);

// Throws Fault where a line is no step.
ProofSteps read_proof_steps(const std::vector<Sexpr>& lines);

}  // namespace gopt::checker
