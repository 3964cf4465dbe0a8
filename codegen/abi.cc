#include "abi.h"

#include "buffers.h"

namespace gopt::codegen {

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
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

std::string print_infos(const std::string& what, const std::vector<std::pair<std::string, TensorType>>& values) {
  std::string dims, infos;
  for (size_t i = 0; i < values.size(); i++) {
    const std::vector<int64_t> shape = values[i].second.static_shape();
    dims += "const int64_t k" + what + std::to_string(i) + "[] = {";
    for (int64_t d : shape) dims += std::to_string(d) + ", ";
    dims += "0};\n";
    infos += "    {" + quoted(values[i].first) + ", " + std::to_string(static_cast<int>(values[i].second.element)) +
             ", " + std::to_string(shape.size()) + ", k" + what + std::to_string(i) + ", " +
             std::to_string(static_cast<size_t>(element_count(shape)) * size_bytes(values[i].second.element)) + "},\n";
  }
  return dims + "const gopt_tensor_info k" + what + "s[] = {\n" + infos + "    {nullptr, 0, 0, nullptr, 0}};\n";
}

}  // namespace

std::string print_tables(const Plan& plan) {
  std::vector<std::pair<std::string, TensorType>> inputs, outputs;
  for (const Value& v : plan.graph.inputs()) inputs.emplace_back(v.node->name, v.type());
  for (const GraphOutput& o : plan.graph.outputs()) outputs.emplace_back(o.name, o.value.type());
  std::string names;
  for (const Kernel& k : plan.kernels) names += "    " + quoted(k.name) + ",\n";
  const std::string in = std::to_string(inputs.size()), out = std::to_string(outputs.size()),
                    kernels = std::to_string(plan.kernels.size());
  auto bounded = [](const std::string& table, const std::string& count, const std::string& none) {
    return "number >= 0 && number < " + count + " ? " + table + "[number] : " + none;
  };
  return "namespace {\n" + print_infos("Input", inputs) + print_infos("Output", outputs) +
         "const char* const kKernelNames[] = {\n" + names + "    nullptr};\n}  // namespace\n\n" +
         "int gopt_input_count(void) { return " + in + "; }\nint gopt_output_count(void) { return " + out +
         "; }\nint gopt_kernel_count(void) { return " + kernels + "; }\n" +
         "const gopt_tensor_info* gopt_input(int number) { return " + bounded("&kInputs", in, "nullptr") + "; }\n" +
         "const gopt_tensor_info* gopt_output(int number) { return " + bounded("&kOutputs", out, "nullptr") + "; }\n" +
         "const char* gopt_kernel_name(int number) { return " + bounded("kKernelNames", kernels, "nullptr") + "; }\n\n";
}

const char* const kRunning = R"(// The model that refused this thread last, as it was running in another.
thread_local const gopt_model* refused = nullptr;

struct Running {
  gopt_model& model;
  const bool is_mine;
  explicit Running(gopt_model& wanted) : model(wanted), is_mine(!wanted.busy.test_and_set(std::memory_order_acquire)) {
    refused = is_mine ? nullptr : &model;
  }
  ~Running() {
    if (is_mine) model.busy.clear(std::memory_order_release);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

)";

const char* const kGuardedError = R"(const char* gopt_error(const gopt_model* model) {
  return refused == model ? "another thread is running this model; create one for each thread" : model->error.c_str();
}
)";

std::string print_attempt(const std::string& create) {
  return "try {\n" + create + "} catch (const std::exception&) {\nlibrary.add_nothing();\n}\n";
}

std::string print_refresh(const Plan& plan, const Kernel& kernel, const std::string& last) {
  std::string text;
  for (BufferId id : kernel.input_buffers) {
    const Buffer& buffer = plan.buffer(id);
    const Location location = locate(plan, id);
    if (location.place != BufferPlace::Arena) continue;
    const bool is_float = buffer.element == ElementType::Float32;
    text += std::string("gopt_runtime::refresh_") + (is_float ? "floats" : "bytes") + "(" + pointer_text(location) +
            ", " + std::to_string(buffer.size_bytes) + ", " + last + ");\n";
  }
  return text;
}

}  // namespace gopt::codegen
