#include "alphabet.h"

#include <fmt/core.h>

#include <sstream>

#include "alphabet_check.h"
#include "line_reader.h"
#include "space.h"

namespace gopt::generator {
namespace {

constexpr int64_t kMaxSize = 4096, kMaxOps = 9, kMaxOutputs = 8;

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
      if (line.accept('$')) {
        GOPT_ASSIGN_OR_RETURN(std::string name, line.word());
        return AttributeValue{FloatVariable{std::move(name), kFirstFloatSlot}};
      }
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
  if (!schema) return line.expected_before("an attribute of " + std::string(info.name) + ", not `" + attribute + "`");
  GOPT_ASSIGN_OR_RETURN(AttributeValue value, read_attribute(line, schema->kind));
  attributes.emplace(attribute, std::move(value));
  return Unit{};
}

bool have_equal_texts(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& own, const auto& other) {
    return own.first == other.first && gopt::to_string(own.second) == gopt::to_string(other.second);
  });
}

// The number of the class of that name, -1 where there is none.
int class_named(const Family& family, const std::string& name) {
  for (size_t i = 0; i < family.classes.size(); i++)
    if (family.classes[i].name == name) return static_cast<int>(i);
  return -1;
}

// "args=_,scale": the classes of an operator's arguments.
Status read_argument_classes(LineReader& line, const Family& family, AlphabetOp& op) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<std::string> names, line.words());
  for (const std::string& name : names) {
    op.classes.push_back(name == "_" ? -1 : class_named(family, name));
    if (name != "_" && op.classes.back() < 0) return line.expected_before("a class named above, not `" + name + "`");
  }
  return Unit{};
}

Status check_arguments(const LineReader& line, const AlphabetOp& op) {
  if (!op.classes.empty() && op.classes.size() != static_cast<size_t>(op.inputs))
    return line.expected_before(fmt::format("args= for {} inputs, not {}", op.inputs, op.classes.size()));
  if (op.inputs > kMaxArguments)
    return line.wrong(fmt::format("{} takes {} inputs, of which an application here has {} at most; leave it out",
                                  op.name(), op.inputs, kMaxArguments));
  if (op.weights_from != AlphabetOp{}.weights_from && op.weights_from >= op.inputs)
    return line.wrong(fmt::format("weights-from={} is beyond the {} inputs of {}; inputs are counted from 0",
                                  op.weights_from, op.inputs, op.name()));
  if (op.inputs == 2 && (op.weights_from < 2 || !op.classes.empty()) && op_info(op.kind).has(kCommutative))
    return line.expected_before("weights-from and args for operators whose inputs have an order alone, not for " +
                                op.name());
  return Unit{};
}

// One of `args`, `inputs`, `outputs` and `weights-from`, after its `=`. False where it is none of them.
Result<bool> read_option(LineReader& line, const std::string& option, const Family& family, AlphabetOp& op) {
  if (option == "args") {
    GOPT_RETURN_IF_ERROR(read_argument_classes(line, family, op));
    return true;
  }
  if (option != "inputs" && option != "outputs" && option != "weights-from") return false;
  const int64_t low = option == "outputs" ? 1 : 0, high = option == "outputs" ? kMaxOutputs : kMaxArguments;
  GOPT_ASSIGN_OR_RETURN(const int64_t count, line.integer_within(option, low, high));
  (option == "inputs" ? op.inputs : option == "outputs" ? op.outputs : op.weights_from) = static_cast<int>(count);
  return true;
}

std::string inputs_text(const OpInfo& info) {
  if (info.max_inputs < 0) return fmt::format("{} or more", info.min_inputs);
  if (info.max_inputs == info.min_inputs) return fmt::format("{}", info.min_inputs);
  return fmt::format("{} to {}", info.min_inputs, info.max_inputs);
}

// op NAME [weights-only] [inputs=N] [outputs=N] [weights-from=N] [args=CLASS,...] [attribute=value ...]
Status read_op(LineReader& line, Family& family) {
  GOPT_ASSIGN_OR_RETURN(const std::string name, line.word());
  const auto kind = find_op(name);
  if (!kind) return line.expected_before("an operator of the table, not `" + name + "`");
  const OpInfo& info = op_info(*kind);
  AlphabetOp op{*kind, {}, info.min_inputs, std::max(info.outputs, 1)};
  while (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(const std::string attribute, line.word());
    if (attribute == "weights-only") {
      op.on_weights_only = true;
      continue;
    }
    if (!line.accept('=')) return line.expected("`=`");
    GOPT_ASSIGN_OR_RETURN(const bool is_option, read_option(line, attribute, family, op));
    if (!is_option) GOPT_RETURN_IF_ERROR(read_attribute_of(line, info, attribute, op.attributes));
  }
  if (op.inputs < info.min_inputs || (info.max_inputs >= 0 && op.inputs > info.max_inputs))
    return line.wrong(fmt::format("{} cannot have {} inputs; it takes {}", name, op.inputs, inputs_text(info)));
  GOPT_RETURN_IF_ERROR(check_arguments(line, op));
  op.line = line.number_of_line();
  for (const AlphabetOp& other : family.ops)
    if (other.composite.empty() && other.kind == op.kind && other.inputs == op.inputs && other.outputs == op.outputs &&
        have_equal_texts(other.attributes, op.attributes))
      return line.expected_before("each operator once in a family, not " + name + " with these attributes again");
  family.ops.push_back(std::move(op));
  return Unit{};
}

