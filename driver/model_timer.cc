#include "gopt/model_timer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "child_process.h"
#include "gopt/driver.h"
#include "gopt/onnx.h"
#include "gopt/temporary.h"
#include "runtime_text.h"
#include "time_in_turns.h"

namespace gopt {

using namespace driver;

namespace {

Result<double> parse_milliseconds(const std::string& line) {
  size_t used = 0;
  double ms = -1;
  try {
    ms = std::stod(line, &used);
  } catch (const std::exception&) {
    used = std::string::npos;
  }
  if (used == std::string::npos || line.find_first_not_of(" \t\r", used) != std::string::npos || !std::isfinite(ms) ||
      ms <= 0)
    return Error{"expected a number of milliseconds, but it printed `" + line.substr(0, 200) + "`"};
  return ms;
}

std::string last_line(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// Graphs as files in a folder that goes away with them.
struct WrittenModels {
  TemporaryFolder folder;
  std::vector<std::string> models;
  std::string inputs;
};

Result<WrittenModels> write_models(const std::vector<Graph>& graphs, uint64_t seed) {
  GOPT_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  WrittenModels written{std::move(folder), {}, ""};
  for (size_t k = 0; k < graphs.size(); k++) {
    written.models.push_back((written.folder.path() / ("model" + std::to_string(k) + ".onnx")).string());
    GOPT_RETURN_IF_ERROR(export_onnx(graphs[k], written.models.back()));
  }
  written.inputs = (written.folder.path() / "inputs.npz").string();
  GOPT_ASSIGN_OR_RETURN(const auto drawn, draw_inputs(graphs[0], seed));
  GOPT_RETURN_IF_ERROR(write_npz(NamedTensors(drawn.begin(), drawn.end()), written.inputs));
  return written;
}

class RuntimeTimer : public ModelTimer {
 public:
  RuntimeTimer(std::string runtime, TimerOptions options)
      : runtime_(std::move(runtime)), options_(std::move(options)) {}
  std::string name() const override { return runtime_; }

  // Whether the runtime is there at all.
  Status try_out() const {
    GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
    auto started = start(folder.path() / "errors", {});
    if (!started.ok())
      return Error{started.error().message + "; --runtime needs a Python with numpy and " + runtime_ +
                   " (--python says which)"};
    ChildProcess process = *std::move(started);
    return ready(process);
  }

  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) override {
    GOPT_ASSIGN_OR_RETURN(const WrittenModels written, write_models(graphs, options_.seed));
    std::vector<ChildProcess> processes;
    for (size_t k = 0; k < graphs.size(); k++) {
      const auto errors = written.folder.path() / ("errors" + std::to_string(k));
      GOPT_ASSIGN_OR_RETURN(ChildProcess process,
                            start(errors, {written.models[k], written.inputs, std::to_string(options_.threads)}));
      processes.push_back(std::move(process));
      GOPT_RETURN_IF_ERROR(ready(processes.back()));
    }
    std::vector<Turn> turns;
    for (ChildProcess& process : processes)
      turns.push_back([this, &process, runs = 0]() mutable -> Result<double> {
        if (runs == 0) {
          GOPT_ASSIGN_OR_RETURN(const double once, run(process, 1));
          runs = std::clamp(static_cast<int>(kTurnMs / once), 1, kMostRuns);
        }
        return run(process, runs);
      });
    return take_turns(turns).with_context(runtime_);
  }

 private:
  static constexpr double kTurnMs = 40;  // of timed runs in a turn
  static constexpr int kMostRuns = 50;

  Result<ChildProcess> start(const std::filesystem::path& errors, const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{options_.python, "-c", std::string(runtime_text("time_model.py")), runtime_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return ChildProcess::start(command, errors);
  }
  Status ready(ChildProcess& process) const {
    const auto said = process.read_line(options_.timeout_seconds);
    if (!said.ok()) return Error{options_.python + ", which is to run " + runtime_ + ": " + said.error().message};
    if (*said != "ready") return Error{options_.python + " is no Python: it printed `" + said->substr(0, 200) + "`"};
    return Unit{};
  }
  Result<double> run(ChildProcess& process, int runs) const {
    GOPT_RETURN_IF_ERROR(process.write_line(std::to_string(runs)));
    GOPT_ASSIGN_OR_RETURN(const std::string line, process.read_line(options_.timeout_seconds));
    return parse_milliseconds(line);
  }

  std::string runtime_;
  TimerOptions options_;
};

std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string with_paths(std::string command, const std::string& name, const std::string& path) {
  const std::string text = quoted(path);
  for (size_t at = 0; (at = command.find(name, at)) != std::string::npos; at += text.size())
    command.replace(at, name.size(), text);
  return command;
}

class CommandTimer : public ModelTimer {
 public:
  CommandTimer(std::string command, TimerOptions options)
      : command_(std::move(command)), options_(std::move(options)) {}
  std::string name() const override { return command_; }

  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) override {
    GOPT_ASSIGN_OR_RETURN(const WrittenModels written, write_models(graphs, options_.seed));
    std::vector<Turn> turns;
    for (const std::string& model : written.models)
      turns.push_back([this, &written, &model] {
        const std::string command = with_paths(with_paths(command_, "{model}", model), "{inputs}", written.inputs);
        return run(command, written.folder.path() / "errors").with_context("--measure " + command_);
      });
    return take_turns(turns);
  }

 private:
  Result<double> run(const std::string& command, const std::filesystem::path& errors) const {
    GOPT_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::start({"/bin/sh", "-c", command}, errors));
    GOPT_ASSIGN_OR_RETURN(const std::string text, process.read_all(options_.timeout_seconds));
    return parse_milliseconds(last_line(text));
  }

  std::string command_;
  TimerOptions options_;
};

}  // namespace

Result<std::unique_ptr<ModelTimer>> runtime_timer(const std::string& runtime, const TimerOptions& options) {
  auto timer = std::make_unique<RuntimeTimer>(runtime, options);
  GOPT_RETURN_IF_ERROR(timer->try_out());
  return std::unique_ptr<ModelTimer>(std::move(timer));
}

Result<std::unique_ptr<ModelTimer>> command_timer(const std::string& command, const TimerOptions& options) {
  if (command.find("{model}") == std::string::npos)
    return Error{"--measure " + command + ": the command has no {model}, which stands for the ONNX file"};
  return std::unique_ptr<ModelTimer>(std::make_unique<CommandTimer>(command, options));
}

}  // namespace gopt
