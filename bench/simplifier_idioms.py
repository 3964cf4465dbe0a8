"""Small models of one idiom each, as exporters write them; what a simplifier should make fewer nodes of."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

# name: inputs, weights (shape, or the values), outputs, nodes in ONNX's textual syntax
TEXTS = {
    "transpose-twice": ("float[2,3,4] x", {}, "float[2,3,4] y", "t = Transpose<perm=[0,2,1]>(x) y = Transpose<perm=[0,2,1]>(t)"),
    "transpose-thrice": ("float[2,3,4] x", {}, "float[2,3,4] y", "a = Transpose<perm=[2,0,1]>(x) b = Transpose<perm=[1,0,2]>(a) y = Transpose<perm=[0,2,1]>(b)"),
    "transpose-relu-transpose": ("float[2,3,4] x", {}, "float[2,3,4] y", "a = Transpose<perm=[0,2,1]>(x) b = Relu(a) y = Transpose<perm=[0,2,1]>(b)"),
    "transpose-add-transpose": ("float[2,3,4] x, float[2,3,4] z", {}, "float[2,3,4] y",
                                "a = Transpose<perm=[0,2,1]>(x) c = Transpose<perm=[0,2,1]>(z) b = Add(a, c) y = Transpose<perm=[0,2,1]>(b)"),
    "transpose-identity": ("float[2,3,4] x", {}, "float[2,3,4] y", "t = Transpose<perm=[0,1,2]>(x) y = Relu(t)"),
    "transpose-into-gemm": ("float[4,8] x", {"w": (6, 8)}, "float[4,6] y", "t = Transpose<perm=[1,0]>(w) y = MatMul(x, t)"),
    "transpose-input-matmul": ("float[8,4] x", {"w": (8, 6), "b": (6,)}, "float[4,6] y", "t = Transpose<perm=[1,0]>(x) m = MatMul(t, w) y = Add(m, b)"),
    "reshape-twice": ("float[2,3,4] x", {"s": [6, 4], "r": [24]}, "float[24] y", "a = Reshape(x, s) y = Reshape(a, r)"),
    "reshape-identity": ("float[2,3,4] x", {"s": [2, 3, 4]}, "float[2,3,4] y", "a = Reshape(x, s) y = Relu(a)"),
    "reshape-flatten": ("float[2,3,4] x", {"s": [2, 12]}, "float[2,12] y", "a = Flatten<axis=1>(x) y = Reshape(a, s)"),
    "reshape-relu-reshape": ("float[2,3,4] x", {"s": [6, 4], "r": [2, 3, 4]}, "float[2,3,4] y", "a = Reshape(x, s) b = Relu(a) y = Reshape(b, r)"),
    "unsqueeze-squeeze": ("float[2,3] x", {"s": [1]}, "float[2,3] y", "a = Unsqueeze(x, s) b = Squeeze(a, s) y = Relu(b)"),
    "unsqueeze-twice": ("float[2,3] x", {"s": [0], "r": [3]}, "float[1,2,3,1] y", "a = Unsqueeze(x, s) y = Unsqueeze(a, r)"),
    "add-zero": ("float[2,3] x", {"z": [0.0]}, "float[2,3] y", "a = Add(x, z) y = Relu(a)"),
    "mul-one": ("float[2,3] x", {"z": [1.0]}, "float[2,3] y", "a = Mul(x, z) y = Relu(a)"),
    "sub-zero": ("float[2,3] x", {"z": [0.0]}, "float[2,3] y", "a = Sub(x, z) y = Relu(a)"),
    "div-one": ("float[2,3] x", {"z": [1.0]}, "float[2,3] y", "a = Div(x, z) y = Relu(a)"),
    "pow-one": ("float[2,3] x", {"z": [1.0]}, "float[2,3] y", "a = Pow(x, z) y = Relu(a)"),
    "double-neg": ("float[2,3] x", {}, "float[2,3] y", "a = Neg(x) b = Neg(a) y = Relu(b)"),
    "relu-twice": ("float[2,3] x", {}, "float[2,3] y", "a = Relu(x) y = Relu(a)"),
    "not-twice": ("bool[2,3] x", {}, "bool[2,3] y", "a = Not(x) b = Not(a) y = Identity(b)"),
    "clip-twice": ("float[2,3] x", {"l": 0.0, "h": 6.0, "m": -1.0, "n": 4.0}, "float[2,3] y", "a = Clip(x, l, h) y = Clip(a, m, n)"),
    "mul-mul-constants": ("float[2,3] x", {"a": [2.0], "b": [3.0]}, "float[2,3] y", "t = Mul(x, a) y = Mul(t, b)"),
    "add-add-constants": ("float[2,3] x", {"a": (3,), "b": (3,)}, "float[2,3] y", "t = Add(x, a) y = Add(t, b)"),
    "identity": ("float[2,3] x", {}, "float[2,3] y", "a = Identity(x) b = Relu(a) y = Identity(b)"),
    "dropout": ("float[2,3] x", {}, "float[2,3] y", "a = Relu(x) y = Dropout(a)"),
    "cast-twice": ("float[2,3] x", {}, "float[2,3] y", "a = Cast<to=11>(x) b = Cast<to=1>(a) y = Relu(b)"),
    "cast-same": ("float[2,3] x", {}, "float[2,3] y", "a = Cast<to=1>(x) y = Relu(a)"),
    "equal-nodes": ("float[2,3] x", {}, "float[2,3] y", "a = Exp(x) b = Exp(x) y = Mul(a, b)"),
    "dead-node": ("float[2,3] x", {}, "float[2,3] y", "a = Exp(x) y = Relu(x)"),
    "concat-one": ("float[2,3] x", {}, "float[2,3] y", "a = Concat<axis=0>(x) y = Relu(a)"),
    "concat-concat": ("float[2,3] x, float[2,3] z", {}, "float[6,3] y", "a = Concat<axis=0>(x, z) y = Concat<axis=0>(a, x)"),
    "split-concat": ("float[4,3] x", {}, "float[4,3] y", "a, b = Split<axis=0, num_outputs=2>(x) c = Concat<axis=0>(a, b) y = Relu(c)"),
    "slice-all": ("float[4,3] x", {"s": [0], "e": [4], "a": [0]}, "float[4,3] y", "b = Slice(x, s, e, a) y = Relu(b)"),
    "slice-slice": ("float[8,3] x", {"s": [1], "e": [7], "a": [0], "t": [2], "u": [4]}, "float[2,3] y", "b = Slice(x, s, e, a) y = Slice(b, t, u, a)"),
    "expand-same": ("float[4,3] x", {"s": [4, 3]}, "float[4,3] y", "b = Expand(x, s) y = Relu(b)"),
    "tile-ones": ("float[4,3] x", {"s": [1, 1]}, "float[4,3] y", "b = Tile(x, s) y = Relu(b)"),
    "pad-none": ("float[4,3] x", {"p": [0, 0, 0, 0]}, "float[4,3] y", "b = Pad(x, p) y = Relu(b)"),
    "pad-conv": ("float[1,3,8,8] x", {"p": [0, 0, 1, 1, 0, 0, 1, 1], "w": (4, 3, 3, 3)}, "float[1,4,8,8] y", "b = Pad(x, p) y = Conv(b, w)"),
    "pad-maxpool": ("float[1,3,8,8] x", {"p": [0, 0, 1, 1, 0, 0, 1, 1], "v": -math.inf}, "float[1,3,8,8] y", "b = Pad(x, p, v) y = MaxPool<kernel_shape=[3,3]>(b)"),
    "pad-pad": ("float[4,3] x", {"p": [1, 0, 0, 1], "q": [0, 1, 1, 0]}, "float[6,5] y", "b = Pad(x, p) y = Pad(b, q)"),
    "matmul-add": ("float[4,8] x", {"w": (8, 6), "b": (6,)}, "float[4,6] y", "m = MatMul(x, w) y = Add(m, b)"),
    "matmul-batch-add": ("float[2,4,8] x", {"w": (8, 6), "b": (6,)}, "float[2,4,6] y", "m = MatMul(x, w) y = Add(m, b)"),
    "reshape-matmul-add": ("float[2,2,8] x", {"s": [4, 8], "w": (8, 6), "b": (6,)}, "float[4,6] y", "r = Reshape(x, s) m = MatMul(r, w) y = Add(m, b)"),
    "gemm-batchnorm": ("float[4,8] x", {"w": (8, 6), "b": (6,), "g": (6,), "h": (6,), "m": (6,), "v": "positive 6"}, "float[4,6] y",
                       "a = Gemm(x, w, b) y = BatchNormalization(a, g, h, m, v)"),
    "conv-batchnorm": ("float[1,3,8,8] x", {"w": (4, 3, 3, 3), "g": (4,), "h": (4,), "m": (4,), "v": "positive 4"}, "float[1,4,6,6] y",
                       "a = Conv(x, w) y = BatchNormalization(a, g, h, m, v)"),
    "conv-batchnorm-momentum": ("float[1,3,8,8] x", {"w": (4, 3, 3, 3), "g": (4,), "h": (4,), "m": (4,), "v": "positive 4"}, "float[1,4,6,6] y",
                                "a = Conv(x, w) y = BatchNormalization<momentum=0.5>(a, g, h, m, v)"),
    "conv1d-batchnorm": ("float[1,3,8] x", {"w": (4, 3, 3), "c": (4,), "g": (4,), "h": (4,), "m": (4,), "v": "positive 4"}, "float[1,4,6] y",
                         "a = Conv(x, w, c) y = BatchNormalization(a, g, h, m, v)"),
    "conv3d-batchnorm": ("float[1,3,4,4,4] x", {"w": (4, 3, 3, 3, 3), "g": (4,), "h": (4,), "m": (4,), "v": "positive 4"}, "float[1,4,2,2,2] y",
                         "a = Conv(x, w) y = BatchNormalization(a, g, h, m, v)"),
    "convtranspose-batchnorm": ("float[1,3,4,4] x", {"w": (3, 4, 3, 3), "g": (4,), "h": (4,), "m": (4,), "v": "positive 4"}, "float[1,4,6,6] y",
                                "a = ConvTranspose(x, w) y = BatchNormalization(a, g, h, m, v)"),
    "conv-mul": ("float[1,3,8,8] x", {"w": (4, 3, 3, 3), "g": (4, 1, 1)}, "float[1,4,6,6] y", "a = Conv(x, w) y = Mul(a, g)"),
    "conv-add": ("float[1,3,8,8] x", {"w": (4, 3, 3, 3), "g": (1, 4, 1, 1)}, "float[1,4,6,6] y", "a = Conv(x, w) y = Add(a, g)"),
    "batchnorm-conv": ("float[1,3,8,8] x", {"w": (4, 3, 3, 3), "g": (3,), "h": (3,), "m": (3,), "v": "positive 3"}, "float[1,4,6,6] y",
                       "a = BatchNormalization(x, g, h, m, v) y = Conv(a, w)"),
    "layernorm": ("float[2,4,8] x", {"a": [-1], "two": 2.0, "eps": 1e-5, "g": (8,), "h": (8,)}, "float[2,4,8] y",
                  "m = ReduceMean(x, a) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, a) e = Add(v, eps) s = Sqrt(e) n = Div(d, s) k = Mul(n, g) y = Add(k, h)"),
    "gelu-erf": ("float[2,8] x", {"r": math.sqrt(2), "o": 1.0, "f": 0.5}, "float[2,8] y", "a = Div(x, r) b = Erf(a) c = Add(b, o) d = Mul(x, c) y = Mul(d, f)"),
    "gelu-tanh": ("float[2,8] x", {"k": 0.044715, "t": 3.0, "s": math.sqrt(2 / math.pi), "o": 1.0, "f": 0.5}, "float[2,8] y",
                  "a = Pow(x, t) b = Mul(a, k) c = Add(x, b) d = Mul(c, s) e = Tanh(d) g = Add(e, o) h = Mul(x, g) y = Mul(h, f)"),
    "silu": ("float[2,8] x", {}, "float[2,8] y", "a = Sigmoid(x) y = Mul(x, a)"),
    "hardswish": ("float[2,8] x", {"t": 3.0, "l": 0.0, "u": 6.0, "s": 6.0}, "float[2,8] y", "a = Add(x, t) b = Clip(a, l, u) c = Mul(x, b) y = Div(c, s)"),
    "softmax-pieces": ("float[2,8] x", {"a": [-1]}, "float[2,8] y", "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)"),
    "softmax-pieces-inner": ("float[2,3,8] x", {"a": [1]}, "float[2,3,8] y", "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)"),
    "convtranspose-grouped-batchnorm": ("float[1,4,5,5] x", {"w": (4, 3, 3, 3), "g": (6,), "h": (6,), "m": (6,), "v": "positive 6"}, "float[1,6,7,7] y",
                                        "a = ConvTranspose<group=2>(x, w) y = BatchNormalization(a, g, h, m, v)"),
    "gemm-alpha-batchnorm": ("float[8,4] x", {"w": (8, 6), "b": (6,), "g": (6,), "h": (6,), "m": (6,), "v": "positive 6"}, "float[4,6] y",
                             "a = Gemm<alpha=0.5, beta=2.0, transA=1>(x, w, b) y = BatchNormalization(a, g, h, m, v)"),
    "gemm-alpha-add": ("float[4,8] x", {"w": (8, 6), "b": (6,)}, "float[4,6] y", "a = Gemm<alpha=0.5>(x, w) y = Add(a, b)"),
    "transpose-into-gemm-alpha": ("float[8,4] x", {"w": (8, 6), "b": (6,)}, "float[4,6] y", "t = Transpose<perm=[1,0]>(x) y = Gemm<alpha=0.5, beta=2.0>(t, w, b)"),
    "transpose-out-of-gemm": ("float[4,8] x", {"w": (8, 6), "b": (6,)}, "float[4,6] y", "t = Transpose<perm=[1,0]>(x) y = Gemm<transA=1, alpha=0.5>(t, w, b)"),
    "and-true": ("bool[2,3] x", {"t": "true 3"}, "bool[2,3] y", "a = And(x, t) y = Not(a)"),
    "or-false": ("bool[2,3] x", {"f": "false 3"}, "bool[2,3] y", "a = Or(x, f) y = Not(a)"),
    "xor-false": ("bool[2,3] x", {"f": "false 3"}, "bool[2,3] y", "a = Xor(x, f) y = Not(a)"),
    "clip-of-all-integers": ("int32[2,3] x", {"l": np.int32(-2**31), "h": np.int32(2**31 - 1)}, "int32[2,3] y", "a = Clip(x, l, h) y = Neg(a)"),
    "max-of-lowest": ("float[2,3] x", {"l": -math.inf}, "float[2,3] y", "a = Max(x, l) y = Relu(a)"),
    "concat-concat-int64": ("int64[2,3] x, int64[2,3] z", {}, "int64[6,3] y", "a = Concat<axis=0>(x, z) y = Concat<axis=0>(a, x)"),
    "transpose-thrice-int64": ("int64[2,3,4] x", {}, "int64[2,3,4] y", "a = Transpose<perm=[2,0,1]>(x) b = Transpose<perm=[1,0,2]>(a) y = Transpose<perm=[0,2,1]>(b)"),
    "reshape-twice-bool": ("bool[2,3,4] x", {"s": [6, 4], "r": [24]}, "bool[24] y", "a = Reshape(x, s) y = Reshape(a, r)"),
    "scatter-of-constants": ("float[4,3] x", {"d": (4, 3), "i": [[1], [3]], "u": (2, 3)}, "float[4,3] y", "s = ScatterND(d, i, u) y = Add(x, s)"),
    "reduce-squeeze": ("float[2,3,8] x", {"a": [-1]}, "float[2,3] y", "m = ReduceMean(x, a) y = Squeeze(m, a)"),
    "shape-gather-concat-reshape": ("float[2,3,4,5] x", {"z": 0, "a": [0], "m": [-1]}, "float[2,60] y",
                                    "s = Shape(x) g = Gather(s, z) u = Unsqueeze(g, a) c = Concat<axis=0>(u, m) y = Reshape(x, c)"),
    "shape-of-symbol": ("float[N,3,4] x", {"z": 0, "a": [0], "m": [-1]}, "float[N,12] y",
                        "s = Shape(x) g = Gather(s, z) u = Unsqueeze(g, a) c = Concat<axis=0>(u, m) y = Reshape(x, c)"),
    "constant-subgraph": ("float[2,4] x", {"w": (4, 4), "v": (4, 4)}, "float[2,4] y", "a = Add(w, v) b = Transpose<perm=[1,0]>(a) y = MatMul(x, b)"),
    "constant-where": ("float[2,4] x", {"c": "true 4", "z": (4,)}, "float[2,4] y", "y = Where(c, x, z)"),
    "range-of-constants": ("float[4] x", {"s": 0, "l": 4, "d": 1}, "float[4] y", "r = Range(s, l, d) f = Cast<to=1>(r) y = Add(x, f)"),
    "nonzero-of-constant": ("float[4] x", {"c": [1, 0, 1, 1]}, "float[3] y", "n = NonZero(c) k = Squeeze(n) y = Gather(x, k)"),
    "qkv": ("float[2,4,8] x", {"q": (8, 8), "k": (8, 8), "v": (8, 8)}, "float[2,4,8] a, float[2,4,8] b, float[2,4,8] c", "a = MatMul(x, q) b = MatMul(x, k) c = MatMul(x, v)"),
    "global-pool-flatten": ("float[2,3,4,4] x", {"s": [2, 3]}, "float[2,3] y", "p = GlobalAveragePool(x) f = Flatten<axis=1>(p) y = Reshape(f, s)"),
    "reciprocal-mul": ("float[2,3] x, float[2,3] z", {}, "float[2,3] y", "r = Reciprocal(z) y = Mul(x, r)"),
    "sqrt-square": ("float[2,3] x", {}, "float[2,3] y", "s = Mul(x, x) t = Sqrt(s) y = Relu(t)"),
    "max-relu": ("float[2,3] x", {"z": [0.0]}, "float[2,3] y", "m = Max(x, z) y = Relu(m)"),
}


def weight(name, spec, rng):
    if isinstance(spec, tuple):
        return numpy_helper.from_array(rng.normal(size=spec).astype(np.float32), name)
    if isinstance(spec, str):
        kind, count = spec.split()
        return numpy_helper.from_array(rng.uniform(0.5, 2, int(count)).astype(np.float32) if kind == "positive" else np.full(int(count), kind == "true"), name)
    if isinstance(spec, np.generic):
        return numpy_helper.from_array(np.array(spec), name)
    value = np.array(spec)
    return numpy_helper.from_array(value.astype(np.float32 if value.dtype.kind == "f" else np.int64), name)


def constant_if():
    """An If whose condition is a constant."""
    branches = [helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, [2, 3])]) for op in ("Relu", "Neg")]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = helper.make_graph([node], "g", value[:1], value[1:], [numpy_helper.from_array(np.array(True), "c")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def idioms():
    """Models by name."""
    rng, models = np.random.default_rng(0), {}
    for name, (inputs, weights, outputs, nodes) in TEXTS.items():
        graph = parser.parse_graph(f"g ({inputs}) => ({outputs}) {{ {nodes} }}")
        graph.initializer.extend(weight(n, spec, rng) for n, spec in weights.items())
        models[name] = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        onnx.checker.check_model(models[name])
    models["constant-if"] = constant_if()
    return models
