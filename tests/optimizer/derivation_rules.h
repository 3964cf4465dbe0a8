// Small rules that tests of derivations share.
#pragma once

#include "gopt/derivation.h"
#include "rules.h"

namespace gopt {

inline constexpr const char* kAssociate = R"(rule associate
  var x f32[...,m,k]
  var y f32[k,n]
  var z f32[n,p]
  left
    a = MatMul(x, y)
    b = MatMul(a, z)
    return b
  right
    a = MatMul(y, z)
    b = MatMul(x, a)
    return b
end
)";

inline constexpr const char* kDistribute = R"(rule distribute
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Add(x, y)
    b = Mul(a, z)
    return b
  right
    a = Mul(x, z)
    b = Mul(y, z)
    c = Add(a, b)
    return c
end
)";

inline constexpr const char* kSplitOfConcat = R"(rule split-of-concat
  var x f32[n,c]
  var y f32[n,d]
  left
    a = Concat(x, y) {axis=1}
    b, e = Split(a) {axis=1, split=[c,d]}
    return b, e
  right
    return x, y
end
)";

inline constexpr const char* kMerge = R"(rule merge
  var x f32[m,k]
  var u f32[k,n] weight
  var v f32[k,p] weight
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    return a, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=1, split=[n,p]}
    return d, e
end
)";

inline constexpr const char* kReluTwice = R"(rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    a = Relu(x)
    return a
end
)";

inline constexpr const char* kSums = R"(rule sums
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Add(x, y)
    b = Add(a, z)
    return b
  right
    a = Add(y, z)
    b = Add(x, a)
    return b
end
)";

}  // namespace gopt
