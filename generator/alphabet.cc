#include "alphabet.h"

#include <fmt/core.h>

#include <charconv>
#include <sstream>

namespace gopt::generator {
namespace {

// A recursive-descent reader of one line: words, numbers, polynomials, lists.
class LineReader {
 public:
  LineReader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  bool accept(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    at_++;
    return true;
  }
  bool accept(std::string_view wanted) {
    skip_spaces();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  Error expected(const std::string& what) const {
    return Error{fmt::format("{}: expected {} at `{}`", where_, what, text_.substr(std::min(at_, text_.size())))};
  }

  Result<std::string> word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '-'))
      at_++;
    if (at_ == start) return expected("a name");
    return std::string(text_.substr(start, at_ - start));
  }
  bool at_number() {
    skip_spaces();
    return at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-');
  }
  Result<int64_t> integer() {
    GOPT_ASSIGN_OR_RETURN(const double value, number());
    if (value != static_cast<double>(static_cast<int64_t>(value))) return expected("an integer");
    return static_cast<int64_t>(value);
  }
  Result<double> number() {
    skip_spaces();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return expected("a number");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  // sum := product (('+' | '-') product)*
  Result<Index> polynomial() {
    const bool negative = accept('-');
    GOPT_ASSIGN_OR_RETURN(Index sum, product());
    if (negative) sum = -sum;
    for (;;) {
      const bool plus = accept('+'), minus = !plus && accept('-');
      if (!plus && !minus) return sum;
      GOPT_ASSIGN_OR_RETURN(const Index term, product());
      sum = plus ? sum + term : sum - term;
    }
  }
  Result<std::vector<Index>> list() {
    std::vector<Index> items;
    if (!accept('[')) return expected("`[`");
    while (!accept(']')) {
      if (!items.empty() && !accept(',')) return expected("`,` or `]`");
      GOPT_ASSIGN_OR_RETURN(Index item, polynomial());
      items.push_back(std::move(item));
    }
    return items;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  Result<Index> product() {
    GOPT_ASSIGN_OR_RETURN(Index result, factor());
    while (accept('*')) {
      GOPT_ASSIGN_OR_RETURN(const Index next, factor());
      result = result * next;
    }
    return result;
  }
  Result<Index> factor() {
    skip_spaces();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      int64_t value = 0;
      const auto end = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value).ptr;
      at_ = static_cast<size_t>(end - text_.data());
      return Index(value);
    }
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) at_++;
    if (at_ == start) return expected("a number or a size");
    return symbol(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

Result<AttributeValue> read_attribute(LineReader& line, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::Int: {
      GOPT_ASSIGN_OR_RETURN(Index value, line.polynomial());
      return AttributeValue{std::move(value)};
    }
    case AttributeKind::Ints: {
      GOPT_ASSIGN_OR_RETURN(std::vector<Index> values, line.list());
      return AttributeValue{std::move(values)};
    }
    case AttributeKind::Float: {
      GOPT_ASSIGN_OR_RETURN(const double value, line.number());
      return AttributeValue{value};
    }
    case AttributeKind::String: {
      GOPT_ASSIGN_OR_RETURN(std::string value, line.word());
      return AttributeValue{std::move(value)};
    }
    case AttributeKind::Tensor: {
      GOPT_ASSIGN_OR_RETURN(const double value, line.number());
      return AttributeValue{Tensor::from_values<double>(ElementType::Float32, {1}, {value})};
    }
    case AttributeKind::Floats: break;
  }
  return line.expected("an attribute that is a number, integers or a word");
}

// The value of an attribute whose name and `=` are read.
Status read_attribute_of(LineReader& line, const OpInfo& info, const std::string& attribute, Attributes& attributes) {
  const AttributeSchema* schema = info.find_attribute(attribute);
  if (!schema) return line.expected("an attribute of " + std::string(info.name) + ", not `" + attribute + "`, before");
  GOPT_ASSIGN_OR_RETURN(AttributeValue value, read_attribute(line, schema->kind));
  attributes.emplace(attribute, std::move(value));
  return Unit{};
}

bool have_equal_texts(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& own, const auto& other) {
    return own.first == other.first && gopt::to_string(own.second) == gopt::to_string(other.second);
  });
}

