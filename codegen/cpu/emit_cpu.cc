#include "emit_cpu.h"

#include <algorithm>
#include <map>
#include <set>

#include "../abi.h"
#include "../buffers.h"
#include "../open_sizes.h"
#include "../row_function_calls.h"
#include "../sizes.h"
#include "../writer.h"
#include "loops.h"
#include "scattering.h"

namespace gopt::codegen {
namespace {

constexpr size_t kKernelFiles = 2;  // translation units, compiled at once

// The loops of all sizes: equal ones are one function.
class GeneratedKernels {
 public:
  // The name of the function. Errors: those of lowering it, with the kernel.
  Result<std::string> function_for(const Plan& plan, const Kernel& kernel) {
    GOPT_ASSIGN_OR_RETURN(const std::string text, text_of(plan, kernel));
    auto [it, inserted] = functions_.try_emplace(text, "gopt_kernel_" + std::to_string(functions_.size()));
    if (inserted) {
      if (text.find("gopt_runtime::share(") != std::string::npos ||
          text.find("gopt_runtime::scatter") != std::string::npos)
        shared_.insert(it->second);
      declarations_ += "void " + it->second + text.substr(0, text.find(" {\n")) + ";\n";
      bodies_[functions_.size() % kKernelFiles] += "void " + it->second + text + "\n";
    }
    return it->second;
  }

  // Whether threads share its loops.
  bool is_shared(const std::string& function) const { return shared_.contains(function); }
  bool has_halves() const { return names("gopt_half") || names("gopt_bfloat16"); }
  bool has_transposes() const { return names("gopt_runtime::transpose"); }
  bool has_scatters() const { return names("gopt_runtime::scatter"); }

  std::vector<EmittedFile> files() const {
    std::vector<EmittedFile> files{
        {"kernels.h",
         "// Generated loops, one function for each distinct kernel.\n#pragma once\n\n#include <cstdint>\n\n" +
             std::string(has_halves() ? "#include \"gopt_half.h\"\n\n" : "") + declarations_}};
    for (size_t i = 0; i < kKernelFiles; i++)
      files.push_back({"kernels_" + std::to_string(i) + ".cc",
                       "#include \"gopt_math.h\"\n" + std::string(shared_.empty() ? "" : "#include \"gopt_team.h\"\n") +
                           std::string(has_scatters() ? "#include \"gopt_scatter.h\"\n" : "") +
                           std::string(has_transposes() ? "#include \"gopt_transpose.h\"\n" : "") +
                           "#include \"kernels.h\"\n\n" + bodies_[i]});
    return files;
  }

 private:
  static Result<std::string> text_of(const Plan& plan, const Kernel& kernel) {
    if (auto text = print_scattering(plan, kernel)) return *std::move(text);
    auto body = lower_kernel(plan, kernel);
    if (!body) return Error{"kernel " + kernel.name + ": " + body.error().message};
    return print_cpu_kernel(*body, plan.target.threads);
  }

  bool names(const char* name) const {
    return std::any_of(std::begin(bodies_), std::end(bodies_),
                       [&](const std::string& text) { return text.find(name) != std::string::npos; });
  }

  std::map<std::string, std::string> functions_;  // text to name
  std::set<std::string> shared_;
  std::string declarations_, bodies_[kKernelFiles];
};

// What makes a plan's kernels and runs them in order, as a gopt_runtime::Variant.
class VariantPrinter {
 public:
  VariantPrinter(const SizedPlans::Size& size, const std::vector<std::string>& operators, GeneratedKernels& generated)
      : VariantPrinter(size.plan, size.extents, operators, generated) {}
  // Of a plan whose extents are open.
  VariantPrinter(const Plan& plan, const std::vector<std::string>& operators, GeneratedKernels& generated)
      : VariantPrinter(plan, usual_of(plan), operators, generated) {}

