"""Layers of draw_layers.py in PyTorch: each ONNX operator as the function that PyTorch has for it, a few compositions as one."""
import math
import numpy as np
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper


class NoPeer(ValueError):
    """PyTorch has no function for it."""


def both(pads, axes):
    """Whether an axis is padded alike on both sides: (pads for the operator, pads for F.pad before it)."""
    begin, end = pads[:axes], pads[axes:]
    if begin == end:
        return begin, None
    return [0] * axes, [p for a in reversed(range(axes)) for p in (begin[a], end[a])]


def convolution(a, x, w, b=None):
    axes = x.dim() - 2
    pads, before = both(a.get("pads", [0] * 2 * axes), axes)
    x = F.pad(x, before) if before else x
    run = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    return run(x, w, b, a.get("strides", 1), pads, a.get("dilations", 1), a.get("group", 1))


def transposed(a, x, w, b=None):
    axes = x.dim() - 2
    run = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
    return run(x, w, b, a.get("strides", 1), a.get("pads", [0] * 2 * axes)[:axes], a.get("output_padding", 0), a.get("group", 1), a.get("dilations", 1))


def pool(a, x, average):
    axes = x.dim() - 2
    pads, before = both(a.get("pads", [0] * 2 * axes), axes)
    kernel, strides, up = a["kernel_shape"], a.get("strides", [1] * axes), bool(a.get("ceil_mode", 0))
    if average:
        return F.avg_pool2d(x, kernel, strides, pads, up, bool(a.get("count_include_pad", 0)))
    x = F.pad(x, before, value=-math.inf) if before else x
    return F.max_pool2d(x, kernel, strides, pads, ceil_mode=up)


def gemm(a, x, w, c=None):
    y = (x.t() if a.get("transA", 0) else x) @ (w.t() if a.get("transB", 0) else w)
    return y if c is None else y + c


def pad(a, x, pads, value=None):
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[a.get("mode", "constant")]
    n = x.dim()
    pairs = [p for d in reversed(range(n)) for p in (pads[d], pads[n + d])]
    if mode == "constant":
        return F.pad(x, pairs)
    return F.pad(x[None], pairs[:6], mode)[0] if any(pairs[4:6]) else F.pad(x, pairs[:4], mode)


def slices(a, x, starts, ends, axes, steps):
    index, turned = [slice(None)] * x.dim(), []
    for d, s, e, step in zip(axes, starts, ends, steps):
        if step < 0:  # PyTorch has no such slices: those of what is turned over
            turned.append(d)
            n = x.shape[d]
            s, e = (n - 1 - min(v + n if v < 0 else v, n - 1) for v in (s, max(e, -n - 1)))
        index[d] = slice(s, e, abs(step))
    return x.flip(turned)[tuple(index)] if turned else x[tuple(index)]


