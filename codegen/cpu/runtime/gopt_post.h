// What library kernels do to their results before they store them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gopt_runtime {

enum class Element { Float, BFloat16 };

enum class PostKind { Sum, Add, Relu, Clip, Logistic, Tanh, Elu, GeluErf, GeluTanh, Swish, HardSwish, Linear };
// Sum: the destination already holds what is added. Add: a tensor of the destination's shape (operand), or of `dims`.
struct Post {
  PostKind kind;
  float alpha = 0, beta = 0;
  const void* operand = nullptr;
  std::vector<int64_t> dims = {};
  Element element = Element::Float;  // of an operand with dims; others are as the destination
};

// Posts that a store does by itself: an addition, then Relu, or either, or nothing.
struct SimplePosts {
  int addend = -1;                                        // which post adds; -1: none
  float least = -std::numeric_limits<float>::infinity();  // of a result that is cut off from below
  size_t count = 0;                                       // of posts, from the first on
  bool are_all = false;
};
// `is_whole(post)`: whether what is added lies as the result does.
template <class IsWhole>
SimplePosts simple_posts(const std::vector<Post>& posts, const IsWhole& is_whole) {
  SimplePosts found;
  size_t& next = found.count;
  if (next < posts.size() && (posts[next].kind == PostKind::Sum || is_whole(posts[next])))
    found.addend = static_cast<int>(next++);
  if (next < posts.size() && posts[next].kind == PostKind::Relu && posts[next].alpha == 0.0f) found.least = 0, next++;
  found.are_all = next == posts.size();
  return found;
}

}  // namespace gopt_runtime
