#include "cpu/emit_cpu.h"
#include "cuda/emit_cuda.h"
#include "gopt/codegen.h"
#include "prefix.h"

namespace gopt {
namespace {

Result<EmittedCode> emit_for_target(const Plan& plan) {
  switch (plan.target.kind) {
    case TargetKind::Cpu: return codegen::emit_cpu(plan);
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

}  // namespace gopt
