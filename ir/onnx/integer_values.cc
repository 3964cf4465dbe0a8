#include "integer_values.h"

#include <algorithm>
#include <stdexcept>

namespace gopt::ir {
namespace {

constexpr int64_t kMostElements = 64;
using Entries = std::vector<Index>;

bool is_integral(ElementType type) {
  return type == ElementType::Int64 || type == ElementType::Int32 || type == ElementType::Bool;
}

// Symbols are extents: zero or more. True where the value is certainly at least `low`.
bool is_at_least(const Index& index, int64_t low) {
  const auto positive = [](const Index::Term& term) { return term.coefficient > 0; };
  return index.constant() >= low && std::all_of(index.terms().begin(), index.terms().end(), positive);
}

// No extent is so large, nor what is computed of some.
constexpr int64_t kBeyondExtents = int64_t{1} << 48;
bool is_beyond(const Index& index) {
  return index.is_constant() && (index.constant() >= kBeyondExtents || index.constant() <= -kBeyondExtents);
}

// Of extents and numbers, whichever is the lesser, where that is known or neither is negative.
std::optional<Index> lesser_of(const Index& a, const Index& b) {
  if (is_beyond(a) || is_beyond(b)) {
    const Index &beyond = is_beyond(a) ? a : b, &other = is_beyond(a) ? b : a;
    return beyond.constant() > 0 ? std::optional(other) : std::nullopt;
  }
  if (is_at_least(a - b, 0)) return b;
  if (is_at_least(b - a, 0)) return a;
  if (!is_at_least(a, 0) || !is_at_least(b, 0)) return std::nullopt;
  if (a.is_constant()) return lesser(b, a);
  if (b.is_constant()) return lesser(a, b);
  return to_string(a) < to_string(b) ? lesser(a, b) : lesser(b, a);
}

std::optional<Index> combine(OpKind kind, const Index& a, const Index& b) {
  const auto x = a.as_constant(), y = b.as_constant();
  switch (kind) {
    case OpKind::Add: return a + b;
    case OpKind::Sub: return a - b;
    case OpKind::Mul: return a * b;
    case OpKind::Div:
      if (is_at_least(a, 0) && is_at_least(b, 1)) return floor_div(a, b);
      // (s * t) / s is t: where s is 0 the model has no meaning.
      if (is_at_least(a, 0) && is_at_least(b, 0) && b != Index(0))
        if (const Index quotient = floor_div(a, b); quotient * b == a) return quotient;
      return x && y && *y != 0 && *y != -1 ? std::optional<Index>(*x / *y) : std::nullopt;  // the least / -1 is none
    case OpKind::Max: {
      if (x && y) return std::max(*x, *y);
      if (is_beyond(a) || is_beyond(b)) return std::nullopt;
      const auto least = lesser_of(a, b);
      return least ? std::optional(a + b - *least) : std::nullopt;
    }
    case OpKind::Min: return x && y ? std::optional<Index>(std::min(*x, *y)) : lesser_of(a, b);
    case OpKind::Equal:
      if (x && y) return Index(*x == *y ? 1 : 0);
      if (a == b) return Index(1);
      if (b == Index(1) && is_at_least(a, 1)) return floor_div(b, a);  // as gopt writes that
      return is_at_least(a - b, 1) || is_at_least(b - a, 1) ? std::optional(Index(0)) : std::nullopt;
    default: return std::nullopt;
  }
}

// Numbers among them first.
std::optional<Entries> reduce(OpKind kind, Entries all) {
  std::stable_partition(all.begin(), all.end(), [](const Index& entry) { return entry.is_constant(); });
  std::optional<Index> result;
  for (const Index& entry : all) {
    result = result ? combine(kind, *result, entry) : std::optional(entry);
    if (!result) return std::nullopt;
  }
  return result ? std::optional(Entries{*result}) : std::nullopt;
}

std::optional<Entries> combine_all(OpKind kind, const Entries& a, const Entries& b, size_t count) {
  Entries out;
  for (size_t i = 0; i < count; i++) {
    if (a.empty() || b.empty() || (a.size() != 1 && i >= a.size()) || (b.size() != 1 && i >= b.size()))
      return std::nullopt;
    const auto entry = combine(kind, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!entry) return std::nullopt;
    out.push_back(*entry);
  }
  return out;
}

std::optional<Entries> choose_entries(const Entries& test, const Entries& a, const Entries& b, size_t count) {
  Entries out;
  for (size_t i = 0; i < count; i++) {
    const auto at = [&](const Entries& list) -> const Index* {
      const size_t k = list.size() == 1 ? 0 : i;
      return k < list.size() ? &list[k] : nullptr;
    };
    const Index *t = at(test), *x = at(a), *y = at(b);
    if (!t || !x || !y || !t->is_constant()) return std::nullopt;
    out.push_back(t->constant() != 0 ? *x : *y);
  }
  return out;
}

int64_t number(const Node& node, const std::string& name, int64_t otherwise) {
  const auto it = node.attributes.find(name);
  if (it == node.attributes.end() || !std::holds_alternative<Index>(it->second)) return otherwise;
  return std::get<Index>(it->second).as_constant().value_or(otherwise);
}

std::optional<Entries> shape_entries(const Node& node) {
  const auto& shape = node.inputs[0].type().shape;
  if (!shape) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  const auto clamp = [&](int64_t axis) { return std::clamp(axis < 0 ? axis + rank : axis, int64_t{0}, rank); };
  const int64_t start = clamp(number(node, "start", 0)), end = clamp(number(node, "end", rank));
  if (start >= end) return Entries{};
  return Entries(shape->begin() + start, shape->begin() + end);
}

std::optional<Entries> gather_entries(const Entries& data, const Entries& indices) {
  Entries out;
  for (const Index& index : indices) {
    const auto size = static_cast<int64_t>(data.size());
    const auto position = index.as_constant();
    if (!position || *position < -size || *position >= size) return std::nullopt;
    out.push_back(data[static_cast<size_t>(*position < 0 ? *position + size : *position)]);
  }
  return out;
}

std::optional<Entries> slice_entries(const Node& node, const Entries& data) {
  const auto list = [&](const char* name) -> std::optional<int64_t> {
    const auto it = node.attributes.find(name);
    if (it == node.attributes.end()) return name == std::string("steps") ? std::optional<int64_t>(1) : std::nullopt;
    const auto* values = std::get_if<std::vector<Index>>(&it->second);
    return values && values->size() == 1 ? (*values)[0].as_constant() : std::nullopt;
  };
  const auto start = list("starts"), end = list("ends"), step = list("steps");
  if (!start || !end || !step || *step == 0) return std::nullopt;
  if (data.empty()) return Entries{};
  const auto size = static_cast<int64_t>(data.size());
  const int64_t low = *step > 0 ? 0 : -1, high = *step > 0 ? size : size - 1;
  const int64_t from = std::clamp(*start < 0 ? *start + size : *start, std::max<int64_t>(low, 0), high);
  const int64_t to = std::clamp(*end < 0 ? std::max(*end, -size - 1) + size : *end, low, high + (*step < 0 ? 1 : 0));
  Entries out;
  for (int64_t i = from; *step > 0 ? i < to : i > to; i += *step) out.push_back(data[static_cast<size_t>(i)]);
  return out;
}

std::optional<Entries> learn(ImportState& state, const Node& node, size_t count) {
  std::vector<Entries> in;
  if (node.op == OpKind::Shape) return shape_entries(node);
  if (node.op == OpKind::Size) {
    if (!node.inputs[0].type().shape) return std::nullopt;
    Index total = 1;
    for (const Index& extent : *node.inputs[0].type().shape) total = total * extent;
    return Entries{total};
  }
  for (const Value& input : node.inputs) {
    if (!input) return std::nullopt;
    auto entries = known_integers(state, input);
    if (!entries) return std::nullopt;
    in.push_back(*std::move(entries));
  }
  switch (node.op) {
    case OpKind::Identity:
    case OpKind::Reshape:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze: return in[0];
    case OpKind::Cast: {
      const bool to_bool = node.outputs[0].element == ElementType::Bool;
      return to_bool && node.inputs[0].type().element != ElementType::Bool ? std::nullopt : std::optional(in[0]);
    }
    case OpKind::Gather: return node.inputs[0].type().shape->empty() ? std::nullopt : gather_entries(in[0], in[1]);
    case OpKind::Slice: return slice_entries(node, in[0]);
    case OpKind::Concat: {
      Entries all;
      for (const Entries& part : in) all.insert(all.end(), part.begin(), part.end());
      return all;
    }
    case OpKind::Where: return choose_entries(in[0], in[1], in[2], count);
    case OpKind::ReduceMin: return reduce(OpKind::Min, in[0]);
    case OpKind::ReduceMax: return reduce(OpKind::Max, in[0]);
    case OpKind::ReduceProd: {
      Index total = 1;
      for (const Index& entry : in[0]) total = total * entry;
      return Entries{total};
    }
    case OpKind::Expand: return in[0].size() == 1 ? std::optional(Entries(count, in[0][0])) : std::nullopt;
    default: return in.size() == 2 ? combine_all(node.op, in[0], in[1], count) : std::nullopt;
  }
}

// Numbers beyond 64 bits are none that an extent could be: runtimes wrap them, or what comes of them wraps back.
std::optional<Entries> learn_within(ImportState& state, const Node& node, size_t count) {
  try {
    return learn(state, node, count);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

// The number of elements where the tensor is one that is looked at.
std::optional<int64_t> small_count(const TensorType& type) {
  if (!is_integral(type.element) || !type.has_static_shape() || type.shape->size() > 1) return std::nullopt;
  const int64_t count = element_count(type.static_shape());
  return count <= kMostElements ? std::optional(count) : std::nullopt;
}

}  // namespace

bool is_lesser_of(const Index& place, const Index& extent) {
  for (const Index::Term& term : place.terms())
    for (const AtomId id : term.atoms) {
      const Atom& reached = atom(id);
      if (reached.kind != AtomKind::FloorDiv || reached.numerator != Index(1)) continue;
      const auto inner = (reached.denominator - Index(1)).as_atom();
      if (!inner || atom(*inner).kind != AtomKind::FloorDiv) continue;
      const Index a = atom(*inner).denominator - Index(1), b = atom(*inner).numerator;
      if ((a == extent || b == extent) && place == lesser(a, b)) return true;
    }
  return false;
}

bool has_lesser(const Index& index) {
  return std::ranges::any_of(index.terms(), [](const Index::Term& term) {
    return std::ranges::any_of(term.atoms, [](AtomId id) {
      const Atom& a = atom(id);
      return a.kind == AtomKind::FloorDiv &&
             (a.numerator == Index(1) || has_lesser(a.numerator) || has_lesser(a.denominator));
    });
  });
}

Index lesser(const Index& a, const Index& b) {
  const Index is_reached = floor_div(Index(1), Index(1) + floor_div(b, a + Index(1)));
  return a + (b - a) * is_reached;
}

std::optional<std::vector<Index>> known_integers(ImportState& state, const Value& value) {
  if (!value || !small_count(value.type())) return std::nullopt;
  if (value.node->is(OpKind::Constant)) {
    const std::vector<int64_t> numbers = value.node->tensor.to_ints();
    return Entries(numbers.begin(), numbers.end());
  }
  const auto it = state.integers.find(value);
  return it == state.integers.end() ? std::nullopt : std::optional(it->second);
}

void learn_integers(ImportState& state, const Value& value) {
  const auto count = small_count(value.type());
  const Node& node = *value.node;
  if (!count || value.output != 0 || node.is(OpKind::Constant) || node.is(OpKind::Input) || node.is(OpKind::Opaque))
    return;
  if (state.integers.contains(value)) return;
  auto entries = learn_within(state, node, static_cast<size_t>(*count));
  if (!entries || static_cast<int64_t>(entries->size()) != *count) return;
  std::set<AtomId> symbols;
  for (const Index& entry : *entries) collect_symbols(entry, symbols);
  const auto is_forgotten = [&](AtomId symbol) { return state.forgotten.contains(symbol); };
  if (std::ranges::none_of(symbols, is_forgotten)) state.integers[value] = *std::move(entries);
}

}  // namespace gopt::ir
