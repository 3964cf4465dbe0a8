#include "gopt/definition.h"

#include <xxhash.h>

#include "definitions/context.h"
#include "gopt/graph.h"

namespace gopt {

using namespace ir;

// ---- DefineContext ----

const TensorExpr& DefineContext::input(size_t i) const {
  if (!has_input(i)) fail("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}
const AttributeValue* DefineContext::find(std::string_view name) const {
  if (auto it = attributes_.find(name); it != attributes_.end()) return &it->second;
  const AttributeSchema* schema = info_.find_attribute(name);
  GOPT_CHECK(schema != nullptr, info_.name + " has no attribute " + std::string(name));
  return schema->default_value ? &*schema->default_value : nullptr;
}
bool DefineContext::has(std::string_view name) const { return find(name) != nullptr; }

template <class T>
const T& DefineContext::get(std::string_view name) const {
  const AttributeValue* value = find(name);
  if (!value) fail("attribute " + std::string(name) + " is missing");
  if (!std::holds_alternative<T>(*value)) fail("attribute " + std::string(name) + " is of the wrong kind");
  return std::get<T>(*value);
}
Index DefineContext::integer(std::string_view name) const { return get<Index>(name); }
int64_t DefineContext::number(std::string_view name) const {
  const auto value = integer(name).as_constant();
  if (!value) fail("attribute " + std::string(name) + " must be a number");
  return *value;
}
std::vector<Index> DefineContext::integers(std::string_view name) const { return get<std::vector<Index>>(name); }
std::vector<Index> DefineContext::integers_or(std::string_view name, std::vector<Index> otherwise) const {
  if (!has(name)) return otherwise;
  std::vector<Index> values = integers(name);
  if (values.size() != otherwise.size())
    fail("attribute " + std::string(name) + " has " + std::to_string(values.size()) + " entries, " +
         std::to_string(otherwise.size()) + " are needed");
  return values;
}
Expr DefineContext::real(std::string_view name) const {
  const AttributeValue* value = find(name);
  if (value && std::holds_alternative<FloatVariable>(*value)) return read(std::get<FloatVariable>(*value).slot, {});
  return constant(get<double>(name));
}
std::string DefineContext::text(std::string_view name) const { return get<std::string>(name); }
const Tensor& DefineContext::tensor(std::string_view name) const { return get<Tensor>(name); }

size_t DefineContext::normalize_axis(const Index& axis, size_t rank, bool inclusive) const {
  const auto value = axis.as_constant();
  if (!value) fail("an axis must be a number");
  const int64_t limit = static_cast<int64_t>(rank) + (inclusive ? 1 : 0);
  const int64_t position = *value < 0 ? *value + static_cast<int64_t>(rank) : *value;
  if (position < 0 || position >= limit)
    fail("axis " + std::to_string(*value) + " is out of range for rank " + std::to_string(rank));
  return static_cast<size_t>(position);
}
size_t DefineContext::axis(std::string_view name, size_t rank, bool inclusive) const {
  return normalize_axis(integer(name), rank, inclusive);
}

bool DefineContext::has_ceil_mode() const { return info_.find_attribute("ceil_mode") && number("ceil_mode") != 0; }

void DefineContext::require(const Cond& cond, const std::string& what, bool from_broadcast) {
  if (cond.is_true()) return;
  if (cond.is_false()) fail(what + ": this does not hold");
  definition_.requirements.push_back({cond, what, from_broadcast});
}
void DefineContext::fail(const std::string& what) const {
  std::string shapes;
  for (const TensorExpr& t : inputs_)
    shapes += (shapes.empty() ? "" : ", ") + (t.at ? to_string(TensorType{t.element, t.shape}) : "-");
  throw DefinitionError(info_.name + "(" + shapes + "): " + what);
}
void DefineContext::output(ElementType element, Shape shape, ElementFunction at) {
  definition_.outputs.push_back({element, std::move(shape), std::move(at)});
}

// ---- entry points ----

TensorExpr input_tensor(int input, const TensorType& type) {
  GOPT_CHECK(type.shape.has_value(), "input_tensor of unknown rank");
  TensorExpr t{type.element, *type.shape, [input](const std::vector<Index>& s) { return read(input, s); }};
  t.plain_input = input;
  return t;
}

namespace {

void dispatch(OpKind kind, DefineContext& c) {
  switch (kind) {
    case OpKind::Input:
    case OpKind::Constant:
    case OpKind::Opaque: GOPT_CHECK(false, "define of a node that applies no operator");
#define GOPT_OP(name, ...) \
  case OpKind::name:       \
    return define_##name(c);
#include "gopt/op_table.def"
#undef GOPT_OP
  }
}

Status check_arity(const OpInfo& info, size_t inputs, const Attributes& attributes) {
  const auto count = static_cast<int>(inputs);
  if (count < info.min_inputs || (info.max_inputs >= 0 && count > info.max_inputs))
    return Error{info.name + ": " + std::to_string(count) + " inputs, expected " + std::to_string(info.min_inputs) +
                 (info.max_inputs == info.min_inputs ? ""
                  : info.max_inputs < 0              ? " or more"
                                                     : " to " + std::to_string(info.max_inputs))};
  for (const auto& [name, value] : attributes)
    if (!info.find_attribute(name)) return Error{info.name + ": unknown attribute " + name};
  for (const AttributeSchema& schema : info.attributes)
    if (schema.required && !attributes.contains(schema.name))
      return Error{info.name + ": attribute " + schema.name + " is missing"};
  return Unit{};
}

}  // namespace

Result<Definition> define(OpKind kind, const std::vector<TensorExpr>& inputs, const Attributes& attributes,
                          int output_count) {
  GOPT_RETURN_IF_ERROR(check_arity(op_info(kind), inputs.size(), attributes));
  DefineContext c(kind, inputs, attributes, output_count);
  try {
    dispatch(kind, c);
  } catch (const DefinitionError& e) {
    return Error{e.what()};
  } catch (const std::overflow_error& e) {
    return Error{op_info(kind).name + ": " + e.what()};
  }
  Definition d = c.take();
  if (static_cast<int>(d.outputs.size()) < output_count)
    return Error{op_info(kind).name + ": " + std::to_string(output_count) + " outputs asked for, it has " +
                 std::to_string(d.outputs.size())};
  return d;
}

Result<InferredTypes> infer_types(OpKind kind, const std::vector<TensorType>& inputs, const Attributes& attributes,
                                  int output_count) {
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (inputs[i].element == ElementType::Undefined) {
      tensors.emplace_back();
      continue;
    }
    if (!inputs[i].shape) return Error{op_info(kind).name + ": input " + std::to_string(i) + " has an unknown rank"};
    tensors.push_back(input_tensor(static_cast<int>(i), inputs[i]));
  }
  GOPT_ASSIGN_OR_RETURN(Definition d, define(kind, tensors, attributes, output_count));
  InferredTypes types;
  for (TensorExpr& t : d.outputs) types.outputs.push_back({t.element, std::move(t.shape)});
  types.requirements = std::move(d.requirements);
  return types;
}

namespace {

// Lists of integers that a required attribute may be: axes or sizes, one axis, pads of four axes.
const std::vector<std::vector<Index>>& probe_lists() {
  static const std::vector<std::vector<Index>> lists{{1, 1}, {1}, {0, 1, 1, 0, 0, 0, 1, 1}};
  return lists;
}

// Attributes under which an operator can be defined on the probe's inputs.
Attributes probe_attributes(const OpInfo& info, const std::vector<Index>& list) {
  Attributes attributes;
  for (const AttributeSchema& schema : info.attributes) {
    if (!schema.required) continue;
    if (schema.kind == AttributeKind::Int) attributes[schema.name] = Index(1);
    if (schema.kind == AttributeKind::Float) attributes[schema.name] = 0.5;
    if (schema.kind == AttributeKind::Ints) {
      const bool whole = schema.name == "shape";
      attributes[schema.name] = whole ? std::vector<Index>{2, 4, 6, 6} : list;
    }
  }
  return attributes;
}

// Shapes of a probe: the first input's, and those that the other inputs share.
struct ProbeShapes {
  Shape first, others;
};
std::vector<ProbeShapes> probe_shapes() {
  const Index a = symbol("probe_a"), b = symbol("probe_b"), c = symbol("probe_c"), d = symbol("probe_d");
  const Shape image{2, 4, 6, 6}, symbolic{a, b, c, d};
  return {{image, image},  {image, {4}},         {image, {4, 4, 3, 3}}, {{4, 4}, {4, 4}}, {{4, 4}, {4}},
          {{}, {}},        {symbolic, symbolic}, {symbolic, {b}},       {symbolic, {d}},  {symbolic, {c, b, 3, 3}},
          {{a, b}, {b, c}}};
}

std::string text_of(const Definition& definition) {
  std::string text;
  for (const TensorExpr& t : definition.outputs) {
    std::vector<Index> subscripts;
    for (size_t k = 0; k < t.shape.size(); k++) subscripts.push_back(symbol("probe_i" + std::to_string(k)));
    text += "|" + to_string(TensorType{t.element, t.shape}) + to_string(t.at(subscripts));
  }
  for (const Requirement& r : definition.requirements) text += "|" + to_string(r.cond);
  return text;
}

std::string short_hash(std::string_view text) { return to_string(hash_bytes(text)).substr(0, 16); }

}  // namespace

namespace {

std::string probed(const OpInfo& info, const std::vector<Index>& list) {
  std::string text;
  const int most = info.max_inputs < 0 ? info.min_inputs + 1 : info.max_inputs;
  for (const ProbeShapes& shapes : probe_shapes())
    for (int count = info.min_inputs; count <= most; count++)
      for (ElementType others : {ElementType::Float32, ElementType::Int64}) {
        if (count < 2 && others != ElementType::Float32) continue;
        std::vector<TensorExpr> inputs;
        for (int i = 0; i < count; i++)
          inputs.push_back(i == 0 ? input_tensor(i, {ElementType::Float32, shapes.first})
                                  : input_tensor(i, {others, shapes.others}));
        if (Result<Definition> d = define(info.kind, inputs, probe_attributes(info, list))) text += text_of(*d);
      }
  return text;
}

// Of operators between integers of few bits and floats, which no other probe reaches.
std::string probed_on_integers(const OpInfo& info) {
  std::string text;
  for (const ProbeShapes& shapes : probe_shapes())
    for (const ElementType integers : {ElementType::UInt8, ElementType::Int8, ElementType::Int16, ElementType::Int32})
      for (const ElementType first : {ElementType::Float32, integers}) {
        std::vector<TensorExpr> inputs{input_tensor(0, {first, shapes.first})};
        for (int i = 1; i < info.max_inputs; i++)
          inputs.push_back(input_tensor(i, {i == 1 ? ElementType::Float32 : integers, shapes.others}));
        if (Result<Definition> d = define(info.kind, inputs, {}, 1)) text += text_of(*d);
      }
  return text;
}

// Of operators that read places from their second input.
std::string probed_on_places(const OpInfo& info) {
  std::string text;
  for (const ProbeShapes& shapes : probe_shapes()) {
    std::vector<TensorExpr> inputs;
    for (int i = 0; i < info.min_inputs; i++)
      inputs.push_back(input_tensor(i, {i == 1 ? ElementType::Int64 : ElementType::Float32, shapes.first}));
    if (Result<Definition> d = define(info.kind, inputs, {}, 1)) text += text_of(*d);
  }
  return text;
}

}  // namespace

// What a definition says on probes stands for what it says.
std::string definition_text(OpKind kind) {
  const OpInfo& info = op_info(kind);
  std::string text;
  for (const std::vector<Index>& list : probe_lists())
    if (text.empty()) text = probed(info, list);
  if (text.empty()) text = probed_on_integers(info);
  if (text.empty()) text = probed_on_places(info);
  return info.name + "|" + std::to_string(info.traits) + text;
}

std::string definition_hash(OpKind kind) {
  static const std::map<OpKind, std::string> hashes = [] {
    std::map<OpKind, std::string> all;
    for (OpKind op : all_ops()) all[op] = short_hash(definition_text(op));
    return all;
  }();
  return hashes.at(kind);
}

std::string definitions_hash() {
  static const std::string hash = [] {
    std::string text;
    for (OpKind kind : all_ops()) text += definition_hash(kind);
    return short_hash(text);
  }();
  return hash;
}

}  // namespace gopt
