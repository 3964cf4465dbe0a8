"""Layers of families that draw_layers.py does not draw unless they are named (--family): data moved and reduced along any axis, odd extents, long rows, single functions."""
import numpy as np
from onnx import TensorProto as T


def float_constant(g, values):
    return g.constant(values, np.float32)


def rows(g):
    """Softmax, normalizations and reductions of long and odd rows."""
    shape = [g.pick(1, 3, 17, 64), g.pick(1, 5, 100), g.pick(31, 257, 1001, 5000, 32000)]
    kind, x = g.pick("softmax", "logsoftmax", "layer", "argmax", "logsumexp", "var"), g.input(shape)
    if kind == "layer":
        y = g.op("LayerNormalization", x, g.weight(shape[-1:], 0.1, True), g.weight(shape[-1:], 0.1), axis=-1)
    elif kind == "argmax":
        y = g.op("Cast", g.op("ArgMax", x, axis=-1, keepdims=0), to=T.FLOAT)
    elif kind == "logsumexp":
        y = g.op("ReduceLogSumExp", x, axes=[-1], keepdims=0)
    elif kind == "var":
        d = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1], keepdims=1))
        y = g.op("ReduceMean", g.op("Mul", d, d), axes=[-1], keepdims=0)
    else:
        y = g.op("Softmax" if kind == "softmax" else "LogSoftmax", x, axis=-1)
    return y, f"{kind} over {shape}"