  // Its text; the variant has this name.
  Result<std::string> print(const std::string& name) {
    for (const Kernel& kernel : plan_.kernels) {
      const bool library = kernel.kind != KernelKind::Generated && kernel.kind != KernelKind::Reorder;
      if (kernel.kind == KernelKind::External) {
        GOPT_ASSIGN_OR_RETURN(const FunctionCall call,
                              print_operator_call(plan_, kernel, operators_, operator_calls_++));
        tables_ += call.tables;
        step(kernel, call.run, "gopt_runtime::kAlone");
      } else if (kernel.kind == KernelKind::RowFunction) {
        const RowFunctionCall call = row_function_call(plan_, kernel);
        step(kernel,
             "{ using namespace gopt_runtime; " + call.function + "(" + call.pointers + ", " + call.sizes + "); }",
             "gopt_runtime::kShared");
      } else if (library) {
        GOPT_ASSIGN_OR_RETURN(const LibraryCall call, print_library_call(plan_, kernel, primitives_++));
        // A recurrence without steps gives the states that it begins with.
        const std::string filled = kernel.kind == KernelKind::Recurrence ? "" : where_filled(kernel);
        creates_.push_back((plan_.times_kernels ? print_attempt(call.create) : filled + call.create) +
                           (filled.empty() ? "" : "else library.add_nothing();\n"));
        const std::string primitive = std::to_string(primitives_ - 1);
        step(kernel, filled.empty() ? call.run : filled + "{ " + call.run + " }", primitive,
             "library.forget_weights(" + primitive + ");\n");
      } else {
        GOPT_RETURN_IF_ERROR(add_generated(kernel));
      }
    }
    return text(name);
  }

 private:
  VariantPrinter(const Plan& plan, std::vector<int64_t> extents, const std::vector<std::string>& operators,
                 GeneratedKernels& generated)
      : plan_(plan), extents_(std::move(extents)), operators_(operators), generated_(generated) {}

  static std::vector<int64_t> usual_of(const Plan& plan) {
    std::vector<int64_t> usual;
    for (const OpenExtent& extent : plan.target.open) usual.push_back(extent.usual);
    return usual;
  }
  bool is_open() const { return !plan_.target.open.empty(); }

  Status add_generated(const Kernel& kernel) {
    GOPT_ASSIGN_OR_RETURN(const std::string function, generated_.function_for(plan_, kernel));
    std::string call = function + "(";
    for (size_t i = 0; i < kernel.input_buffers.size(); i++) call += argument(kernel.input_buffers[i]) + ", ";
    step(kernel, where_filled(kernel) + call + argument(kernel.output_buffers[0]) + (is_open() ? ", n);" : ");"),
         generated_.is_shared(function) ? "gopt_runtime::kShared" : "gopt_runtime::kOneThread");
    return Unit{};
  }

  // At open extents of 0 there may be nothing to make. Empty: there always is.
  std::string where_filled(const Kernel& kernel) const {
    std::string conds;
    for (const Index& extent : shape_of(plan_.buffer(kernel.output_buffers[0])))
      if (!extent.is_constant()) conds += (conds.empty() ? "" : " && ") + size_text(extent, plan_.target.open) + " > 0";
    return conds.empty() ? "" : "if (" + conds + ") ";
  }

  std::string argument(BufferId id) const {
    const Location location = locate(plan_, id);
    const bool constant = location.place == BufferPlace::Input || location.place == BufferPlace::Weight;
    return std::string(constant ? "(const " : "(") + storage_name(plan_.buffer(id).element) + "*)(" +
           pointer_text(location, plan_.target.open) + ")";
  }

  // What pointers and sizes of open extents are made of.
  std::string sizes_text(const std::string& code) const {
    if (!is_open()) return "";
    return "[[maybe_unused]] const int64_t* at = model.at.data();\n[[maybe_unused]] const int64_t* n = "
           "model.extents.data();\n" +
           declared_sizes(plan_.target.open, code);
  }

