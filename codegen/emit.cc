#include "cpu/emit_cpu.h"
#include "gopt/codegen.h"

namespace gopt {

Result<EmittedCode> emit(const Plan& plan) {
  switch (plan.target.kind) {
    case TargetKind::Cpu: return codegen::emit_cpu(plan);
    case TargetKind::Cuda:
    case TargetKind::Onnx: break;
  }
  return Error{"no code is printed for this target; --target cpu is"};
}

}  // namespace gopt
