// The verdict on a rule whose outputs are proved: its condition as short as it can be said, its marks.
#pragma once

#include "proof_task.h"

namespace gopt::verifier {

Verification proved_under(ProofTask& task, Cond condition);

}  // namespace gopt::verifier