  // `runs`: by which threads, as the runtime's gopt_team.h says it; `forget`: what takes a library kernel's weights
  // from all caches.
  void step(const Kernel& kernel, const std::string& call, const std::string& runs, std::string forget = "") {
    const auto number = static_cast<size_t>(&kernel - plan_.kernels.data());
    const std::string mark = "mark(" + std::to_string(number) + ");\n";
    const std::string line =
        call + "  // " + kernel.name +
        (kernel.implementation.empty() || kernel.implementation == "direct" ? "" : " " + kernel.implementation) + "\n";
    if (!plan_.times_kernels) {
      run_ += "case " + std::to_string(number) + ": {\n" + line + "break;\n}\n";
      runs_ += runs + ", ";
      return;
    }
    for (const BufferId id : kernel.input_buffers)
      if (const Location location = locate(plan_, id); location.place == BufferPlace::Weight)
        forget += "gopt_runtime::flush_lines(" + pointer_text(location) + ", " +
                  std::to_string(plan_.buffer(id).size_bytes) + ");\n";
    run_ += "if (mark.wants(" + std::to_string(number) + ")) {\ngopt_runtime::forget_weights(model.threads);\n" +
            (forget.empty() ? "" : "if (mark.is_from_memory(" + std::to_string(number) + ")) {\n" + forget + "}\n") +
            print_refresh(plan_, kernel, "model.threads") + "mark.start();\n" + line + mark + "}\n";
  }

  std::string text(const std::string& name) const {
    std::string extents;
    for (const int64_t extent : extents_) extents += std::to_string(extent) + ", ";
    std::string text = "namespace {\n\n" +
                       (is_open() ? "" : print_infos(graph_inputs(plan_.graph), graph_outputs(plan_.graph))) +
                       print_kernel_names(plan_) + "const int64_t kExtents[] = {" + extents + "0};\n" + tables_ +
                       (plan_.times_kernels ? "" : "const int kRuns[] = {" + runs_ + "0};\n") + "\n";
    text += indented(creation());
    text += indented(
        "template <class Mark>\nvoid run_kernels(gopt_runtime::Prepared& model, const void* const* inputs, void* "
        "const* "
        "outputs, Mark mark) {\n"
        "[[maybe_unused]] const char* weights = model.weights;\n[[maybe_unused]] char* arena = "
        "model.arena.data();\n"
        "[[maybe_unused]] gopt_runtime::Library& library = model.library;\n(void)inputs;\n(void)outputs;\n"
        "if (model.threads > 0) omp_set_num_threads(model.threads);\n" +
        sizes_text(run_) + (plan_.times_kernels ? run_ : in_order()) + "}\n");
    text += plan_.times_kernels ? kTimingRuns : kRunFunctions;
    const std::string of_sizes = is_open() ? indented(print_open_sizes(plan_)) : "",
                      type = is_open() ? "General " : "Variant ",
                      variant = std::string("{kExtents, ") +
                                (is_open() ? "nullptr, nullptr, " : "kInputs, kOutputs, ") +
                                std::to_string(plan_.kernels.size()) + ", kKernelNames, " +
                                std::to_string(is_open() ? 0 : plan_.arena_bytes) + ", create_kernels, run, profile}",
                      whole = is_open() ? "{" + variant + ", kMaxima, " + std::to_string(plan_.buffers.size()) +
                                              ", kLives, bytes_at, why_refused, dims_at}"
                                        : variant;
    return text + of_sizes + "\n}  // namespace\n\nnamespace gopt_runtime {\nextern const " + type + name +
           ";\nconst " + type + name + whole + ";\n}  // namespace gopt_runtime\n";
  }

