// Convolutions and matrix products by oneDNN: made once, weights reordered once into the form that the primitive asks
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gopt_runtime {

enum class Order { Plain, Blocked16, ChannelsLast };

enum class PostKind { Sum, Add, Relu, Clip, Logistic, Tanh, Elu, GeluErf, GeluTanh, Linear };
// Sum: the destination already holds what is added. Add: a tensor of the destination's shape (operand), or of `dims`.
struct Post {
  PostKind kind;
  float alpha = 0, beta = 0;
  const void* operand = nullptr;
  std::vector<int64_t> dims;
};

struct Convolution {
  std::vector<int64_t> src, weights, dst;  // extents; weights [out, in / groups, h, w]
  int64_t groups = 1;
  int64_t strides[2] = {1, 1}, dilations[2] = {1, 1}, pads[2] = {0, 0};  // pads before; those after follow from dst
  Order src_order = Order::Plain, dst_order = Order::Plain;
  bool winograd = false;  // where there is one, else direct
  std::vector<Post> posts;
};

struct MatrixProduct {
  std::vector<int64_t> src, weights, dst;  // extents of one rank, products over the last two axes
  std::vector<int64_t> src_strides, weight_strides;
  bool constant_weights = false;  // to be reordered once
  std::vector<Post> posts;
};

class Library {
 public:
  explicit Library(int threads);
  ~Library();
  // Pointers may be null where they are given before each run by bind().
  void add(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst);
  void add(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst);
  void add_nothing();  // in the place of a primitive that cannot be made; running it is an error
  void finish();                                                                 // after the last
  void bind(size_t primitive, const void* src, const void* weights, void* dst);  // null: as it is
  void bind_post(size_t primitive, int post, const void* operand);
  void run(size_t primitive);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gopt_runtime
