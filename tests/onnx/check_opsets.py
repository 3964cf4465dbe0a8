#!/usr/bin/env python3
"""Models of each opset from 1 to 26, as that opset writes them: `gopt optimize` reads them, its result is valid, and computes what
the model does, in ONNX Runtime or, where that has no such operator, by ONNX's reference evaluator; before opset 7 in gopt itself.

usage: check_opsets.py GOPT [FIRST [LAST]]      exit status 77 (skipped) without numpy, onnx and onnxruntime
"""
import pathlib, subprocess, sys, tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NEWEST = 26
RULES = pathlib.Path(__file__).resolve().parents[2] / "rules" / "hand.rules"  # reading all takes longer than all else here


class Model:
    """A graph under construction whose nodes take the form of its opset."""

    def __init__(self, opset, rng):
        self.opset, self.rng = opset, rng
        self.nodes, self.weights, self.inputs = [], [], []

    def input(self, name, shape):
        self.inputs.append((name, shape))
        return name

    def weight(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def random(self, *shape, least=-1.0):
        return self.weight(self.rng.uniform(least, 1, shape).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [f"v{len(self.nodes)}"], name=f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def moved(self, kind, since, x, name, value, **attributes):
        """An attribute that became an input."""
        if self.opset >= since:
            return self.op(kind, x, self.weight(np.array(value, np.int64)), **attributes)
        return self.op(kind, x, **{name: value}, **attributes)

    def binary(self, kind, a, b, axis=None):
        """Before opset 7 broadcasting is said."""
        return self.op(kind, a, b, **({} if self.opset >= 7 else {"broadcast": 1, **({} if axis is None else {"axis": axis})}))

    def old(self, until, **attributes):
        return attributes if self.opset < until else {}

    def build(self, y, shape=None):
        value = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        ir = 3 if self.opset < 9 else 8 if self.opset < 20 else 10
        inputs = [value(*i) for i in self.inputs]
        if ir < 4:
            inputs += [helper.make_tensor_value_info(w.name, w.data_type, list(w.dims)) for w in self.weights]
        graph = helper.make_graph(self.nodes, "g", inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, shape)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)


def images(m):
    x = m.input("x", [1, 4, 8, 8])
    y = m.op("Conv", x, m.random(6, 4, 3, 3), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    tests = m.old(7, is_test=1) | m.old(6, consumed_inputs=[0, 0, 0, 1, 1])
    y = m.op("BatchNormalization", y, *(m.random(6, least=0.5) for _ in range(4)), **tests)
    y = m.op("Relu", y, **m.old(6, consumed_inputs=[0]))
    y = m.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = m.op("AveragePool", y, kernel_shape=[2, 2], strides=[1, 1])
    return m.op("GlobalAveragePool", y)


def matrices(m):
    x = m.input("x", [4, 8])
    y = m.op("Gemm", x, m.random(8, 6), m.random(6), **m.old(7, broadcast=1))
    y = m.binary("Mul", y, m.random(6), axis=1)
    y = m.op("MatMul", y, m.random(6, 5))
    return m.op("Softmax", m.binary("Add", y, m.random(5), axis=1), axis=1)


def shapes(m):
    x = m.input("x", [2, 3, 4])
    y = m.moved("Reshape", 5, x, "shape", [2, 12])
    y = m.op("Transpose", y, perm=[1, 0])
    y = m.moved("Unsqueeze", 13, y, "axes", [0])
    y = m.moved("Squeeze", 13, y, "axes", [0])
    if m.opset >= 10:
        y = m.op("Slice", y, m.weight(np.array([1], np.int64)), m.weight(np.array([9], np.int64)), m.weight(np.array([0], np.int64)))
    else:
        y = m.op("Slice", y, starts=[1], ends=[9], axes=[0])
    if m.opset >= 11:
        y = m.op("Pad", y, m.weight(np.array([1, 0, 0, 2], np.int64)))
    else:
        y = m.op("Pad", y, **{"pads" if m.opset >= 2 else "paddings": [1, 0, 0, 2]})
    return m.op("Concat", y, y, axis=1)


def reductions(m):
    x = m.input("x", [2, 3, 4])
    y = m.moved("ReduceSum", 13, x, "axes", [1], keepdims=1)
    z = m.moved("ReduceMean", 18, x, "axes", [2], keepdims=1)
    z = m.moved("ReduceMax", 18, z, "axes", [1], keepdims=1)
    y = m.binary("Add", m.moved("ReduceMax", 18, y, "axes", [2], keepdims=1), z)
    return m.op("Sum", m.op("Tanh", y, **m.old(6, consumed_inputs=[0])), y, **m.old(6, consumed_inputs=[0, 0]))


def bounds(m):
    x = m.input("x", [3, 5])
    if m.opset >= 11:
        y = m.op("Clip", x, m.weight(np.float32(-0.5)), m.weight(np.float32(0.75)))
    else:
        y = m.op("Clip", x, min=-0.5, max=0.75, **m.old(6, consumed_inputs=[0]))
    y = m.op("Dropout", y, **m.old(7, is_test=1))
    y = m.op("LeakyRelu", y, alpha=0.125, **m.old(6, consumed_inputs=[0]))
    return m.op("Sigmoid", m.op("Exp", y, **m.old(6, consumed_inputs=[0])), **m.old(6, consumed_inputs=[0]))


def newer(m):
    """Operators of their opsets."""
    x = m.input("x", [2, 4, 8])
    y = m.op("LayerNormalization", x, m.random(8), m.random(8)) if m.opset >= 17 else x
    y = m.op("Gelu", y) if m.opset >= 20 else y
    y = m.op("RMSNormalization", y, m.random(8)) if m.opset >= 23 else y
    y = m.op("Swish", y) if m.opset >= 24 else y
    return m.op("Neg", y, **m.old(6, consumed_inputs=[0]))


def run(model, feed):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feed)[0]
    except Exception:  # an opset that it does not have
        return ReferenceEvaluator(model).run(None, feed)[0]


def run_here(gopt, path, feed, folder):
    """In gopt's interpreter."""
    np.savez(folder / "in.npz", **feed)
    (folder / "out.npz").unlink(missing_ok=True)
    done = subprocess.run([gopt, "run", str(path), "--engine", "interpreter", "--inputs", str(folder / "in.npz"), "-o", str(folder / "out.npz")],
                          capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    with np.load(folder / "out.npz") as outputs:
        return outputs[outputs.files[0]]


def check(gopt, build, opset, folder):
    """Before opset 7 neither of the two runs much: the same model as opset 7 says it is the reference."""
    is_old = opset < 7
    m = Model(opset, np.random.default_rng(opset))
    y = build(m)
    reference = Model(max(opset, 7), np.random.default_rng(opset))
    reference = reference.build(build(reference))
    feed = {name: np.random.default_rng(9).normal(size=shape).astype(np.float32) for name, shape in m.inputs}
    expected = run(reference, feed)
    model, path, out = m.build(y, expected.shape), folder / "m.onnx", folder / "o.onnx"
    out.unlink(missing_ok=True)
    onnx.save(model, str(path))
    done = subprocess.run([gopt, "optimize", str(path), "-o", str(out), "--target", "onnx", "--force", "--rules", str(RULES)], capture_output=True, text=True)
    if done.returncode or ("warning" in done.stderr and not is_old):
        return done.stderr.strip()
    onnx.checker.check_model(onnx.load(str(out)))
    for file in (path, out) if is_old else (out,):
        actual = run_here(gopt, file, feed, folder) if is_old else run(onnx.load(str(file)), feed)
        if actual.shape != expected.shape or not np.allclose(actual, expected, rtol=1e-4, atol=1e-6):
            return f"{file.stem} computes something else, by up to {np.abs(actual - expected).max() if actual.shape == expected.shape else actual.shape}"
    return ""


def main():
    gopt, failed, done = sys.argv[1], 0, 0
    first, last = [int(a) for a in sys.argv[2:]] + [1, NEWEST][len(sys.argv) - 2:]
    with tempfile.TemporaryDirectory() as folder:
        for opset in range(first, last + 1):
            for build in (images, matrices, shapes, reductions, bounds, newer):
                try:
                    why = check(gopt, build, opset, pathlib.Path(folder))
                except Exception as error:
                    why = f"{type(error).__name__}: {error}"
                done += 1
                if why:
                    failed += 1
                    print(f"opset {opset}, {build.__name__}: {why[:300]}")
    print(f"{done} models of opsets {first} to {last}, {failed} not as they should be")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
