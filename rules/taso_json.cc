#include "gopt/taso_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "taso_rule.h"

namespace gopt::rules {
namespace {

using Json = nlohmann::json;

class FormError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

const Json& member(const Json& object, const char* name) {
  if (!object.is_object()) throw FormError(std::string("what should hold '") + name + "' is no object");
  if (!object.contains(name)) throw FormError(std::string("'") + name + "' is missing");
  return object.at(name);
}
const Json& array(const Json& value, const std::string& what) {
  if (!value.is_array()) throw FormError(what + " is not an array");
  return value;
}

int small_integer(const Json& value, const std::string& what) {
  constexpr int64_t kLargest = 1'000'000;
  if (!value.is_number_integer()) throw FormError(what + " is not an integer");
  const auto number = value.get<int64_t>();
  if (number > kLargest || number < -kLargest) throw FormError(what + " is out of range");
  return static_cast<int>(number);
}

const std::map<std::string, std::vector<std::string>>& named_values() {
  static const std::map<std::string, std::vector<std::string>> names{{"pad", {"same", "valid"}},
                                                                     {"acti", {"none", "sigmoid", "relu", "tanh"}}};
  return names;
}

// Padding and activation are written by name or by number.
int64_t parameter_value(const std::string& name, const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  auto names = named_values().find(name);
  if (names != named_values().end() && value.is_string()) {
    auto it = std::find(names->second.begin(), names->second.end(), value.get<std::string>());
    if (it == names->second.end())
      throw FormError("parameter '" + name + "' cannot be '" + value.get<std::string>() + "'");
    return it - names->second.begin();
  }
  const int number = small_integer(value, "parameter '" + name + "'");
  if (names != named_values().end() && (number < 0 || number >= static_cast<int>(names->second.size())))
    throw FormError("parameter '" + name + "' cannot be " + std::to_string(number));
  return number;
}

// A permutation that is written as a list, as TASO has it: the number whose digits, to the base of its length, are its
// images.
void read_permutation(const Json& list, std::map<std::string, int64_t>& parameters) {
  const auto rank = static_cast<int64_t>(list.size());
  int64_t code = 0;
  std::set<int64_t> images;
  for (const Json& image : list) {
    const int64_t own = small_integer(image, "an image in 'perm'");
    if (own < 0 || own >= rank || !images.insert(own).second || rank > 6)
      throw FormError("'perm' is no permutation of up to 6 axes");
    code = code * rank + own;
  }
  if (const auto known = parameters.find("numdim"); known != parameters.end() && known->second != rank)
    throw FormError("'perm' has " + std::to_string(rank) + " axes and 'numdim' says " + std::to_string(known->second));
  parameters["numdim"] = rank;
  parameters["perm"] = code;
}

TasoRef reference(const Json& value, size_t operators, const char* where) {
  if (!value.is_array() || value.size() != 2)
    throw FormError(std::string(where) + " holds a reference that is no pair [operator, output]");
  const TasoRef ref{small_integer(value[0], "an operator's number"), small_integer(value[1], "an output's number")};
  if (ref.node >= static_cast<int>(operators))
    throw FormError(std::string(where) + " refers to operator " + std::to_string(ref.node) +
                    ", which is not before it");
  if (ref.port < 0) throw FormError(std::string(where) + " refers to a negative output");
  return ref;
}

std::vector<TasoOp> operators(const Json& rule, const char* side) {
  std::vector<TasoOp> ops;
  for (const Json& item : array(member(rule, side), side)) {
    TasoOp op;
    if (!member(item, "op").is_string()) throw FormError("an operator's name is not a string");
    op.name = item.at("op").get<std::string>();
    if (item.contains("p")) {
      if (!item.at("p").is_object()) throw FormError("the parameters of " + op.name + " are no object");
      for (const auto& [name, value] : item.at("p").items())
        if (name != "op_type" && !(name == "perm" && value.is_array()))  // the first says 'op' again
          op.parameters[name] = parameter_value(name, value);
      if (item.at("p").contains("perm") && item.at("p").at("perm").is_array())
        read_permutation(item.at("p").at("perm"), op.parameters);
    }
    for (const Json& input : array(member(item, "in"), "'in' of " + op.name))
      op.inputs.push_back(reference(input, ops.size(), op.name.c_str()));
    ops.push_back(std::move(op));
  }
  return ops;
}

TasoRule read_rule(const Json& json) {
  TasoRule rule;
  rule.source = operators(json, "src");
  rule.target = operators(json, "dst");
  for (const Json& pair : array(member(json, "out"), "'out'")) {
    if (!pair.is_array() || pair.size() != 2) throw FormError("'out' holds something other than a pair of outputs");
    rule.outputs.push_back(
        {reference(pair[0], rule.source.size(), "'out'"), reference(pair[1], rule.target.size(), "'out'")});
  }
  if (rule.outputs.empty()) throw FormError("'out' is empty");
  if (json.contains("rank")) {
    if (!json.at("rank").is_object()) throw FormError("'rank' is no object");
    for (const auto& [name, value] : json.at("rank").items()) {
      const int rank = small_integer(value, "a rank");
      if (name.empty() || name[0] != '-' || name.size() > 8 || name.find_first_not_of("0123456789", 1) < name.size())
        throw FormError("'rank' speaks of '" + name + "', which is no variable");
      if (rank < 0 || rank > 8) throw FormError("a rank is from 0 to 8");
      rule.ranks[std::stoi(name)] = rank;
    }
  }
  return rule;
}

// How an entry is called: by its own number where it has one, else by its place, in words that no number is.
struct Label {
  std::string name, text;  // "taso-17"; "rule 17 (entry 3)"
};
Label label_of(const Json& json, size_t position) {
  const std::string place = "entry " + std::to_string(position);
  std::string id;
  if (json.is_object() && json.contains("id")) {
    const Json& own = json.at("id");
    if (own.is_number_integer()) id = std::to_string(own.get<int64_t>());
    if (own.is_string()) id = own.get<std::string>();
  }
  if (id.empty()) return {"taso-entry-" + std::to_string(position), place + ", which has no id"};
  return {"taso-" + id, "rule " + id + " (" + place + ")"};
}

// Throws FormError, std::overflow_error.
RewriteRule rule_of(const Json& json, const std::string& name) {
  TasoRule read = read_rule(json);
  read.name = name;
  auto rule = rule_of_taso(read);
  if (!rule) throw FormError(rule.error().message);
  return *std::move(rule);
}

}  // namespace

}  // namespace gopt::rules

