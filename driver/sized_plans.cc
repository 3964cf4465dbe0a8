#include "gopt/sized_plans.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "checked_part.h"
#include "gopt/rows.h"
#include "gopt/runnable_model.h"

namespace gopt {
namespace {

// The symbols that inputs have as an extent of their own, in their order.
std::vector<AtomId> open_symbols(const Graph& graph) {
  std::vector<AtomId> symbols;
  for (const Value& input : graph.inputs())
    for (const Index& extent : *input.type().shape)
      if (const auto symbol = extent.as_atom();
          symbol && atom(*symbol).kind == AtomKind::Symbol && std::ranges::find(symbols, *symbol) == symbols.end())
        symbols.push_back(*symbol);
  return symbols;
}

Status check_inputs_say_all(const Graph& open, const std::vector<AtomId>& extents) {
  for (const Value& input : open.inputs()) {
    std::set<AtomId> symbols;
    for (const Index& extent : *input.type().shape) collect_symbols(extent, symbols);
    for (const AtomId symbol : symbols)
      if (std::ranges::find(extents, symbol) == extents.end())
        return Error{"input " + input.node->name + " is " + to_string(input.type()) + ": no input has the extent " +
                     atom(symbol).name + " by itself, which would say how large it is; fix it with --shape"};
  }
  return Unit{};
}

Result<std::vector<AtomId>> checked_symbols(const Graph& open) {
  for (const Value& input : open.inputs())
    if (!input.type().shape) return Error{"input " + input.node->name + " has no known rank; give it with --shape"};
  const std::vector<AtomId> extents = open_symbols(open);
  GOPT_RETURN_IF_ERROR(check_inputs_say_all(open, extents));
  return extents;
}

bool is_leading(const Graph& graph, AtomId symbol) {
  return std::ranges::any_of(graph.inputs(), [&](const Value& input) {
    return !input.type().shape->empty() && (*input.type().shape)[0].as_atom() == symbol;
  });
}

// Values of the open extents at a size.
Result<Environment> extents_at(const Graph& open, const Graph& sized) {
  Environment values;
  for (size_t i = 0; i < open.inputs().size(); i++) {
    const Value &input = open.inputs()[i], &there = sized.inputs().at(i);
    const Shape &shape = *input.type().shape, &numbers = *there.type().shape;
    for (size_t d = 0; d < shape.size(); d++)
      if (const auto symbol = shape[d].as_atom()) values.try_emplace(*symbol, numbers.at(d).constant());
    for (size_t d = 0; d < shape.size(); d++)
      if (evaluate(shape[d], values) != numbers.at(d).constant())
        return Error{"input " + input.node->name + " is " + to_string(input.type()) + ", which cannot be " +
                     to_string(there.type())};
  }
  return values;
}

// An output's type at any size: what the open graph says of it, as far as that is so at each size.
TensorType output_type(const Graph& open, size_t number, const std::vector<SizedPlans::Size>& sizes,
                       const std::vector<Environment>& values) {
  const TensorType& declared = open.outputs()[number].value.type();
  TensorType type = sizes[0].plan.graph.outputs()[number].value.type();
  for (size_t d = 0; d < type.shape->size(); d++) {
    const bool is_known = declared.shape && declared.shape->size() == type.shape->size();
    bool is_equal = true, is_declared = is_known;
    for (size_t k = 0; k < sizes.size(); k++) {
      const Index& extent = (*sizes[k].plan.graph.outputs()[number].value.type().shape)[d];
      is_equal = is_equal && extent == (*type.shape)[d];
      is_declared = is_declared && evaluate((*declared.shape)[d], values[k]) == extent.constant();
    }
    if (is_declared)
      (*type.shape)[d] = (*declared.shape)[d];
    else if (!is_equal)
      (*type.shape)[d] = symbol(open.outputs()[number].name + "_dim" + std::to_string(d));
  }
  return type;
}

Extents named(const SizedPlans& plans, const SizedPlans::Size& size) {
  Extents extents;
  for (size_t k = 0; k < plans.extents.size(); k++) extents[plans.extents[k]] = size.extents[k];
  return extents;
}

// With all else open, or else for each size of all else.
std::optional<std::string> why_rows_depend_at_sizes(const SizedPlans& plans, size_t extent,
                                                    const ReadModelAt& read_at) {
  const AtomId symbol = symbol_atom(plans.extents[extent]);
  const auto why_open = why_rows_depend(plans.open, symbol);
  if (!why_open || !read_at) return why_open;
  std::set<Extents> seen;
  for (const SizedPlans::Size& size : plans.sizes) {
    Extents others = named(plans, size);
    others.erase(plans.extents[extent]);
    if (others.empty()) return why_open;
    if (!seen.insert(others).second) continue;
    const auto graph = read_at(others);
    if (!graph.ok()) return graph.error().message;
    if (auto why = why_rows_depend(*graph, symbol)) return why;
  }
  return std::nullopt;
}

void choose_rows(SizedPlans& plans, const ReadModelAt& read_at) {
  for (size_t k = 0; k < plans.extents.size() && !plans.rows; k++) {
    const auto why_not = why_rows_depend_at_sizes(plans, k, read_at);
    if (!why_not)
      plans.rows = k;
    else
      plans.why_none += (k == 0 ? "" : "; ") + plans.extents[k] + ": " + *why_not;
  }
}

bool are_allowed(const std::vector<SizeDemand>& demands, const std::vector<OpenExtent>& open) {
  Environment sizes;
  for (const OpenExtent& extent : open) sizes[extent.symbol] = extent.usual;
  return std::ranges::all_of(demands,
                             [&](const SizeDemand& demand) { return evaluate(demand.cond, sizes).value_or(true); });
}

// What a demand that does not hold says of products of extents: which these are, and the numbers that they are compared
// with.
struct Products {
  std::set<AtomId> extents;
  std::set<int64_t> numbers;
};
void collect_products(const Cond& cond, Products& found) {
  if (cond.kind() == CondKind::And || cond.kind() == CondKind::Or)
    for (const Cond& part : cond.parts()) collect_products(part, found);
  if (cond.kind() != CondKind::NonNegative) return;
  for (const Index::Term& term : cond.index().terms()) {
    const auto is_extent = [](AtomId id) { return atom(id).kind == AtomKind::Symbol; };
    if (term.atoms.size() < 2 || !std::ranges::all_of(term.atoms, is_extent)) continue;
    found.extents.insert(term.atoms.begin(), term.atoms.end());
    found.numbers.insert(std::abs(cond.index().constant()));
  }
}

// Numbers that extents are compared with: as many as there are to be.
void collect_numbers(const Cond& cond, std::set<int64_t>& numbers) {
  constexpr int64_t kMost = 1 << 24;
  if (cond.kind() == CondKind::And || cond.kind() == CondKind::Or)
    for (const Cond& part : cond.parts()) collect_numbers(part, numbers);
  if (cond.kind() == CondKind::NonNegative && std::abs(cond.index().constant()) <= kMost)
    numbers.insert(std::max<int64_t>(1, std::abs(cond.index().constant())));
}

bool holds(const SizeDemand& demand, const std::vector<OpenExtent>& open) { return are_allowed({demand}, open); }

// Factors for extents whose product is to be a number of the model (lines of weights that an image of any extents is
// multiplied by): of those that are tried the ones whose sum is the least. Nothing is changed where there are none.
void choose_factors(const SizeDemand& demand, std::vector<OpenExtent>& open) {
  constexpr size_t kMostTries = 100000;
  constexpr int64_t kMost = 1 << 24;
  Products products;
  collect_products(demand.cond, products);
  std::set<int64_t> factors{1};
  for (const int64_t number : products.numbers)
    for (int64_t factor = 1; number <= kMost && factor * factor <= number; factor++)
      if (number % factor == 0) factors.insert({factor, number / factor});
  const std::vector<int64_t> choices(factors.begin(), factors.end());
  std::vector<OpenExtent> tried = open, best;
  std::vector<OpenExtent*> varied;
  for (OpenExtent& extent : tried)
    if (products.extents.contains(extent.symbol)) varied.push_back(&extent);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t k = 0; k < kMostTries && !varied.empty(); k++) {
    size_t rest = k;
    int64_t sum = 0;
    bool fits = true;
    for (OpenExtent* extent : varied) {
      extent->usual = choices[rest % choices.size()];
      fits = fits && extent->usual <= extent->maximum.value_or(extent->usual);
      sum += extent->usual;
      rest /= choices.size();
    }
    if (rest > 0) break;  // all were tried
    if (sum < least && fits && holds(demand, tried)) least = sum, best = tried;
  }
  if (!best.empty()) open = best;
}

// Any of these numbers for each of these extents, the rest as it is, so that all demands hold; else all stays.
bool choose_among(const std::vector<SizeDemand>& demands, const std::vector<int64_t>& choices,
                  const std::set<AtomId>& varied, std::vector<OpenExtent>& open) {
  constexpr size_t kMostTries = 100000;
  std::vector<OpenExtent> tried = open;
  for (size_t k = 0; k < kMostTries; k++) {
    size_t rest = k;
    for (OpenExtent& extent : tried) {
      if (!varied.contains(extent.symbol)) continue;
      extent.usual = choices[rest % choices.size()];
      extent.usual = std::min(extent.usual, extent.maximum.value_or(extent.usual));
      rest /= choices.size();
    }
    if (rest > 0) return false;  // all were tried
    if (!are_allowed(demands, tried)) continue;
    open = tried;
    return true;
  }
  return false;
}

// Sizes at which the model has a meaning, where those above are none: factors of a number, extents that are equal, or
// another's sum, or what the model says of others in numbers. First those that a demand is of which does not hold, then
// those that others are of together with them, then any.
void choose_allowed(const Graph& graph, std::vector<OpenExtent>& open) {
  const std::vector<SizeDemand> demands = size_demands(graph, open);
  if (are_allowed(demands, open)) return;
  std::vector<OpenExtent> factored = open;
  for (const SizeDemand& demand : demands)
    if (!holds(demand, factored)) choose_factors(demand, factored);
  std::set<AtomId> all, in_doubt;
  for (const OpenExtent& extent : open) all.insert(extent.symbol);
  for (const SizeDemand& demand : demands)
    if (!holds(demand, factored)) collect_symbols(demand.cond, in_doubt);
  for (size_t k = 0; k < open.size(); k++)
    if (factored[k] != open[k]) in_doubt.erase(open[k].symbol);
  std::set<int64_t> candidates{1, 2};
  for (const OpenExtent& a : open)
    for (const OpenExtent& b : open) candidates.insert({a.usual, a.usual + 1, a.usual + b.usual});
  for (const SizeDemand& demand : demands)
    if (!holds(demand, factored)) collect_numbers(demand.cond, candidates);
  const std::vector<int64_t> numbers = driver::extents_in_numbers(graph);
  candidates.insert(numbers.begin(), numbers.end());
  const std::vector<int64_t> choices(candidates.rbegin(), candidates.rend());
  // A demand may hold of one of them for what another one is.
  std::set<AtomId> with_others = in_doubt;
  for (const SizeDemand& demand : demands) {
    std::set<AtomId> own;
    collect_symbols(demand.cond, own);
    if (std::ranges::any_of(own, [&](AtomId symbol) { return in_doubt.contains(symbol); }))
      with_others.insert(own.begin(), own.end());
  }
  if (are_allowed(demands, factored) || choose_among(demands, choices, in_doubt, factored) ||
      choose_among(demands, choices, with_others, factored))
    open = factored;
  else
    choose_among(demands, choices, all, open);
}

}  // namespace

