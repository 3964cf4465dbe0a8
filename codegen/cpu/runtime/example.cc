// Runs the model, at each of its sizes, on inputs that are all ones and prints the time and the first numbers of each
// output.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "model.h"

// In the place of an operator that the model has no code of: writes zeros.
int write_zeros(const gopt_call* call, void*) {
  for (int i = 0; i < call->output_count; i++)
    if (call->outputs[i].data) std::memset(call->outputs[i].data, 0, call->outputs[i].size_bytes);
  return 0;
}

// At one of its sizes.
bool run(gopt_model* model, int size) {
  if (gopt_extent_count() > 0 && gopt_set_extents(model, gopt_size(size)) != 0) return false;
  for (int i = 0; i < gopt_extent_count(); i++)
    std::printf("%s=%lld%s", gopt_extent_name(i), static_cast<long long>(gopt_size(size)[i]),
                i + 1 < gopt_extent_count() ? " " : ", ");
  std::vector<std::vector<char>> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (int i = 0; i < gopt_input_count(); i++) {
    const gopt_tensor_info* info = gopt_input_now(model, i);
    inputs.emplace_back(info->size_bytes);
    if (info->element == 1)
      for (size_t k = 0; k < info->size_bytes / sizeof(float); k++)
        reinterpret_cast<float*>(inputs.back().data())[k] = 1.0f;
    in.push_back(inputs.back().data());
  }
  for (int i = 0; i < gopt_output_count(); i++) {
    outputs.emplace_back(gopt_output_now(model, i)->size_bytes);
    out.push_back(outputs.back().data());
  }
  double ms = 0;
  for (int run = 0; run < 5; run++) {
    const auto start = std::chrono::steady_clock::now();
    if (gopt_run(model, in.data(), out.data(), nullptr) != 0) return false;
    ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::printf("fifth run: %.3f ms\n", ms);
  for (int i = 0; i < gopt_output_count(); i++) {
    const gopt_tensor_info* info = gopt_output_now(model, i);
    std::printf("%s:", info->name);
    if (info->element == 1)
      for (size_t k = 0; k < 5 && k < info->size_bytes / sizeof(float); k++)
        std::printf(" %g", reinterpret_cast<float*>(out[i])[k]);
    std::printf("\n");
  }
  return true;
}

int main(int argc, char** argv) {
  char error[512] = "";
  gopt_model* model =
      gopt_create(argc > 1 ? argv[1] : "weights.bin", argc > 2 ? std::atoi(argv[2]) : 0, error, sizeof error);
  if (!model) {
    std::fprintf(stderr, "error: %s\n", error);
    return 1;
  }
  for (int i = 0; i < gopt_operator_count(); i++) {
    std::printf("%s: zeros, in the place of a function of yours\n", gopt_operator(i));
    if (gopt_register(model, gopt_operator(i), write_zeros, nullptr) != 0) return 1;
  }
  for (int size = 0; size < gopt_size_count(); size++)
    if (!run(model, size)) {
      std::fprintf(stderr, "error: %s\n", gopt_error(model));
      return 1;
    }
  gopt_destroy(model);
  return 0;
}