def depth_to_space(a, x):
    n, c, h, w = x.shape
    s = a["blocksize"]
    if a.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, s)
    return x.reshape(n, s, s, c // s // s, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // s // s, h * s, w * s)


def space_to_depth(a, x):
    n, c, h, w = x.shape
    s = a["blocksize"]
    return x.reshape(n, c, h // s, s, w // s, s).permute(0, 3, 5, 1, 2, 4).reshape(n, c * s * s, h // s, w // s)


def resize(a, x, roi=None, scales=None, sizes=None):
    target = {"scale_factor": list(scales[2:]), "recompute_scale_factor": False} if scales else {"size": sizes[2:]}
    corners = a.get("coordinate_transformation_mode", "half_pixel")
    mode = {"nearest": "nearest-exact", "linear": "bilinear", "cubic": "bicubic"}[a.get("mode", "nearest")]
    if corners == "asymmetric" or (mode == "nearest-exact" and corners != "half_pixel"):
        raise NoPeer(f"PyTorch has no interpolation by {corners} coordinates")
    return F.interpolate(x, **target, mode=mode, **({} if mode == "nearest-exact" else {"align_corners": corners == "align_corners"}))


def reduction(run):
    return lambda a, x, axes=None: run(x, tuple(a["axes"] if axes is None else axes), bool(a.get("keepdims", 1)))


def cumulated(a, x, axis):
    axis = int(np.reshape(axis, -1)[0])
    if a.get("exclusive", 0):
        raise NoPeer("PyTorch has no sums that leave out their own element")
    return x.flip(axis).cumsum(axis).flip(axis) if a.get("reverse", 0) else x.cumsum(axis)


def gather(a, x, i):
    axis = a.get("axis", 0)
    return F.embedding(i, x) if axis == 0 and x.dim() == 2 else x.index_select(axis, i.reshape(-1))


def largest(x, axes, keep):
    return torch.amax(x, axes, keep)


OPERATORS = {
    "Conv": convolution,
    "ConvTranspose": transposed,
    "Gemm": gemm,
    "MatMul": lambda a, x, y: x @ y,
    "BatchNormalization": lambda a, x, s, b, m, v: F.batch_norm(x, m, v, s, b, eps=a.get("epsilon", 1e-5)),
    "InstanceNormalization": lambda a, x, s, b: F.instance_norm(x, weight=s, bias=b, eps=a.get("epsilon", 1e-5)),
    "LayerNormalization": lambda a, x, s, b=None: F.layer_norm(x, x.shape[a.get("axis", -1) :], s, b, a.get("epsilon", 1e-5)),
    "Softmax": lambda a, x: F.softmax(x, a.get("axis", -1)),
    "LogSoftmax": lambda a, x: F.log_softmax(x, a.get("axis", -1)),
    "GlobalAveragePool": lambda a, x: F.adaptive_avg_pool2d(x, 1),
    "MaxPool": lambda a, x: pool(a, x, False),
    "AveragePool": lambda a, x: pool(a, x, True),
    "ReduceMean": reduction(torch.mean),
    "ReduceMax": reduction(largest),
    "ReduceL2": reduction(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceLogSumExp": reduction(torch.logsumexp),
    "ReduceSum": reduction(torch.sum),
    "ArgMax": lambda a, x: torch.argmax(x, a.get("axis", 0), bool(a.get("keepdims", 1))),
    "CumSum": cumulated,
    "TopK": lambda a, x, k: torch.topk(x, int(np.reshape(k, -1)[0]), a.get("axis", -1), bool(a.get("largest", 1)), bool(a.get("sorted", 1))),
    "Split": lambda a, x, parts: torch.split(x, parts, a.get("axis", 0)),
    "Relu": lambda a, x: F.relu(x),
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "HardSwish": lambda a, x: F.hardswish(x),
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Tanh": lambda a, x: torch.tanh(x),
    "Erf": lambda a, x: torch.erf(x),
    "Exp": lambda a, x: torch.exp(x),
    "Abs": lambda a, x: torch.abs(x),
    "Neg": lambda a, x: -x,
    "Sqrt": lambda a, x: torch.sqrt(x),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Softplus": lambda a, x: F.softplus(x),
    "Softsign": lambda a, x: F.softsign(x),
    "Pow": lambda a, x, y: torch.pow(x, y),
    **{name: lambda a, x, run=getattr(torch, name.lower()): run(x) for name in ("Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan")},
    "Clip": lambda a, x, low, high: torch.clamp(x, float(low), float(high)),
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y,
    "Max": lambda a, x, y: torch.maximum(x, y),
    "Greater": lambda a, x, y: x > y,
    "Where": lambda a, c, x, y: torch.where(c, x, y),
    "Transpose": lambda a, x: x.permute(a["perm"]).contiguous(),
    "Reshape": lambda a, x, shape: x.reshape([int(x.shape[d]) if n == 0 else n for d, n in enumerate(shape)]),
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Gather": gather,
    "GatherElements": lambda a, x, i: torch.gather(x, a.get("axis", 0), i),
    "OneHot": lambda a, i, depth, values: F.one_hot(i, int(np.reshape(depth, -1)[0])).to(values.dtype),
    "Tile": lambda a, x, repeats: x.repeat(*repeats),
    "Expand": lambda a, x, shape: x.expand(*torch.broadcast_shapes(tuple(x.shape), tuple(shape))),
    "Cast": lambda a, x: x.to({1: torch.float32, 7: torch.int64, 10: torch.float16}[a["to"]]),
    "Pad": pad,
    "Slice": slices,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Resize": resize,
    "Identity": lambda a, x: x,
    # Compositions.
    "SiLU": lambda a, x: F.silu(x),
    "Gelu": lambda a, x: F.gelu(x),
    "Mish": lambda a, x: F.mish(x),
    "Attention": lambda a, q, k, v, mask=None: F.scaled_dot_product_attention(q, k.transpose(-1, -2), v, mask, scale=a["scale"]),
}
# Inputs that are numbers to PyTorch, not tensors.
NUMBERS = {"Reshape": (1,), "Pad": (1,), "Slice": (1, 2, 3, 4), "Resize": (2, 3), "Clip": (1, 2), "ReduceSum": (1,), "CumSum": (1,), "TopK": (1,), "Split": (1,), "OneHot": (1,), "Tile": (1,), "Expand": (1,)}


class Layer:
    def __init__(self, model):
        self.inputs = [v.name for v in model.graph.input]
        self.constants = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        self.steps = [(n.op_type, {a.name: helper.get_attribute_value(a) for a in n.attribute}, list(n.input), list(n.output)) for n in model.graph.node]
        for _, attributes, _, _ in self.steps:
            attributes.update({k: v.decode() for k, v in attributes.items() if isinstance(v, bytes)})
        self.output = model.graph.output[0].name
        self.compose()

    def maker(self, name):
        return next((s for s in self.steps if name in s[3]), ("", {}, [], [""]))

    def is_constant(self, name, value):
        return name in self.constants and self.constants[name].size == 1 and abs(float(self.constants[name].reshape(-1)[0]) - value) < 1e-3

    def compose(self):
        for i, (op, _, inputs, out) in enumerate(self.steps):
            if op == "Mul" and self.maker(inputs[1])[0] == "Sigmoid" and self.maker(inputs[1])[2][0] == inputs[0]:
                self.steps[i] = ("SiLU", {}, [inputs[0]], out)
            if op == "Mul" and self.maker(inputs[1])[0] == "Tanh":
                softplus = self.maker(self.maker(inputs[1])[2][0])
                if softplus[0] == "Softplus" and softplus[2][0] == inputs[0]:
                    self.steps[i] = ("Mish", {}, [inputs[0]], out)
            if op == "Mul" and self.is_constant(inputs[1], 0.5):
                product = self.maker(inputs[0])
                half = self.maker(product[2][1]) if product[0] == "Mul" else ("",)
                erf = self.maker(half[2][0]) if half[0] == "Add" and self.is_constant(half[2][1], 1) else ("",)
                scaled = self.maker(erf[2][0]) if erf[0] == "Erf" else ("",)
                if scaled[0] == "Div" and scaled[2][0] == product[2][0] and self.is_constant(scaled[2][1], math.sqrt(2)):
                    self.steps[i] = ("Gelu", {}, [product[2][0]], out)
            if op == "MatMul" and self.maker(inputs[0])[0] == "Softmax":
                scores = self.maker(self.maker(inputs[0])[2][0])
                mask = [scores[2][1]] if scores[0] == "Add" else []
                scores = self.maker(scores[2][0]) if mask else scores
                product = self.maker(scores[2][0])
                if scores[0] == "Div" and product[0] == "MatMul":
                    scale = 1 / float(self.constants[scores[2][1]].reshape(-1)[0])
                    self.steps[i] = ("Attention", {"scale": scale}, [product[2][0], product[2][1], inputs[1], *mask], out)
        self.leave_out()

    def leave_out(self):
        used, kept = {self.output}, []
        for step in reversed(self.steps):
            if used.intersection(step[3]):
                kept.insert(0, step)
                used.update(step[2])
        self.steps = kept

    def to(self, dtype, memory_format=torch.contiguous_format):
        """A function of the inputs as tensors on the GPU, its constants of this type there."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        constants = {}
        for name, value in self.constants.items():
            t = torch.from_numpy(np.array(value)).to(device)
            t = t.to(dtype) if t.is_floating_point() else t
            constants[name] = t.contiguous(memory_format=memory_format) if t.dim() == 4 else t
        steps = []
        for op, attributes, inputs, out in self.steps:
            numbers = NUMBERS.get(op, ())
            given = [self.constants[n].tolist() if i in numbers and n in self.constants else n for i, n in enumerate(inputs)]
            steps.append((OPERATORS[op], attributes, given, out))

        def run(*tensors):
            values = dict(zip(self.inputs, tensors), **constants)
            for operator, attributes, given, out in steps:
                made = operator(attributes, *[values[g] if isinstance(g, str) and g else None if g == "" else g for g in given])
                values.update(zip(out, made if isinstance(made, tuple) else [made]))
            return values[self.output]

        return run