// op NAME [weights-only] [inputs=N] [outputs=N] [weights-from=N] [attribute=value ...]
Status read_op(LineReader& line, Family& family) {
  GOPT_ASSIGN_OR_RETURN(const std::string name, line.word());
  const auto kind = find_op(name);
  if (!kind) return line.expected("an operator of the table, not `" + name + "`, before");
  const OpInfo& info = op_info(*kind);
  AlphabetOp op{*kind, {}, info.min_inputs, std::max(info.outputs, 1)};
  while (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(const std::string attribute, line.word());
    if (attribute == "weights-only") {
      op.on_weights_only = true;
      continue;
    }
    if (!line.accept('=')) return line.expected("`=`");
    if (attribute == "inputs" || attribute == "outputs" || attribute == "weights-from") {
      GOPT_ASSIGN_OR_RETURN(const int64_t count, line.integer());
      (attribute == "inputs"    ? op.inputs
       : attribute == "outputs" ? op.outputs
                                : op.weights_from) = static_cast<int>(count);
      continue;
    }
    GOPT_RETURN_IF_ERROR(read_attribute_of(line, info, attribute, op.attributes));
  }
  if (op.inputs == 2 && op.weights_from < 2 && info.has(kCommutative))
    return line.expected("weights-from for operators whose inputs have an order alone, not for " + name + ", before");
  for (const AlphabetOp& other : family.ops)
    if (other.composite.empty() && other.kind == op.kind && other.inputs == op.inputs && other.outputs == op.outputs &&
        have_equal_texts(other.attributes, op.attributes))
      return line.expected("each operator once in a family, not " + name + " with these attributes again, before");
  family.ops.push_back(std::move(op));
  return Unit{};
}

// composite NAME [inputs=N] [weights-only] [weights-from=N]
Status read_composite(LineReader& line, Family& family) {
  AlphabetOp op{OpKind::Identity};
  GOPT_ASSIGN_OR_RETURN(op.composite, line.word());
  if (find_op(op.composite)) return line.expected("a name that no operator has, not `" + op.composite + "`, before");
  while (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(const std::string attribute, line.word());
    if (attribute == "weights-only") {
      op.on_weights_only = true;
    } else if ((attribute == "inputs" || attribute == "weights-from") && line.accept('=')) {
      GOPT_ASSIGN_OR_RETURN(const int64_t count, line.integer());
      (attribute == "inputs" ? op.inputs : op.weights_from) = static_cast<int>(count);
    } else {
      return line.expected("inputs=N, weights-from=N or weights-only, not `" + attribute + "`, before");
    }
  }
  family.ops.push_back(std::move(op));
  return Unit{};
}

// "in0", "step1" or a number.
Result<CompositeStep::Argument> read_argument(LineReader& line, const AlphabetOp& op) {
  if (line.at_number()) {
    GOPT_ASSIGN_OR_RETURN(const double value, line.number());
    return CompositeStep::Argument{CompositeStep::From::Constant, 0, value};
  }
  GOPT_ASSIGN_OR_RETURN(const std::string word, line.word());
  const auto among = [&](const char* what, size_t count) {
    for (size_t i = 0; i < count; i++)
      if (word == what + std::to_string(i)) return static_cast<int>(i);
    return -1;
  };
  if (const int input = among("in", static_cast<size_t>(op.inputs)); input >= 0)
    return CompositeStep::Argument{CompositeStep::From::Input, static_cast<size_t>(input)};
  if (const int step = among("step", op.steps.size()); step >= 0)
    return CompositeStep::Argument{CompositeStep::From::Step, static_cast<size_t>(step)};
  return line.expected("an input (in0, ...), an earlier step (step0, ...) or a number, not `" + word + "`, before");
}

// step NAME ARGUMENT ... [attribute=value ...], after a composite
Status read_step(LineReader& line, Family& family) {
  if (family.ops.empty() || family.ops.back().composite.empty()) return line.expected("`composite NAME` first");
  AlphabetOp& op = family.ops.back();
  GOPT_ASSIGN_OR_RETURN(const std::string name, line.word());
  const auto kind = find_op(name);
  if (!kind) return line.expected("an operator of the table, not `" + name + "`, before");
  const OpInfo& info = op_info(*kind);
  CompositeStep step{*kind, {}, {}};
  for (int i = 0; i < info.min_inputs; i++) {
    GOPT_ASSIGN_OR_RETURN(CompositeStep::Argument arg, read_argument(line, op));
    step.args.push_back(arg);
  }
  while (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(const std::string attribute, line.word());
    if (!line.accept('=')) return line.expected("`=`");
    GOPT_RETURN_IF_ERROR(read_attribute_of(line, info, attribute, step.attributes));
  }
  op.steps.push_back(std::move(step));
  return Unit{};
}

