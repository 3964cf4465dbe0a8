#include "scheme_parse.h"

#include <algorithm>

#include "scheme_names.h"

namespace gopt::rules {

void SchemeReader::declare(const std::string& name) {
  static const std::set<std::string> kWords{"rank", "size", "one", "zero", "inv", "of"};
  if (name.find('.') != std::string::npos) reader_.fail("'" + name + "' holds a point");
  if (kWords.contains(name)) reader_.fail("'" + name + "' says something of lists");
  if (is_list(scheme_, name) || find_symbol(scheme_, name)) reader_.fail("'" + name + "' is declared twice");
}

void SchemeReader::lists() {
  do {
    const std::string name = reader_.name();
    declare(name);
    scheme_.lists.push_back(name);
  } while (!reader_.at_line_end());
}

void SchemeReader::symbols(AxisSymbolKind kind) {
  std::vector<std::string> names;
  while (!reader_.accept("of")) {
    names.push_back(reader_.name());
    declare(names.back());
  }
  const std::string list = reader_.name();
  if (!is_list(scheme_, list)) reader_.fail("'" + list + "' is no list of axes");
  for (const std::string& name : names) scheme_.symbols.push_back({name, kind, list});
}

// The one list or subset that the names among these speak of; empty where there is none.
std::string SchemeReader::domain_of(const std::set<AtomId>& symbols) {
  std::string domain;
  for (AtomId id : symbols) {
    const std::string& text = atom(id).name;
    if (const auto wrong = wrong_name(scheme_, text)) reader_.fail(*wrong);
    const auto name = axis_name(scheme_, text);
    if (!name) continue;
    if (!domain.empty() && domain != name->domain())
      reader_.fail("'" + domain + "' and '" + name->domain() + "' have no axes in common");
    domain = name->domain();
  }
  return domain;
}

SchemeItem SchemeReader::item() {
  SchemeItem item{reader_.index(), ""};
  std::set<AtomId> symbols;
  collect_symbols(item.value, symbols);
  const std::string domain = domain_of(symbols);
  if (reader_.accept("...")) {
    if (domain.empty()) reader_.fail("nothing before '...' is of a list of axes");
    item.domain = domain;
  } else if (!domain.empty()) {
    reader_.fail("what is said of each axis of '" + domain + "' ends in '...'");
  }
  return item;
}

SchemeItems SchemeReader::items() {
  SchemeItems items;
  reader_.expect("[");
  while (!reader_.accept("]")) {
    items.push_back(item());
    if (!reader_.peek("]")) reader_.expect(",");
  }
  return items;
}

void SchemeReader::variable() {
  SchemeVariable variable{reader_.name(), VariableKind::Activation, ElementType::Undefined, {}};
  for (const SchemeVariable& known : scheme_.variables)
    if (known.name == variable.name) reader_.fail("variable '" + variable.name + "' is declared twice");
  const std::string element = reader_.name();
  const auto parsed = parse_element_type(element);
  if (!parsed || *parsed == ElementType::Undefined) reader_.fail("'" + element + "' is no element type");
  variable.element = *parsed;
  variable.shape = items();
  for (const SchemeItem& extent : variable.shape)
    if (extent.value.is_constant() && extent.value.constant() < 0) reader_.fail("a negative extent");
  if (reader_.accept("weight")) variable.kind = VariableKind::Weight;
  scheme_.variables.push_back(std::move(variable));
}

void SchemeReader::attributes(SchemeNode& node) {
  if (!reader_.accept("{")) return;
  while (!reader_.accept("}")) {
    const std::string name = reader_.name();
    reader_.expect("=");
    const AttributeSchema* schema = op_info(node.op).find_attribute(name);
    if (!schema) reader_.fail(op_info(node.op).name + " has no attribute '" + name + "'");
    SchemeAttribute value;
    if (schema->kind == AttributeKind::Ints)
      value = items();
    else if (schema->kind == AttributeKind::Int)
      value = AttributeValue(item().value);
    else
      value = reader_.attribute(node.op, name);
    if (schema->kind == AttributeKind::Int) {
      std::set<AtomId> symbols;
      collect_symbols(std::get<AttributeValue>(value), symbols);
      if (!domain_of(symbols).empty()) reader_.fail("'" + name + "' is one number");
    }
    if (!node.attributes.emplace(name, std::move(value)).second)
      reader_.fail("attribute '" + name + "' is given twice");
    if (!reader_.peek("}")) reader_.expect(",");
  }
}

SchemeNode SchemeReader::constant(std::set<std::string>& defined) {
  SchemeNode node{.op = OpKind::Constant, .outputs = {reader_.name()}, .inputs = {}, .attributes = {}, .tensor = {}};
  reader_.expect("=");
  node.tensor = reader_.tensor();
  if (!defined.insert(node.outputs[0]).second) reader_.fail("'" + node.outputs[0] + "' is defined twice");
  return node;
}

SchemeNode SchemeReader::node(std::set<std::string>& defined) {
  SchemeNode node{};
  do node.outputs.push_back(reader_.name());
  while (reader_.accept(","));
  reader_.expect("=");
  const std::string op = reader_.name();
  const auto kind = find_op(op);
  if (!kind) reader_.fail("'" + op + "' is no operator");
  node.op = *kind;
  reader_.expect("(");
  while (!reader_.accept(")")) {
    node.inputs.push_back(reader_.accept("_") ? "" : reader_.name());
    if (!node.inputs.back().empty() && !defined.contains(node.inputs.back()))
      reader_.fail("'" + node.inputs.back() + "' is not defined");
    if (!reader_.peek(")")) reader_.expect(",");
  }
  attributes(node);
  for (const std::string& output : node.outputs)
    if (!defined.insert(output).second) reader_.fail("'" + output + "' is defined twice");
  return node;
}

SchemeSide SchemeReader::side() {
  reader_.end_line();
  SchemeSide side;
  std::set<std::string> defined;
  for (const SchemeVariable& variable : scheme_.variables) defined.insert(variable.name);
  while (true) {
    reader_.skip_blank_lines();
    if (reader_.accept("return")) break;
    if (reader_.at_end() || reader_.peek("end")) reader_.fail("expected 'return'");
    side.nodes.push_back(reader_.accept("constant") ? constant(defined) : node(defined));
    reader_.end_line();
  }
  do {
    side.outputs.push_back(reader_.name());
    if (!defined.contains(side.outputs.back())) reader_.fail("'" + side.outputs.back() + "' is not defined");
  } while (reader_.accept(","));
  reader_.end_line();
  return side;
}

void SchemeReader::condition() {
  SchemeCondition condition{reader_.cond(), ""};
  std::set<AtomId> symbols;
  collect_symbols(condition.cond, symbols);
  condition.domain = domain_of(symbols);
  scheme_.conditions.push_back(std::move(condition));
}

}  // namespace gopt::rules
