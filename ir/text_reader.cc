#include "gopt/text_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace gopt {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
constexpr std::string_view kLowest = "-9223372036854775808";  // no negation of an integer of 64 bits
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

void TextReader::fail(const std::string& what) const {
  throw TextError("line " + std::to_string(line_) + ", column " + std::to_string(at_ - line_start_ + 1) + ": " + what);
}

void TextReader::skip_blanks() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') at_++;
    } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r') {
      at_++;
    } else {
      return;
    }
  }
}
char TextReader::next_char() {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}
bool TextReader::at_line_end() {
  const char c = next_char();
  return c == '\0' || c == '\n';
}
void TextReader::skip_blank_lines() {
  while (next_char() == '\n') {
    at_++;
    line_++;
    line_start_ = at_;
  }
}
bool TextReader::at_end() {
  skip_blank_lines();
  return at_ >= text_.size();
}
void TextReader::end_line() {
  if (!at_line_end()) fail("expected the end of the line");
  if (at_ < text_.size()) {
    at_++;
    line_++;
    line_start_ = at_;
  }
}

void TextReader::rewind_line() { at_ = line_start_; }
void TextReader::skip_line() {
  at_ = std::min(text_.find('\n', at_), text_.size());
  end_line();
}

std::string TextReader::rest_of_line() {
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '\n') at_++;
  const std::string_view rest = text_.substr(begin, at_ - begin);
  const size_t first = rest.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? ""
                                         : std::string(rest.substr(first, rest.find_last_not_of(" \t\r") - first + 1));
}

bool TextReader::peek(std::string_view token) {
  skip_blanks();
  if (text_.substr(at_, token.size()) != token) return false;
  const size_t end = at_ + token.size();
  return !starts_name(token[0]) || end >= text_.size() || !continues_name(text_[end]);
}
bool TextReader::accept(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}
void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail("expected '" + std::string(token) + "'");
}

std::string TextReader::word() {
  if (!continues_name(next_char())) fail("expected a name");
  const size_t begin = at_;
  while (at_ < text_.size() && (continues_name(text_[at_]) || text_[at_] == '-')) at_++;
  return std::string(text_.substr(begin, at_ - begin));
}
std::string TextReader::name() {
  if (next_char() == '"') return quoted();
  if (!starts_name(next_char())) fail("expected a name");
  const size_t begin = at_;
  while (at_ < text_.size() && continues_name(text_[at_]) && text_.substr(at_, 3) != "...") at_++;
  return std::string(text_.substr(begin, at_ - begin));
}
std::string TextReader::quoted() {
  expect("\"");
  std::string s;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      at_++;
      s += text_[at_] == 'n' ? '\n' : text_[at_];
    } else {
      s += text_[at_];
    }
    at_++;
  }
  if (at_ >= text_.size() || text_[at_] != '"') fail("a string is not closed");
  at_++;
  return s;
}

int64_t TextReader::integer() {
  skip_blanks();
  int64_t value = 0;
  const char* begin = text_.data() + at_;
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc())
    fail(error == std::errc::result_out_of_range ? "the integer exceeds 64 bits" : "expected an integer");
  at_ += static_cast<size_t>(end - begin);
  return value;
}
double TextReader::number() {
  skip_blanks();
  for (const auto& [text, value] : {std::pair{"-inf", -INFINITY}, {"inf", INFINITY}, {"-nan", -NAN}, {"nan", NAN}})
    if (accept(text)) return value;
  double value = 0;
  const char* begin = text_.data() + at_;
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("expected a number");
  at_ += static_cast<size_t>(end - begin);
  return value;
}

// ONNX stores float attributes in single precision: the number is the nearest of these. Only f64 tensors have others,
// which are written with all their digits.
double TextReader::attribute_number() {
  skip_blanks();
  const size_t begin = at_;
  const double value = number();
  const std::string_view digits = text_.substr(begin, at_ - begin);
  constexpr int kDigitsOfDouble = 17;
  const auto count = std::count_if(
      digits.begin(), std::find_if(digits.begin(), digits.end(), [](char c) { return c == 'e' || c == 'E'; }),
      [](char c) { return c >= '0' && c <= '9'; });
  return count >= kDigitsOfDouble ? value : static_cast<double>(static_cast<float>(value));
}

// ---- indexes and conditions ----

