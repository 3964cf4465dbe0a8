#!/usr/bin/env python3
"""Compares the definitions, as `gopt run --engine interpreter` runs them, with ONNX Runtime's kernels on random cases.

usage: check_operators.py GOPT [--cases 12] [--seed N]      needs numpy, onnx, onnxruntime; exits with 77 without them

Each operator of CASES is drawn with random shapes, attributes and values, and each case is a node of one model. Exit status
1 where an output differs by more than 1e-4 of its largest value, has another shape, or is NaN on one side only; the case is
printed with its seed.
"""
import argparse, pathlib, subprocess, sys, tempfile, time

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

LIMIT, OPSET = 1e-4, 17
UNARY = "Abs Neg Exp Sqrt Sin Cos Tanh Sigmoid Erf Relu Reciprocal Log Floor Ceil HardSwish Softplus Sign".split()
POSITIVE = {"Sqrt", "Log", "Reciprocal"}
BINARY = "Add Sub Mul Div Max Min Pow PRelu".split()
COMPARE = "Equal Greater GreaterOrEqual Less LessOrEqual".split()


class Case:
    """A node with its inputs: arrays become graph inputs, Const arrays initializers."""

    def __init__(self, op, inputs, outputs=1, **attributes):
        self.op, self.inputs, self.outputs, self.attributes = op, inputs, outputs, attributes


class Const:
    def __init__(self, array):
        self.array = np.asarray(array)


def draw(rng, shape, positive=False):
    x = rng.standard_normal(shape).astype(np.float32)
    return np.abs(x) + np.float32(0.5) if positive else x


def shape_of(rng, rank, low=1, high=6):
    return [int(n) for n in rng.integers(low, high, rank)]


def broadcastable(rng, shape):
    kept = shape[int(rng.integers(0, len(shape) + 1)):]
    return [1 if rng.random() < 0.3 else n for n in kept]


def window(rng, axes, high=4):
    """Kernel, strides, dilations, pads, and spatial extents that the window fits."""
    k, s, d = (shape_of(rng, axes, 1, n) for n in (high, 4, 3))
    pads = [int(rng.integers(0, k[a % axes])) for a in range(2 * axes)]
    extents = [(k[a] - 1) * d[a] + 1 + int(rng.integers(0, 6)) for a in range(axes)]
    return k, s, d, pads, extents


def unary(rng):
    op = str(rng.choice(UNARY))
    return Case(op, [draw(rng, shape_of(rng, int(rng.integers(0, 4))), op in POSITIVE)])


def binary(rng):
    op, shape = str(rng.choice(BINARY)), shape_of(rng, int(rng.integers(1, 5)))
    x, y = draw(rng, shape, op == "Pow"), draw(rng, broadcastable(rng, shape), op == "Div")
    return Case(op, [x, y] if op in ("PRelu", "Pow", "Div") or rng.random() < 0.5 else [y, x])


def compare(rng):
    shape = shape_of(rng, 3)
    values = [rng.integers(0, 3, s).astype(np.float32) for s in (shape, broadcastable(rng, shape))]
    return Case(str(rng.choice(COMPARE)), values)


def with_parameter(rng):
    op, low = str(rng.choice(["LeakyRelu", "Elu", "HardSigmoid", "Selu"])), float(rng.uniform(0.1, 2))
    return Case(op, [draw(rng, shape_of(rng, 3))], alpha=low)


def clip(rng):
    low = np.float32(rng.uniform(-1, 0.2))
    return Case("Clip", [draw(rng, shape_of(rng, 3)), Const(low), Const(low + np.float32(0.7))])


def where(rng):
    shape = shape_of(rng, 3)
    return Case("Where", [rng.random(broadcastable(rng, shape)) < 0.5, draw(rng, shape), draw(rng, broadcastable(rng, shape))])


def matmul(rng):
    m, k, n = shape_of(rng, 3)
    batch = shape_of(rng, int(rng.integers(0, 3)))
    return Case("MatMul", [draw(rng, batch + [m, k]), draw(rng, (broadcastable(rng, batch) if batch else []) + [k, n])])


def gemm(rng):
    m, k, n = shape_of(rng, 3)
    a, b = int(rng.integers(0, 2)), int(rng.integers(0, 2))
    inputs = [draw(rng, [k, m] if a else [m, k]), draw(rng, [n, k] if b else [k, n])]
    if rng.random() < 0.7:
        inputs.append(draw(rng, broadcastable(rng, [m, n])))
    return Case("Gemm", inputs, transA=a, transB=b, alpha=float(rng.uniform(0.5, 2)), beta=float(rng.uniform(0.5, 2)))


