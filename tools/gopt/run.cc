#include <fmt/format.h>

#include "commands.h"
#include "gopt/onnx.h"
#include "model.h"
#include "program.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct RunOptions {
  std::string model, output_file;
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  bool force = false;
  LoadOptions load;
};

void print_summary(const std::string& name, const Tensor& t) {
  std::string text;
  if (is_computable(t.type())) {
    const std::vector<double> values = t.to_doubles();
    for (size_t i = 0; i < std::min<size_t>(values.size(), 6); i++) text += fmt::format(" {:.6g}", values[i]);
    if (values.size() > 6) text += " ...";
  }
  fmt::print("{} {}:{}\n", name, to_string(t.tensor_type()), text);
}

Status check_output(const RunOptions& o) {
  if (o.output_file.empty()) return Unit{};
  GOPT_RETURN_IF_ERROR(check_writable(o.output_file, o.force));
  std::vector<ReadFile> read;
  for (const std::string& given : o.inputs) read.push_back({input_path(given), "holds inputs that are read"});
  return check_keeps(read, {o.output_file});
}

Status run_model(const RunOptions& o) {
  GOPT_RETURN_IF_ERROR(check_output(o));
  LoadOptions load = o.load;
  load.written = o.output_file;
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> model, load_model(o.model, load));
  if (!o.output_file.empty() && !o.output_file.ends_with(".npz") && !o.output_file.ends_with(".npy"))
    return Error{"'" + o.output_file + "' is neither FILE.npz, for all outputs, nor FILE.npy, for a single one"};
  GOPT_ASSIGN_OR_RETURN(auto given, read_inputs(o.inputs, model->inputs()));
  if (given.size() < model->inputs().size()) {
    if (!given.empty()) fmt::print("inputs that are not given are drawn with seed {}\n", o.seed);
    GOPT_ASSIGN_OR_RETURN(auto drawn, model->draw(o.seed));
    given.merge(drawn);
  }
  GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, model->run(given));
  NamedTensors named;
  for (size_t k = 0; k < outputs.size(); k++) {
    named.emplace_back(model->outputs()[k].name, outputs[k]);
    print_summary(named.back().first, outputs[k]);
  }
  if (o.output_file.empty()) return Unit{};
  GOPT_RETURN_IF_ERROR(write_npz(named, o.output_file));
  fmt::print("wrote {}\n", o.output_file);
  return Unit{};
}

}  // namespace

Action add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  app.add_option("model", o->model, "an ONNX file, or a folder that --emit wrote")->required();
  app.add_option("--input,--inputs", o->inputs,
                 "NAME=FILE.npy or NAME=FILE.pb, or FILE.npz with all inputs; what is missing is drawn");
  app.add_option("-o,--output", o->output_file, "write the outputs to FILE.npz, or a single one to FILE.npy");
  add_seed(app, o->seed, "seed of drawn inputs");
  add_load_flags(app, o->load);
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return run_model(*o); };
}

}  // namespace gopt::cli
