#include "log_steps.h"

namespace gopt::checker {
namespace {

const Sexpr& entry(const Sexpr& list, const std::string& name) {
  for (const Sexpr& item : list.items)
    if (item.is_list && item.head() == name) return item;
  throw Fault("'" + list.head() + "' does not say '" + name + "'");
}

LogCase case_of(const Sexpr& line) {
  LogCase c{line.at(1).word, {}, {}, {}};
  for (size_t i = 2; i < line.size(); i++) {
    if (line.at(i).is_list) throw Fault("a case is of symbols");
    c.symbols.push_back(symbol_atom(line.at(i).word));
  }
  return c;
}

OutputStep output_step_of(const Sexpr& line) {
  OutputStep step;
  if (line.at(1).integer() < 0) throw Fault("an output has no such number");
  step.output = static_cast<size_t>(line.at(1).integer());
  step.hypotheses = parts_of(condition_of(line.at(2)));
  if (line.head() == "output") {
    step.left = expression_of(line.at(3));
    step.right = expression_of(line.at(5));
  }
  const Sexpr &at = entry(line, "at"), &where = entry(line, "where");
  for (size_t i = 1; i < at.size(); i++) step.subscripts.push_back(index_of(at.at(i)));
  for (size_t i = 1; i < where.size(); i++) {
    const auto symbol = index_of(where.at(i).at(0)).as_atom();
    if (!symbol || atom(*symbol).kind != AtomKind::Symbol) throw Fault("a value is put in place of what is no symbol");
    if (!step.values.emplace(*symbol, index_of(where.at(i).at(1))).second) throw Fault("a symbol has two values");
  }
  return step;
}

}  // namespace

LogHeader header_of(const std::vector<Sexpr>& lines) {
  if (lines.empty() || lines[0].head() != "proof") throw Fault("the log does not say which rule it is of");
  const Sexpr& line = lines[0];
  return {line.at(1).word,
          entry(line, "rule").at(1).word,
          entry(line, "definitions").at(1).word,
          entry(line, "digest").at(1).word,
          entry(line, "outputs").at(1).integer(),
          entry(line, "obligations").at(1).integer()};
}

LogSteps steps_of(const std::vector<Sexpr>& lines) {
  LogSteps steps{header_of(lines), {}, {}};
  for (size_t i = 1; i < lines.size(); i++) {
    const Sexpr& line = lines[i];
    const std::string& head = line.head();
    if (head == "proof") throw Fault("the log is of two proofs");
    if (head == "boolean") steps.booleans.push_back(line.at(1).integer());
    if (head == "case") steps.cases.push_back(case_of(line));
    if (head != "output" && head != "empty" && head != "required") continue;
    if (steps.cases.empty()) throw Fault("a step that is of no case");
    if (head == "required")
      steps.cases.back().required.push_back({parts_of(condition_of(line.at(2))), condition_of(line.at(3))});
    else
      steps.cases.back().outputs.push_back(output_step_of(line));
  }
  return steps;
}

}  // namespace gopt::checker