def middle(g):
    """Reductions and softmax over axes that are not the last."""
    shape = [g.pick(1, 4), g.pick(7, 32, 130), g.pick(9, 64, 100), g.pick(5, 33, 64, 257)]
    kind, axes, x = g.pick("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "Softmax"), g.pick([1], [2], [1, 2], [0, 2], [1, 3]), g.input(shape)
    if kind == "Softmax":
        axes = axes[:1]
        return g.op(kind, x, axis=axes[0]), f"{kind} over axis {axes[0]} of {shape}"
    more = {"axes": axes, "keepdims": g.pick(0, 1)}
    y = g.op(kind, x, g.constant(axes), keepdims=more["keepdims"]) if kind == "ReduceSum" else g.op(kind, x, **more)
    return y, f"{kind} over axes {axes} of {shape}"


def moved(g):
    """Transposes, concatenations, slices, tiles and pads along inner axes."""
    kind, shape = g.pick("transpose", "concat", "split", "tile", "expand", "pad", "slice"), [g.pick(1, 3), g.pick(12, 31, 64), g.pick(17, 50, 128), g.pick(1, 3, 30, 64, 129)]
    x = g.input(shape)
    if kind == "transpose":
        perm = g.pick([0, 2, 1, 3], [0, 3, 1, 2], [0, 1, 3, 2], [3, 2, 1, 0], [2, 0, 3, 1])
        return g.op("Transpose", x, perm=perm), f"{kind} {perm} of {shape}"
    if kind == "concat":
        axis = g.pick(2, 3)
        parts = [g.input([e if d != axis else g.pick(1, 7, 16) for d, e in enumerate(shape)]) for _ in range(g.pick(1, 2, 5))]
        return g.op("Concat", x, *parts, axis=axis), f"{kind} of {1 + len(parts)} along {axis} of {shape}"
    if kind == "split":
        first = max(1, shape[2] // 3)
        a, b = g.op("Split", x, g.constant([first, shape[2] - first]), outputs=2, axis=2)
        return g.op("Mul", g.op("ReduceMax", b, axes=[2], keepdims=1), g.op("Sigmoid", a)), f"{kind} of axis 2 at {first} of {shape}"
    if kind == "tile":
        return g.op("Tile", x, g.constant([1, 1, 2, 3])), f"{kind} of {shape}"
    if kind == "expand":
        return g.op("Add", g.op("Expand", g.input([shape[1], 1, shape[3]]), g.constant(shape)), x), f"{kind} of {shape}"
    if kind == "pad":
        return g.op("Pad", x, g.constant([0, 1, 0, 2, 0, 0, 3, 1]), mode=g.pick("constant", "edge")), f"{kind} of {shape}"
    return g.op("Slice", x, g.constant([1, shape[2] - 1]), g.constant([shape[1], -shape[2] - 1]), g.constant([1, 2]), g.constant([2, -1])), f"{kind} of {shape}"


def looked_up(g):
    """Gathers, scans, sampling of images: what indexes or positions decide."""
    kind = g.pick("gather", "gather-inner", "elements", "cumsum", "resize", "upsample", "onehot")
    if kind in ("gather", "gather-inner"):
        d, n = g.pick(33, 100, 512), g.pick(7, 64, 500)
        axis = 0 if kind == "gather" else 1
        table = g.input([1000, d] if axis == 0 else [d, 1000])
        return g.op("Gather", table, g.input([n], T.INT64), axis=axis), f"{kind} {n} of width {d}"
    if kind == "elements":
        n, m = g.pick(10, 100), g.pick(50, 400)
        return g.op("GatherElements", g.input([1000, m]), g.input([n, m], T.INT64), axis=0), f"{kind} {n} x {m}"
    if kind == "onehot":
        n = g.pick(16, 200)
        return g.op("OneHot", g.input([n], T.INT64), g.constant(1000), float_constant(g, [0, 1]), axis=-1), f"{kind} of {n}"
    if kind == "cumsum":
        shape, axis = [g.pick(1, 8), g.pick(50, 300), g.pick(16, 100)], g.pick(1, 2)
        return g.op("CumSum", g.input(shape), g.constant(axis)), f"{kind} along {axis} of {shape}"
    c, s = g.pick(3, 16, 40), g.pick(14, 31, 64)
    mode, scale = g.pick("nearest", "linear", "cubic"), g.pick(2.0, 1.5, 0.5, 3.0) if kind == "resize" else 2.0
    x = g.input([1, c, s, s])
    y = g.op("Resize", x, "", g.constant([1, 1, scale, scale], np.float32), mode=mode, coordinate_transformation_mode=g.pick("half_pixel", "asymmetric", "align_corners"))
    return y, f"{kind} {mode} {c}x{s}x{s} by {scale}"


def corners(g):
    """Convolutions at the edges of what is usual: patches, images of a few positions, one channel, one position of many."""
    kind = g.pick("patch", "patch", "small", "small", "to-one", "whole", "sequence")
    c, o, n = g.pick(3, 16, 96, 192, 512), g.pick(64, 192, 384, 768), g.pick(1, 1, 4)
    if kind == "patch":
        k = g.pick(2, 4, 7, 14, 16, 32)
        size, k = (g.pick(14, 28, 56), min(k, 4)) if c > 3 else (k * g.pick(7, 14, 16), k)
        stride, pad = k, 0
    elif kind == "small":
        size, k, stride, pad = g.pick(1, 2, 3, 4, 5), 3, g.pick(1, 1, 2), 1
    elif kind == "whole":
        size, k, stride, pad = g.pick(4, 6, 7), 0, 1, 0
        k = size
    elif kind == "sequence":
        k, length = g.pick(3, 4, 10), g.pick(200, 1500, 4000)
        w, x = g.weight([o, c, k]), g.input([n, c, length])
        g.flop += 2.0 * n * o * c * k * length
        return g.activation(g.op("Conv", x, w, kernel_shape=[k], strides=[g.pick(1, 2, k)])), f"{kind} {n}x{c}x{length} -> {o}, kernel {k}"
    else:
        k, size, o = g.pick(1, 3, 7), g.pick(28, 64, 112), g.pick(1, 1, 2)
        stride, pad = 1, k // 2
        if g.chance(0.5):
            k = g.pick(2, 4)
            x = g.input([n, c, size, size])
            y = g.op("ConvTranspose", x, g.weight([c, o, k, k]), kernel_shape=[k, k], strides=[2, 2], pads=[(k - 2) // 2] * 4)
            g.flop += 2.0 * n * c * o * (size * k) ** 2
            return g.op("Sigmoid", y), f"{kind} transposed {n}x{c}x{size}x{size} -> {o}, kernel {k}"
    x = g.input([n, c, size, size])
    y = g.op("Conv", x, g.weight([o, c, k, k]), g.weight([o], 0.1), kernel_shape=[k, k], strides=[stride, stride], pads=[pad] * 4)
    g.flop += 2.0 * n * o * c * (k * size / stride) ** 2
    return g.activation(y), f"{kind} {n}x{c}x{size}x{size} -> {o}, kernel {k}, stride {stride}"


def functions(g):
    """One function of many elements, of numbers for which it is defined."""
    kind, shape = g.pick("Log", "Sin", "Cos", "Tan", "Atan", "Asin", "Acos", "Softplus", "Mish", "Pow", "Sqrt", "Exp", "Erf", "Tanh", "Elu", "Softsign", "LeakyRelu"), g.pick([300000], [1, 64, 56, 56], [4, 197, 384])
    x = g.input(shape)
    if kind in ("Asin", "Acos"):
        x = g.op("Tanh", x)
    if kind in ("Log", "Pow", "Sqrt"):
        x = g.op("Abs", x)
    if kind == "Pow":
        return g.op(kind, x, g.input(g.pick([1], shape, shape[-1:]))), f"{kind} of {shape}"
    if kind == "Mish":
        return g.op("Mul", x, g.op("Tanh", g.op("Softplus", x))), f"{kind} of {shape}"
    return g.op(kind, x), f"{kind} of {shape}"


def across(g):
    """Across the channels of one image or sequence, which no axis stands before; running sums; what moves megabytes."""
    shape = g.pick([1, 21, 256, 256], [1, 96, 56, 56], [1, 400, 3072], [1, 512, 196], [1, 1000, 16], [19, 40000])
    kind, axis, x = g.pick("Softmax", "LogSoftmax", "l2", "layer", "CumSum", "transpose", "ArgMax"), 0 if len(shape) == 2 else 1, g.input(shape)
    if kind == "l2":
        return g.op("Div", x, g.op("ReduceL2", x, axes=[axis], keepdims=1)), f"{kind} over axis {axis} of {shape}"
    if kind == "layer":
        d = g.op("Sub", x, g.op("ReduceMean", x, axes=[axis], keepdims=1))
        variance = g.op("ReduceMean", g.op("Mul", d, d), axes=[axis], keepdims=1)
        return g.op("Div", d, g.op("Sqrt", g.op("Add", variance, float_constant(g, [1e-5])))), f"{kind} over axis {axis} of {shape}"
    if kind == "CumSum":
        return g.op(kind, x, g.constant(axis)), f"{kind} along axis {axis} of {shape}"
    if kind == "transpose":
        axes = list(range(len(shape)))
        return g.op("Transpose", x, perm=[*axes[:axis], *axes[axis + 1:], axis]), f"axis {axis} of {shape} last"
    if kind == "ArgMax":
        return g.op("Cast", g.op(kind, x, axis=axis, keepdims=0), to=T.FLOAT), f"{kind} over axis {axis} of {shape}"
    return g.op(kind, x, axis=axis), f"{kind} over axis {axis} of {shape}"


def ordered(g):
    """What is largest, in order, and running sums, along an axis of any length."""
    shape = [g.pick(1, 4, 32), g.pick(20, 91, 300), g.pick(33, 257, 1000)] if g.pick(True, False) else [g.pick(1, 3), g.pick(1000, 8400, 30000, 76725)]
    axis, kind = g.pick(*range(1, len(shape))), g.pick("TopK", "TopK", "CumSum")
    x = g.input(shape)
    if kind == "CumSum":
        return g.op(kind, x, g.constant(axis), reverse=g.pick(0, 1)), f"{kind} along axis {axis} of {shape}"
    k = g.pick(1, min(10, shape[axis]), min(300, shape[axis]), shape[axis] // 3)
    values, places = g.op(kind, x, g.constant([k]), outputs=2, axis=axis, largest=g.pick(0, 1))
    return g.op("Add", values, g.op("Cast", places, to=T.FLOAT)), f"{k} along axis {axis} of {shape}"


FAMILIES = {"ordered": (ordered, 1), "functions": (functions, 1), "across": (across, 1), "corners": (corners, 1), "rows": (rows, 1), "middle": (middle, 1), "moved": (moved, 1), "looked-up": (looked_up, 1)}