def conv(rng):
    axes = int(rng.integers(1, 4))
    k, s, d, pads, extents = window(rng, axes)
    n, g, c, o = shape_of(rng, 4, 1, 4)
    inputs = [draw(rng, [n, g * c] + extents), draw(rng, [g * o, c] + k)]
    if rng.random() < 0.5:
        inputs.append(draw(rng, [g * o]))
    return Case("Conv", inputs, group=g, strides=s, dilations=d, pads=pads)


def conv_transpose(rng):
    axes = int(rng.integers(1, 3))
    k, s, d, _, extents = window(rng, axes)
    n, g, c, o = shape_of(rng, 4, 1, 4)
    more = [int(rng.integers(0, s[a])) for a in range(axes)]
    return Case("ConvTranspose", [draw(rng, [n, g * c] + extents), draw(rng, [g * c, o] + k)], group=g, strides=s,
                dilations=d, output_padding=more)


def pool(rng):
    op, axes = str(rng.choice(["MaxPool", "AveragePool"])), int(rng.integers(1, 4))
    k, s, _, pads, extents = window(rng, axes)
    more = {"count_include_pad": int(rng.integers(0, 2))} if op == "AveragePool" else {}
    return Case(op, [draw(rng, shape_of(rng, 2) + [e + 3 for e in extents])], kernel_shape=k, strides=s, pads=pads, **more)


def global_pool(rng):
    return Case(str(rng.choice(["GlobalAveragePool", "GlobalMaxPool"])), [draw(rng, shape_of(rng, 4))])


def batch_norm(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)))
    c = [shape[1]]
    return Case("BatchNormalization", [draw(rng, shape), draw(rng, c), draw(rng, c), draw(rng, c), draw(rng, c, True)],
                epsilon=float(rng.uniform(1e-5, 1e-1)))


def layer_norm(rng):
    shape = shape_of(rng, 3, 2)
    axis = int(rng.integers(0, 3))
    return Case("LayerNormalization", [draw(rng, shape), draw(rng, shape[axis:]), draw(rng, shape[axis:])],
                axis=axis - 3 if rng.random() < 0.5 else axis, epsilon=1e-3)


def instance_norm(rng):
    shape = shape_of(rng, 4, 2)
    return Case("InstanceNormalization", [draw(rng, shape), draw(rng, [shape[1]]), draw(rng, [shape[1]])], epsilon=1e-2)


def softmax(rng):
    return Case(str(rng.choice(["Softmax", "LogSoftmax"])), [draw(rng, shape_of(rng, 3))], axis=int(rng.integers(-3, 3)))


