// Rules for tests of searches.
#pragma once

namespace gopt {

// relu(relu(x)) is cheaper at once; exp(neg(x)) must first become dearer: reciprocal(exp(x)), one more step away.
inline constexpr const char* kSearchRules = R"(
rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Relu(x)
    return c
end
rule uphill
  var x f32[...]
  left
    a = Tanh(x)
    return a
  right
    a = Neg(x)
    b = Tanh(a)
    c = Neg(b)
    return c
end
rule downhill
  var x f32[...]
  left
    a = Neg(x)
    b = Tanh(a)
    c = Neg(b)
    d = Exp(c)
    return d
  right
    a = Sigmoid(x)
    return a
end
)";

}  // namespace gopt