  // A function makes some kernels: what a compiler takes for one grows faster than its length.
  std::string creation() const {
    constexpr size_t kOfFunction = 32;
    std::string text, calls;
    for (size_t first = 0; first < creates_.size(); first += kOfFunction) {
      std::string body;
      for (size_t k = first; k < std::min(first + kOfFunction, creates_.size()); k++) body += creates_[k];
      const std::string name = "create_kernels_" + std::to_string(first / kOfFunction);
      text += "[[gnu::cold]] void " + name +
              "(gopt_runtime::Prepared& model) {\n[[maybe_unused]] const char* weights = model.weights;\n"
              "[[maybe_unused]] char* arena = model.arena.data();\ngopt_runtime::Library& library = model.library;\n"
              "using namespace gopt_runtime;\n" +
              sizes_text(body) + body + "}\n\n";
      calls += name + "(model);\n";
    }
    return text + "void create_kernels(gopt_runtime::Prepared& model) {\n" + calls + "model.library.finish();\n}\n\n";
  }

  std::string in_order() const {
    const std::string order = plan_.target.without.contains(kOneRegion) ? "run_one_by_one" : "run_in_order";
    return "const auto run_kernel = [&](int number) {\nswitch (number) {\n" + run_ +
           "default: break;\n}\nmark(number);\n};\ngopt_runtime::" + order + "(model, kRuns, " +
           std::to_string(plan_.kernels.size()) + ", run_kernel);\n";
  }

  static constexpr const char* kRunFunctions =
      R"(
void run(gopt_runtime::Prepared& model, const void* const* inputs, void* const* outputs) {
  run_kernels(model, inputs, outputs, [](int) {});
}

void profile(gopt_runtime::Prepared& model, const void* const* inputs, void* const* outputs, double* milliseconds) {
  double last = gopt_runtime::now_ms();
  run_kernels(model, inputs, outputs, [&](int kernel) {
    const double now = gopt_runtime::now_ms();
    milliseconds[kernel] += now - last;
    last = now;
  });
}
)";

  static constexpr const char* kTimingRuns = R"(
void run(gopt_runtime::Prepared&, const void* const*, void* const*) {
  throw std::runtime_error("these kernels are timed one by one");
}

void profile(gopt_runtime::Prepared& model, const void* const* inputs, void* const* outputs, double* milliseconds) {
  run_kernels(model, inputs, outputs, gopt_runtime::OneByOne{milliseconds});
}
)";

  const Plan& plan_;
  const std::vector<int64_t> extents_;
  const std::vector<std::string>& operators_;
  GeneratedKernels& generated_;
  std::vector<std::string> creates_;  // of each of the library's kernels
  std::string run_, runs_, tables_;
  size_t primitives_ = 0, operator_calls_ = 0;
};

std::string variant_includes(const Plan& plan) {
  return "#include <omp.h>\n\n#include <stdexcept>\n\n" +
         std::string(plan.target.open.empty() ? "" : "#include \"gopt_rows.h\"\n") +
         std::string(plan.times_kernels ? "#include \"gopt_timing.h\"\n" : "") +
         std::string(has_row_functions(plan) ? "#include \"gopt_row_functions.h\"\n" : "") +
         "#include \"gopt_variant.h\"\n#include \"kernels.h\"\n\n";
}

bool has_rows(const ModelValue& value, const std::string& extent) {
  std::set<AtomId> symbols;
  for (const Index& own : *value.type.shape) collect_symbols(own, symbols);
  return symbols.contains(symbol_atom(extent));
}

constexpr const char* kGeneral = "variant_any";

// Of all plans, each once.
std::vector<std::string> operator_names(const SizedPlans& plans) {
  std::vector<std::string> names;
  const auto add = [&](const Plan& plan) {
    for (const ExternalOperator& own : external_operators(plan))
      if (std::ranges::find(names, own.name) == names.end()) names.push_back(own.name);
  };
  for (const SizedPlans::Size& size : plans.sizes) add(size.plan);
  if (plans.general) add(*plans.general);
  return names;
}

bool may_be_alone(const SizedPlans& plans) {
  return std::ranges::none_of(plans.sizes,
                              [](const auto& size) { return size.plan.target.without.contains(kAloneLaunch); });
}

