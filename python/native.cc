// The module gopt._native: commands of gopt as functions. What is pleasant to call is made of them in gopt/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>

#include "arrays.h"
#include "command_words.h"
#include "compare_models.h"
#include "emit_pieces.h"
#include "model.h"
#include "model_file.h"
#include "optimize_model.h"
#include "report_json.h"
#include "shipped_rules.h"
#include "work.h"

namespace gopt::python {
namespace {

namespace nb = nanobind;
using Words = std::vector<std::string>;
using PathOrBytes = std::variant<std::string, nb::bytes>;

GivenModel given_model(const PathOrBytes& model) {
  if (const auto* path = std::get_if<std::string>(&model)) return GivenModel(*path);
  const auto& bytes = std::get<nb::bytes>(model);
  const std::string_view view(static_cast<const char*>(bytes.data()), bytes.size());
  const nb::gil_scoped_release release;
  return unwrap(GivenModel::of_bytes(view));
}

Words with_positional(Words words, const Words& positional) {
  words.emplace_back("--");
  words.insert(words.end(), positional.begin(), positional.end());
  return words;
}

// ---- operators without definition, as functions of Python's ----

std::vector<Tensor> outputs_of(const OperatorCall& call, const nb::object& made) {
  std::vector<nb::object> results;
  if (nb::isinstance<nb::tuple>(made) || nb::isinstance<nb::list>(made))
    for (const nb::handle one : made) results.push_back(nb::borrow(one));
  else
    results.push_back(made);
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < call.outputs.size(); k++) {
    const bool is_taken = call.outputs[k].element != ElementType::Undefined;
    const std::string name = std::to_string(k) + " of node `" + call.node + "`";
    if (is_taken && k >= results.size()) throw UserError("the function for " + call.op + " gives no output " + name);
    tensors.push_back(is_taken ? unwrap(tensor_of(name, nb::cast<Array>(results[k]))) : Tensor());
    if (is_taken && tensors.back().tensor_type() != call.outputs[k])
      throw UserError("the function for " + call.op + " gives output " + name + " as " +
                      to_string(tensors.back().tensor_type()) + ", expected " + to_string(call.outputs[k]));
  }
  return tensors;
}

using Functions = std::map<std::string, nb::object>;

Result<std::vector<Tensor>> call_python(const Functions& functions, const OperatorCall& call) {
  auto function = functions.find(call.node);
  if (function == functions.end()) function = functions.find(call.op);
  if (function == functions.end())
    return Error{"node `" + call.node + "` applies " + call.op +
                 ", which has no definition here: give a function for "
                 "it, functions={\"" +
                 call.op + "\": f}"};
  const nb::gil_scoped_acquire gil;
  try {
    nb::list arguments;
    for (const auto& input : call.inputs)
      arguments.append(input ? nb::cast(unwrap(array_of(call.node, *input))) : nb::none());
    return outputs_of(call, function->second(*arguments));
  } catch (const UserError& error) {
    return Error{error.what()};
  } catch (const nb::python_error& error) {  // what it says; the traceback would be cut off before that
    return Error{"the function for " + call.op + " failed at node `" + call.node +
                 "`: " + nb::str(error.value()).c_str()};
  } catch (const std::exception& error) {
    return Error{"the function for " + call.op + " failed at node `" + call.node + "`: " + error.what()};
  }
}

// They may be dropped by any thread.
OperatorFunction calls_of(Functions functions) {
  const std::shared_ptr<Functions> held(new Functions(std::move(functions)), [](Functions* own) {
    const nb::gil_scoped_acquire gil;
    delete own;
  });
  return [held](const OperatorCall& call) { return call_python(*held, call); };
}

// ---- models that run ----

class Model {
 public:
  explicit Model(std::unique_ptr<RunnableModel> model) : model_(std::move(model)) {}

  // Each as name, element type, and shape (of numbers and symbols) or None.
  nb::list inputs() const { return described(model_->inputs()); }
  nb::list outputs() const { return described(model_->outputs()); }
  std::string engine() const { return model_->engine(); }

  nb::list run(const std::map<std::string, Array>& arrays) {
    std::vector<Tensor> tensors;
    {
      auto given = unwrap(tensors_of(arrays));
      const nb::gil_scoped_release release;
      const std::lock_guard lock(running_);  // the model's memory is one
      unwrap(cli::check_known(given, model_->inputs()));
      tensors = unwrap(model_->run(given));
    }
    nb::list results;
    const auto names = model_->outputs();
    for (size_t k = 0; k < tensors.size(); k++) results.append(unwrap(array_of(names[k].name, tensors[k])));
    return results;
  }

  // Functions for operators without definition, by operator or node, from arrays to an array or several.
  void answer(std::map<std::string, nb::object> functions) {
    const std::lock_guard lock(running_);
    unwrap(model_->answer_operators(calls_of(std::move(functions))));
  }