Result<std::vector<OpenExtent>> open_extents(const Graph& graph, const Extents& usual, const Extents& maxima) {
  constexpr int64_t kUsualBatch = 8, kUsualExtent = 128;
  GOPT_ASSIGN_OR_RETURN(const std::vector<AtomId> symbols, checked_symbols(graph));
  std::vector<OpenExtent> open;
  Extents unknown = maxima;
  for (const AtomId symbol : symbols) {
    const std::string& name = atom(symbol).name;
    OpenExtent extent{symbol, is_leading(graph, symbol) ? kUsualBatch : kUsualExtent};
    if (const auto given = usual.find(name); given != usual.end()) extent.usual = given->second;
    if (const auto most = maxima.find(name); most != maxima.end()) {
      if (most->second < 1) return Error{"the maximum of " + name + " is at least 1"};
      extent.maximum = most->second;
      extent.usual = std::min(extent.usual, most->second);
      unknown.erase(name);
    }
    open.push_back(extent);
  }
  choose_allowed(graph, open);
  if (!unknown.empty()) {
    std::string names;
    for (const OpenExtent& extent : open) names += (names.empty() ? "" : ", ") + atom(extent.symbol).name;
    return Error{"a maximum is given of '" + unknown.begin()->first + "', which is no open extent of the model; " +
                 (names.empty() ? "it has none" : "they are " + names)};
  }
  return open;
}