def reduction(rng):
    op, rank = str(rng.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"])), int(rng.integers(1, 5))
    axes = [int(a) - (rank if rng.random() < 0.5 else 0) for a in rng.choice(rank, int(rng.integers(1, rank + 1)), False)]
    return Case(op, [draw(rng, shape_of(rng, rank))], axes=axes, keepdims=int(rng.integers(0, 2)))


def reduce_sum(rng):
    axes = rng.choice(4, int(rng.integers(1, 5)), False).astype(np.int64)
    return Case("ReduceSum", [draw(rng, shape_of(rng, 4)), Const(axes)], keepdims=int(rng.integers(0, 2)))


def concat(rng):
    shape, axis = shape_of(rng, 3), int(rng.integers(-3, 3))
    parts = []
    for _ in range(int(rng.integers(1, 5))):
        shape[axis] = int(rng.integers(1, 5))
        parts.append(draw(rng, shape))
    return Case("Concat", parts, axis=axis)


def split(rng):
    parts = rng.integers(1, 4, int(rng.integers(1, 4)))
    shape, axis = shape_of(rng, 3), int(rng.integers(-3, 3))
    shape[axis] = int(parts.sum())
    return Case("Split", [draw(rng, shape), Const(parts.astype(np.int64))], outputs=len(parts), axis=axis)


def slices(rng):
    shape, axis = shape_of(rng, 3, 3, 9), int(rng.integers(-3, 3))
    step = int(rng.choice([-2, -1, 1, 2, 3]))
    start, end = int(rng.integers(-shape[axis], shape[axis])), int(rng.integers(-shape[axis] - 3, shape[axis] + 4))
    return Case("Slice", [draw(rng, shape)] + [Const(np.array([v], np.int64)) for v in (start, end, axis, step)])


def transpose(rng):
    rank = int(rng.integers(1, 6))
    return Case("Transpose", [draw(rng, shape_of(rng, rank))], perm=[int(a) for a in rng.permutation(rank)])


def reshape(rng):
    a, b, c = shape_of(rng, 3)
    to = [[a * b, c], [-1], [0, -1], [c, b, a], [0, 0, 1, -1]][int(rng.integers(0, 5))]
    return Case("Reshape", [draw(rng, [a, b, c]), Const(np.array(to, np.int64))])


def axes_of_one(rng):
    a, b = shape_of(rng, 2)
    if rng.random() < 0.5:
        return Case("Squeeze", [draw(rng, [a, 1, b, 1]), Const(np.array([1, -1][: int(rng.integers(1, 3))], np.int64))])
    return Case("Unsqueeze", [draw(rng, [a, b]), Const(np.array([int(rng.integers(-3, 3))], np.int64))])


def flatten(rng):
    return Case("Flatten", [draw(rng, shape_of(rng, 4))], axis=int(rng.integers(-4, 5)))


def expand(rng):
    shape = shape_of(rng, 3)
    return Case("Expand", [draw(rng, broadcastable(rng, shape)), Const(np.array(shape, np.int64))])


def pad(rng):
    shape, mode = shape_of(rng, 3, 3), str(rng.choice(["constant", "reflect", "edge"]))
    pads = rng.integers(-1 if mode == "constant" else 0, 3, 6).astype(np.int64)
    return Case("Pad", [draw(rng, shape), Const(pads)] + ([Const(np.float32(1.5))] if mode == "constant" else []), mode=mode)


def gather(rng):
    shape, axis = shape_of(rng, 3), int(rng.integers(-3, 3))
    at = rng.integers(-shape[axis], shape[axis], shape_of(rng, int(rng.integers(0, 3)))).astype(np.int64)
    return Case("Gather", [draw(rng, shape), at], axis=axis)


def gather_elements(rng):
    shape, axis = shape_of(rng, 3), int(rng.integers(-3, 3))
    return Case("GatherElements", [draw(rng, shape), rng.integers(0, shape[axis], shape).astype(np.int64)], axis=axis)


def cast(rng):
    return Case("Cast", [draw(rng, shape_of(rng, 2)) * np.float32(9)], to=int(rng.choice([TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL])))


def depth(rng):
    n, c, h, w = shape_of(rng, 4)
    if rng.random() < 0.5:
        return Case("SpaceToDepth", [draw(rng, [n, c, 2 * h, 2 * w])], blocksize=2)
    return Case("DepthToSpace", [draw(rng, [n, 4 * c, h, w])], blocksize=2, mode=str(rng.choice(["DCR", "CRD"])))


CASES = [unary, binary, compare, with_parameter, clip, where, matmul, gemm, conv, conv_transpose, pool, global_pool, batch_norm,
         layer_norm, instance_norm, softmax, reduction, reduce_sum, concat, split, slices, transpose, reshape, axes_of_one, flatten,
         expand, pad, gather, gather_elements, cast, depth]


def build(cases):
    nodes, inputs, outputs, constants, feed = [], [], [], [], {}
    for number, case in enumerate(cases):
        names = []
        for k, value in enumerate(case.inputs):
            names.append(f"x{number}_{k}")
            if isinstance(value, Const):
                constants.append(numpy_helper.from_array(value.array, names[-1]))
                continue
            value = feed[names[-1]] = np.asarray(value)
            inputs.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        made = [f"y{number}_{k}" for k in range(case.outputs)]
        nodes.append(helper.make_node(case.op, names, made, name=f"{case.op}_{number}", **case.attributes))
        outputs += [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph(nodes, "operators", inputs, outputs, constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", OPSET)]), feed


def difference(expected, actual):
    if expected.shape != actual.shape:
        return f"shapes {expected.shape} and {actual.shape}"
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    if (np.isnan(a) != np.isnan(b)).any():
        return "NaN on one side only"
    finite = np.isfinite(a) & np.isfinite(b)
    if (a[~finite & ~np.isnan(a)] != b[~finite & ~np.isnan(a)]).any():
        return "infinities differ"
    gap = np.abs(a - b)[finite].max(initial=0)
    return f"{gap:.3g}" if gap > LIMIT * max(1e-3, np.abs(a)[finite].max(initial=0)) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gopt")
    parser.add_argument("--cases", type=int, default=12, help="of each kind")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    cases = [kind(rng) for kind in CASES for _ in range(args.cases)]
    model, feed = build(cases)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    expected = dict(zip(names, session.run(names, feed)))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "m.onnx")
        np.savez(folder / "x.npz", **feed)
        command = [args.gopt, "run", folder / "m.onnx", "--engine", "interpreter", "--inputs", folder / "x.npz", "-o", folder / "y.npz"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode:
            print(f"seed {args.seed}: gopt run failed: {done.stderr}")
            return 1
        actual = dict(np.load(folder / "y.npz"))
    failed = 0
    for number, case in enumerate(cases):
        for k in range(case.outputs):
            wrong = difference(expected[f"y{number}_{k}"], actual[f"y{number}_{k}"])
            if wrong is None:
                continue
            failed += 1
            shapes = [list((x.array if isinstance(x, Const) else x).shape) for x in case.inputs]
            print(f"seed {args.seed}: {case.op} {case.attributes} on {shapes}, output {k}: {wrong}")
    print(f"seed {args.seed}: {len(cases)} cases of {len({c.op for c in cases})} operators, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
