#include "abi.h"

#include "buffers.h"

namespace gopt {

std::vector<ModelValue> graph_inputs(const Graph& graph) {
  std::vector<ModelValue> values;
  for (const Value& v : graph.inputs()) values.push_back({v.node->name, v.type()});
  return values;
}

std::vector<ModelValue> graph_outputs(const Graph& graph) {
  std::vector<ModelValue> values;
  for (const GraphOutput& o : graph.outputs()) values.push_back({o.name, o.value.type()});
  return values;
}

std::string extent_name(const Index& extent) {
  const auto symbol = extent.as_atom();
  return symbol && atom(*symbol).kind == AtomKind::Symbol ? atom(*symbol).name : to_string(extent);
}

}  // namespace gopt

namespace gopt::codegen {

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    const bool is_trigraph = c == '?' && s.back() == '?';  // two in a row, which compilers warn of
    if (c == '"' || c == '\\' || is_trigraph)
      s += '\\', s += c;
    else if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      snprintf(code, sizeof code, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      s += code;
    } else {
      s += c;
    }
  }
  return s + "\"";
}

namespace {

constexpr const char* kFixedExtents = R"(
int gopt_extent_count(void) { return 0; }
const char* gopt_extent_name(int) { return nullptr; }
int64_t gopt_extent_maximum(int) { return -1; }
int gopt_size_count(void) { return 1; }
const int64_t* gopt_size(int) { return nullptr; }
int gopt_set_extents(gopt_model*, const int64_t*) { return 0; }
const gopt_tensor_info* gopt_input_now(const gopt_model*, int number) { return gopt_input(number); }
const gopt_tensor_info* gopt_output_now(const gopt_model*, int number) { return gopt_output(number); }
int gopt_operator_count(void) { return 0; }
const char* gopt_operator(int) { return nullptr; }

)";

std::string print_infos(const std::string& what, const std::vector<ModelValue>& values) {
  std::string arrays, infos;
  for (size_t i = 0; i < values.size(); i++) {
    const Shape& shape = *values[i].type.shape;
    const std::string name = "k" + what + std::to_string(i);
    const bool is_open = !values[i].type.has_static_shape();
    std::string dims, extents;
    for (const Index& extent : shape) {
      dims += std::to_string(extent.as_constant().value_or(-1)) + ", ";
      extents += (extent.is_constant() ? "nullptr" : quoted(extent_name(extent))) + ", ";
    }
    arrays += "const int64_t " + name + "[] = {" + dims + "0};\n";
    if (is_open) arrays += "const char* const " + name + "Extents[] = {" + extents + "nullptr};\n";
    const size_t bytes = is_open ? 0
                                 : static_cast<size_t>(element_count(values[i].type.static_shape())) *
                                       size_bytes(values[i].type.element);
    infos += "    {" + quoted(values[i].name) + ", " + std::to_string(static_cast<int>(values[i].type.element)) + ", " +
             std::to_string(shape.size()) + ", " + name + ", " + std::to_string(bytes) + ", " +
             (is_open ? name + "Extents" : "nullptr") + "},\n";
  }
  return arrays + "const gopt_tensor_info k" + what + "s[] = {\n" + infos +
         "    {nullptr, 0, 0, nullptr, 0, nullptr}};\n";
}

}  // namespace

std::string print_infos(const std::vector<ModelValue>& inputs, const std::vector<ModelValue>& outputs) {
  return print_infos("Input", inputs) + print_infos("Output", outputs);
}

std::string print_kernel_names(const Plan& plan) {
  std::string names;
  for (const Kernel& k : plan.kernels) names += "    " + quoted(k.name) + ",\n";
  return "const char* const kKernelNames[] = {\n" + names + "    nullptr};\n";
}

std::string print_tables(const Plan& plan) {
  const std::vector<ModelValue> inputs = graph_inputs(plan.graph), outputs = graph_outputs(plan.graph);
  const std::string in = std::to_string(inputs.size()), out = std::to_string(outputs.size()),
                    kernels = std::to_string(plan.kernels.size());
  auto bounded = [](const std::string& table, const std::string& count, const std::string& none) {
    return "number >= 0 && number < " + count + " ? " + table + "[number] : " + none;
  };
  return "namespace {\n" + print_infos(inputs, outputs) + print_kernel_names(plan) +
         "}  // namespace\n\nint gopt_input_count(void) { return " + in + "; }\nint gopt_output_count(void) { return " +
         out + "; }\nint gopt_kernel_count(void) { return " + kernels +
         "; }\nconst gopt_tensor_info* gopt_input(int number) { return " + bounded("&kInputs", in, "nullptr") +
         "; }\nconst gopt_tensor_info* gopt_output(int number) { return " + bounded("&kOutputs", out, "nullptr") +
         "; }\nconst char* gopt_kernel_name(int number) { return " + bounded("kKernelNames", kernels, "nullptr") +
         "; }\n" + kFixedExtents;
}

std::string print_attempt(const std::string& create) {
  return "try {\n" + create + "} catch (const std::exception&) {\nlibrary.add_nothing();\n}\n";
}

namespace {
const char* refreshed(const Plan& plan, ElementType element) {
  if (element == ElementType::Float32) return "floats";
  if (!is_half(element) || plan.target.kind != TargetKind::Cuda) return "bytes";
  return element == ElementType::Float16 ? "halves" : "bfloats";
}
}  // namespace

std::string print_refresh(const Plan& plan, const Kernel& kernel, const std::string& last) {
  std::string text;
  for (BufferId id : kernel.input_buffers) {
    const Buffer& buffer = plan.buffer(id);
    const Location location = locate(plan, id);
    if (location.place != BufferPlace::Arena) continue;
    text += std::string("gopt_runtime::refresh_") + refreshed(plan, buffer.element) + "(" + pointer_text(location) +
            ", " + std::to_string(buffer.size_bytes) + ", " + last + ");\n";
  }
  return text;
}

}  // namespace gopt::codegen
