// Rules of the test's own files and of the shipped ones, as test parameters.
#pragma once

#include <gtest/gtest.h>

#include "gopt/verifier.h"
#include "rules.h"

namespace gopt {

inline RewriteRule rule_of(const std::string& text) { return rules_in(text).at(0); }

struct NamedRule {
  RewriteRule rule;
};
inline void PrintTo(const NamedRule& named, std::ostream* out) { *out << named.rule.name; }

inline std::vector<NamedRule> named_rules(const std::string& path) {
  std::vector<NamedRule> named;
  for (RewriteRule& rule : rules_of_file(path)) named.push_back({std::move(rule)});
  return named;
}

inline std::string test_name(const ::testing::TestParamInfo<NamedRule>& info) {
  std::string name = info.param.rule.name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace gopt
