#include "log_coverage.h"

#include <algorithm>
#include <random>

namespace gopt::checker {
namespace {

size_t boxes_of(const RewriteRule& rule, size_t output) {
  return rule.is_partial() ? std::max<size_t>(rule.regions[output].size(), 1) : 1;
}

bool covers_everything(const BoundCase& c) {
  if (c.has_broadcast || !c.ones.empty()) return false;
  for (size_t output = 0; output < c.rule.left.outputs().size(); output++)
    for (size_t box = 0; box < boxes_of(c.rule, output); box++)
      if (std::none_of(c.outputs.begin(), c.outputs.end(), [&](const BoundOutput& o) {
            return o.output == output && o.box == box && o.holds_everywhere();
          }))
        return false;
  return std::all_of(c.requirements.begin(), c.requirements.end(),
                     [](const BoundRequirement& r) { return r.holds_everywhere(); });
}

bool all_hold(const std::vector<Cond>& conditions, const Environment& sizes) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Cond& c) { return evaluate(c, sizes).value_or(false); });
}

// Gives the symbol that the value is made of and that has no number yet the one at which the value is `wanted`.
bool solve(const Index& value, int64_t wanted, Environment& sizes) {
  std::set<AtomId> symbols;
  collect_symbols(value, symbols);
  std::erase_if(symbols, [&](AtomId id) { return sizes.count(id) > 0; });
  if (symbols.size() > 1) return false;
  if (symbols.empty()) return evaluate(value, sizes) == wanted;
  const AtomId open = *symbols.begin();
  Environment at = sizes;
  at[open] = 0;
  const auto zero = evaluate(value, at);
  at[open] = 1;
  const auto one = evaluate(value, at);
  if (!zero || !one || *one == *zero || (wanted - *zero) % (*one - *zero) != 0) return false;
  at[open] = (wanted - *zero) / (*one - *zero);
  if (evaluate(value, at) != wanted) return false;  // it was not linear
  sizes = std::move(at);
  return true;
}

bool covers(const BoundOutput& step, const Environment& sizes) {
  Environment own = sizes;
  for (const auto& [symbol, value] : step.values) own.erase(symbol);
  std::vector<std::pair<AtomId, Index>> open(step.values.begin(), step.values.end());
  for (bool solved = true; solved && !open.empty();)
    solved =
        std::erase_if(open, [&](const auto& entry) { return solve(entry.second, sizes.at(entry.first), own); }) > 0;
  return open.empty() && all_hold(step.sizes, own);
}

bool is_empty(const TensorExpr& tensor) {
  return std::any_of(tensor.shape.begin(), tensor.shape.end(), [](const Index& extent) { return extent == Index(0); });
}

// What the case does not show at these sizes, where the left side is `left`.
std::optional<std::string> left_out(const BoundCase& c, const Environment& sizes, const Side& left) {
  for (const auto& [symbol, one] : c.ones)
    if (sizes.at(symbol) != 1) return "no case";
  for (const BoundRequirement& r : c.requirements)
    if (std::none_of(r.under.begin(), r.under.end(),
                     [&](const std::vector<Cond>& more) { return all_hold(more, sizes); }))
      return "what the right side requires (" + r.what + ")";
  for (size_t output = 0; output < left.outputs.size(); output++) {
    if (is_empty(left.outputs[output])) continue;
    for (size_t box = 0; box < boxes_of(c.rule, output); box++)
      if (std::none_of(c.outputs.begin(), c.outputs.end(),
                       [&](const BoundOutput& o) { return o.output == output && o.box == box && covers(o, sizes); }))
        return "output " + std::to_string(output);
  }
  return std::nullopt;
}

// Small sizes, and mixtures of small, larger and huge ones that are in simple relations.
class SizeDraws {
 public:
  explicit SizeDraws(const RewriteRule& rule) {
    for (const AtomId id : symbols_of(rule)) symbols_.push_back(id);
    for (const RuleVariable& variable : rule.variables)
      for (const Index& extent : *variable.type.shape) collect_symbols(extent, extents_);
  }

  int count() const { return symbols_.empty() ? 1 : 1500; }
  Environment draw(int number) {
    static constexpr int64_t kScales[] = {5, 8, 13, 100, 1'000'003};
    Environment sizes;
    const int64_t scale = pick(kScales) + below(3);
    const int64_t pool[] = {0, 1, 2, 3, scale, scale, scale + 1, 2 * scale, 2 * scale + 1, 3 * scale};
    for (const AtomId id : symbols_) {
      sizes[id] = number % 2 == 0 ? below(6) : pick(pool);
      if (!extents_.count(id)) sizes[id] -= below(3);  // pads and the like may be negative
    }
    return sizes;
  }

 private:
  int64_t below(uint64_t bound) { return static_cast<int64_t>(random_() % bound); }
  template <size_t N>
  int64_t pick(const int64_t (&values)[N]) {
    return values[random_() % N];
  }

  std::vector<AtomId> symbols_;
  std::set<AtomId> extents_;
  std::mt19937_64 random_{1};
};

Substitution numbers(const Environment& sizes) {
  Substitution values;
  for (const auto& [symbol, value] : sizes) values[symbol] = Index(value);
  return values;
}

std::string text_of(const Environment& sizes) {
  std::string text;
  for (const auto& [symbol, value] : sizes)
    text += (text.empty() ? "" : ", ") + atom(symbol).name + "=" + std::to_string(value);
  return text.empty() ? "any size" : text;
}

// One of the cases has to show it, of which the first is the rule as it stands.
std::optional<std::string> left_out_by_all(const std::vector<const BoundCase*>& cases, const Environment& sizes,
                                           const Side& left) {
  std::optional<std::string> first;
  for (const BoundCase* c : cases) {
    auto missing = left_out(*c, sizes, left);
    if (!missing) return std::nullopt;
    if (!first) first = std::move(missing);
  }
  return first;
}

void try_sizes(const RewriteRule& rule, const std::vector<const BoundCase*>& cases, Coverage& coverage) {
  SizeDraws draws(rule);
  const Cond given = domain_of(rule) && rule.condition;
  int tried = 0;
  for (int number = 0; number < draws.count() && !coverage.missing; number++) {
    const Environment sizes = draws.draw(number);
    if (!evaluate(given, sizes).value_or(false)) continue;
    const auto left = side_by_definitions(rule.left, numbers(sizes));
    if (!left || !left->requirements.empty()) continue;
    tried++;
    if (auto missing = left_out_by_all(cases, sizes, *left))
      coverage.missing = "nothing is shown of " + *missing + " for " + text_of(sizes);
  }
  if (tried == 0) coverage.missing = "no sizes were found at which to look whether its cases leave none out";
  coverage.sizes_tried += tried;
}

}  // namespace

Coverage coverage_of(const RewriteRule& rule, const std::vector<BoundCase>& cases) {
  Coverage coverage;
  const bool has_prefix =
      std::any_of(rule.variables.begin(), rule.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
  if (has_prefix || rule.scheme) {
    for (const BoundCase& c : cases)
      if (!covers_everything(c) && !coverage.missing) try_sizes(c.rule, {&c}, coverage);
    return coverage;
  }
  if (covers_everything(cases[0])) return coverage;
  std::vector<const BoundCase*> all;
  for (const BoundCase& c : cases) all.push_back(&c);
  try_sizes(rule, all, coverage);
  return coverage;
}

}  // namespace gopt::checker