  RunnableModel& runnable() { return *model_; }
  // Of two models that may be one.
  static std::vector<std::unique_lock<std::mutex>> lock(Model& a, Model& b) {
    std::vector<std::unique_lock<std::mutex>> locks;
    if (&a == &b) {
      locks.emplace_back(a.running_);
    } else {
      locks.emplace_back(a.running_, std::defer_lock);
      locks.emplace_back(b.running_, std::defer_lock);
      std::lock(locks[0], locks[1]);
    }
    return locks;
  }

 private:
  static nb::list described(const std::vector<ModelValue>& values) {
    nb::list list;
    for (const ModelValue& v : values) {
      nb::object shape = nb::none();
      if (v.type.shape) {
        nb::list extents;
        for (const Index& extent : *v.type.shape)
          extents.append(extent.is_constant() ? nb::object(nb::int_(extent.constant()))
                                              : nb::object(nb::str(to_string(extent).c_str())));
        shape = extents;
      }
      list.append(nb::make_tuple(v.name, to_string(v.type.element), shape));
    }
    return list;
  }

  std::unique_ptr<RunnableModel> model_;
  std::mutex running_;
};

std::unique_ptr<Model> load_as(const PathOrBytes& model, const cli::LoadOptions& options) {
  const GivenModel given = given_model(model);
  const nb::gil_scoped_release release;
  auto loaded = cli::load_model(given.path(), options);
  if (!loaded) throw UserError(given.told(loaded.error().message));
  return std::make_unique<Model>(*std::move(loaded));
}

std::unique_ptr<Model> load(const PathOrBytes& model, const Words& words) {
  cli::LoadOptions options;
  parse_words(
      "load", [&](CLI::App& app) { cli::add_load_flags(app, options); }, words);
  return load_as(model, options);
}

// ---- optimize ----

class Optimized {
 public:
  Optimized(cli::OptimizedModel model, std::vector<std::string> warnings)
      : model_(std::move(model)), warnings_(std::move(warnings)) {}
  // Of several sizes, what is reported is the first one's; what is loaded is the code of all.
  Optimized(cli::OptimizedSizes sizes, std::vector<std::string> warnings)
      : model_(std::move(sizes.sizes.at(0).model)), plans_(std::move(sizes.plans)), warnings_(std::move(warnings)) {}

  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string report() const { return cli::json_text(cli::report_json(model_.report()), -1); }

  nb::bytes model() const {
    std::string bytes;
    {
      const nb::gil_scoped_release release;
      const TemporaryFolder folder = unwrap(TemporaryFolder::create());
      const std::string path = folder.path() / "model.onnx";
      unwrap(export_onnx(model_.outcome.onnx_graph(), path, {.external_above = std::numeric_limits<int64_t>::max()}));
      if (std::filesystem::exists(path + ".data"))
        throw UserError("the model's weights are more than one message can hold; save it to a file");
      std::ifstream file(path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(file), {});
    }
    return nb::bytes(bytes.data(), bytes.size());
  }
  void save(const std::string& path, bool force) const {
    const nb::gil_scoped_release release;
    unwrap(cli::write_model(model_, path, force));
  }
  std::unique_ptr<Model> load() const {
    std::unique_ptr<Model> model;
    {
      const nb::gil_scoped_release release;
      if (!plans_ && !model_.outcome.plan) throw UserError("there is no code: a dry run plans none");
      const int threads = model_.options.target.threads;
      model = std::make_unique<Model>(plans_ ? unwrap(compile_sizes(*plans_, threads))
                                             : unwrap(compile_plan(*model_.outcome.plan, threads)));
    }
    model->answer({});  // what nobody gives a function for is an error, no number
    return model;
  }
  // Where some nodes have no code, the rest is in pieces, which a folder holds with their plan.
  bool is_in_pieces() const { return model_.pieces.has_value(); }
  void emit_pieces(const std::string& folder) const {
    const nb::gil_scoped_release release;
    unwrap(write_emitted(unwrap(cli::emit_pieces(*model_.pieces, model_.prefix, false)), folder, false));
  }

