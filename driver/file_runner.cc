#include "gopt/file_runner.h"

#include "child_process.h"
#include "gopt/onnx.h"
#include "gopt/temporary.h"
#include "runtime_text.h"

namespace gopt {

using namespace driver;

namespace {

class OnnxRuntimeRunner : public FileRunner {
 public:
  OnnxRuntimeRunner(std::string python, double timeout_seconds)
      : python_(std::move(python)), timeout_seconds_(timeout_seconds) {}
  std::string name() const override { return "onnxruntime"; }

  Status try_out() const {
    GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
    auto started = start(folder, {});
    if (!started.ok())
      return Error{started.error().message +
                   "; --check onnxruntime needs a Python with numpy and onnxruntime "
                   "(--python says which)"};
    return Unit{};
  }

  Result<std::vector<std::vector<Tensor>>> run(const std::string& path,
                                               const std::vector<std::map<std::string, Tensor>>& draws,
                                               RuntimeOptimizations optimizations) override {
    GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
    std::vector<std::string> arguments{path};
    if (optimizations == RuntimeOptimizations::Usual) arguments.push_back("optimized");
    GOPT_ASSIGN_OR_RETURN(ChildProcess process, start(folder, arguments));
    const std::string inputs = (folder.path() / "inputs.npz").string();
    const std::string outputs = (folder.path() / "outputs.npz").string();
    std::vector<std::vector<Tensor>> results;
    for (const auto& draw : draws) {
      GOPT_RETURN_IF_ERROR(write_npz(NamedTensors(draw.begin(), draw.end()), inputs));
      GOPT_RETURN_IF_ERROR(process.write_line(inputs));
      GOPT_RETURN_IF_ERROR(process.write_line(outputs));
      GOPT_RETURN_IF_ERROR(expect(process, "done"));
      GOPT_ASSIGN_OR_RETURN(NamedTensors named, read_npz(outputs));
      std::vector<Tensor>& tensors = results.emplace_back(named.size());
      for (auto& [number, tensor] : named) tensors.at(std::stoul(number)) = std::move(tensor);
    }
    return results;
  }

 private:
  Result<ChildProcess> start(const TemporaryFolder& folder, const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{python_, "-c", std::string(runtime_text("run_model.py"))};
    command.insert(command.end(), arguments.begin(), arguments.end());
    GOPT_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::start(command, folder.path() / "errors"));
    GOPT_RETURN_IF_ERROR(expect(process, "ready"));
    return process;
  }
  Status expect(ChildProcess& process, const std::string& word) const {
    const auto said = process.read_line(timeout_seconds_);
    if (!said.ok()) return Error{python_ + ", which is to run ONNX Runtime: " + said.error().message};
    if (*said != word) return Error{python_ + " is no Python: it printed `" + said->substr(0, 200) + "`"};
    return Unit{};
  }

  std::string python_;
  double timeout_seconds_;
};

}  // namespace

Result<std::unique_ptr<FileRunner>> onnxruntime_runner(const std::string& python, double timeout_seconds) {
  auto runner = std::make_unique<OnnxRuntimeRunner>(python, timeout_seconds);
  GOPT_RETURN_IF_ERROR(runner->try_out());
  return std::unique_ptr<FileRunner>(std::move(runner));
}

}  // namespace gopt
