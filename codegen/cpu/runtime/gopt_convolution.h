// The forms in which a convolution can be given to oneDNN, and which of them it has fast code for.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "gopt_dnnl.h"
#include "gopt_planar.h"

namespace gopt_runtime {

// Channels as oneDNN is told of them: groups joined, with zeros between, and channels added, with zero weights, since
// its kernels work on whole blocks. Blocked tensors have room for what is added.
struct Form {
  int64_t groups, in, out;  // channels of a group
};

struct MadeConvolution {
  Form form;
  dnnl::convolution_forward::primitive_desc pd;
  std::vector<int64_t> src_dims, dst_dims;
  dnnl::memory::dims weight_dims;
  dnnl::memory::desc src, dst, weights;  // weights: as `form_weights` gives them, floats
};

dnnl::memory::data_type type_of(Element element);
dnnl::memory::desc image_desc(const std::vector<int64_t>& dims, Order order, Element element = Element::Float);
// Row-major.
dnnl::memory::desc dense_desc(const std::vector<int64_t>& dims, Element element = Element::Float);
dnnl::primitive_attr post_attributes(const std::vector<Post>& posts, const dnnl::memory::desc& dst);

// On tensors in these orders, by code that is not reference code; nothing where there is none.
std::optional<MadeConvolution> make_convolution(const dnnl::engine& engine, const Convolution& c, Order src, Order dst,
                                                bool bias);
// The weights of a form, zeros where it has more channels; empty where it is the convolution's own.
std::vector<float> form_weights(const Convolution& c, const Form& form, const float* weights);
Form own_form(const Convolution& c);
Convolution in_floats(Convolution c);
// The same over three times the channels of each group, blocks of them filled; its weights, whose parts lie so.
Convolution in_parts(Convolution c);
std::vector<float> weights_in_parts(const Convolution& c, const float* weights);
// Stored elements as floats; empty where they are.
std::vector<float> widened(Element element, const void* stored, size_t count);
inline bool operator==(const Form& a, const Form& b) { return a.groups == b.groups && a.in == b.in && a.out == b.out; }

PlanarShape planar_shape(const Convolution& c);
// What Method::Direct comes to where oneDNN has nothing for the tensors as they lie, or, of plain tensors, code that
// unfolds them.
Method best_conversion(const Convolution& c, const PlanarConvolution& planar);

}  // namespace gopt_runtime
