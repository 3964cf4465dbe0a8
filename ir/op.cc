#include "gopt/op.h"

#include <charconv>
#include <unordered_map>

#include "gopt/result.h"

namespace gopt {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> r;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) r.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return r;
}

AttributeKind parse_kind(const std::string& text) {
  static const std::unordered_map<std::string, AttributeKind> kinds = {
      {"int", AttributeKind::Int},       {"ints", AttributeKind::Ints},     {"float", AttributeKind::Float},
      {"floats", AttributeKind::Floats}, {"string", AttributeKind::String}, {"tensor", AttributeKind::Tensor}};
  return kinds.at(text);
}

AttributeSchema parse_schema(const std::string& word) {
  AttributeSchema schema;
  const size_t colon = word.find(':'), equals = word.find('=');
  std::string kind = word.substr(colon + 1, equals == std::string::npos ? equals : equals - colon - 1);
  schema.name = word.substr(0, colon);
  const bool optional = kind.back() == '?';
  if (optional) kind.pop_back();
  schema.kind = parse_kind(kind);
  schema.required = !optional && equals == std::string::npos;
  if (equals == std::string::npos) return schema;
  const std::string value = word.substr(equals + 1);
  if (schema.kind == AttributeKind::Int) schema.default_value = Index(std::stoll(value));
  // ONNX's float attributes are single precision: the default is the nearest float.
  if (schema.kind == AttributeKind::Float) schema.default_value = static_cast<double>(std::stof(value));
  if (schema.kind == AttributeKind::String) schema.default_value = value;
  return schema;
}

OpInfo make_info(OpKind kind, const char* name, int since, int min_inputs, int max_inputs, int outputs, unsigned traits,
                 const char* attributes, const char* onnx_inputs, const char* meaning) {
  OpInfo info{kind, name, since, min_inputs, max_inputs, outputs, traits, {}, {}, meaning};
  for (const std::string& word : words(attributes)) info.attributes.push_back(parse_schema(word));
  for (const std::string& word : words(onnx_inputs)) {
    const size_t at = word.find(">=");
    info.onnx_inputs.push_back({word.substr(0, at), std::stoi(word.substr(at + 2))});
  }
  return info;
}

const std::vector<OpInfo>& table() {
  static const std::vector<OpInfo> infos = {
      make_info(OpKind::Input, "Input", 0, 0, 0, 1, 0, "", "", "a graph input"),
      make_info(OpKind::Constant, "Constant", 0, 0, 0, 1, 0, "", "", "an initializer"),
      make_info(OpKind::Opaque, "Opaque", 0, 0, -1, -1, 0, "", "", "an operator kept as it is"),
#define GOPT_OP(name, ...) make_info(OpKind::name, #name, __VA_ARGS__),
#include "gopt/op_table.def"
#undef GOPT_OP
  };
  return infos;
}

// A number always shows that it is a float, so that text comes back as the same kind of attribute.
std::string shown_as_float(std::string s) {
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

// The shortest text that stands for the number.
template <class T>
std::string shortest_text(T value) {
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return shown_as_float(std::string(buffer, end));
}

// The shortest text that stands for the number among floats, if it is one; else all digits of a double, by which
// readers of attributes tell the two apart.
std::string number_text(double value) {
  const auto single = static_cast<float>(value);
  if (static_cast<double>(single) == value || value != value) return shortest_text(single);
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, 16);
  return shown_as_float(std::string(buffer, end));
}

template <class T, class F>
std::string list_text(const std::vector<T>& items, const F& text) {
  std::string s = "[";
  for (size_t i = 0; i < items.size(); i++) s += (i ? "," : "") + text(items[i]);
  return s + "]";
}

std::string element_text(const Tensor& tensor, int64_t i) {
  const double value = load_double(tensor.bytes().data(), tensor.type(), i);
  return tensor.type() == ElementType::Float64 ? shortest_text(value) : number_text(value);
}

}  // namespace

const AttributeSchema* OpInfo::find_attribute(std::string_view attribute) const {
  for (const AttributeSchema& schema : attributes)
    if (schema.name == attribute) return &schema;
  return nullptr;
}

const OpInfo& op_info(OpKind kind) { return table()[static_cast<size_t>(kind)]; }

std::optional<OpKind> find_op(std::string_view name) {
  static const auto* names = [] {
    auto* map = new std::unordered_map<std::string, OpKind>;
    for (OpKind kind : all_ops()) map->emplace(op_info(kind).name, kind);
    return map;
  }();
  auto it = names->find(std::string(name));
  if (it == names->end()) return std::nullopt;
  return it->second;
}

const std::vector<OpKind>& all_ops() {
  static const std::vector<OpKind> kinds = {
#define GOPT_OP(name, ...) OpKind::name,
#include "gopt/op_table.def"
#undef GOPT_OP
  };
  return kinds;
}

bool equal(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&b]<class T>(const T& value) {
        const T& other = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>)
          return value.content_id() == other.content_id();
        else
          return value == other;
      },
      a);
}

std::string to_string(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        auto index_text = [](const Index& i) { return to_string(i); };
        if constexpr (std::is_same_v<T, Index>)
          return index_text(v);
        else if constexpr (std::is_same_v<T, std::vector<Index>>)
          return list_text(v, index_text);
        else if constexpr (std::is_same_v<T, double>)
          return number_text(v);
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          return list_text(v, number_text);
        else if constexpr (std::is_same_v<T, std::string>)
          return quoted(v);
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return list_text(v, [](const std::string& item) { return quoted(item); });
        else if constexpr (std::is_same_v<T, FloatVariable>)
          return "$" + v.name;
        else {
          std::string s = to_string(v.tensor_type()) + " {";
          for (int64_t i = 0; i < v.count(); i++) {
            s += i ? ", " : "";
            s += is_floating(v.type()) ? element_text(v, i) : std::to_string(load_int(v.bytes().data(), v.type(), i));
          }
          return s + "}";
        }
      },
      value);
}

void collect_symbols(const AttributeValue& value, std::set<AtomId>& out) {
  if (const auto* index = std::get_if<Index>(&value)) collect_symbols(*index, out);
  if (const auto* list = std::get_if<std::vector<Index>>(&value))
    for (const Index& index : *list) collect_symbols(index, out);
}

}  // namespace gopt
