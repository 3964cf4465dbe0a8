#!/usr/bin/env python3
"""Operators of com.microsoft that ONNX Runtime's optimizer writes: random cases in gopt's interpreter against ONNX Runtime's own kernels.

usage: check_fused.py GOPT      exit status 1 where one differs or is left as it is, 77 where onnxruntime is not installed
"""
import subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime as ort
except ImportError:
    sys.exit(77)
from onnx import helper as h, numpy_helper as nh

GOPT = sys.argv[1]
MICROSOFT = "com.microsoft"
ort.set_default_logger_severity(4)
rng = np.random.default_rng(5)
counts = {"right": 0, "left": 0, "wrong": 0}


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def integers(high, *shape):
    return rng.integers(0, high, shape).astype(np.int32)


def declared(name, array):
    return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def model_of(op, inputs, attributes, outputs, constants, domain, opset):
    """Inputs in their order, None for one that is left out; outputs by name, "" for one that is not asked for."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: x for name, x in zip(names, inputs) if name}
    node = h.make_node(op, names, outputs, domain=domain, **attributes)
    held = [name for i, name in enumerate(names) if i in constants and name]
    graph = h.make_graph([node], "g", [declared(name, x) for name, x in given.items() if name not in held],
                         [h.make_empty_tensor_value_info(name) for name in outputs if name], [nh.from_array(given[name], name) for name in held])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid(MICROSOFT, 1)], ir_version=8 if opset < 19 else 10)
    return model, {name: x for name, x in given.items() if name not in held}


def session(model):
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def interpreted(place, model, given):
    """How gopt's interpreter ended; what it computed is in o.npz there."""
    onnx.save(model, f"{place}/m.onnx")
    np.savez(f"{place}/i.npz", **given)
    return subprocess.run([GOPT, "run", f"{place}/m.onnx", "--engine", "interpreter", "-o", f"{place}/o.npz", "--inputs", f"{place}/i.npz"], capture_output=True, text=True)


def case(op, inputs, attributes=None, outputs=("y",), constants=(), domain=MICROSOFT, opset=17, exact=1e-5):
    model, given = model_of(op, inputs, attributes or {}, list(outputs), constants, domain, opset)
    wanted = [name for name in outputs if name]
    label = f"{op} {[None if x is None else x.shape for x in inputs]} {attributes}"
    expected = session(model).run(wanted, given)
    with tempfile.TemporaryDirectory() as place:
        done = interpreted(place, model, given)
        if done.returncode:
            counts["left"] += 1
            print(label, "is left:", done.stderr.strip()[-160:])
            return
        with np.load(f"{place}/o.npz") as results:
            got = [results[name] for name in wanted]
    same = all(a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, 30 * exact, exact) for a, b in zip(expected, got))
    counts["right" if same else "wrong"] += 1
    if not same:
        print(label, "differs:", [(a.shape, b.shape, a.dtype, b.dtype, float(np.abs(a - b).max()) if a.shape == b.shape else None) for a, b in zip(expected, got)])


for opset in (13, 17, 20):
    case("Gelu", [3 * floats(3, 7)], opset=opset)
    case("BiasGelu", [floats(2, 3, 8), floats(8)], opset=opset)
    case("FastGelu", [3 * floats(2, 3, 8), floats(8)], opset=opset)
    case("FastGelu", [3 * floats(2, 3, 8)], opset=opset)
    case("QuickGelu", [3 * floats(2, 5)], opset=opset)
case("QuickGelu", [3 * floats(2, 5)], {"alpha": 0.5})

# products
for turns in range(4):
    a, b = floats(2, 5, 4) if turns & 1 else floats(2, 4, 5), floats(2, 3, 5) if turns & 2 else floats(2, 5, 3)
    case("FusedMatMul", [a, b], {"transA": turns & 1, "transB": turns >> 1, "alpha": 0.25})
case("TransposeMatMul", [floats(5, 4), floats(5, 3)], {"transA": 1})
case("FusedMatMul", [floats(4, 2, 3, 5), floats(2, 3, 5, 6)], {"transBatchA": 1, "alpha": 2.0})
case("FusedMatMul", [floats(2, 3, 4, 5), floats(5, 2, 3, 6)], {"transBatchB": 1})
case("FusedMatMul", [floats(5, 2, 3, 4), floats(5, 2, 3, 6)], {"transA": 1, "transBatchA": 1, "transBatchB": 1})
case("FusedMatMul", [floats(5), floats(2, 5, 3)], {"alpha": 3.0})
for activation, more in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})):
    case("FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": activation, **more})
