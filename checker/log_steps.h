// What a log says that ties it to a rule: its header, the cases that it has, and in each the outputs and requirements
// with the hypotheses under which they were shown.
#pragma once

#include "log_terms.h"

namespace gopt::checker {

struct LogHeader {
  std::string name, rule, definitions, digest;
  int64_t outputs = 0, obligations = 0;
};

// An output's step: what both sides are at the subscripts, or that there is no such position.
struct OutputStep {
  size_t output = 0;
  std::vector<Cond> hypotheses;
  Expr left, right;  // empty where there is no position
  std::vector<Index> subscripts;
  Substitution values;  // in place of symbols
};
struct RequiredStep {
  std::vector<Cond> hypotheses;
  Cond goal;
};

struct LogCase {
  std::string kind;             // plain, prefix, one
  std::vector<AtomId> symbols;  // prefix: the leading extents; one: what is 1
  std::vector<OutputStep> outputs;
  std::vector<RequiredStep> required;
};

struct LogSteps {
  LogHeader header;
  std::vector<LogCase> cases;
  std::vector<int64_t> booleans;  // inputs that are said to hold truth values
};

// Throws Fault.
LogHeader header_of(const std::vector<Sexpr>& lines);
LogSteps steps_of(const std::vector<Sexpr>& lines);

}  // namespace gopt::checker