 private:
  cli::OptimizedModel model_;
  std::optional<SizedPlans> plans_;
  std::vector<std::string> warnings_;
};

enum class Takes { Model, Plan };

std::unique_ptr<Optimized> optimize(const PathOrBytes& model, const Words& words, const std::string& rules,
                                    Takes takes) {
  const GivenModel given = given_model(model);
  cli::OptimizeOptions options;
  parse_words(
      "optimize", [&](CLI::App& app) { cli::add_optimize_flags(app, options); },
      with_positional(words, {given.path()}));
  options.takes_model = takes == Takes::Model;
  options.takes_plan = takes == Takes::Plan;
  if (options.rules.empty()) options.rules = unwrap(cli::shipped_rule_files(rules));

  std::vector<std::string> warnings;
  std::atomic<bool> stop = false;
  const cli::Observer observer{.warn = [&](const std::string& text) { warnings.push_back(given.told(text)); },
                               .stop = &stop};
  std::unique_ptr<Optimized> optimized;
  run_interruptibly(stop, [&] {
    if (!options.specialize.empty()) {
      auto sizes = cli::optimize_sizes(options, observer);
      if (!sizes) throw UserError(given.told(sizes.error().message));
      optimized = std::make_unique<Optimized>(*std::move(sizes), std::move(warnings));
      return;
    }
    auto result = cli::optimize_model(options, observer);
    if (!result) throw UserError(given.told(result.error().message));
    cli::OptimizedModel own = *std::move(result);
    own.path = given.told(own.path);
    optimized = std::make_unique<Optimized>(std::move(own), std::move(warnings));
  });
  return optimized;
}

// ---- compare ----

nb::list difference_rows(const cli::ModelsCompared& compared) {
  nb::list draws;
  for (const auto& differences : compared.differences) {
    nb::list outputs;
    for (const Difference& d : differences)
      outputs.append(nb::make_tuple(d.output, d.max_absolute, d.max_relative, d.comparable, d.passed, d.note));
    draws.append(outputs);
  }
  return draws;
}

// A model that runs already, or one that is loaded for the comparison.
using Comparable = std::variant<Model*, std::string, nb::bytes>;

Model& loaded(const Comparable& model, const cli::LoadOptions& options, std::unique_ptr<Model>& own) {
  if (Model* const* running = std::get_if<Model*>(&model)) return **running;
  const auto* path = std::get_if<std::string>(&model);
  own = load_as(path ? PathOrBytes(*path) : PathOrBytes(std::get<nb::bytes>(model)), options);
  return *own;
}

nb::list compare(const Comparable& reference, const Comparable& other, const Words& words,
                 const std::map<std::string, Array>& arrays) {
  cli::CompareOptions o;
  parse_words(
      "compare", [&](CLI::App& app) { cli::add_compare_flags(app, o); },
      with_positional(words, {"the reference", "the other model"}));
  const auto given = unwrap(tensors_of(arrays));
  std::unique_ptr<Model> own_reference, own_other;
  Model& a = loaded(reference, {o.reference_engine, o.threads, o.shapes}, own_reference);
  Model& b = loaded(other, {o.other_engine, o.threads, {}}, own_other);
  const cli::ModelsCompared compared = [&] {
    const nb::gil_scoped_release release;
    const auto locks = Model::lock(a, b);
    return unwrap(cli::compare_models(a.runnable(), b.runnable(), o, given));
  }();
  return difference_rows(compared);
}

// ---- the module ----

using Flags = std::vector<std::pair<std::string, std::string>>;

Flags flags(const std::string& command) {
  if (command == "optimize")
    return described_flags(command,
                           [o = cli::OptimizeOptions()](CLI::App& app) mutable { cli::add_optimize_flags(app, o); });
  if (command == "compare")
    return described_flags(command,
                           [o = cli::CompareOptions()](CLI::App& app) mutable { cli::add_compare_flags(app, o); });
  return described_flags(command, [o = cli::LoadOptions()](CLI::App& app) mutable { cli::add_load_flags(app, o); });
}

}  // namespace
}  // namespace gopt::python

NB_MODULE(_native, m) {
  namespace nb = nanobind;
  using namespace gopt::python;
  m.attr("__version__") = GOPT_VERSION;
  nb::exception<UserError>(m, "Error").attr("__module__") = "gopt";
  nb::exception<gopt::InternalError>(m, "InternalError", PyExc_RuntimeError).attr("__module__") = "gopt";
  nb::enum_<Takes>(m, "Takes").value("Model", Takes::Model).value("Plan", Takes::Plan);
  nb::class_<Model>(m, "Model")
      .def("inputs", &Model::inputs)
      .def("outputs", &Model::outputs)
      .def("engine", &Model::engine)
      .def("run", &Model::run, nb::arg("arrays"))
      .def("answer", &Model::answer, nb::arg("functions"));
  nb::class_<Optimized>(m, "Optimized")
      .def("warnings", &Optimized::warnings)
      .def("report", &Optimized::report)
      .def("model", &Optimized::model)
      .def("save", &Optimized::save, nb::arg("path"), nb::arg("force"))
      .def("load", &Optimized::load)
      .def("is_in_pieces", &Optimized::is_in_pieces)
      .def("emit_pieces", &Optimized::emit_pieces, nb::arg("folder"));
  m.def("optimize", &optimize, nb::arg("model"), nb::arg("words"), nb::arg("rules"), nb::arg("takes"));
  m.def("load", &load, nb::arg("model"), nb::arg("words"));
  m.def("compare", &compare, nb::arg("reference"), nb::arg("other"), nb::arg("words"), nb::arg("arrays"));
  m.def("flags", &flags, nb::arg("command"));
}
