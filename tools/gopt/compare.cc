#include "gopt/compare.h"

#include <fmt/format.h>

#include "commands.h"
#include "model.h"

namespace gopt::cli {
namespace {

struct CompareOptions {
  std::string reference, other;
  std::vector<std::string> inputs;
  std::string reference_engine = "interpreter", other_engine = "auto";
  int threads = 1;
  uint64_t seed = 0;
  int repeats = 1;
  std::vector<std::string> shapes;
  Tolerance tolerance;
};

// A line an output, and PASSED or FAILED; true when all passed.
bool print_differences(const std::vector<Difference>& differences) {
  bool passed = true;
  for (const Difference& d : differences) {
    passed &= d.passed;
    if (d.comparable)
      fmt::print("{:<24} max abs {:.3g}  max rel {:.3g}  {}\n", d.output, d.max_absolute, d.max_relative,
                 d.passed ? "ok" : "differs");
    else
      fmt::print("{:<24} {}\n", d.output, d.note);
  }
  fmt::print("{}\n", passed ? "PASSED" : "FAILED");
  return passed;
}

Result<size_t> find_output(const RunnableModel& model, const std::string& name, const std::string& path) {
  const std::vector<ModelValue> outputs = model.outputs();
  for (size_t k = 0; k < outputs.size(); k++)
    if (outputs[k].name == name) return k;
  return Error{path + " has no output '" + name + "'"};
}

Status compare(const CompareOptions& o) {
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> a,
                        load_model(o.reference, {o.reference_engine, o.threads, o.shapes}));
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> b, load_model(o.other, {o.other_engine, o.threads, {}}));
  fmt::print("{} ({}) against {} ({})\n", o.reference, a->engine(), o.other, b->engine());
  bool passed = true;
  for (int k = 0; k < o.repeats; k++) {
    const uint64_t seed = o.seed + static_cast<uint64_t>(k);
    GOPT_ASSIGN_OR_RETURN(auto inputs, read_inputs(o.inputs, a->inputs()));
    if (inputs.size() < a->inputs().size()) {
      GOPT_ASSIGN_OR_RETURN(auto drawn, a->draw(seed));
      inputs.merge(drawn);
    }
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> left, a->run(inputs));
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> right, b->run(inputs));
    std::vector<Difference> differences;
    for (size_t i = 0; i < left.size(); i++) {
      const std::string name = a->outputs()[i].name;
      GOPT_ASSIGN_OR_RETURN(const size_t at, find_output(*b, name, o.other));
      differences.push_back(difference(name, left[i], right[at], o.tolerance));
    }
    passed &= print_differences(differences);
  }
  if (!passed)
    return Error{"the outputs differ by more than rtol " + fmt::format("{:g}", o.tolerance.relative) + " and atol " +
                 fmt::format("{:g}", o.tolerance.absolute)};
  return Unit{};
}

}  // namespace

Action add_compare(CLI::App& app) {
  auto o = std::make_shared<CompareOptions>();
  const auto engines = CLI::IsMember({"auto", "cpu", "interpreter"});
  app.add_option("reference", o->reference, "an ONNX file, or a folder that --emit wrote")->required();
  app.add_option("other", o->other, "another one")->required();
  app.add_option("--input,--inputs", o->inputs, "NAME=FILE.pb, or FILE.npz; what is missing is drawn");
  app.add_option("--reference-engine", o->reference_engine, "auto, cpu or interpreter")
      ->check(engines)
      ->capture_default_str();
  app.add_option("--engine", o->other_engine, "auto, cpu or interpreter")->check(engines)->capture_default_str();
  app.add_option("--threads", o->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--shape", o->shapes, "NAME=1x3x224x224: fixes an input's extents of the reference");
  app.add_option("--seed", o->seed, "seed of drawn inputs")->capture_default_str();
  app.add_option("--repeats", o->repeats, "draws, each with the next seed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rtol", o->tolerance.relative, "of the largest magnitude of an output")->capture_default_str();
  app.add_option("--atol", o->tolerance.absolute, "absolute tolerance")->capture_default_str();
  return [o] { return compare(*o); };
}

}  // namespace gopt::cli