// size NAME FIRST SECOND [LOW HIGH]
Status read_size(LineReader& line, Family& family) {
  GOPT_ASSIGN_OR_RETURN(const std::string name, line.word());
  Size size{symbol_atom(name), {0, 0}, 1, 5};
  for (int64_t& value : size.values) {
    GOPT_ASSIGN_OR_RETURN(value, line.integer());
  }
  if (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(size.low, line.integer());
    GOPT_ASSIGN_OR_RETURN(size.high, line.integer());
  }
  family.sizes.push_back(size);
  return Unit{};
}

// (activation | weight) COUNT [... ,] extents
Status read_class(LineReader& line, VariableKind kind, Family& family) {
  VariableClass made;
  made.kind = kind;
  GOPT_ASSIGN_OR_RETURN(const int64_t count, line.integer());
  made.count = static_cast<int>(count);
  if (!line.accept('[')) return line.expected("`[`");
  made.has_prefix = line.accept("...");
  Shape shape;
  while (!line.accept(']')) {
    if ((made.has_prefix || !shape.empty()) && !line.accept(',')) return line.expected("`,` or `]`");
    GOPT_ASSIGN_OR_RETURN(Index extent, line.polynomial());
    shape.push_back(std::move(extent));
  }
  made.type = {ElementType::Float32, std::move(shape)};
  family.classes.push_back(std::move(made));
  return Unit{};
}

Status read_line(LineReader& line, std::vector<Family>& families) {
  GOPT_ASSIGN_OR_RETURN(const std::string keyword, line.word());
  if (keyword == "family") {
    GOPT_ASSIGN_OR_RETURN(std::string name, line.word());
    families.emplace_back().name = std::move(name);
    return Unit{};
  }
  if (families.empty()) return line.expected("`family NAME` first");
  Family& family = families.back();
  if (keyword == "size") return read_size(line, family);
  if (keyword == "activation") return read_class(line, VariableKind::Activation, family);
  if (keyword == "weight") return read_class(line, VariableKind::Weight, family);
  if (keyword == "op") return read_op(line, family);
  if (keyword == "composite") return read_composite(line, family);
  if (keyword == "step") return read_step(line, family);
  if (keyword == "constant") {
    while (!line.at_end()) {
      GOPT_ASSIGN_OR_RETURN(const double value, line.number());
      family.constants.push_back(value);
    }
    return Unit{};
  }
  if (keyword == "max-ops" || keyword == "max-weight-ops") {
    GOPT_ASSIGN_OR_RETURN(const int64_t value, line.integer());
    (keyword == "max-ops" ? family.max_ops : family.max_weight_ops) = static_cast<int>(value);
    return Unit{};
  }
  if (keyword == "partial") {
    family.is_partial = true;
    return Unit{};
  }
  return line.expected(
      "family, size, activation, weight, constant, op, composite, step, partial, max-ops or max-weight-ops, not `" +
      keyword + "`, before");
}

}  // namespace

Result<std::vector<Family>> parse_alphabet(std::string_view text, const std::string& name) {
  std::vector<Family> families;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string content; std::getline(stream, content);) {
    number++;
    content = content.substr(0, content.find('#'));
    LineReader line(content, fmt::format("{}:{}", name, number));
    if (line.at_end()) continue;
    GOPT_RETURN_IF_ERROR(read_line(line, families));
    if (!line.at_end()) return line.expected("the end of the line");
  }
  if (families.empty()) return Error{name + ": no family"};
  for (const Family& family : families)
    for (const AlphabetOp& op : family.ops)
      if (!op.composite.empty() && op.steps.empty())
        return Error{fmt::format("{}: composite {} of family {} has no step", name, op.composite, family.name)};
  return families;
}

}  // namespace gopt::generator
