// NumPy arrays as tensors and back, without copying.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <string>

#include "gopt/type.h"

namespace gopt::python {

using Array = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;
using NumpyArray = nanobind::ndarray<nanobind::numpy>;

// A tensor that keeps the array alive. Errors: an element type that no tensor has, by name.
Result<Tensor> tensor_of(const std::string& name, const Array& array);
Result<std::map<std::string, Tensor>> tensors_of(const std::map<std::string, Array>& arrays);

// A writable array over a copy of the tensor's bytes. Errors: elements of a type that NumPy lacks.
Result<NumpyArray> array_of(const std::string& name, const Tensor& tensor);

}  // namespace gopt::python
