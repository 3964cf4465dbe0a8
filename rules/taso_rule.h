// A rule of TASO's JSON as it stands, before it means anything: operators with named integer parameters. taso_json.cc
// reads it, taso_graph.cc gives it a meaning.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::rules {

// Output `port` of the operator at position `node`; a negative node is a pattern variable.
struct TasoRef {
  int node = 0;
  int port = 0;
};

struct TasoOp {
  std::string name;
  std::map<std::string, int64_t> parameters;
  std::vector<TasoRef> inputs;

  std::optional<int64_t> find(const std::string& parameter) const {
    auto it = parameters.find(parameter);
    return it == parameters.end() ? std::nullopt : std::optional(it->second);
  }
};

struct TasoRule {
  std::string name;
  std::vector<TasoOp> source, target;
  std::vector<std::pair<TasoRef, TasoRef>> outputs;  // of the source, of the target
  std::map<int, int> ranks;                          // of variables, where the file says them
};

// What TASO numbers, as its JSON names it.
inline constexpr int64_t kTasoSame = 0, kTasoValid = 1;
enum class TasoActivation : int64_t { None, Sigmoid, Relu, Tanh };

// Errors: what cannot be translated, and which operator it is.
Result<RewriteRule> rule_of_taso(const TasoRule& rule);

}  // namespace gopt::rules
