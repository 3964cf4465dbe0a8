#include "arrays.h"

#include <cstring>

namespace gopt::python {
namespace {

namespace nb = nanobind;
using Code = nb::dlpack::dtype_code;

struct ElementRow {
  ElementType type;
  Code code;
  int bits;
};
constexpr ElementRow kElements[] = {
    {ElementType::Float16, Code::Float, 16}, {ElementType::Float32, Code::Float, 32},
    {ElementType::Float64, Code::Float, 64}, {ElementType::Int8, Code::Int, 8},
    {ElementType::Int16, Code::Int, 16},     {ElementType::Int32, Code::Int, 32},
    {ElementType::Int64, Code::Int, 64},     {ElementType::UInt8, Code::UInt, 8},
    {ElementType::UInt16, Code::UInt, 16},   {ElementType::UInt32, Code::UInt, 32},
    {ElementType::UInt64, Code::UInt, 64},   {ElementType::Bool, Code::Bool, 8},
};

// What holds an array may be dropped by any thread.
std::shared_ptr<const void> held(const Array& array) {
  return {new Array(array), [](const Array* own) {
            const nb::gil_scoped_acquire gil;
            delete own;
          }};
}

}  // namespace

Result<Tensor> tensor_of(const std::string& name, const Array& array) {
  for (const ElementRow& row : kElements) {
    if (array.dtype().code != static_cast<uint8_t>(row.code) || array.dtype().bits != row.bits) continue;
    std::vector<int64_t> dims;
    for (size_t axis = 0; axis < array.ndim(); axis++) dims.push_back(static_cast<int64_t>(array.shape(axis)));
    const auto* data = static_cast<const std::byte*>(array.data());
    return Tensor(row.type, dims, Storage{held(array), {data, array.nbytes()}});
  }
  return Error{"input " + name + " has elements of a type that no tensor has"};
}

Result<std::map<std::string, Tensor>> tensors_of(const std::map<std::string, Array>& arrays) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, array] : arrays) {
    GOPT_ASSIGN_OR_RETURN(Tensor tensor, tensor_of(name, array));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

Result<NumpyArray> array_of(const std::string& name, const Tensor& tensor) {
  for (const ElementRow& row : kElements) {
    if (row.type != tensor.type()) continue;
    auto* bytes = new std::byte[std::max<size_t>(tensor.bytes().size(), 1)];
    const nb::capsule owner(bytes, [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
    std::memcpy(bytes, tensor.bytes().data(), tensor.bytes().size());
    const std::vector<size_t> shape(tensor.dims().begin(), tensor.dims().end());
    const nb::dlpack::dtype dtype{static_cast<uint8_t>(row.code), static_cast<uint8_t>(row.bits), 1};
    return NumpyArray(bytes, shape.size(), shape.data(), owner, nullptr, dtype);
  }
  return Error{"output " + name + " is " + to_string(tensor.tensor_type()) + "; NumPy has no such elements"};
}

}  // namespace gopt::python