void add_general(SizedPlans& plans, Plan general) {
  if (plans.sizes.empty()) {
    plans.open = general.graph;
    plans.inputs = graph_inputs(general.graph);
    plans.outputs = graph_outputs(general.graph);
    for (const OpenExtent& extent : general.target.open) plans.extents.push_back(atom(extent.symbol).name);
  }
  plans.general = std::move(general);
}

Result<SizedPlans> join_sizes(const Graph& open, const std::vector<Plan>& plans, const ReadModelAt& read_at) {
  GOPT_CHECK(!plans.empty(), "a model has a size");
  SizedPlans joined;
  joined.open = open;
  GOPT_ASSIGN_OR_RETURN(const std::vector<AtomId> extents, checked_symbols(open));
  for (const AtomId symbol : extents) joined.extents.push_back(atom(symbol).name);
  std::vector<Environment> values;
  for (const Plan& plan : plans) {
    GOPT_ASSIGN_OR_RETURN(values.emplace_back(), extents_at(open, plan.graph));
    std::vector<int64_t> numbers;
    for (const AtomId symbol : extents) numbers.push_back(values.back().at(symbol));
    joined.sizes.push_back({std::move(numbers), plan});
    for (size_t k = 0; k + 1 < joined.sizes.size(); k++)
      if (joined.sizes[k].extents == joined.sizes.back().extents)
        return Error{"the size " + to_string(named(joined, joined.sizes[k])) + " is given twice"};
  }
  choose_rows(joined, read_at);
  joined.inputs = graph_inputs(open);
  joined.outputs = graph_outputs(joined.sizes[0].plan.graph);
  for (size_t i = 0; i < joined.outputs.size(); i++)
    joined.outputs[i].type = output_type(open, i, joined.sizes, values);
  return joined;
}

