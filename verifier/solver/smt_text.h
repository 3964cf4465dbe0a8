// SMT-LIB text of conditions: the same for the same question in every process (symbols by name, terms sorted), so that
// it can be hashed, kept and given to another solver.
#pragma once

#include <map>
#include <set>
#include <string>

#include "gopt/index.h"

namespace gopt::verifier {

class SmtText {
 public:
  std::string operator()(const Index& index);
  std::string operator()(const Cond& cond);
  // Declarations of all symbols met, and what defines the floor divisions among them.
  std::string declarations();

 private:
  std::string name_of(AtomId id);
  std::map<AtomId, std::string> names_;
  std::set<std::string> constants_;    // declared names
  std::set<std::string> definitions_;  // asserted formulas
};

// |name| where SMT-LIB needs the bars.
std::string smt_symbol(const std::string& name);

}  // namespace gopt::verifier
