// Functions that the caller registers for operators that the model has no code of.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.h"

namespace gopt_runtime {

class Operators {
 public:
  Operators(int count, const char* const* names) : names_(names, names + count), functions_(names_.size()) {}

  // Throws where the model has no such operator.
  void add(const char* name, gopt_function function, void* user) {
    for (size_t i = 0; i < names_.size(); i++)
      if (name && names_[i] == name) {
        functions_[i] = {function, user};
        return;
      }
    throw std::runtime_error(std::string("the model calls no operator ") + (name ? name : "of no name") +
                             (names_.empty() ? "; it calls none" : "; it calls ") + joined(names_));
  }

  // Throws where nothing is registered for it, or what is fails.
  void call(size_t number, gopt_call call) const {
    const Registered& own = functions_[number];
    if (!own.function) throw std::runtime_error(why_none(call));
    char message[256] = "";
    call.error = message;
    call.error_size = sizeof message;
    const int status = own.function(&call, own.user);
    if (status == 0) return;
    message[sizeof message - 1] = 0;
    throw std::runtime_error("the function of operator " + names_[number] + " failed at node `" + call.node +
                             "` with " + std::to_string(status) + (message[0] ? std::string(": ") + message : ""));
  }

 private:
  struct Registered {
    gopt_function function = nullptr;
    void* user = nullptr;
  };

  std::string why_none(const gopt_call& call) const {
    std::vector<std::string> missing;
    for (size_t i = 0; i < names_.size(); i++)
      if (!functions_[i].function) missing.push_back(names_[i]);
    return "node `" + std::string(call.node) + "` applies an operator that has no function; " +
           "gopt_register one before the first run for each of: " + joined(missing);
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  std::vector<std::string> names_;
  std::vector<Registered> functions_;
};

inline gopt_tensor tensor_of(int element, size_t element_bytes, int rank, const int64_t* dims, const void* data) {
  size_t bytes = element_bytes;
  for (int d = 0; d < rank; d++) bytes *= static_cast<size_t>(dims[d]);
  return {element, rank, dims, bytes, const_cast<void*>(data)};
}

}  // namespace gopt_runtime