// composite NAME [inputs=N] [weights-only] [weights-from=N] [args=CLASS,...]
Status read_composite(LineReader& line, Family& family) {
  AlphabetOp op{OpKind::Identity};
  GOPT_ASSIGN_OR_RETURN(op.composite, line.word());
  if (find_op(op.composite)) return line.expected_before("a name that no operator has, not `" + op.composite + "`");
  while (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(const std::string option, line.word());
    if (option == "weights-only") {
      op.on_weights_only = true;
      continue;
    }
    bool is_option = option != "outputs" && line.accept('=');
    if (is_option) {
      GOPT_ASSIGN_OR_RETURN(is_option, read_option(line, option, family, op));
    }
    if (!is_option)
      return line.expected_before("inputs=N, weights-from=N, args=CLASS,... or weights-only, not `" + option + "`");
  }
  GOPT_RETURN_IF_ERROR(check_arguments(line, op));
  op.line = line.number_of_line();
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
  return line.expected_before("an input (in0, ...), an earlier step (step0, ...) or a number, not `" + word + "`");
}

// step NAME ARGUMENT ... [attribute=value ...], after a composite
Status read_step(LineReader& line, Family& family) {
  if (family.ops.empty() || family.ops.back().composite.empty()) return line.expected("`composite NAME` first");
  AlphabetOp& op = family.ops.back();
  GOPT_ASSIGN_OR_RETURN(const std::string name, line.word());
  const auto kind = find_op(name);
  if (!kind) return line.expected_before("an operator of the table, not `" + name + "`");
  const OpInfo& info = op_info(*kind);
  CompositeStep step{*kind, {}, {}, line.number_of_line()};
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
    GOPT_ASSIGN_OR_RETURN(value, line.integer_within("size " + name, 0, kMaxSize));
  }
  if (!line.at_end()) {
    GOPT_ASSIGN_OR_RETURN(size.low, line.integer_within("LOW of size " + name, 0, kMaxSize));
    GOPT_ASSIGN_OR_RETURN(size.high, line.integer_within("HIGH of size " + name, 0, kMaxSize));
  }
  if (size.low > size.high)
    return line.wrong(fmt::format("size {} is drawn from {} to {}, which is nothing; give LOW before HIGH", name,
                                  size.low, size.high));
  for (const Size& other : family.sizes)
    if (other.symbol == size.symbol)
      return line.wrong(fmt::format("size {} stands twice in family {}; drop one", name, family.name));
  family.sizes.push_back(size);
  return Unit{};
}

// (activation | weight) COUNT [[... ,] extents] [as NAME]
Status read_class(LineReader& line, VariableKind kind, Family& family) {
  VariableClass made;
  made.kind = kind;
  made.line = line.number_of_line();
  GOPT_ASSIGN_OR_RETURN(const int64_t count, line.integer_within("COUNT of variables", 1, kMaxVariables));
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
  if (line.accept("as ")) {
    GOPT_ASSIGN_OR_RETURN(made.name, line.word());
    if (made.name == "_" || class_named(family, made.name) >= 0)
      return line.expected_before("a name that no class has, not `" + made.name + "`");
  }
  family.classes.push_back(std::move(made));
  return Unit{};
}

Status read_line(LineReader& line, std::vector<Family>& families) {
  GOPT_ASSIGN_OR_RETURN(const std::string keyword, line.word());
  if (keyword == "family") {
    GOPT_ASSIGN_OR_RETURN(std::string name, line.word());
    for (const Family& other : families)
      if (other.name == name)
        return line.wrong(fmt::format("family {} begins at line {} already; give one another name", name, other.line));
    families.push_back({std::move(name), line.number_of_line()});
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
  if (keyword == "max-ops" || keyword == "max-weight-ops" || keyword == "max-vars") {
    const bool is_of_variables = keyword == "max-vars";
    GOPT_ASSIGN_OR_RETURN(const int64_t value, line.integer_within(keyword, keyword == "max-weight-ops" ? 0 : 1,
                                                                   is_of_variables ? kMaxVariables : kMaxOps));
    (keyword == "max-ops"    ? family.max_ops
     : keyword == "max-vars" ? family.max_variables
                             : family.max_weight_ops) = static_cast<int>(value);
    return Unit{};
  }
  if (keyword == "partial" || keyword == "exponentials") {
    (keyword == "partial" ? family.is_partial : family.has_exponentials) = true;
    return Unit{};
  }
  return line.expected_before(
      "family, size, activation, weight, constant, op, composite, step, partial, exponentials, max-ops, max-vars or "
      "max-weight-ops, not `" +
      keyword + "`");
}

}  // namespace

Result<std::vector<Family>> parse_alphabet(std::string_view text, const std::string& name) {
  std::vector<Family> families;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string content; std::getline(stream, content);) {
    number++;
    content = content.substr(0, content.find('#'));
    LineReader line(content, name, number);
    if (line.at_end()) continue;
    GOPT_RETURN_IF_ERROR(read_line(line, families));
    if (!line.at_end()) return line.expected("the end of the line");
  }
  if (families.empty()) return Error{name + ": the alphabet has no family; begin one: family NAME"};
  for (const Family& family : families) GOPT_RETURN_IF_ERROR(FamilyCheck(family, name).run());
  return families;
}

}  // namespace gopt::generator
