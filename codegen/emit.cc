#include "cpu/emit_cpu.h"
#include "cuda/emit_cuda.h"
#include "gopt/codegen.h"

namespace gopt {

Result<EmittedCode> emit(const Plan& plan) {
  switch (plan.target.kind) {
    case TargetKind::Cpu: return codegen::emit_cpu(plan);
    case TargetKind::Cuda: return codegen::emit_cuda(plan);
    case TargetKind::Onnx: break;
  }
  return Error{"no code is printed for this target; --target cpu and --target cuda are"};
}

}  // namespace gopt
