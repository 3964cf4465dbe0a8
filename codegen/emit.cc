#include "cpu/emit_cpu.h"
#include "cuda/emit_cuda.h"
#include "gopt/codegen.h"
#include "prefix.h"
#include "share_weights.h"

namespace gopt {
namespace {

SizedPlans of_one_size(const Plan& plan) {
  SizedPlans plans;
  plans.inputs = graph_inputs(plan.graph);
  plans.outputs = graph_outputs(plan.graph);
  for (const OpenExtent& extent : plan.target.open) plans.extents.push_back(atom(extent.symbol).name);
  if (plan.target.open.empty())
    plans.sizes = {{{}, plan}};
  else
    plans.general = plan;
  return plans;
}

Result<EmittedCode> emit_for_target(const Plan& plan) {
  switch (plan.target.kind) {
    case TargetKind::Cpu: return codegen::emit_cpu(of_one_size(plan));
    case TargetKind::Cuda: return codegen::emit_cuda(plan);
    case TargetKind::Onnx: break;
  }
  return Error{"no code is printed for this target; --target cpu and --target cuda are"};
}

}  // namespace

Result<EmittedCode> emit(const Plan& plan, const std::string& prefix) {
  GOPT_ASSIGN_OR_RETURN(EmittedCode code, emit_for_target(plan));
  GOPT_RETURN_IF_ERROR(codegen::rename_symbols(code.files, prefix));
  return code;
}

Result<EmittedCode> emit(SizedPlans plans, const std::string& prefix) {
  GOPT_CHECK(!plans.sizes.empty() || plans.general, "a model has a size");
  for (const SizedPlans::Size& size : plans.sizes)
    if (size.plan.target.kind != TargetKind::Cpu) return Error{"code for several sizes is made for --target cpu alone"};
  GOPT_RETURN_IF_ERROR(codegen::share_weights(plans));
  GOPT_ASSIGN_OR_RETURN(EmittedCode code, codegen::emit_cpu(plans));
  GOPT_RETURN_IF_ERROR(codegen::rename_symbols(code.files, prefix));
  return code;
}

}  // namespace gopt
