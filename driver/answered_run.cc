#include "answered_run.h"

namespace gopt::driver {
namespace {

class AnsweredRun {
 public:
  AnsweredRun(const CheckedPart& part, const std::map<std::string, Tensor>& inputs) : part_(part), inputs_(inputs) {}

  // Kernels call in the order of the graph's nodes.
  Result<std::vector<Tensor>> answer(const OperatorCall& call) {
    if (calls_ >= part_.cut.size())
      return Error{"node `" + call.node + "` is called once more than the graph holds it"};
    const std::string& cut = part_.cut[calls_++];
    for (size_t k = 0; k < call.inputs.size(); k++)
      if (call.inputs[k]) found.emplace(taken_by(cut, k), *call.inputs[k]);
    std::vector<Tensor> made;
    for (size_t k = 0; k < call.outputs.size(); k++) {
      const auto drawn = inputs_.find(given_by(cut, k));
      made.push_back(drawn == inputs_.end() ? Tensor() : drawn->second);
    }
    return made;
  }

  std::map<std::string, Tensor> found;

 private:
  const CheckedPart& part_;
  const std::map<std::string, Tensor>& inputs_;
  size_t calls_ = 0;
};

}  // namespace

Result<std::vector<Tensor>> run_answered(RunnableModel& code, const CheckedPart& part,
                                         const std::map<std::string, Tensor>& inputs) {
  AnsweredRun run(part, inputs);
  if (!part.cut.empty())
    GOPT_RETURN_IF_ERROR(code.answer_operators([&](const OperatorCall& call) { return run.answer(call); }));
  const auto outputs = code.run(inputs);
  if (!part.cut.empty()) GOPT_RETURN_IF_ERROR(code.answer_operators({}));
  if (!outputs.ok()) return outputs.error();
  for (size_t k = 0; k < outputs->size(); k++) run.found.emplace(code.outputs()[k].name, (*outputs)[k]);
  std::vector<Tensor> wanted;
  for (const GraphOutput& output : part.optimized.outputs()) {
    const auto at = run.found.find(output.name);
    if (at == run.found.end()) return Error{"the code gives no " + output.name};
    wanted.push_back(at->second);
  }
  return wanted;
}

}  // namespace gopt::driver
