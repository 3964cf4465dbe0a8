#include "compare_models.h"

#include <algorithm>

#include "model.h"
#include "program.h"

namespace gopt::cli {
namespace {

Result<size_t> find_output(const RunnableModel& model, const std::string& name, const std::string& path) {
  const std::vector<ModelValue> outputs = model.outputs();
  for (size_t k = 0; k < outputs.size(); k++)
    if (outputs[k].name == name) return k;
  return Error{path + " has no output '" + name + "'"};
}

// The sizes that both are compared at: those that one of them has code for, where the reference leaves them open.
std::vector<Extents> sizes_to_compare(const RunnableModel& reference, const RunnableModel& other) {
  const bool is_open = std::ranges::any_of(
      reference.inputs(), [](const ModelValue& v) { return v.type.shape && !v.type.has_static_shape(); });
  std::vector<Extents> sizes = is_open ? other.sizes() : std::vector<Extents>{};
  if (is_open && sizes.empty()) sizes = reference.sizes();
  if (sizes.empty()) sizes.emplace_back();
  return sizes;
}

Result<std::vector<Difference>> compare_on(RunnableModel& reference, RunnableModel& other, const CompareOptions& o,
                                           const std::map<std::string, Tensor>& inputs) {
  GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> left, reference.run(inputs));
  GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> right, other.run(inputs));
  std::vector<Difference> differences;
  for (size_t i = 0; i < left.size(); i++) {
    const std::string name = reference.outputs()[i].name;
    GOPT_ASSIGN_OR_RETURN(const size_t at, find_output(other, name, o.other));
    differences.push_back(difference(name, left[i], right[at], o.tolerance));
  }
  return differences;
}

}  // namespace

bool ModelsCompared::passed() const {
  return std::ranges::all_of(differences, [](const auto& outputs) {
    return std::ranges::all_of(outputs, [](const Difference& d) { return d.passed; });
  });
}

Result<ModelsCompared> compare_models(RunnableModel& reference, RunnableModel& other, const CompareOptions& o,
                                      const std::map<std::string, Tensor>& given) {
  GOPT_RETURN_IF_ERROR(check_known(given, reference.inputs()));
  GOPT_ASSIGN_OR_RETURN(const auto read, read_inputs(o.inputs, reference.inputs()));
  ModelsCompared compared;
  const bool draws = given.size() + read.size() < reference.inputs().size();
  for (int k = 0; k < o.repeats; k++) {
    for (const Extents& size : draws ? sizes_to_compare(reference, other) : std::vector<Extents>{{}}) {
      std::map<std::string, Tensor> inputs = given;
      inputs.insert(read.begin(), read.end());
      if (inputs.size() < reference.inputs().size()) {
        const uint64_t seed = o.seed + static_cast<uint64_t>(k);
        GOPT_ASSIGN_OR_RETURN(auto drawn, size.empty() ? reference.draw(seed) : reference.draw_at(seed, size));
        inputs.merge(drawn);
      }
      GOPT_ASSIGN_OR_RETURN(auto differences, compare_on(reference, other, o, inputs));
      compared.differences.push_back(std::move(differences));
      compared.sizes.push_back(size);
    }
  }
  return compared;
}

void add_compare_flags(CLI::App& app, CompareOptions& o) {
  const auto engines = CLI::IsMember({"auto", "cpu", "interpreter"});
  app.add_option("reference", o.reference, "an ONNX file, or a folder that --emit wrote")->required();
  app.add_option("other", o.other, "another one")->required();
  app.add_option("--input,--inputs", o.inputs, "NAME=FILE.npy or NAME=FILE.pb, or FILE.npz; what is missing is drawn");
  app.add_option("--reference-engine", o.reference_engine, "auto, cpu or interpreter")
      ->check(engines)
      ->capture_default_str();
  app.add_option("--engine", o.other_engine, "auto, cpu or interpreter")->check(engines)->capture_default_str();
  app.add_option("--threads", o.threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--shape", o.shapes, kShapeHelp);
  add_seed(app, o.seed, "seed of drawn inputs");
  app.add_option("--repeats", o.repeats, "draws, each with the next seed")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--rtol", o.tolerance.relative, "of the largest magnitude of an output")->capture_default_str();
  app.add_option("--atol", o.tolerance.absolute, "absolute tolerance")->capture_default_str();
}

}  // namespace gopt::cli
