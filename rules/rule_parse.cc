#include <algorithm>
#include <set>

#include "gopt/rule.h"
#include "gopt/text_reader.h"
#include "scheme_parse.h"

namespace gopt {

using namespace rules;

namespace {

// "line 3, column 7: what" as "FILE:3: rule `x`: what".
std::string located(const std::string& message, const std::string& file_name, const std::string& rule_name) {
  const size_t comma = message.find(','), colon = message.find(": ");
  const std::string line = message.substr(5, comma - 5);
  return file_name + ":" + line + ": " + (rule_name.empty() ? "" : "rule `" + rule_name + "`: ") +
         message.substr(colon + 2);
}

class RuleParser {
 public:
  RuleParser(std::string_view text, const std::string& file_name) : reader_(text), file_name_(file_name) {}

  ParsedRules parse() {
    ParsedRules parsed;
    while (!reader_.at_end()) {
      const int first_line = reader_.line();
      rule_name_.clear();
      try {
        parsed.rules.push_back(rule());
      } catch (const TextError& e) {
        parsed.malformed.push_back({rule_name_, located(e.what(), file_name_, rule_name_), parsed.rules.size()});
        pass_malformed(first_line);
      }
    }
    return parsed;
  }

 private:
  RewriteRule rule() {
    reader_.expect("rule");
    rule_name_ = reader_.word();
    if (!names_.insert(rule_name_).second) reader_.fail("the name is taken by an earlier rule");
    reader_.end_line();
    return stanza();
  }

  // Passes what is left of a stanza: through its end, or up to the next rule where that is missing.
  void pass_malformed(int first_line) {
    reader_.rewind_line();
    if (reader_.line() == first_line) reader_.skip_line();
    while (!reader_.at_end() && !reader_.peek("rule")) {
      const bool ends = reader_.accept("end") && reader_.at_line_end();
      reader_.skip_line();
      if (ends) return;
    }
  }

  RewriteRule stanza() {
    RewriteRule rule;
    rule.name = rule_name_;
    float_slots_.clear();
    scheme_.reset();
    reader_.set_float_variables(float_slots_);
    std::set<std::string> seen;
    while (true) {
      reader_.skip_blank_lines();
      if (reader_.accept("end")) break;
      if (reader_.at_end()) reader_.fail("expected 'end'");
      statement(rule, seen);
    }
    for (const char* part : {"left", "right"})
      if (!seen.count(part)) reader_.fail(std::string("the rule has no ") + part + " side");
    if (scheme_) take_scheme(rule);
    if (Status status = check_rule(rule); !status) reader_.fail(status.error().message);
    reader_.end_line();
    return rule;
  }

  void statement(RewriteRule& rule, std::set<std::string>& seen) {
    const std::string keyword = reader_.word();
    static const std::set<std::string> kRepeat{"var",  "float",    "when",        "region",
                                               "axes", "integers", "permutation", "subset"};
    const bool repeats = kRepeat.contains(keyword);
    if (!seen.insert(keyword).second && !repeats) reader_.fail("'" + keyword + "' is given twice");
    if ((keyword == "var" || keyword == "float") && seen.count("left"))
      reader_.fail("variables are declared before the sides");
    if (keyword == "axes" && (seen.count("var") || seen.count("left")))
      reader_.fail("lists of axes are declared before the variables");
    if (keyword == "axes" && !scheme_) scheme_.emplace();
    if (scheme_ && scheme_statement(keyword)) return;
    if (keyword == "var") {
      variable(rule);
    } else if (keyword == "float") {
      const std::string name = reader_.name();
      const int slot = kFirstFloatSlot + static_cast<int>(float_slots_.size());
      if (!float_slots_.emplace(name, slot).second) reader_.fail("float variable '" + name + "' is declared twice");
      reader_.set_float_variables(float_slots_);
    } else if (keyword == "left") {
      rule.left = side(rule);
      return;
    } else if (keyword == "right") {
      rule.right = side(rule);
      return;
    } else if (keyword == "when") {
      rule.condition = rule.condition && reader_.cond();
    } else if (keyword == "region") {
      if (!seen.count("left")) reader_.fail("a region is said after the sides");
      region(rule);
    } else if (keyword == "types") {
      real_types(rule.real_types);
    } else if (keyword == "marks") {
      marks(rule.marks);
    } else if (keyword == "origin") {
      rule.origin = reader_.rest_of_line();
    } else if (keyword == "proof") {
      rule.proof = proof();
    } else {
      reader_.fail("'" + keyword +
                   "' is no part of a rule (axes, var, float, left, right, region, when, types, marks, origin, proof, "
                   "end)");
    }
    reader_.end_line();
  }

  // A line of a rule with lists of axes; false where it is as in any other.
  bool scheme_statement(const std::string& keyword) {
    SchemeReader reader(reader_, *scheme_);
    if (keyword == "left" || keyword == "right") {
      (keyword == "left" ? scheme_->left : scheme_->right) = reader.side();
      return true;
    }
    if (keyword == "region") reader_.fail("a partial rule has no lists of axes");
    if (keyword == "axes")
      reader.lists();
    else if (keyword == "integers")
      reader.symbols(AxisSymbolKind::Integers);
    else if (keyword == "permutation")
      reader.symbols(AxisSymbolKind::Permutation);
    else if (keyword == "subset")
      reader.symbols(AxisSymbolKind::Subset);
    else if (keyword == "var")
      reader.variable();
    else if (keyword == "when")
      reader.condition();
    else
      return false;
    reader_.end_line();
    return true;
  }