// The variants' table, and what the model is at any of its sizes.
std::string description_text(const SizedPlans& plans, const std::vector<std::string>& variants,
                             const std::vector<std::string>& operators) {
  int64_t weight_bytes = 0;
  for (const SizedPlans::Size& size : plans.sizes) weight_bytes = std::max(weight_bytes, weights_file_size(size.plan));
  if (plans.general) weight_bytes = std::max(weight_bytes, weights_file_size(*plans.general));
  std::string extents, declared, table, called;
  for (const std::string& name : operators) called += quoted(name) + ", ";
  for (const std::string& name : plans.extents) extents += quoted(name) + ", ";
  for (const std::string& name : variants) {
    declared += "extern const Variant " + name + ";\n";
    table += "&" + name + ", ";
  }
  if (plans.general) declared += "extern const General " + std::string(kGeneral) + ";\n";
  const bool has_own_tables = plans.extents.empty();
  const auto rows_of = [&](const std::vector<ModelValue>& values) {
    std::string flags;
    for (const ModelValue& v : values)
      flags += plans.rows && has_rows(v, plans.extents[*plans.rows]) ? "true, " : "false, ";
    return flags + "false};\n";
  };
  return "\nnamespace gopt_runtime {\n" + declared + "namespace {\n" +
         (has_own_tables ? "" : print_infos(plans.inputs, plans.outputs)) + "const char* const kExtentNames[] = {" +
         extents + "nullptr};\nconst bool kInputRows[] = {" + rows_of(plans.inputs) + "const bool kOutputRows[] = {" +
         rows_of(plans.outputs) + "const Variant* const kVariants[] = {" + table +
         "nullptr};\nconst char* const kOperators[] = {" + called +
         "nullptr};\n}  // namespace\nextern const Description description;\nconst Description description{" +
         std::to_string(plans.inputs.size()) + ", " + std::to_string(plans.outputs.size()) + ", " +
         std::to_string(plans.extents.size()) + ", " + std::to_string(variants.size()) +
         ", kInputs, kOutputs, kExtentNames, " + std::to_string(weight_bytes) + ", " +
         (plans.rows ? std::to_string(*plans.rows) : "-1") + ", kInputRows, kOutputRows, kVariants, " +
         (plans.general ? "&" + std::string(kGeneral) : "nullptr") + ", " + std::to_string(operators.size()) +
         ", kOperators, " + (may_be_alone(plans) ? "true" : "false") + "};\n}  // namespace gopt_runtime\n";
}

