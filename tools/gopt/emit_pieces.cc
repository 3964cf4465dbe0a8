#include "emit_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gopt/node_names.h"
#include "gopt/onnx.h"
#include "gopt/temporary.h"
#include "report.h"
#include "report_json.h"

namespace gopt::cli {
namespace {

using nlohmann::json;

// ---- the caller's nodes as a file ----

Result<std::string> onnx_bytes(const Graph& graph) {
  for (const Value& input : graph.inputs())
    if (input.type().element == ElementType::Undefined && !graph.metadata().declarations.contains(input.node->name))
      return Error{"the model does not say of which type `" + input.node->name + "` is"};
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string path = folder.path() / "step.onnx";
  if (auto written = export_onnx(graph, path, {.external_above = INT64_MAX}); !written.ok()) {
    std::string what = written.error().message;  // of a file that nobody knows
    if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
    return Error{std::move(what)};
  }
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// ---- plan.json ----

json value_json(const std::string& name, const TensorType& type) {
  json shape;
  if (type.shape) {
    shape = json::array();
    for (const Index& extent : *type.shape)
      shape.push_back(extent.is_constant() ? json(extent.constant()) : json(to_string(extent)));
  }
  const bool is_tensor = type.element != ElementType::Undefined;
  return {{"name", name}, {"element", is_tensor ? json(to_string(type.element)) : json()}, {"shape", shape}};
}

json inputs_json(const std::vector<Value>& inputs) {
  json rows = json::array();
  for (const Value& input : inputs) rows.push_back(value_json(input.node->name, input.type()));
  return rows;
}

json step_json(const ModelStep& step, const NamedStep& named) {
  json outputs = json::array(), nodes = json::array();
  for (const GraphOutput& output : step.graph.outputs())
    outputs.push_back(value_json(output.name, output.value.type()));
  json made = {{"name", named.name}, {"inputs", inputs_json(step.graph.inputs())}, {"outputs", outputs}};
  if (step.is_code()) {
    made.update({{"kind", "code"}, {"folder", named.name}, {"prefix", named.prefix}});
    return made;
  }
  for (const NodeWithoutCode& own : step.nodes)
    nodes.push_back({{"node", name_of_node(*own.node)}, {"operator", operator_name(*own.node)}, {"why", own.why}});
  made.update({{"kind", "yours"}, {"model", named.file.empty() ? json() : json(named.file)}, {"nodes", nodes}});
  return made;
}

std::string plan_json_text(const ModelPieces& pieces, const std::vector<NamedStep>& named) {
  json outputs = json::array(), steps = json::array();
  for (const auto& output : pieces.split.outputs) outputs.push_back({{"name", output.name}, {"value", output.value}});
  for (size_t k = 0; k < named.size(); k++) steps.push_back(step_json(pieces.split.steps[k], named[k]));
  const json plan = {
      {"format", 1}, {"inputs", inputs_json(pieces.split.inputs)}, {"outputs", outputs}, {"steps", steps}};
  return json_text(plan, 1) + "\n";
}

// ---- plan.h ----

std::string c_list(const std::string& name, const std::vector<std::string>& values) {
  std::string text = "static const char* const " + name + "[] = {";
  for (const std::string& value : values) text += gopt::quoted(value) + ", ";
  return text + "0};\n";
}

std::string header_text(const ModelPieces& pieces, const std::vector<NamedStep>& named, const std::string& prefix) {
  std::string guard = prefix;
  for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text =
      "/* Which step computes which values, in the order in which they run. A piece is the folder of its "
      "name, whose model.h\n * has its functions; what is yours has no code here. plan.txt says why. */\n"
      "#ifndef " +
      guard + "_PLAN_H\n#define " + guard +
      "_PLAN_H\n\ntypedef struct {\n"
      "  const char* name;           /* of the piece's folder, or of your step */\n"
      "  const char* prefix;         /* of the piece's functions; null: the step is yours */\n"
      "  const char* const* inputs;  /* values, in the order of the piece's inputs; the last is null */\n"
      "  const char* const* outputs;\n} " +
      prefix + "_plan_step;\n\n";
  std::string table;
  for (size_t k = 0; k < named.size(); k++) {
    const std::string id = prefix + "_step_" + std::to_string(k);
    text += c_list(id + "_inputs", named[k].inputs) + c_list(id + "_outputs", named[k].outputs);
    table += "  {" + gopt::quoted(named[k].name) + ", " +
             (pieces.split.steps[k].is_code() ? gopt::quoted(named[k].prefix) : std::string("0")) + ", " + id +
             "_inputs, " + id + "_outputs},\n";
  }
  return text + "static const " + prefix + "_plan_step " + prefix + "_plan[] = {\n" + table +
         "  {0, 0, 0, 0}};\n\n#endif\n";
}

// ---- the rest ----

std::string cmake_text(const ModelPieces& pieces, const std::vector<NamedStep>& named) {
  std::string text =
      "# All pieces, a library each.\ncmake_minimum_required(VERSION 3.16)\nproject(pieces LANGUAGES CXX)\n";
  for (size_t k = 0; k < named.size(); k++)
    if (pieces.split.steps[k].is_code()) text += "add_subdirectory(" + named[k].name + ")\n";
  return text;
}

std::string io_text(const NamedStep& step) {
  return fmt::format("{} -> {}", step.inputs.empty() ? "nothing" : fmt::format("{}", fmt::join(step.inputs, ", ")),
                     fmt::join(step.outputs, ", "));
}

}  // namespace

std::vector<NamedStep> named_steps(const ModelPieces& pieces, const std::string& prefix, bool distinct) {
  std::vector<NamedStep> named;
  for (size_t k = 0; k < pieces.split.steps.size(); k++) {
    const ModelStep& step = pieces.split.steps[k];
    NamedStep& own = named.emplace_back();
    own.name = fmt::format("{}_{}", step.is_code() ? "piece" : "yours", k);
    for (const Value& input : step.graph.inputs()) own.inputs.push_back(input.node->name);
    for (const GraphOutput& output : step.graph.outputs()) own.outputs.push_back(output.name);
    if (step.is_code()) {
      own.prefix = distinct ? fmt::format("{}_{}", prefix, k) : prefix;
      continue;
    }
    auto bytes = onnx_bytes(step.graph);
    if (bytes.ok()) {
      own.file = own.name + ".onnx";
      own.bytes = *std::move(bytes);
    } else {
      own.why_no_file = bytes.error().message;
    }
  }
  return named;
}

std::string plan_text(const ModelPieces& pieces, const std::vector<NamedStep>& steps) {
  std::string text;
  for (size_t k = 0; k < steps.size(); k++) {
    const ModelStep& step = pieces.split.steps[k];
    text += fmt::format("{:<3} {:<10} {}\n", k + 1, steps[k].name, io_text(steps[k]));
    for (const NodeWithoutCode& own : step.nodes) text += fmt::format("      yours: {}\n", own.why);
    if (!step.is_code() && steps[k].file.empty())
      text += fmt::format("      no file holds it alone: {}\n", steps[k].why_no_file);
  }
  for (const auto& output : pieces.split.outputs)
    if (output.name != output.value) text += fmt::format("output {} is the value {}\n", output.name, output.value);
  return text;
}

Result<EmittedCode> emit_pieces(const ModelPieces& pieces, const std::string& prefix, bool distinct) {
  const std::vector<NamedStep> named = named_steps(pieces, prefix, distinct);
  EmittedCode all;
  for (size_t k = 0; k < named.size(); k++) {
    if (const auto& outcome = pieces.outcomes[k]) {
      GOPT_ASSIGN_OR_RETURN(EmittedCode code, emit(*outcome->plan, named[k].prefix).with_context(named[k].name));
      all.folders.push_back({named[k].name, std::move(code)});
    } else if (!named[k].file.empty()) {
      all.files.push_back({named[k].file, named[k].bytes});
    }
  }
  const std::string what =
      "The model in steps, in the order in which they run: each takes the values before the arrow and gives those "
      "after it.\nA piece_N is a folder of code with its own model.h; a yours_N is left to you; yours_N.onnx, where "
      "there is one, holds it alone.\n\n";
  all.files.push_back({"plan.txt", what + plan_text(pieces, named)});
  all.files.push_back({"plan.json", plan_json_text(pieces, named)});
  all.files.push_back({"plan.h", header_text(pieces, named, prefix)});
  all.files.push_back({"CMakeLists.txt", cmake_text(pieces, named)});
  return all;
}

}  // namespace gopt::cli
