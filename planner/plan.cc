// A graph's plan: implementations by the least cost of each kernel, layouts by the least cost of all together.
#include "gopt/plan.h"

#include <map>
#include <set>

#include "choices.h"
#include "drafts.h"
#include "gopt/kernel_spec.h"
#include "implementations.h"
#include "labelling.h"
#include "sequences.h"
#include "siblings.h"

namespace gopt {

std::string to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::Convolution: return "convolution";
    case KernelKind::Pooling: return "pooling";
    case KernelKind::MatrixProduct: return "matrix-product";
    case KernelKind::Attention: return "attention";
    case KernelKind::Generated: return "generated";
    case KernelKind::Reorder: return "reorder";
    case KernelKind::Group: return "group";
    case KernelKind::Sequence: return "sequence";
    case KernelKind::Recurrence: return "recurrence";
    case KernelKind::RowFunction: return "row function";
    case KernelKind::External: return "external";
  }
  return "";
}

const Shape& shape_of(const Buffer& buffer) { return *buffer.value.type().shape; }

Environment usual_sizes(const Target& target) {
  Environment sizes;
  for (const OpenExtent& extent : target.open) sizes[extent.symbol] = extent.usual;
  return sizes;
}

}  // namespace gopt

namespace gopt::planner {

namespace {

// The kernel by each implementation that accepts it, those apart that choose when a model is created. What is switched
// off is left out, unless nothing else is there.
std::vector<Kernel> by_rows(const Plan& plan, const Kernel& kernel, bool chooses_at_start, bool with_unlikely) {
  std::vector<Kernel> kernels, switched_off;
  for (const Implementation& row : implementations()) {
    const bool is_meant = row.kind == kernel.kind && row.target == plan.target.kind;
    if (!is_meant || row.chooses_at_start != chooses_at_start || !row.accepts(plan, kernel)) continue;
    if (kernel.prologue && !row.takes_prologue) continue;
    if (row.is_likely && !with_unlikely && !row.is_likely(plan, kernel) && !lacks_sizes(plan.target, row)) continue;
    if (row.is_outdone && !with_unlikely && row.is_outdone(plan, kernel)) continue;
    std::vector<Kernel>& rows = is_switched_off(plan.target, row) ? switched_off : kernels;
    rows.push_back(kernel);
    rows.back().implementation = row.name;
  }
  return kernels.empty() && !chooses_at_start && !kernel.prologue ? switched_off : kernels;
}

// Those that can be timed; the kernel as it is, where its kind has no rows: loops of our own.
std::vector<Kernel> by_implementation(const Plan& plan, const Kernel& kernel, bool with_unlikely = false) {
  std::vector<Kernel> kernels = by_rows(plan, kernel, false, with_unlikely);
  if (kernels.empty() && kernel.prologue) kernels = by_rows(plan, kernel, false, true);
  if (kernels.empty() && kernel.prologue) throw InternalError("nothing does the prologue of " + kernel.name);
  if (kernels.empty()) kernels.push_back(kernel);
  return kernels;
}

}  // namespace

bool has_all_prologues(const Plan& plan) {
  return std::ranges::all_of(plan.kernels, [&](const Kernel& kernel) {
    return !kernel.prologue || !by_rows(plan, kernel, false, true).empty();
  });
}

// Where no time was measured, the choice is best left to when the model is created.
std::vector<Kernel> candidates_for(const Plan& plan, const Kernel& kernel, const KernelCosts& costs) {
  std::vector<Kernel> timed = by_implementation(plan, kernel, costs.prices_unlikely()),
                      candidates = by_rows(plan, kernel, true, costs.prices_unlikely());
  const auto is_measured = [&](const Kernel& k) { return costs.is_measured(plan, k); };
  if (candidates.empty() || std::any_of(timed.begin(), timed.end(), is_measured)) return timed;
  candidates.insert(candidates.end(), timed.begin(), timed.end());
  return candidates;
}

void choose_implementation(const Plan& plan, Kernel& kernel, KernelCosts& costs) {
  auto* const choices = dynamic_cast<Choices*>(&costs);
  const std::string text = choices ? text_for_choice(plan, kernel) : "";
  if (const auto known = text.empty() ? std::nullopt : choices->find(text)) {
    kernel.implementation = known->implementation, kernel.estimated_ms = known->ms;
    return;
  }
  std::optional<Kernel> best;
  for (Kernel& candidate : candidates_for(plan, kernel, costs)) {
    candidate.estimated_ms = costs.time_ms(plan, candidate);
    if (!best || candidate.estimated_ms < best->estimated_ms) best = std::move(candidate);
  }
  kernel = *std::move(best);
  if (!text.empty()) choices->keep(text, {kernel.implementation, kernel.estimated_ms});
}

Drafted draft(Cover described, CoverChoices choices) {
  Cover cover = cover_with(std::move(described), std::move(choices));
  Plan plan = build_kernels(cover);
  return {std::move(cover), std::move(plan)};
}

void price(Plan& plan, KernelCosts& costs) {
  plan.estimated_ms = 0;
  for (Kernel& kernel : plan.kernels) {
    choose_implementation(plan, kernel, costs);
    plan.estimated_ms += kernel.estimated_ms;
  }
}

namespace {

// A value that a library kernel of one class reads and that is of another.
struct Border {
  Value value;
  int from, to;
  friend auto operator<=>(const Border& a, const Border& b) {
    return std::tuple(a.value.node.get(), a.value.output, a.to) <=>
           std::tuple(b.value.node.get(), b.value.output, b.to);
  }
};
std::vector<Border> borders_of(const Cover& cover) {
  std::vector<Border> borders;
  std::set<Border> seen;
  for (const NodeCover& own : cover.nodes) {
    if (own.role != Role::Convolution && own.role != Role::Epilogue) continue;
    const int to = cover.values[own.first_value].layout_class;
    const auto id = static_cast<uint32_t>(&own - cover.nodes.data());
    std::vector<Value> inputs = cover.node(id).inputs;
    if (own.integers) inputs = {own.integers->left};
    for (const Value& input : inputs) {
      const int from = input ? cover.of(input).layout_class : -1;
      const Border border{input, from, to};
      if (from >= 0 && to >= 0 && from != to && seen.insert(border).second) borders.push_back(border);
    }
  }
  return borders;
}

}  // namespace

Plan conversion(const Cover& cover, const Value& value, const Layout& from, const Layout& to) {
  Plan plan;
  plan.target = cover.options.target;
  const ValueCover& v = cover.of(value);
  for (const Layout& layout : {from, to}) {
    Buffer buffer{value, v.dims, v.stored, layout.with_line(0)};
    buffer.size_bytes = layout.bytes(v.dims, v.stored);
    plan.buffers.push_back(std::move(buffer));
  }
  Kernel kernel{KernelKind::Reorder};
  kernel.inputs = kernel.outputs = {value};
  kernel.input_buffers = {BufferId{0}};
  kernel.output_buffers = {BufferId{1}};
  kernel.name = "reorder";
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

namespace {

// The class whose layout a kernel's time depends on: of what it makes, else of the first value that it reads; of a
// conversion for a reader, the reader's. -1: of none.
class ClassOfKernel {
 public:
  ClassOfKernel(const Cover& cover, const Plan& plan) : cover_(cover) {
    for (const Kernel& kernel : plan.kernels)
      for (BufferId read : kernel.input_buffers) readers_.try_emplace(read, &kernel);
  }
  int of(const Kernel& kernel) const {
    int found = class_of(kernel.outputs[0]);
    for (const Value& input : kernel.inputs)
      if (found < 0) found = class_of(input);
    if (found >= 0 || kernel.kind != KernelKind::Reorder) return found;
    const auto reader = readers_.find(kernel.output_buffers[0]);
    return reader == readers_.end() ? -1 : class_of(reader->second->outputs[0]);
  }

 private:
  int class_of(const Value& value) const { return cover_.of(value).layout_class; }
  const Cover& cover_;
  std::map<BufferId, const Kernel*> readers_;
};

}  // namespace

std::vector<Drafted> uniform_drafts(const Cover& described) {
  std::vector<Drafted> drafts;
  for (const Layout& layout : layouts_for(described)) {
    drafts.push_back(draft(described, {{}, layout}));
    if (described.layout_classes == 0) break;
  }
  return drafts;
}

namespace {

// The layout of each class, at the least sum of its kernels' times and of conversions between classes.
std::vector<Layout> choose_class_layouts(const std::vector<Drafted>& drafts, KernelCosts& costs) {
  const Cover& cover = drafts[0].cover;
  const std::vector<Layout> layouts = layouts_for(cover);
  std::vector<std::vector<double>> own(static_cast<size_t>(cover.layout_classes),
                                       std::vector<double>(layouts.size(), 0));
  for (size_t l = 0; l < layouts.size(); l++) {
    const ClassOfKernel class_of(drafts[l].cover, drafts[l].plan);
    for (const Kernel& kernel : drafts[l].plan.kernels)
      if (const int c = class_of.of(kernel); c >= 0) own[static_cast<size_t>(c)][l] += kernel.estimated_ms;
  }
  std::vector<PairCost> pairs;
  for (const Border& border : borders_of(cover)) {
    PairCost pair{border.from, border.to, {}};
    for (const Layout& from : layouts) {
      pair.cost.emplace_back();
      for (const Layout& to : layouts) {
        const Plan plan = conversion(cover, border.value, from, to);
        const bool is_same = lies_as(from, to, cover.of(border.value).dims);
        pair.cost.back().push_back(is_same ? 0 : costs.time_ms(plan, plan.kernels[0]));
      }
    }
    pairs.push_back(std::move(pair));
  }
  std::vector<Layout> chosen;
  for (const int label : least_cost_labels(own, pairs)) chosen.push_back(layouts[static_cast<size_t>(label)]);
  return chosen;
}

}  // namespace

Drafted& PricedDrafts::cheapest() {
  Drafted* best = mixed ? &*mixed : nullptr;
  for (Drafted& drafted : uniform)
    if (!best || drafted.plan.estimated_ms < best->plan.estimated_ms) best = &drafted;
  return *best;
}

Result<PricedDrafts> priced_drafts(const Graph& graph, const CoverOptions& options, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(const Cover described, describe_graph(graph, options));
  PricedDrafts drafts{uniform_drafts(described), std::nullopt};
  const auto price_draft = [&](Drafted& drafted) {
    price(drafted.plan, costs);
    choose_fusion_by_cost(described, drafted, costs);
  };
  for (Drafted& drafted : drafts.uniform) price_draft(drafted);
  if (drafts.uniform.size() == 1) return drafts;
  const std::vector<Layout> layouts = choose_class_layouts(drafts.uniform, costs);
  const bool is_uniform = std::all_of(layouts.begin(), layouts.end(), [&](const Layout& l) { return l == layouts[0]; });
  if (is_uniform) return drafts;
  drafts.mixed = draft(described, {layouts, Layout()});
  price_draft(*drafts.mixed);
  return drafts;
}

Result<Plan> cheapest_plan(const Graph& graph, const CoverOptions& options, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(PricedDrafts drafts, priced_drafts(graph, options, costs));
  return std::move(drafts.cheapest().plan);
}

}  // namespace gopt::planner

namespace gopt {

using namespace planner;

std::vector<std::string> plan_parts(TargetKind kind) {
  std::vector<std::string> parts;
  if (kind == TargetKind::Onnx) return parts;
  if (kind == TargetKind::Cpu) {
    parts.emplace_back(kBlockedLayout);
    parts.emplace_back(kOneRegion);
    parts.emplace_back(kAloneLaunch);
  }
  for (const char* part : {kChannelsLastLayout, kEpilogues, kInlining, kPieces, kFusionByCost})
    parts.emplace_back(part);
  for (const Implementation& row : implementations())
    if (row.target == kind && !row.name.empty())
      for (const std::string& name : part_names(row))
        if (std::ranges::find(parts, name) == parts.end()) parts.push_back(name);
  if (kind == TargetKind::Cuda) {
    parts.emplace_back(kPartsLayout);
    parts.emplace_back(kTransposedWeights);
    parts.emplace_back(kDependentLaunch);
    parts.emplace_back(kGroupedLaunch);
    parts.emplace_back(kSequences);
    parts.emplace_back(kPrologues);
  }
  return parts;
}

Result<Plan> make_plan(const Graph& graph, const Target& target, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(Plan plan, cheapest_plan(graph, {target}, costs));
  group_siblings(plan, costs);
  join_sequences(plan, costs);
  place_buffers(plan);
  plan.demands = size_demands(plan);
  // What a mistake of ours would compute from memory that nobody wrote is never code.
  if (target.open.empty())
    if (const Status checked = check_plan(plan); !checked.ok()) throw InternalError(checked.error().message);
  return plan;
}

Result<std::vector<KernelSpec>> admitted_kernels(const Graph& graph, const Target& target) {
  GOPT_ASSIGN_OR_RETURN(const Cover described, describe_graph(graph, {target}));
  std::vector<Drafted> drafts = uniform_drafts(described);
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;
  auto admit = [&](const Plan& plan, const Kernel& kernel) {
    if (!is_timed(kernel.kind)) return;
    for (const Kernel& candidate : by_implementation(plan, kernel))
      if (seen.insert(kernel_signature(plan, candidate)).second) specs.push_back(spec_of(plan, candidate));
  };
  for (Drafted& drafted : drafts) {
    place_buffers(drafted.plan);
    for (const Kernel& kernel : drafted.plan.kernels) admit(drafted.plan, kernel);
  }
  for (Drafted& drafted : drafts)
    for (const Plan& other : plans_by_other_choices(described, drafted))
      for (const Kernel& kernel : other.kernels) admit(other, kernel);
  return specs;
}

Result<std::vector<KernelSpec>> untimed_groups(const Graph& graph, const Target& target, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(const Plan plan, cheapest_plan(graph, {target}, costs));
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;
  for (const Kernel& group : possible_groups(plan, costs))
    if (!costs.is_measured(plan, group) && seen.insert(kernel_signature(plan, group)).second)
      specs.push_back(spec_of(plan, group));
  return specs;
}

Result<std::vector<KernelSpec>> estimated_kernels(const Graph& graph, const Target& target, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(const Plan plan, make_plan(graph, target, costs));
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;
  for (const Kernel& kernel : plan.kernels) {
    // A sequence's time is that of the model: the plan without it is timed beside it.
    if (!is_timed(kernel.kind) || kernel.kind == KernelKind::Sequence || costs.is_measured(plan, kernel)) continue;
    const bool chooses = is_library(kernel.kind) && implementation_of(plan, kernel).chooses_at_start;
    for (const Kernel& own : chooses ? by_implementation(plan, kernel) : std::vector<Kernel>{kernel})
      if (seen.insert(kernel_signature(plan, own)).second) specs.push_back(spec_of(plan, own));
  }
  return specs;
}

}  // namespace gopt
