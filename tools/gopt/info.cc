// gopt info: prints what a model is made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "gopt/onnx.h"
#include "model.h"
#include "model_info.h"
#include "report_json.h"
#include "rule_files.h"

namespace gopt::cli {
namespace {

struct InfoOptions {
  std::string model;
  std::vector<std::string> shapes;
  bool as_json = false;
};

std::string with_unit(double number, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t k = 0;
  for (; number >= 1000 && k + 1 < std::size(prefixes); k++) number /= 1000;
  const std::string name = std::string(prefixes[k]) + unit;
  return fmt::format("{:.4g}{}{}", number, name.empty() ? "" : " ", name);
}

void print_values(const char* what, const std::vector<ModelValue>& values) {
  for (const ModelValue& v : values) {
    fmt::print("{:<16} {} {}\n", what, v.name, to_string(v.type));
    what = "";
  }
}

std::string kept_text(const ModelInfo& info, const std::string& name) {
  if (info.taken_apart.contains(name)) return "  kept whole; taken apart where code is made";
  if (info.control_flow.contains(name)) return "  control flow: kept as it is";
  return info.not_defined.contains(name) ? "  no definition: kept as it is" : "";
}

void print_operators(const ModelInfo& info) {
  std::map<std::string, std::pair<int, int>> counts;
  std::pair<int, int> total;
  for (const auto& [name, count] : info.in_file) total.first += counts[name].first = count;
  for (const auto& [name, count] : info.operators) total.second += counts[name].second = count;
  fmt::print("{:<28} {:>7} {:>7} {:>12}\n", "operators", "in file", "run", "operations");
  for (const auto& [name, count] : counts) {
    const auto own = info.operations_of.find(name);
    const bool is_known = info.operations && own != info.operations_of.end();
    fmt::print("  {:<26} {:>7} {:>7} {:>12}{}\n", name, count.first, count.second,
               is_known ? with_unit(own->second, "") : "-", kept_text(info, name));
  }
  fmt::print("  {:<26} {:>7} {:>7}\n", "together", total.first, total.second);
}

void print_info(const ModelInfo& info) {
  print_values("inputs", info.inputs);
  print_values("outputs", info.outputs);
  if (!info.symbols.empty()) fmt::print("symbols          {}\n", fmt::join(info.symbols, ", "));
  for (const auto& [domain, version] : info.opsets)
    fmt::print("opset            {}{}\n", domain.empty() ? "" : domain + " ", version);
  fmt::print("parameters       {}, {}\n", info.parameters, with_unit(static_cast<double>(info.parameter_bytes), "B"));
  const std::string open =
      info.symbols.empty() ? "not known: a shape is not inferred" : "not known: open extents, say them with --shape";
  fmt::print("operations       {}\n", info.operations ? with_unit(*info.operations, "") : open);
  fmt::print("activations      {}\n",
             info.peak_bytes ? with_unit(static_cast<double>(*info.peak_bytes), "B") + " at most at once" : open);
  print_operators(info);
}

Status tell(const InfoOptions& o) {
  ImportOptions import;
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(o.shapes));
  GOPT_ASSIGN_OR_RETURN(const ImportedModel model, import_onnx(o.model, import));
  for (const std::string& warning : model.warnings) print_warning(warning);
  std::set<std::string> for_code = not_defined_in(model.graph);
  if (!for_code.empty()) {
    import.lower = import.ranges_fit = true;
    GOPT_ASSIGN_OR_RETURN(const ImportedModel lowered, import_onnx(o.model, import));
    for_code = not_defined_in(lowered.graph);
  }
  const ModelInfo info = model_info(model, for_code);
  if (o.as_json)
    fmt::print("{}\n", json_text(info_json(info), 1));
  else
    print_info(info);
  return Unit{};
}

}  // namespace

Action add_info(CLI::App& app) {
  auto o = std::make_shared<InfoOptions>();
  app.add_option("model", o->model, "an ONNX file")->required();
  app.add_option("--shape", o->shapes, kShapeHelp);
  app.add_flag("--json", o->as_json, "print it for programs");
  return [o] { return tell(*o); };
}

}  // namespace gopt::cli
