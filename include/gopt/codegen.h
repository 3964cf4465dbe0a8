// Prints a plan as a self-contained folder: source, CMakeLists.txt, weights.bin, model.h with a C ABI, an example main.
// And builds and loads such a folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gopt/plan.h"
#include "gopt/temporary.h"

namespace gopt {

// An input or output of a model.
struct ModelValue {
  std::string name;
  TensorType type;  // extents that are open are symbols
};
std::vector<ModelValue> graph_inputs(const Graph& graph);
std::vector<ModelValue> graph_outputs(const Graph& graph);
std::string extent_name(const Index& extent);  // of an open extent: its symbol's name, or an expression in symbols

// Plans of one model for several sizes of its open extents.
struct SizedPlans {
  Graph open;                               // the model with open extents
  std::vector<std::string> extents;         // their names
  std::vector<ModelValue> inputs, outputs;  // with these
  // One of them that the model may be cut along (gopt/rows.h): any sum of its sizes is run in parts. `why_none`: where
  // there is none, why, of each.
  std::optional<size_t> rows;
  std::string why_none;
  struct Size {
    std::vector<int64_t> extents;  // parallel to the names
    Plan plan;
  };
  std::vector<Size> sizes;  // each with other extents
  // Code for any size, beside that for those above or alone; its target's open extents are these, in this order.
  std::optional<Plan> general;
};

struct EmittedFile {
  std::string name;  // relative
  std::string text;
};

struct EmittedFolder;
struct EmittedCode {
  std::vector<EmittedFile> files;  // all but the weights
  std::vector<Plan> plans;         // what lies at an offset of the weights file is the same in all; none: there is none
  std::vector<EmittedFolder> folders;  // inside: the pieces of a model
};
struct EmittedFolder {
  std::string name;
  EmittedCode code;
};

// Source text of a plan for its target; of one with open extents, code for any size of them. `prefix`: of every name
// that other code may see, and of its files, in place of "gopt": models of different prefixes can be linked into one
// program. Errors: an element type or operator that the target has no code for, by node; a prefix that is no name in C.
Result<EmittedCode> emit(const Plan& plan, const std::string& prefix = "gopt");
// The same for several sizes, or any, behind one interface (model.h): which one runs is set by its extents. Kernels and
// weights that are equal are there once. Errors: also a target other than the CPU.
Result<EmittedCode> emit(SizedPlans plans, const std::string& prefix = "gopt");
bool is_prefix(const std::string& text);

// Whether code may be written there: the folder is new or empty, or was emitted before and `force` is given. Errors say
// which it is not; a folder that holds other files and no list of emitted ones is never taken.
Status check_emit_folder(const std::string& folder, bool force);

// Writes files, weights (folded one at a time) and the list of them to `folder`: beside it first, then renamed. In a
// folder that was emitted before, the files of that list are replaced and all else stays. Errors: those of
// check_emit_folder, a file of the same name that was not emitted, not writable.
Status write_emitted(const EmittedCode& code, const std::string& folder, bool force);
// The same up to the names, which `staged` gives together with those of other files.
Status stage_emitted(const EmittedCode& code, const std::string& folder, bool force, StagedFiles& staged);
// Whether the folder's list of emitted files names this one, which write_emitted would replace.
bool is_emitted(const std::string& folder, const std::string& file);

// The folder of the CUDA toolkit that emitted code is built with: nvcc of the path, of $CUDA_HOME, or where the
// toolkit's installer puts it. Nothing: there is none.
std::optional<std::string> cuda_toolkit();

// A call of an operator that the code has no kernels of.
struct OperatorCall {
  std::string op, node;                       // the operator as gopt_register names it; the node's name
  std::vector<std::optional<Tensor>> inputs;  // nothing: left out
  std::vector<TensorType> outputs;            // of type Undefined where nobody takes it
};
// Its outputs: of these types, anything for those that nobody takes.
using OperatorFunction = std::function<Result<std::vector<Tensor>>(const OperatorCall&)>;

// A built model, through its C ABI.
class LoadedModel {
 public:
  // Only builds it: what is built is in the cache then. May run beside anything. Errors: those of the next.
  static Status build(const std::string& folder);
  // The same for several folders that would be written, at once: what they have in common is compiled once. Weights are
  // not folded.
  static std::vector<Status> build(const std::vector<EmittedCode>& codes);
  // Builds the folder (cached by content) and loads it. Errors: no compiler, a build failure with its first lines.
  static Result<LoadedModel> build_and_load(const std::string& folder, int threads);
  // In declared order, as the C ABI says them; open extents are symbols.
  const std::vector<ModelValue>& inputs() const;
  const std::vector<ModelValue>& outputs() const;
  // Names of open extents, and the sizes that there is code for: none where no extent is open.
  const std::vector<std::string>& extents() const;
  const std::vector<std::vector<int64_t>>& sizes() const;
  // The inputs at one of them, parallel to extents(). Errors: there is no code for it, with those that there are.
  Result<std::vector<ModelValue>> inputs_at(const std::vector<int64_t>& extents);
  // Operators that functions have to be registered for before it runs.
  const std::vector<std::string>& operators() const;
  // Registers one function for all of them. Errors: those of the C ABI.
  Status register_function(OperatorFunction function);
  // Registers what stands in where a model is only timed: it writes numbers between 1 and 2, and zeros for integers.
  Status stand_in_for_operators();
  // Outputs for inputs in declared order, types and shapes as in the graph; the inputs say the size. Errors: inputs
  // that do not fit, or of a size that there is no code for; an operator that no function is registered for, or whose
  // function fails.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // Milliseconds of each of `runs` runs on the same inputs.
  Result<std::vector<double>> time(const std::vector<Tensor>& inputs, int warmup, int runs);
  // Milliseconds of one of `runs` runs that follow each other without a pause, after one that does not count: of code
  // for a GPU they are queued at once, inputs and outputs in its own memory, so that neither copies nor how fast the
  // host is count.
  Result<double> time_queued(const std::vector<Tensor>& inputs, int runs);
  // Name and total milliseconds of each kernel over `runs` runs; those of other sizes are left out.
  Result<std::vector<std::pair<std::string, double>>> profile(const std::vector<Tensor>& inputs, int runs);
  // Milliseconds of one run of one kernel of a timing_plan's code; nothing where the library has no such kernel.
  // Errors: none of its kernels can be run any more.
  Result<std::optional<double>> time_kernel(size_t kernel, bool weights_from_memory = false);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gopt
