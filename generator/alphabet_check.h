// What is wrong with a family once all of it is read: symbols of no size, variables of no or too many elements, nothing
// to enumerate. Each error says the line that it is about and what would mend it.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "alphabet.h"
#include "names.h"

namespace gopt::generator {

// Of a variable. Terms are evaluated element by element, so that more would take hours and all memory.
// Later tests draw sizes for few pairs only.
constexpr int64_t kMaxElements = 4096, kMaxDrawnElements = 65536;

inline std::set<std::string> float_variables_of(const Family& family) {
  std::set<std::string> names;
  const auto collect = [&](const Attributes& attributes) {
    for (const auto& [name, value] : attributes)
      if (const auto* variable = std::get_if<FloatVariable>(&value)) names.insert(variable->name);
  };
  for (const AlphabetOp& op : family.ops) {
    collect(op.attributes);
    for (const CompositeStep& step : op.steps) collect(step.attributes);
  }
  return names;
}

class FamilyCheck {
 public:
  FamilyCheck(const Family& family, const std::string& file) : family_(family), file_(file) {}

  Status run() const {
    if (family_.ops.empty())
      return wrong(family_.line, fmt::format("family {} has no operator; add one: op NAME", family_.name));
    if (family_.classes.size() > kMaxClasses)
      return wrong(family_.classes[kMaxClasses].line,
                   fmt::format("family {} has more than {} classes of variables; split it", family_.name, kMaxClasses));
    if (float_variables_of(family_).size() > 1)
      return wrong(family_.line,
                   fmt::format("family {} has more than one float variable; give it one name", family_.name));
    for (const AlphabetOp& op : family_.ops) GOPT_RETURN_IF_ERROR(check_op(op));
    for (const VariableClass& variables : family_.classes) GOPT_RETURN_IF_ERROR(check_class(variables));
    return Unit{};
  }

 private:
  enum class Values { First, Second, Largest };  // of the sizes: in the assignments, and as later tests draw them

  Error wrong(int line, const std::string& what) const { return Error{fmt::format("{}:{}: {}", file_, line, what)}; }

  Status check_symbols(std::set<AtomId> used, int line) const {
    for (const Size& size : family_.sizes) used.erase(size.symbol);
    if (used.empty()) return Unit{};
    const std::string& name = atom(*used.begin()).name;
    return wrong(line,
                 fmt::format("`{0}` is no size of family {1}; declare it: size {0} FIRST SECOND", name, family_.name));
  }
  Status check_attributes(const Attributes& attributes, int line) const {
    std::set<AtomId> used;
    for (const auto& [name, value] : attributes) collect_symbols(value, used);
    return check_symbols(std::move(used), line);
  }
  Status check_op(const AlphabetOp& op) const {
    if (!op.composite.empty() && op.steps.empty())
      return wrong(op.line, fmt::format("composite {} of family {} has no step; add one: step NAME ARGUMENT ...",
                                        op.composite, family_.name));
    GOPT_RETURN_IF_ERROR(check_attributes(op.attributes, op.line));
    for (const CompositeStep& step : op.steps) GOPT_RETURN_IF_ERROR(check_attributes(step.attributes, step.line));
    return Unit{};
  }
  Status check_class(const VariableClass& variables) const {
    std::set<AtomId> used;
    for (const Index& extent : *variables.type.shape) collect_symbols(extent, used);
    GOPT_RETURN_IF_ERROR(check_symbols(std::move(used), variables.line));
    for (const Values values : {Values::First, Values::Second, Values::Largest})
      GOPT_RETURN_IF_ERROR(check_elements(variables, values));
    return Unit{};
  }
  Status check_elements(const VariableClass& variables, Values values) const {
    static const char* const kNames[] = {"first", "second", "largest"};
    const char* name = kNames[static_cast<int>(values)];
    double elements = 1;
    for (const Index& extent : *variables.type.shape) {
      const double value = value_of(extent, values);
      if (value < 1 && values != Values::Largest)
        return wrong(variables.line,
                     fmt::format("extent {} of a variable is {} with the {} values of the sizes; make it 1 or more",
                                 to_string(extent), value, name));
      elements *= std::max(value, 1.0);
    }
    const int64_t most = values == Values::Largest ? kMaxDrawnElements : kMaxElements;
    if (elements <= static_cast<double>(most)) return Unit{};
    return wrong(variables.line, fmt::format("a variable has {} elements with the {} values of the sizes, more than "
                                             "{}; make the sizes smaller",
                                             elements, name, most));
  }
  // As a double, so that nothing overflows; exact below 2^53.
  double value_of(const Index& extent, Values values) const {
    std::map<AtomId, double> sizes;
    for (const Size& size : family_.sizes)
      sizes[size.symbol] =
          static_cast<double>(values == Values::Largest ? size.high : size.values[static_cast<int>(values)]);
    auto sum = static_cast<double>(extent.constant());
    for (const Index::Term& term : extent.terms()) {
      auto product = static_cast<double>(term.coefficient);
      for (AtomId symbol : term.atoms) product *= sizes.at(symbol);
      sum += product;
    }
    return sum;
  }

  const Family& family_;
  const std::string& file_;
};

}  // namespace gopt::generator
