#include "gopt/log_binding.h"

#include <algorithm>

#include "gopt/scheme.h"
#include "log_coverage.h"

namespace gopt::checker {
namespace {

bool has_prefix(const RewriteRule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
}

// What the header says that the rule and its record do not.
std::vector<std::string> header_faults(const LogHeader& header, const RewriteRule& rule) {
  std::vector<std::string> faults;
  if (header.name != rule.name) faults.push_back("it is of the rule `" + header.name + "`, not of `" + rule.name + "`");
  const std::string hash = rule.content_hash();
  if (header.rule != hash)
    faults.push_back("it is of a rule of that name with other content (" + header.rule + ", the file's is " + hash +
                     "); perhaps the file lacks the condition that was found, which rulegen verify --write writes");
  const std::string definitions = definitions_hash(rule);
  if (header.definitions != definitions)
    faults.push_back("it was made under definitions " + header.definitions + ", today's are " + definitions);
  if (header.outputs != static_cast<int64_t>(rule.left.outputs().size()))
    faults.push_back("it is of " + std::to_string(header.outputs) + " outputs, the rule has " +
                     std::to_string(rule.left.outputs().size()));
  if (!rule.proof) {
    faults.emplace_back("the file has no record of a proof of the rule; rulegen verify --write writes it");
  } else if (rule.proof->digest != header.digest || rule.proof->obligations != header.obligations) {
    faults.push_back("it is of a proof with digest " + header.digest + " and " + std::to_string(header.obligations) +
                     " obligations, the file's record of one with " + rule.proof->digest + " and " +
                     std::to_string(rule.proof->obligations));
  }
  return faults;
}

// The cases that a proof of the rule consists of: below no leading axis and below one, or the rule as it stands and
// then with extents that are 1.
void check_cases(const LogSteps& steps, const RewriteRule& rule) {
  if (rule.scheme) {
    if (!rule.scheme->objection.empty()) throw Fault("it is no rule for every rank: " + rule.scheme->objection);
    if (steps.cases.size() != ranks_to_prove(*rule.scheme).size() ||
        std::any_of(steps.cases.begin(), steps.cases.end(), [](const LogCase& c) { return c.kind != "ranks"; }))
      throw Fault("there are not the proofs of the ranks that stand for all others");
    return;
  }
  const auto count = [&](const std::string& kind, size_t symbols) {
    return std::count_if(steps.cases.begin(), steps.cases.end(),
                         [&](const LogCase& c) { return c.kind == kind && c.symbols.size() == symbols; });
  };
  if (has_prefix(rule)) {
    if (count("prefix", 0) != 1) throw Fault("there is no proof below no leading axes");
    if (count("prefix", 1) != 1) throw Fault("there is no proof below one leading axis");
    if (steps.cases.size() != 2) throw Fault("there are other cases than below no leading axes and one");
    for (const LogCase& c : steps.cases)
      for (const AtomId id : c.symbols)
        if (symbols_of(rule).count(id)) throw Fault("the leading axis is one of the rule's own sizes");
    return;
  }
  if (steps.cases.empty() || steps.cases[0].kind != "plain") throw Fault("there is no proof of the rule as it stands");
  for (size_t i = 1; i < steps.cases.size(); i++)
    if (steps.cases[i].kind != "one" || rule.is_partial()) throw Fault("there is a case that is none of the rule");
}

void check_booleans(const LogSteps& steps, const RewriteRule& rule) {
  for (const int64_t input : steps.booleans)
    if (input < 0 || input >= static_cast<int64_t>(rule.variables.size()) ||
        rule.variables[static_cast<size_t>(input)].type.element != ElementType::Bool)
      throw Fault("input " + std::to_string(input) + " is said to hold truth values");
}

// Rules over lists of axes have a case for each of the ranks that stand for all others, in their order.
RewriteRule rule_of_case(const RewriteRule& rule, size_t number) {
  if (!rule.scheme) return rule;
  auto instance = instance_of(rule, ranks_to_prove(*rule.scheme)[number]);
  if (!instance) throw Fault(instance.error().message);
  return *std::move(instance);
}

LogBinding bind(const LogSteps& steps, const RewriteRule& rule) {
  check_booleans(steps, rule);
  check_cases(steps, rule);
  std::vector<BoundCase> cases;
  for (size_t i = 0; i < steps.cases.size(); i++) cases.push_back(bind_case(steps.cases[i], rule_of_case(rule, i)));
  const Coverage coverage = coverage_of(rule, cases);
  LogBinding binding{{}, coverage.sizes_tried};
  if (coverage.missing) binding.faults.push_back(*coverage.missing);
  return binding;
}

}  // namespace
}  // namespace gopt::checker

namespace gopt {

Result<std::string> rule_of_log(std::string_view log) {
  try {
    return checker::header_of(checker::parse_sexprs(log)).name;
  } catch (const checker::Fault& fault) {
    return Error{fault.what()};
  }
}

Result<LogBinding> bind_proof_log(std::string_view log, const RewriteRule& rule) {
  try {
    const checker::LogSteps steps = checker::steps_of(checker::parse_sexprs(log));
    std::vector<std::string> faults = checker::header_faults(steps.header, rule);
    if (!faults.empty()) return LogBinding{std::move(faults), 0};
    return checker::bind(steps, rule);
  } catch (const checker::Fault& fault) {
    return LogBinding{{fault.what()}, 0};
  }
}

}  // namespace gopt
