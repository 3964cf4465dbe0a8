// Rules of the test's own files and of the shipped ones, as test parameters.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "gopt/verifier.h"

namespace gopt {

inline std::vector<RewriteRule> rules_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  auto rules = parse_rules(text.str(), path);
  if (!rules) throw std::runtime_error(rules.error().message);
  return *std::move(rules);
}

inline RewriteRule rule_of(const std::string& text) {
  auto rules = parse_rules(text, "test");
  if (!rules) throw std::runtime_error(rules.error().message);
  return rules->at(0);
}

struct NamedRule {
  RewriteRule rule;
};
inline void PrintTo(const NamedRule& named, std::ostream* out) { *out << named.rule.name; }

inline std::vector<NamedRule> named_rules(const std::string& path) {
  std::vector<NamedRule> named;
  for (RewriteRule& rule : rules_of(path)) named.push_back({std::move(rule)});
  return named;
}

inline std::string test_name(const ::testing::TestParamInfo<NamedRule>& info) {
  std::string name = info.param.rule.name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace gopt
