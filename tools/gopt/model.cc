#include "model.h"

#include <algorithm>
#include <filesystem>

#include "gopt/onnx.h"
#include "import_for_code.h"

namespace gopt::cli {

void add_load_flags(CLI::App& app, LoadOptions& o) {
  app.add_option("--engine", o.engine, "auto, cpu or interpreter")
      ->check(CLI::IsMember({"auto", "cpu", "interpreter"}))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--shape", o.shapes, kShapeHelp);
}

namespace {

// Emitted code has its extents, or those of several sizes.
Status choose_size(RunnableModel& model, const std::string& path, const std::vector<std::string>& shapes) {
  if (model.sizes().empty()) return Error{path + ": --shape is for ONNX files; emitted code has its extents"};
  GOPT_ASSIGN_OR_RETURN(const auto parsed, parse_shapes(shapes));
  Extents extents;
  for (const auto& [name, numbers] : parsed) {
    if (numbers.size() != 1) return Error{path + ": expected --shape SYMBOL=4, of one of its open extents"};
    extents[name] = numbers[0];
  }
  return model.choose_size(extents).with_context(path);
}

// Of emitted code, all that lies in its folder.
Status check_keeps_folder(const std::string& folder, const std::string& written) {
  std::vector<ReadFile> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    files.push_back({it->path().string(), "is a file of " + folder + ", which is read"});
  return check_keeps(files, {written});
}

}  // namespace

std::vector<ReadFile> read_files(const std::vector<std::string>& files) {
  std::vector<ReadFile> read;
  for (const std::string& file : files)
    read.push_back({file, read.empty() ? "is the input itself" : "holds weights of the input"});
  return read;
}

Result<std::unique_ptr<RunnableModel>> load_model(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (std::filesystem::exists(std::filesystem::path(path) / "plan.json", error))
      return Error{path +
                   " is a model in pieces (plan.txt says which), between which nodes are the caller's: it is run "
                   "from Python (gopt.load), or by a program that follows the plan; a piece_N is a model"};
    if (!options.written.empty()) GOPT_RETURN_IF_ERROR(check_keeps_folder(path, options.written));
    GOPT_ASSIGN_OR_RETURN(auto model, load_folder(path, options.threads));
    if (!options.shapes.empty()) GOPT_RETURN_IF_ERROR(choose_size(*model, path, options.shapes));
    return model;
  }
  ImportOptions import;
  import.lower = true;
  import.ranges_fit = options.engine == "cpu";  // code refuses sizes at which they do not
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(options.shapes));
  const auto read = options.engine == "cpu" ? import_for_any_size : import_onnx;
  GOPT_ASSIGN_OR_RETURN(ImportedModel model, read(path, import));
  GOPT_RETURN_IF_ERROR(check_keeps(read_files(model.files), {options.written}));
  const Engine engine = options.engine == "cpu"           ? Engine::Cpu
                        : options.engine == "interpreter" ? Engine::Interpreter
                                                          : Engine::Auto;
  return load_graph(model.graph, path, engine, options.threads);
}

Result<std::map<std::string, std::vector<int64_t>>> parse_shapes(const std::vector<std::string>& shapes) {
  std::map<std::string, std::vector<int64_t>> parsed;
  for (const std::string& text : shapes) {
    const Error bad{"--shape " + text + ": expected NAME=1x3x224x224 or SYMBOL=4"};
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) return bad;
    std::vector<int64_t> dims;
    std::string rest = text.substr(equals + 1);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('x'), rest.size());
      const std::string digits = rest.substr(0, end);
      if (digits.empty() || digits.size() > 18 ||
          !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); }))
        return bad;
      dims.push_back(std::stoll(digits));
      if (end == rest.size()) break;
      rest = rest.substr(end + 1);
      if (rest.empty()) return bad;
    }
    if (!parsed.emplace(text.substr(0, equals), dims).second)
      return Error{"--shape gives " + text.substr(0, equals) + " twice"};
  }
  return parsed;
}

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Of .npy, which says no name, or .pb.
Result<Tensor> read_tensor(const std::string& path, std::string& name) {
  if (!ends_with(path, ".npy")) return read_tensor_proto(path, &name);
  GOPT_ASSIGN_OR_RETURN(NamedTensors tensors, read_npz(path));
  return std::move(tensors[0].second);
}

}  // namespace

std::string input_path(const std::string& given) {
  const size_t equals = given.find('=');
  return equals == std::string::npos ? given : given.substr(equals + 1);
}

Result<std::map<std::string, Tensor>> read_inputs(const std::vector<std::string>& files,
                                                  const std::vector<ModelValue>& inputs) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& file : files) {
    if (ends_with(file, ".npz") && file.find('=') == std::string::npos) {
      GOPT_ASSIGN_OR_RETURN(auto entries, read_npz(file));
      for (auto& [name, tensor] : entries) tensors.insert_or_assign(name, std::move(tensor));
      continue;
    }
    const size_t equals = file.find('=');
    const std::string path = input_path(file);
    std::string name = equals == std::string::npos ? "" : file.substr(0, equals), stored;
    GOPT_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(path, stored));
    if (name.empty() && inputs.size() != 1 && stored.empty())
      return Error{path + " does not say of which input it is: give NAME=" + path};
    if (name.empty()) name = inputs.size() == 1 ? inputs[0].name : stored;
    tensors.insert_or_assign(name, std::move(tensor));
  }
  GOPT_RETURN_IF_ERROR(check_known(tensors, inputs));
  return tensors;
}

Status check_known(const std::map<std::string, Tensor>& tensors, const std::vector<ModelValue>& inputs) {
  for (const auto& [name, tensor] : tensors) {
    if (std::any_of(inputs.begin(), inputs.end(), [&n = name](const ModelValue& v) { return v.name == n; })) continue;
    std::string known;
    for (const ModelValue& v : inputs) known += (known.empty() ? "" : ", ") + v.name;
    return Error{"the model has no input '" + name + "'; it has " + (known.empty() ? "none" : known)};
  }
  return Unit{};
}

}  // namespace gopt::cli