class TextReader::Nesting {
 public:
  explicit Nesting(TextReader& reader) : reader_(reader) {
    if (reader.depth_ >= kLimit) reader.fail("this is nested too deeply");
    reader.depth_++;
  }
  ~Nesting() { reader_.depth_--; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr int kLimit = 200;
  TextReader& reader_;
};

template <class F>
auto TextReader::checked(const F& arithmetic) const {
  try {
    return arithmetic();
  } catch (const std::overflow_error& e) {
    fail(e.what());
  }
}

Index TextReader::index() {
  const Nesting nesting(*this);
  return checked([this] {
    Index sum = accept(kLowest) ? Index(INT64_MIN) : accept("-") ? -index_term() : index_term();
    while (true) {
      if (accept("+"))
        sum += index_term();
      else if (accept("-"))
        sum = sum - index_term();
      else
        return sum;
    }
  });
}
Index TextReader::index_term() {
  Index product = index_factor();
  while (true) {
    const bool divide = peek("//");
    if (!divide && !peek("*") && !peek("%")) return product;
    const bool remainder = peek("%");
    at_ += divide ? 2 : 1;
    const Index factor = index_factor();
    if ((divide || remainder) && factor == Index(0)) fail("division by zero");
    product = divide ? floor_div(product, factor) : remainder ? modulo(product, factor) : product * factor;
  }
}
Index TextReader::index_factor() {
  if (accept("(")) {
    const Index inner = index();
    expect(")");
    return inner;
  }
  const Nesting nesting(*this);
  if (accept("-")) return -index_factor();
  if (starts_name(next_char()) || next_char() == '"') return symbol(name());
  return Index(integer());
}

constexpr int kMostParts = 256;  // each is compared with those before it

Cond TextReader::cond() {
  Cond any = cond_and();
  for (int parts = 1; accept("or"); parts++) {
    if (parts == kMostParts) fail("a condition has at most " + std::to_string(kMostParts) + " parts");
    any = any || cond_and();
  }
  return any;
}
Cond TextReader::cond_and() {
  Cond all = cond_not();
  for (int parts = 1; accept("and"); parts++) {
    if (parts == kMostParts) fail("a condition has at most " + std::to_string(kMostParts) + " parts");
    all = all && cond_not();
  }
  return all;
}
Cond TextReader::cond_not() {
  const Nesting nesting(*this);
  if (accept("not")) return !cond_not();
  if (accept("true")) return Cond();
  if (accept("false")) return Cond::never();
  if (peek("(")) {
    // A parenthesis opens a condition or an index: tried as a condition first.
    const size_t at = at_;
    try {
      expect("(");
      const Cond inner = cond();
      expect(")");
      if (!peek(">=") && !peek("<=") && !peek("==") && !peek("!=") && !peek("<") && !peek(">") && !peek("+") &&
          !peek("-") && !peek("*") && !peek("/") && !peek("%"))
        return inner;
    } catch (const TextError&) {
    }
    at_ = at;
  }
  const Index left = index();
  return checked([&]() -> Cond {
    if (accept(">=")) return at_least(left, index());
    if (accept("<=")) return at_least(index(), left);
    if (accept("==")) return equal(left, index());
    if (accept("!=")) return !equal(left, index());
    if (accept("<")) return less(left, index());
    if (accept(">")) return less(index(), left);
    fail("expected a comparison");
  });
}

// ---- types, tensors, attributes ----

TensorType TextReader::type(bool* prefix) {
  const std::string element = name();
  const auto parsed = parse_element_type(element);
  if (!parsed || *parsed == ElementType::Undefined) fail("'" + element + "' is no element type");
  expect("[");
  TensorType type{*parsed, Shape{}};
  if (prefix) *prefix = false;
  if (accept("?")) {
    type.shape.reset();
    expect("]");
    return type;
  }
  if (prefix && accept("...")) {
    *prefix = true;
    if (!peek("]")) expect(",");
  }
  while (!accept("]")) {
    type.shape->push_back(index());
    if (!peek("]")) expect(",");
  }
  for (const Index& extent : *type.shape)
    if (extent.is_constant() && extent.constant() < 0) fail("a negative extent");
  return type;
}

Tensor TextReader::tensor() {
  const TensorType t = type();
  if (!t.has_static_shape() || !is_computable(t.element))
    fail("a constant has a static shape and elements that are numbers");
  std::vector<double> reals;
  std::vector<int64_t> integers;
  expect("{");
  while (!accept("}")) {
    if (is_floating(t.element))
      reals.push_back(number());
    else
      integers.push_back(integer());
    if (!peek("}")) expect(",");
  }
  const std::vector<int64_t> dims = t.static_shape();
  const auto count = static_cast<int64_t>(is_floating(t.element) ? reals.size() : integers.size());
  const int64_t expected = checked([&] { return element_count(dims); });
  if (count != expected)
    fail("the constant has " + std::to_string(count) + " elements, its shape " + std::to_string(expected));
  return is_floating(t.element) ? Tensor::from_values<double>(t.element, dims, reals)
                                : Tensor::from_values<int64_t>(t.element, dims, integers);
}

AttributeValue TextReader::attribute(OpKind kind, const std::string& name) {
  const AttributeSchema* schema = op_info(kind).find_attribute(name);
  if (!schema) fail(op_info(kind).name + " has no attribute '" + name + "'");
  auto list = [this]<class T>(std::vector<T> values, const auto& read) {
    expect("[");
    while (!accept("]")) {
      values.push_back(read());
      if (!peek("]")) expect(",");
    }
    return values;
  };
  switch (schema->kind) {
    case AttributeKind::Int: return index();
    case AttributeKind::Ints: return list(std::vector<Index>{}, [this] { return index(); });
    case AttributeKind::Floats: return list(std::vector<double>{}, [this] { return attribute_number(); });
    case AttributeKind::String: return quoted();
    case AttributeKind::Tensor: return tensor();
    case AttributeKind::Float: break;
  }
  if (!accept("$")) return attribute_number();
  const std::string variable = this->name();
  auto it = float_slots_.find(variable);
  if (it == float_slots_.end()) fail("'$" + variable + "' is no float variable");
  return FloatVariable{variable, it->second};
}

Attributes TextReader::attributes(OpKind kind) {
  Attributes result;
  if (!accept("{")) return result;
  while (!accept("}")) {
    const std::string key = name();
    expect("=");
    if (!result.emplace(key, attribute(kind, key)).second) fail("attribute '" + key + "' is given twice");
    if (!peek("}")) expect(",");
  }
  return result;
}

// ---- nodes ----

namespace {

// The constant as an attribute of this kind, if it is one.
std::optional<AttributeValue> as_attribute(const Value& value, AttributeKind kind) {
  if (!value || !value.node->is(OpKind::Constant)) return std::nullopt;
  const Tensor& tensor = value.node->tensor;
  auto integer = [&](int64_t i) { return Index(load_int(tensor.bytes().data(), tensor.type(), i)); };
  if (kind == AttributeKind::Float && is_floating(tensor.type()) && tensor.count() == 1)
    return load_double(tensor.bytes().data(), tensor.type(), 0);
  if (!is_integer(tensor.type())) return std::nullopt;
  if (kind == AttributeKind::Int && tensor.count() == 1) return integer(0);
  if (kind != AttributeKind::Ints) return std::nullopt;
  std::vector<Index> list;
  for (int64_t i = 0; i < tensor.count(); i++) list.push_back(integer(i));
  return list;
}

}  // namespace

// Inputs beyond the operator's own are those by which ONNX passes attributes.
void TextReader::take_attributes(const OpInfo& info, std::vector<Value>& inputs, Attributes& attributes) const {
  if (info.max_inputs < 0) return;
  const auto own = static_cast<size_t>(info.max_inputs);
  if (inputs.size() <= own || inputs.size() > own + info.onnx_inputs.size()) return;
  for (size_t k = own; k < inputs.size(); k++) {
    if (!inputs[k]) continue;
    const std::string& name = info.onnx_inputs[k - own].attribute;
    auto value = as_attribute(inputs[k], info.find_attribute(name)->kind);
    if (!value)
      fail("input " + std::to_string(k) + " of " + info.name + " stands for the attribute '" + name +
           "': a constant of its kind");
    if (!attributes.emplace(name, *std::move(value)).second) fail("attribute '" + name + "' is given twice");
  }
  inputs.resize(own);
}

Value TextReader::value(const std::map<std::string, Value>& values) {
  const std::string key = name();
  auto it = values.find(key);
  if (it == values.end()) fail("'" + key + "' is not defined");
  return it->second;
}

void TextReader::node_line(GraphBuilder& builder, std::map<std::string, Value>& values) {
  std::vector<std::string> outputs{name()};
  while (accept(",")) outputs.push_back(name());
  expect("=");
  const std::string op = name();
  const auto kind = find_op(op);
  if (!kind) fail("'" + op + "' is no operator");
  expect("(");
  std::vector<Value> inputs;
  while (!accept(")")) {
    inputs.push_back(accept("_") ? Value{} : value(values));
    if (!peek(")")) expect(",");
  }
  Attributes given = attributes(*kind);
  take_attributes(op_info(*kind), inputs, given);
  auto node = builder.add(*kind, std::move(inputs), std::move(given), static_cast<int>(outputs.size()), "", outputs);
  if (!node) fail(node.error().message);
  for (size_t k = 0; k < outputs.size(); k++)
    if (!values.emplace(outputs[k], Value{*node, static_cast<int>(k)}).second)
      fail("'" + outputs[k] + "' is defined twice");
}

}  // namespace gopt