x, w, b = floats(1, 4, 7, 6), floats(6, 4, 3, 3), floats(6)
for activation, parameters in (("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4])):
    more = {"activation_params": parameters} if parameters else {}
    case("FusedConv", [x, w, b], {"activation": activation, "pads": [1, 1, 1, 1], "strides": [2, 1], **more})
case("FusedConv", [x, w, b, floats(1, 6, 7, 6)], {"activation": "Relu", "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]})
case("FusedConv", [x, floats(4, 1, 2, 2), None], {"group": 4, "dilations": [2, 1], "activation": "Relu"})

# weights of few bits, in blocks along the depth
for bits, depth, block in ((4, 64, 32), (4, 80, 16), (8, 64, 32), (4, 96, 32)):
    blocks = -(-depth // block)
    packed, scales = rng.integers(0, 256, (5, blocks, block * bits // 8)).astype(np.uint8), floats(5, blocks) / 8
    zeros = rng.integers(0, 256, (5, -(-blocks * bits // 8))).astype(np.uint8)
    sizes = {"K": depth, "N": 5, "bits": bits, "block_size": block}
    case("MatMulNBits", [floats(2, 3, depth), packed, scales], sizes, constants=(1, 2))
    case("MatMulNBits", [floats(3, depth), packed, scales, zeros], sizes, constants=(1, 2, 3))
case("MatMulNBits", [floats(3, 64), packed[:, :2], scales[:, :2], None, None, floats(5)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, constants=(1, 2))

# products of integers, in floats
bytes_of, signed = lambda *s: rng.integers(0, 256, s).astype(np.uint8), lambda *s: rng.integers(-128, 128, s).astype(np.int8)
scales, one = (0.02 + 0.01 * rng.random(6)).astype(np.float32), np.float32(0.03)
for b, zero in ((bytes_of(5, 6), bytes_of(1)[0]), (signed(5, 6), signed(6)), (signed(5, 6), None)):
    zeros = None if zero is None else np.asarray(zero)
    for scale in (np.asarray(one), scales):
        if scale.ndim == 0 and zeros is not None and zeros.ndim == 1:
            continue
        if scale.ndim == 1 and zeros is not None and zeros.ndim == 0:
            zeros = np.full(6, zeros)
        case("MatMulIntegerToFloat", [bytes_of(2, 3, 5), b, np.asarray(one), scale, np.asarray(bytes_of(1)[0]), zeros, floats(6)], constants=(1, 3, 5))
        case("DynamicQuantizeMatMul", [3 * floats(2, 3, 5), b, scale, zeros, floats(6)], constants=(1, 2, 3))
case("DynamicQuantizeMatMul", [1 + np.abs(floats(4, 5)), signed(5, 6), np.asarray(one)], constants=(1, 2))
case("DynamicQuantizeMatMul", [np.zeros((4, 5), np.float32), signed(5, 6), np.asarray(one)], constants=(1, 2))

# normalization
for opset in (12, 17):
    case("SkipLayerNormalization", [floats(2, 5, 8), floats(2, 5, 8), floats(8), floats(8)], {"epsilon": 1e-5}, opset=opset)
    case("SkipLayerNormalization", [floats(2, 5, 8), floats(2, 5, 8), floats(8), floats(8), floats(8)], outputs=("y", "", "", "sum"), opset=opset)
    case("SkipSimplifiedLayerNormalization", [floats(2, 5, 8), floats(2, 5, 8), floats(8)], {"epsilon": 1e-6}, outputs=("y", "", "", "sum"), opset=opset)
    case("SkipSimplifiedLayerNormalization", [floats(2, 5, 8), floats(2, 5, 8), floats(8), floats(8)], opset=opset)
    case("SimplifiedLayerNormalization", [floats(2, 5, 8), floats(8)], {"axis": -1, "epsilon": 1e-6}, domain="", opset=opset)
    case("LayerNormalization", [floats(2, 5, 8), floats(8), floats(8)], {"axis": -1, "epsilon": 1e-3}, domain="", opset=opset)
    case("SkipLayerNormalization", [floats(2, 5, 8), floats(1, 5, 8), floats(8)], opset=opset)
    case("SkipLayerNormalization", [floats(2, 5, 8), floats(5, 8), floats(8), floats(8)], opset=opset)
words, table, places, kinds = integers(20, 2, 5), floats(20, 8), floats(7, 8), floats(3, 8)
scale, shift, counted = floats(8), floats(8), (np.arange(5)[None] < np.array([[3], [5]])).astype(np.int32)
case("EmbedLayerNormalization", [words, integers(3, 2, 5), table, places, kinds, scale, shift], {"epsilon": 1e-5}, outputs=("y", ""))
case("EmbedLayerNormalization", [words, None, table, places, None, scale, shift], outputs=("y", "", "sum"))
case("EmbedLayerNormalization", [words, integers(3, 2, 5), table, places, kinds, scale, shift, counted], outputs=("y", "counts"))
case("EmbedLayerNormalization", [words, integers(3, 2, 5), table, places, kinds, scale, shift, None, integers(7, 2, 5)], outputs=("y", ""))

# attention: three heads of four
def attention(mask=None, past=None, bias=None, outputs=("y",), weights=None, **attributes):
    case("Attention", [floats(2, 5, 12), floats(12, 36) if weights is None else weights, floats(36 if weights is None else weights.shape[1]), mask, past, bias],
         {"num_heads": 3, **attributes}, outputs)


attention()
attention(unidirectional=1)
attention(scale=0.3)
attention(counted)
attention(counted, mask_filter_value=-5.0)
attention(counted, unidirectional=1)
attention(np.array([3, 5], np.int32))
attention(integers(2, 2, 5, 5))
attention(np.zeros((2, 5), np.int32))  # all masked alike: none is
attention(bias=floats(1, 3, 5, 5))
attention(counted, bias=floats(2, 1, 5, 5), unidirectional=1)
attention(past=floats(2, 2, 3, 6, 4), outputs=("y", "present"))
attention(past=floats(2, 2, 3, 6, 4), outputs=("y", "present"), unidirectional=1)
attention(integers(2, 2, 11), past=floats(2, 2, 3, 6, 4), outputs=("y", "present"), unidirectional=1)
attention(outputs=("y", "present"))
attention(weights=floats(12, 12 + 12 + 6), qkv_hidden_sizes=[12, 12, 6])

q, k, v = floats(2, 4, 12), floats(2, 6, 12), floats(2, 6, 12)


def heads(inputs, outputs=("y",), **attributes):
    case("MultiHeadAttention", inputs, {"num_heads": 3, **attributes}, outputs)


heads([q, k, v])
heads([q, k, floats(2, 6, 15), floats(39)])
heads([q, k, v, floats(36)], scale=0.7)
heads([q, k, v, None, integers(2, 2, 6)])
heads([q, k, v, None, integers(2, 2, 4, 6)], mask_filter_value=-3.0)
heads([q, k, v, None, np.array([2, 6], np.int32)])
heads([q, k, v, None, None, floats(1, 3, 4, 6)])
heads([q, k, v, None, integers(2, 2, 6), floats(2, 3, 4, 6)])
heads([q, floats(2, 3, 6, 4), floats(2, 3, 6, 4)])
heads([q, floats(2, 4, 12), floats(2, 4, 12)], unidirectional=1)
heads([q, floats(2, 4, 12), floats(2, 4, 12), floats(36), None, None, floats(2, 3, 5, 4), floats(2, 3, 5, 4)], ("y", "key", "value"))
heads([q, floats(2, 4, 12), floats(2, 4, 12), None, None, None, floats(2, 3, 5, 4), floats(2, 3, 5, 4)], ("y", "key", "value"), unidirectional=1)
heads([floats(2, 1, 12), floats(2, 1, 12), floats(2, 1, 12), None, None, None, floats(2, 3, 5, 4), floats(2, 3, 5, 4)], ("y", "key", "value"), unidirectional=1)

# rotary embeddings
own, shared = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], np.int64), np.array([2], np.int64)
for interleaved in (0, 1):
    for positions in (own, shared):
        case("RotaryEmbedding", [floats(2, 3, 5, 8), positions, floats(10, 4), floats(10, 4)], {"interleaved": interleaved})
        case("RotaryEmbedding", [floats(2, 5, 24), positions, floats(10, 4), floats(10, 4)], {"interleaved": interleaved})
        case("RotaryEmbedding", [floats(2, 5, 24), positions, floats(10, 2), floats(10, 2)], {"interleaved": interleaved, "rotary_embedding_dim": 4, "num_heads": 3})

# more keys than queries and past: ONNX Runtime shows the last query all of them, and the others not
def is_left(op, inputs, attributes):
    model, given = model_of(op, inputs, attributes, ["y"], (), MICROSOFT, 17)
    with tempfile.TemporaryDirectory() as place:
        done = interpreted(place, model, given)
    counts["right" if done.returncode == 1 and "has no definition" in done.stderr else "wrong"] += 1
    if done.returncode != 1:
        print(op, attributes, "is not left as it is")


is_left("MultiHeadAttention", [floats(2, 4, 12), floats(2, 6, 12), floats(2, 6, 12)], {"num_heads": 3, "unidirectional": 1})
is_left("RotaryEmbedding", [floats(2, 5, 24), shared, floats(10, 4), floats(10, 4)], {"num_heads": 25})
is_left("RotaryEmbedding", [floats(2, 5, 24), shared, floats(10, 0), floats(10, 0)], {})
case("SimplifiedLayerNormalization", [floats(2, 5, 8).astype(np.float16), floats(8)], {"axis": -1}, domain="", exact=1e-3)
case("SimplifiedLayerNormalization", [floats(2, 5, 8), floats(8).astype(np.float16)], {"axis": -1}, domain="", exact=1e-3)


def optimized(model):
    """The model that gopt writes of it."""
    with tempfile.TemporaryDirectory() as place:
        onnx.save(model, f"{place}/m.onnx")
        done = subprocess.run([GOPT, "optimize", f"{place}/m.onnx", "-o", f"{place}/o.onnx", "--cost", "analytic"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return onnx.load(f"{place}/o.onnx")


def followed(model, *nodes):
    """What comes after y, which is the last one's result."""
    model.graph.node.extend(nodes)
    model.graph.output[0].name = nodes[-1].output[0]
    return model


# Written as ONNX they stay, and what surrounds them is rewritten, since their types are known.
turns = [h.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1]), h.make_node("Transpose", ["t"], ["u"], perm=[0, 2, 1]), h.make_node("Relu", ["u"], ["z"])]
packed, scales = rng.integers(0, 256, (5, 2, 16)).astype(np.uint8), floats(5, 2)
for op, inputs, attributes, constants, domain in (
    ("SkipLayerNormalization", [floats(2, 5, 8), floats(2, 5, 8), floats(8), floats(8)], {}, (2, 3), MICROSOFT),
    ("MatMulNBits", [floats(2, 3, 64), packed, scales], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, (1, 2), MICROSOFT),
    ("SimplifiedLayerNormalization", [floats(2, 5, 8), floats(8)], {"axis": -1}, (1,), ""),
):
    model, given = model_of(op, inputs, attributes, ["y"], constants, domain, 17)
    written = optimized(followed(model, *turns))
    expected, got = session(model).run(None, given)[0], session(written).run(None, given)[0]
    right = [n.op_type for n in written.graph.node] == [op, "Relu"] and np.array_equal(expected, got)
    counts["right" if right else "wrong"] += 1
    if not right:
        print(op, "is written as", [n.op_type for n in written.graph.node])
# Of another domain nothing is known by the name alone.
for domain in ("my.ops", "ai.onnx.ml"):
    model, _ = model_of("SimplifiedLayerNormalization", [floats(2, 5, 8), floats(8)], {}, ["y"], (1,), domain, 17)
    model.opset_import.append(h.make_opsetid(domain, 1))
    written = optimized(followed(model, h.make_node("Shape", ["y"], ["z"])))
    right = [n.op_type for n in written.graph.node] == ["SimplifiedLayerNormalization", "Shape"]
    counts["right" if right else "wrong"] += 1
    if not right:
        print(domain, "is written as", [n.op_type for n in written.graph.node])

print(counts)
sys.exit(1 if counts["wrong"] or counts["left"] else 0)