namespace {

// The first `count` of `all` rows; what has none is as it is.
Tensor first_rows(const Tensor& tensor, const ModelValue& declared, const std::string& extent, int64_t count,
                  int64_t all) {
  std::set<AtomId> symbols;
  for (const Index& own : *declared.type.shape) collect_symbols(own, symbols);
  if (!symbols.contains(symbol_atom(extent))) return tensor;
  std::vector<int64_t> dims = tensor.dims();
  dims[0] = dims[0] / all * count;
  const auto bytes =
      tensor.bytes().first(tensor.bytes().size() / static_cast<size_t>(all) * static_cast<size_t>(count));
  return Tensor::from_bytes(tensor.type(), dims, {bytes.begin(), bytes.end()});
}

class SizesChecker {
 public:
  SizesChecker(const SizedPlans& plans, const DriverOptions& options) : plans_(plans), options_(options) {}

  Status run() {
    GOPT_ASSIGN_OR_RETURN(const auto joint, compile_sizes(plans_, options_.target.threads));
    std::unique_ptr<RunnableModel> any;
    if (plans_.general) {
      GOPT_ASSIGN_OR_RETURN(any, compile_plan(*plans_.general, options_.target.threads));
    }
    for (const SizedPlans::Size& size : plans_.sizes) {
      GOPT_ASSIGN_OR_RETURN(const auto own, compile_plan(size.plan, options_.target.threads));
      GOPT_ASSIGN_OR_RETURN(const auto inputs, own->draw(options_.seed + 1));
      GOPT_ASSIGN_OR_RETURN(const auto expected, own->run(inputs));
      GOPT_ASSIGN_OR_RETURN(const auto found, joint->run(inputs));
      GOPT_RETURN_IF_ERROR(must_agree(expected, found, size, "the code for all sizes"));
      if (any) {
        GOPT_ASSIGN_OR_RETURN(const auto by_any, any->run(inputs));
        GOPT_RETURN_IF_ERROR(must_agree(expected, by_any, size, "the code for any size"));
      }
      if (plans_.rows && !any) GOPT_RETURN_IF_ERROR(check_parts(*joint, size, inputs, expected));
    }
    return Unit{};
  }

 private:
  // The first rows of a size that are another size's, by that one: as when rows are run in parts.
  Status check_parts(RunnableModel& joint, const SizedPlans::Size& size, const std::map<std::string, Tensor>& inputs,
                     const std::vector<Tensor>& expected) const {
    const size_t extent = *plans_.rows;
    const std::string& name = plans_.extents[extent];
    const int64_t all = size.extents[extent];
    for (const SizedPlans::Size& part : plans_.sizes) {
      std::vector<int64_t> extents = part.extents;
      const int64_t count = std::exchange(extents[extent], all);
      if (extents != size.extents || count >= all || count < 1) continue;
      std::map<std::string, Tensor> first;
      for (const ModelValue& v : plans_.inputs)
        first.emplace(v.name, first_rows(inputs.at(v.name), v, name, count, all));
      GOPT_ASSIGN_OR_RETURN(const auto found, joint.run(first));
      std::vector<Tensor> wanted;
      for (size_t i = 0; i < expected.size(); i++)
        wanted.push_back(first_rows(expected[i], plans_.outputs[i], name, count, all));
      GOPT_RETURN_IF_ERROR(must_agree(wanted, found, part, "the part of a larger one"));
    }
    return Unit{};
  }

  Status must_agree(const std::vector<Tensor>& expected, const std::vector<Tensor>& found, const SizedPlans::Size& size,
                    const std::string& what) const {
    for (size_t i = 0; i < expected.size(); i++) {
      const Difference d = difference(plans_.outputs[i].name, expected[i], found[i], options_.check.tolerance);
      if (!d.passed)
        return Error{"output " + d.output + ", at " + to_string(named(plans_, size)) + ": " + what +
                     " is something else than the code for this size alone (max |a-b| / max |a| = " +
                     std::to_string(d.max_relative) + (d.note.empty() ? "" : ", " + d.note) + "); nothing is written"};
    }
    return Unit{};
  }

  const SizedPlans& plans_;
  const DriverOptions& options_;
};

}  // namespace

Status check_sizes(const SizedPlans& plans, const DriverOptions& options) { return SizesChecker(plans, options).run(); }

}  // namespace gopt