  // The rule carries an instance in which each list has an axis of each kind.
  void take_scheme(RewriteRule& rule) {
    if (Status status = analyze(*scheme_); !status) reader_.fail(status.error().message);
    std::map<std::string, int> lengths, sizes;
    for (const std::string& list : scheme_->lists) {
      const std::vector<std::string> subsets = scheme_->subsets_of(list);
      lengths[list] = 1 + static_cast<int>(subsets.size());
      for (const std::string& subset : subsets) sizes[subset] = 1;
    }
    rule.scheme = std::make_shared<const Scheme>(*scheme_);
    auto instance = instance_of(rule, plain_ranks(*scheme_, lengths, sizes));
    if (!instance) reader_.fail(instance.error().message);
    rule.variables = instance->variables;
    rule.left = instance->left;
    rule.right = instance->right;
    rule.condition = instance->condition;
  }

  void variable(RewriteRule& rule) {
    RuleVariable variable;
    variable.name = reader_.name();
    for (const RuleVariable& known : rule.variables)
      if (known.name == variable.name) reader_.fail("variable '" + variable.name + "' is declared twice");
    variable.type = reader_.type(&variable.has_prefix);
    if (!variable.type.shape) reader_.fail("a variable has a rank");
    if (reader_.accept("weight")) variable.kind = VariableKind::Weight;
    rule.variables.push_back(std::move(variable));
  }

  Graph side(const RewriteRule& rule) {
    reader_.end_line();
    GraphBuilder builder;
    std::map<std::string, Value> values;
    for (const RuleVariable& variable : rule.variables)
      values.emplace(variable.name, builder.input(variable.name, variable.type));
    while (true) {
      reader_.skip_blank_lines();
      if (reader_.accept("return")) break;
      if (reader_.at_end() || reader_.peek("end")) reader_.fail("expected 'return'");
      if (reader_.accept("constant")) {
        const std::string name = reader_.name();
        reader_.expect("=");
        if (!values.emplace(name, builder.constant(reader_.tensor(), name)).second)
          reader_.fail("'" + name + "' is defined twice");
      } else {
        reader_.node_line(builder, values);
      }
      reader_.end_line();
    }
    int count = 0;
    do builder.output("out" + std::to_string(count++), reader_.value(values));
    while (reader_.accept(","));
    reader_.end_line();
    return builder.build();
  }

  void region(RewriteRule& rule) {
    const int64_t output = reader_.integer();
    const size_t outputs = rule.left.outputs().size();
    if (output < 0 || static_cast<size_t>(output) >= outputs) reader_.fail("the left side has no such output");
    rule.regions.resize(outputs);
    Box box;
    reader_.expect("[");
    while (!reader_.accept("]")) {
      if (!box.empty()) reader_.expect(",");
      AxisRange range;
      range.low = reader_.index();
      reader_.expect(":");
      range.high = reader_.index();
      box.push_back(std::move(range));
    }
    rule.regions[static_cast<size_t>(output)].push_back(std::move(box));
  }

  // In the order of all_real_types(), so that one set is one text.
  void real_types(std::vector<ElementType>& types) {
    std::set<ElementType> given;
    do {
      const std::string word = reader_.word();
      const auto type = parse_element_type(word);
      const std::span<const ElementType> known = all_real_types();
      if (!type || std::find(known.begin(), known.end(), *type) == known.end())
        reader_.fail("'" + word + "' is no floating-point type that f32 stands for (f16, bf16, f32, f64)");
      if (!given.insert(*type).second) reader_.fail("'" + word + "' is given twice");
    } while (!reader_.at_line_end());
    for (ElementType type : all_real_types())
      if (given.count(type)) types.push_back(type);
    if (types.size() == all_real_types().size()) types.clear();
  }

  void marks(RuleMarks& marks) {
    do {
      const std::string word = reader_.word();
      const MarkInfo* mark = find_mark(word);
      if (!mark) {
        std::string known;
        for (const MarkInfo& m : all_marks()) known += (known.empty() ? "" : ", ") + std::string(m.name);
        reader_.fail("'" + word + "' is no mark (" + known + ")");
      }
      marks.*(mark->flag) = true;
    } while (!reader_.at_line_end());
  }

  ProofRecord proof() {
    ProofRecord record;
    reader_.expect("definitions");
    reader_.expect("=");
    record.definitions = reader_.quoted();
    reader_.expect("obligations");
    reader_.expect("=");
    const int64_t obligations = reader_.integer();
    if (obligations < 0 || obligations > INT32_MAX) reader_.fail("the number of obligations is out of range");
    record.obligations = static_cast<int>(obligations);
    reader_.expect("solver");
    reader_.expect("=");
    record.solver = reader_.quoted();
    reader_.expect("digest");
    reader_.expect("=");
    record.digest = reader_.quoted();
    if (reader_.accept("rule")) {
      reader_.expect("=");
      record.rule = reader_.quoted();
    }
    return record;
  }

  TextReader reader_;
  std::string file_name_;
  std::map<std::string, int> float_slots_;
  std::optional<Scheme> scheme_;  // where lists of axes were declared
  std::set<std::string> names_;
  std::string rule_name_;  // of the rule being read
};

}  // namespace

ParsedRules parse_each_rule(std::string_view text, const std::string& file_name) {
  return RuleParser(text, file_name).parse();
}

Result<std::vector<RewriteRule>> rules_or_error(ParsedRules parsed) {
  if (parsed.malformed.empty()) return std::move(parsed.rules);
  std::string lines;
  for (const MalformedRule& rule : parsed.malformed) lines += (lines.empty() ? "" : "\n") + rule.message;
  return Error{lines};
}

Result<std::vector<RewriteRule>> parse_rules(std::string_view text, const std::string& file_name) {
  return rules_or_error(parse_each_rule(text, file_name));
}

}  // namespace gopt