namespace gopt {

using namespace rules;

Result<ParsedRules> parse_each_taso_rule(std::string_view text, const std::string& file_name) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return Error{file_name + ": this is not JSON"};
  const Json* list = document.is_object() && document.contains("rules") ? &document.at("rules") : &document;
  if (!list->is_array()) return Error{file_name + ": no array of rules, neither the whole nor under \"rules\""};
  ParsedRules parsed;
  std::map<std::string, size_t> places;  // of the entries of each name
  size_t position = 0;
  for (const Json& json : *list) {
    const Label label = label_of(json, position++);
    try {
      if (!json.is_object()) throw FormError("a rule is an object with 'src', 'dst' and 'out'");
      const auto [first, is_new] = places.emplace(label.name, position - 1);
      if (!is_new) throw FormError("entry " + std::to_string(first->second) + " has the same id");
      parsed.rules.push_back(rule_of(json, label.name));
    } catch (const std::runtime_error& e) {
      parsed.malformed.push_back({label.name, file_name + ": " + label.text + ": " + e.what(), parsed.rules.size()});
    }
  }
  return parsed;
}

Result<std::vector<RewriteRule>> parse_taso_rules(std::string_view text, const std::string& file_name) {
  GOPT_ASSIGN_OR_RETURN(ParsedRules parsed, parse_each_taso_rule(text, file_name));
  return rules_or_error(std::move(parsed));
}

}  // namespace gopt
