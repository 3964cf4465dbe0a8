#include "draw_inputs.h"

#include <algorithm>
#include <random>
#include <set>

#include "memory.h"

namespace gopt::driver {
namespace {

bool passes_elements_on(const Node& node) {
  return op_info(node.op).has(kDataMovement) || node.is(OpKind::Cast) || node.is(OpKind::Identity);
}

// Smallest extent that elements of v, moved or cast, index; `none` where they index nothing.
int64_t index_limit(const Graph& graph, const Value& v, int64_t none) {
  if (!graph.contains(v.node)) return none;
  int64_t limit = none;
  for (NodeId id : graph.users()[static_cast<uint32_t>(graph.id_of(v.node))]) {
    const NodePtr& user = graph.node(id);
    const bool gathers = user->is(OpKind::Gather) || user->is(OpKind::GatherElements);
    for (size_t k = 0; k < user->inputs.size(); k++) {
      if (!(user->inputs[k] == v)) continue;
      if (gathers && k == 1) {
        const auto axis = static_cast<size_t>(std::get<Index>(user->attributes.at("axis")).constant());
        const Index extent = (*user->inputs[0].type().shape)[axis];
        if (extent.is_constant()) limit = std::min(limit, extent.constant());
      } else if (passes_elements_on(*user)) {
        for (size_t o = 0; o < user->outputs.size(); o++)
          limit = std::min(limit, index_limit(graph, {user, static_cast<int>(o)}, none));
      }
    }
  }
  return limit;
}

uint64_t name_seed(const std::string& name, uint64_t seed) {
  return hash_bytes(name).low ^ (seed * 0x9e3779b97f4a7c15ULL);
}

Status check_fits_memory(const std::string& name, const TensorType& type) {
  const double bytes = bytes_of_tensor(type, sizeof(double));  // values are drawn in double precision
  if (bytes <= bytes_of_machine()) return Unit{};
  return Error{"input " + name + " is " + to_string(type) + ", " + gigabytes(bytes) +
               " to draw, which is more than this machine has; say smaller extents with --shape"};
}

}  // namespace

bool names_places(const Graph& graph, const Value& value) { return index_limit(graph, value, INT64_MAX) != INT64_MAX; }

Result<Tensor> draw_tensor(const std::string& name, const TensorType& type, int64_t limit, uint64_t seed) {
  if (!is_computable(type.element))
    return Error{"input " + name + ": elements of type " + to_string(type.element) +
                 " cannot be drawn; gopt run and gopt bench take them with --inputs, a check with --check FILE.npz"};
  if (!type.has_static_shape())
    return Error{"input " + name + " is " + to_string(type) + ": say its extents with --shape " + name + "=..."};
  const std::vector<int64_t> dims = type.static_shape();
  GOPT_RETURN_IF_ERROR(check_fits_memory(name, type));
  std::mt19937_64 engine(name_seed(name, seed));
  if (is_floating(type.element)) {
    std::vector<double> values(static_cast<size_t>(element_count(dims)));
    std::normal_distribution<double> normal;
    for (double& v : values) v = normal(engine);
    return Tensor::from_values<double>(type.element, dims, values);
  }
  std::vector<int64_t> values(static_cast<size_t>(element_count(dims)));
  const int64_t high =
      type.element == ElementType::Bool
          ? 2
          : std::max<int64_t>(1, std::min<int64_t>(limit, size_bytes(type.element) == 1 ? 128 : limit));
  for (int64_t& v : values) v = static_cast<int64_t>(engine() % static_cast<uint64_t>(high));
  return Tensor::from_values<int64_t>(type.element, dims, values);
}

Result<std::map<std::string, Tensor>> draw_inputs_at(const Graph& graph, uint64_t seed, const Substitution& extents) {
  constexpr int64_t kUnknownLimit = 2;  // 0 and 1 are valid for masks, types of tokens and most counts
  constexpr int64_t kNone = INT64_MAX;
  std::map<std::string, Tensor> inputs;
  for (const Value& v : graph.inputs()) {
    TensorType type = v.type();
    if (type.shape)
      for (Index& extent : *type.shape) extent = substitute(extent, extents);
    const int64_t limit = is_floating(type.element) ? 0 : index_limit(graph, v, kNone);
    GOPT_ASSIGN_OR_RETURN(Tensor t, draw_tensor(v.node->name, type, limit == kNone ? kUnknownLimit : limit, seed));
    inputs.emplace(v.node->name, std::move(t));
  }
  return inputs;
}

bool has_symbolic_inputs(const Graph& graph) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [](const Value& v) { return v.type().shape && !v.type().has_static_shape(); });
}

Result<std::map<std::string, Tensor>> draw_inputs_of_any_extent(const Graph& graph, uint64_t seed) {
  std::set<AtomId> symbols;
  for (const Value& v : graph.inputs())
    if (v.type().shape)
      for (const Index& extent : *v.type().shape) collect_symbols(extent, symbols);
  Substitution extents;
  int64_t next = 2;
  for (AtomId id : symbols) extents[id] = Index(next++);
  for (const Value& v : graph.inputs())
    if (v.type().shape)
      for (const Index& extent : *v.type().shape)
        if (const Index own = substitute(extent, extents); own.is_constant() && own.constant() < 0)
          return Error{"input " + v.node->name + ": no small extents fit; say them with --shape"};
  return draw_inputs_at(graph, seed, extents);
}

}  // namespace gopt::driver

namespace gopt {

using namespace driver;

Result<std::map<std::string, Tensor>> draw_inputs(const Graph& graph, uint64_t seed) {
  return draw_inputs_at(graph, seed, {});
}

}  // namespace gopt