std::vector<EmittedFile> runtime_files(const std::vector<Plan>& plans, const GeneratedKernels& generated) {
  std::vector<const char*> names{"model.h",
                                 "gopt_running.h",
                                 "gopt_team.h",
                                 "gopt_pace.h",
                                 "gopt_threads.h",
                                 "gopt_team.cc",
                                 "gopt_math.h",
                                 "gopt_elementary.h",
                                 "gopt_bits.h",
                                 "gopt_memory.h",
                                 "gopt_post.h",
                                 "gopt_variant.h",
                                 "gopt_operators.h",
                                 "gopt_general.h",
                                 "gopt_amx.h",
                                 "gopt_arena.h",
                                 "gopt_model.cc",
                                 "gopt_activation.h",
                                 "gopt_vector.h",
                                 "gopt_lanes.h",
                                 "gopt_planar.h",
                                 "gopt_planar.cc",
                                 "gopt_channel_lanes.h",
                                 "gopt_channel_lanes.cc",
                                 "gopt_taps.h",
                                 "gopt_taps.cc",
                                 "gopt_unfolded.h",
                                 "gopt_unfolded.cc",
                                 "gopt_pooling.h",
                                 "gopt_pooling.cc",
                                 "gopt_few_rows.h",
                                 "gopt_places.h",
                                 "gopt_rows.h",
                                 "gopt_rows.cc",
                                 "gopt_panel_sums.h",
                                 "gopt_panels.h",
                                 "gopt_panels.cc",
                                 "gopt_panels_call.cc",
                                 "gopt_blocks.h",
                                 "gopt_blocks.cc",
                                 "gopt_blocks_call.cc",
                                 "gopt_winograd.h",
                                 "gopt_winograd_tiles.h",
                                 "gopt_winograd.cc",
                                 "gopt_attention_rows.h",
                                 "gopt_attention_tiles.h",
                                 "gopt_attention_rows.cc",
                                 "gopt_attention_tiles.cc",
                                 "gopt_recurrence.h",
                                 "gopt_recurrence.cc",
                                 "gopt_transpose.h",
                                 "gopt_quantized.h",
                                 "gopt_quantized.cc",
                                 "gopt_integer.h",
                                 "gopt_integer.cc",
                                 "gopt_integer_sums.h",
                                 "gopt_integer_sums.cc",
                                 "gopt_integer_call.cc",
                                 "gopt_split.h",
                                 "gopt_split.cc",
                                 "gopt_terms.h",
                                 "gopt_tile_kernel.h",
                                 "gopt_tile_kernel.cc",
                                 "gopt_tile_vectors.h",
                                 "gopt_tile_vectors.cc",
                                 "gopt_tiles.h",
                                 "gopt_tiles.cc",
                                 "gopt_tiles_weights.cc",
                                 "gopt_tiles_source.cc",
                                 "gopt_tiles_result.cc",
                                 "gopt_tiles_call.cc",
                                 "gopt_dnnl.h",
                                 "gopt_dnnl.cc",
                                 "gopt_primitives.h",
                                 "gopt_convolution.h",
                                 "gopt_convolution.cc",
                                 "gopt_convolution_call.cc",
                                 "gopt_product_call.cc",
                                 "CMakeLists.txt",
                                 "example.cc"};
  if (plans[0].times_kernels) names.push_back("gopt_timing.h");
  if (generated.has_halves()) names.push_back("gopt_half.h");
  if (generated.has_scatters()) names.push_back("gopt_scatter.h");
  if (std::ranges::any_of(plans, has_row_functions))
    names.insert(names.end(), {"gopt_row_functions.h", "gopt_row_sizes.h"});
  std::vector<EmittedFile> files;
  for (const char* name : names) files.push_back({name, std::string(runtime_text(name))});
  return files;
}

}  // namespace

Result<EmittedCode> emit_cpu(const SizedPlans& plans) {
  EmittedCode code;
  GeneratedKernels generated;
  const std::vector<std::string> operators = operator_names(plans);
  std::vector<std::string> names;
  std::string model;
  for (const SizedPlans::Size& size : plans.sizes) {
    names.push_back("variant_" + std::to_string(names.size()));
    code.plans.push_back(size.plan);
    GOPT_ASSIGN_OR_RETURN(const std::string text, VariantPrinter(size, operators, generated).print(names.back()));
    if (plans.sizes.size() == 1 && !plans.general)
      model = variant_includes(size.plan) + text;
    else
      code.files.push_back({names.back() + ".cc", variant_includes(size.plan) + text});
  }
  if (plans.general) {
    GOPT_RETURN_IF_ERROR(check_open_sizes(*plans.general));
    code.plans.push_back(*plans.general);
    GOPT_ASSIGN_OR_RETURN(const std::string text, VariantPrinter(*plans.general, operators, generated).print(kGeneral));
    code.files.push_back({std::string(kGeneral) + ".cc", variant_includes(*plans.general) + text});
  }
  if (model.empty()) model = "#include \"gopt_variant.h\"\n";
  code.files.push_back({"model.cc", model + description_text(plans, names, operators)});
  for (auto&& files : {generated.files(), runtime_files(code.plans, generated)})
    code.files.insert(code.files.end(), files.begin(), files.end());
  return code;
}

}  // namespace gopt::codegen
