#!/usr/bin/env python3
"""Operators over open extents as emitted code for any size, at several sizes against ONNX Runtime.

usage: check_open.py GOPT      exit status 1 where one differs or has no code, 77 where onnxruntime is not installed
"""
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError:
    sys.exit(77)
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

GOPT = sys.argv[1]
ort.set_default_logger_severity(4)
rng = np.random.default_rng(3)
nodes, outputs, constants = [], [], []


def node(op, inputs, kind=None, **attributes):
    """A node, and what it gives as an output of the model where a type is given; the name of that."""
    name = f"v{len(nodes)}_{op}"
    nodes.append(h.make_node(op, inputs, [name], name=name, **attributes))
    if kind is not None:
        outputs.append(h.make_tensor_value_info(name, kind, None))
    return name


def constant(value):
    name = f"c{len(constants)}"
    constants.append(nh.from_array(np.asarray(value), name))
    return name


# x: [n, 5, m], with numbers that are equal; ids: whole numbers [n, m]; lengths: [n].
for keepdims in (0, 1):
    node("ArgMax", ["x"], T.INT64, axis=-1, keepdims=keepdims)
    node("ArgMin", ["x"], T.INT64, axis=0, keepdims=keepdims, select_last_index=keepdims)
node("ArgMax", ["ids"], T.INT64, axis=1, select_last_index=1)
for axis, largest, k in ((0, 1, 1), (1, 1, 3), (2, 0, 1)):
    places = f"v{len(nodes)}_places"
    nodes.append(h.make_node("TopK", ["x", constant(np.array([k], np.int64))], [f"v{len(nodes)}_largest", places], axis=axis, largest=largest))
    outputs += [h.make_tensor_value_info(name, kind, None) for name, kind in ((nodes[-1].output[0], T.FLOAT), (places, T.INT64))]
# As many as there are, but so many at most: as detectors have it. And at least so many.
extents = node("Concat", [node("Shape", ["x"], start=2), constant(np.array([4], np.int64))], axis=0)
nodes.append(h.make_node("TopK", ["x", node("ReduceMin", [extents])], ["few", "few_places"], axis=2))
outputs += [h.make_tensor_value_info("few", T.FLOAT, None), h.make_tensor_value_info("few_places", T.INT64, None)]
lesser = node("Min", [node("Shape", ["x"], start=0, end=1), constant(np.array([3], np.int64))])
node("Expand", [constant(np.ones((1, 1), np.float32)), node("Concat", [lesser, node("ReduceMax", [extents])], axis=0)], T.FLOAT)
node("Hardmax", ["x"], T.FLOAT, axis=-1)
for axis in (0, -1):
    for exclusive in (0, 1):
        for reverse in (0, 1):
            node("CumSum", ["x" if axis else "ids", constant(np.int64(axis))], T.FLOAT if axis else T.INT64, exclusive=exclusive, reverse=reverse)
# Places of a decoder's tokens: from what a cache holds on, and by what a mask counts.
rows, columns = node("Shape", ["ids"], start=0, end=1), node("Shape", ["ids"], start=1, end=2)
zero, one = constant(np.int64(0)), constant(np.int64(1))
n, m = node("Squeeze", [rows]), node("Squeeze", [columns])
places = node("Range", [zero, m, one], T.INT64)
node("Range", [n, node("Add", [n, m]), one], T.INT64)
node("Range", [one, node("Mul", [m, constant(np.int64(3))]), constant(np.int64(2))], T.INT64)
node("Range", [m, constant(np.int64(-3)), constant(np.int64(-2))], T.INT64)
node("Add", ["x", node("Cast", [places], to=T.FLOAT)], T.FLOAT)
node("EyeLike", ["ids"], T.FLOAT, dtype=T.FLOAT, k=1)
# Rows and elements at places that are counted, from one before the first on: as exporters write a mask of tokens.
grid = node("Concat", [rows, columns, constant(np.array([1], np.int64))], axis=0)
along = lambda values, axis: node("Expand", [node("Unsqueeze", [values, constant(np.array(axis, np.int64))]), grid])
earlier = node("Sub", [places, one])
which = node("Concat", [along(node("Range", [zero, n, one]), [1, 2]), along(earlier, [0, 2])], axis=-1)
node("GatherND", ["ids", which], T.INT64)
node("GatherND", ["x", node("Unsqueeze", [node("Sub", [node("Range", [zero, n, one]), one]), constant(np.array([1], np.int64))])], T.FLOAT)
node("GatherND", [node("Transpose", ["x"], perm=[0, 2, 1]), which], T.FLOAT)
node("ReverseSequence", ["ids", "lengths"], T.INT64, batch_axis=0, time_axis=1)
# Tokens in one row, and back: extents that are computed, and the rest.
rest = constant(np.array([-1], np.int64))
flat = node("Reshape", ["ids", node("Concat", [node("Mul", [rows, columns]), rest], axis=0)], T.INT64)
node("Reshape", [flat, node("Concat", [rows, columns, rest], axis=0)], T.INT64)



def emitted(folder, name, nodes, inputs, outputs, constants=()):
    """The model's file and its code for any size."""
    file, code = f"{folder}/{name}.onnx", f"{folder}/{name}"
    graph = h.make_graph(nodes, name, inputs, outputs, constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), file)
    made = subprocess.run([GOPT, "optimize", file, "--emit", code, "--cost", "analytic"], capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr)
    if "code             PASSED" not in made.stdout or "to register" in made.stdout:
        sys.exit(made.stdout)
    return file, code


def run(folder, code, given):
    np.savez(folder + "/i.npz", **given)
    return subprocess.run([GOPT, "run", code, "--inputs", folder + "/i.npz", "-o", folder + "/o.npz", "--force"], capture_output=True, text=True)


def floats(name, *extents):
    return h.make_tensor_value_info(name, T.FLOAT, extents)


inputs = [floats("x", "n", 5, "m"), h.make_tensor_value_info("ids", T.INT64, ["n", "m"]), h.make_tensor_value_info("lengths", T.INT64, ["n"])]
wrong = 0
with tempfile.TemporaryDirectory() as folder:
    file, code = emitted(folder, "all", nodes, inputs, outputs, constants)
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    for rows, columns in ((1, 1), (3, 7), (2, 200), (9, 33)):
        x = np.round(rng.standard_normal((rows, 5, columns)), 1).astype(np.float32)
        given = {"x": x, "ids": rng.integers(0, 9, (rows, columns)), "lengths": rng.integers(1, columns + 1, rows)}
        for what in (code, file):  # the file: by the interpreter
            ran = run(folder, what, given)
            if ran.returncode:
                sys.exit(ran.stderr)
            got = np.load(folder + "/o.npz")
            for output, want in zip(session.get_outputs(), session.run(None, given)):
                own = got[output.name]
                if own.shape != want.shape or own.dtype != want.dtype or not np.allclose(own, want, 1e-4, 1e-4):
                    wrong += 1
                    print(what, output.name, "differs at", rows, columns, own.shape, want.shape)
    # An extent that is found by a division by others.
    parts = [h.make_node("Reshape", ["x", "shape"], ["r"]), h.make_node("Softmax", ["r"], ["y"], axis=2)]
    file, code = emitted(folder, "parts", parts, [floats("x", "n", "m", 4)], [floats("y", "n", "k", 4, 4)],
                         [nh.from_array(np.array([0, -1, 4, 4], np.int64), "shape")])
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    for rows, columns in ((1, 4), (3, 8), (2, 20)):
        given = {"x": rng.standard_normal((rows, columns, 4)).astype(np.float32)}
        ran, want = run(folder, code, given), session.run(None, given)[0]
        if ran.returncode or np.load(folder + "/o.npz")["y"].shape != want.shape or not np.allclose(np.load(folder + "/o.npz")["y"], want, 1e-5):
            sys.exit(f"parts differ at {rows}, {columns}: {ran.stderr}")
    # Ranges of a sequence that may end before they do: cut off to a length, and what lies beyond one; and from where another one ends to far beyond both.
    ranges = {"first": ("x", 0, 100), "beyond": ("x", 70, np.iinfo(np.int64).max), "between": ("x", 70, 500)}
    cut, numbers = [], {"axis": [1], "weight": rng.standard_normal((4, 3)).astype(np.float32)}
    for name, (of, start, end) in ranges.items():
        numbers |= {name + "_start": [start], name + "_end": [end]}
        cut += [h.make_node("Slice", [of, name + "_start", name + "_end", "axis"], [name]), h.make_node("Sin", [name], [name + "_sin"]), h.make_node("MatMul", [name + "_sin", "weight"], [name + "_y"])]
    numbers |= {"far": [100000]}
    cut += [h.make_node("ReduceSum", ["first_sin", "axis"], ["sum"]), h.make_node("Concat", ["x", "z"], ["both"], axis=1), h.make_node("Shape", ["x"], ["length"], start=1, end=2),
            h.make_node("Slice", ["both", "length", "far", "axis"], ["last"]), h.make_node("Softmax", ["last"], ["last_y"], axis=1)]
    file, code = emitted(folder, "cut", cut, [floats("x", "n", "s", 4), floats("z", "n", "t", 4)], [floats(name, None, None, None) for name in ("first_y", "beyond_y", "between_y", "sum", "last_y")],
                         [nh.from_array(np.asarray(v), k) for k, v in numbers.items()])
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    for length in (1, 63, 70, 71, 99, 100, 101, 500, 700):
        given = {"x": rng.standard_normal((2, length, 4)).astype(np.float32), "z": rng.standard_normal((2, 1 + length // 7, 4)).astype(np.float32)}
        ran = run(folder, code, given)
        if ran.returncode:
            sys.exit(f"cut at {length}: {ran.stderr}")
        got = np.load(folder + "/o.npz")
        for output, want in zip(session.get_outputs(), session.run(None, given)):
            if got[output.name].shape != want.shape or not np.allclose(got[output.name], want, 1e-4, 1e-4):
                sys.exit(f"{output.name} differs at {length}: {got[output.name].shape} {want.shape}")
    # What adds as many positions as a sequence is cut to needs that number: the range is there whole, and the model has code for all nodes.
    table = [h.make_node("Slice", ["x", "start", "end", "axis"], ["cut"]), h.make_node("Add", ["cut", "positions"], ["added"]), h.make_node("MatMul", ["added", "weight"], ["y"])]
    file, code = emitted(folder, "table", table, [floats("x", "n", "s", 4)], [floats("y", "n", None, 3)],
                         [nh.from_array(np.asarray(v), k) for k, v in {"start": [0], "end": [77], "axis": [1], "positions": rng.standard_normal((77, 4)).astype(np.float32), "weight": numbers["weight"]}.items()])
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    for length in (77, 100):
        given = {"x": rng.standard_normal((2, length, 4)).astype(np.float32)}
        ran, want = run(folder, code, given), session.run(None, given)[0]
        if ran.returncode or not np.allclose(np.load(folder + "/o.npz")["y"], want, 1e-4, 1e-4):
            sys.exit(f"positions differ at {length}: {ran.stderr}")
    # An extent that is the sum of two others, as exporters name the length of a cache and its mask; running sums that stay in range, though what is in their middle does not; lines that are as long as weights have rows.
    more = [h.make_node("Concat", ["past", "x"], ["all"], axis=1), h.make_node("Mul", ["all", "mask"], ["kept"]), h.make_node("CumSum", ["large", "axis0"], ["running"], reverse=1),
            h.make_node("Flatten", ["image"], ["lines"]), h.make_node("Gemm", ["lines", "rows"], ["product"])]
    file, code = emitted(folder, "more", more, [floats("past", "n", "p"), floats("x", "n", "s"), floats("mask", "n", "p + s"), floats("large", "m"), floats("image", "n", "c", "e", "w")],
                         [floats("kept", "n", None), floats("running", "m"), floats("product", "n", 4)],
                         [nh.from_array(np.array(0), "axis0"), nh.from_array(rng.standard_normal((18, 4)).astype(np.float32), "rows")])
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    for n, past, length, image in ((1, 4, 1, (2, 3, 3)), (3, 0, 9, (1, 1, 18)), (2, 7, 5, (9, 2, 1))):
        given = {"past": rng.standard_normal((n, past)), "x": rng.standard_normal((n, length)), "mask": rng.standard_normal((n, past + length)),
                 "large": [2e38, 3e38, -3e38, 0, 1e38][: 2 + n], "image": rng.standard_normal((n, *image))}
        given = {k: np.asarray(v, np.float32) for k, v in given.items()}
        ran = run(folder, code, given)
        if ran.returncode:
            sys.exit(f"more at {n}: {ran.stderr}")
        got = np.load(folder + "/o.npz")
        for output, want in zip(session.get_outputs(), session.run(None, given)):
            if got[output.name].shape != want.shape or not np.allclose(got[output.name], want, 1e-4, 1e-4) or not np.isfinite(got[output.name]).all():
                sys.exit(f"{output.name} differs at {n}: {got[output.name]} {want}")
    wrong_mask = run(folder, code, given | {"mask": given["mask"][:, 1:]})
    if wrong_mask.returncode != 1 or "the model wants" not in wrong_mask.stderr:
        sys.exit("a mask of another length is not refused: " + wrong_mask.stderr)
    # More than there are is refused.
    top = [h.make_node("TopK", ["x", "k"], ["y", "places"], name="top")]
    _, code = emitted(folder, "few", top, [floats("x", "n")], [floats("y", 3)], [nh.from_array(np.array([3], np.int64), "k")])
    if run(folder, code, {"x": np.zeros(3, np.float32)}).returncode:
        sys.exit("three of three are refused")
    few = run(folder, code, {"x": np.zeros(2, np.float32)})
    if few.returncode != 1 or "there are 3 elements to take in a row of extent n" not in few.stderr:
        sys.exit("three of two are not refused: " + few.stderr)
# Counts that are the lesser or the greater of two, written as ONNX and read again, in ONNX Runtime as it is by default: places counted from the end, or
# beyond it, which ONNX cuts off; numbers that no extent reaches; the same count in another order.
counts = {"size": [("Shape", ["x"], "s"), ("Gather", ["s", "zero"], "n")],
          "filled": [("Min", ["n", "hundred"], "k"), ("ConstantOfShape", ["k"], "y")],
          "at least": [("Max", ["one", "n"], "k"), ("ConstantOfShape", ["k"], "y")],
          "tiled": [("Min", ["n", "three"], "k"), ("Concat", ["one", "k"], "r"), ("Tile", ["x", "r"], "y")],
          "from the end": [("Min", ["n", "three"], "k"), ("Sub", ["zero", "k"], "b"), ("Slice", ["x", "b", "far", "zero"], "y")],
          "beyond the end": [("Max", ["n", "three"], "k"), ("Slice", ["x", "zero", "k", "zero"], "y")],
          "of far": [("Min", ["far", "n"], "k"), ("Slice", ["x", "zero", "k", "zero"], "y")],
          "far or more": [("Add", ["n", "one"], "m"), ("Max", ["m", "far"], "k"), ("Cast", ["k"], "y")],
          "both orders": [("Concat", ["hundred", "n"], "c"), ("ReduceMin", ["c"], "k"), ("Min", ["n", "hundred"], "l"), ("Slice", ["x", "zero", "k", "zero"], "a"),
                          ("Slice", ["x", "zero", "l", "zero"], "b"), ("Add", ["a", "b"], "y")]}
attributes = {"Concat": {"axis": 0}, "Cast": {"to": T.FLOAT}}
numbers = [nh.from_array(np.array([v], np.int64), k) for k, v in {"zero": 0, "one": 1, "three": 3, "hundred": 100, "far": 2**63 - 1}.items()]
head = counts.pop("size")
with tempfile.TemporaryDirectory() as folder:
    for name, steps in counts.items():
        made = [h.make_node(op, inputs, [out], **attributes.get(op, {})) for op, inputs, out in head + steps]
        files = [f"{folder}/{name}_{k}.onnx" for k in range(3)]
        graph = h.make_graph(made, name, [floats("x", "n", 4)], [h.make_tensor_value_info("y", T.FLOAT, None)], numbers)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), files[0])
        for given, to in zip(files, files[1:]):
            subprocess.run([GOPT, "optimize", given, "-o", to, "--cost", "analytic"], capture_output=True, check=True)
        sessions = [ort.InferenceSession(file, providers=["CPUExecutionProvider"]) for file in files]
        for rows in (1, 2, 3, 7, 60, 100, 101):
            x = {"x": rng.standard_normal((rows, 4)).astype(np.float32)}
            first, *others = [session.run(None, x)[0] for session in sessions]
            for k, own in enumerate(others):
                if own.shape != first.shape or not np.array_equal(own, first):
                    wrong += 1
                    print(f"{name}, written {k + 1} times, differs at {rows}: {own.shape} {first.shape}")
print(f"{len(outputs)} outputs, {wrong} wrong")
sys.exit(1 if wrong else 0)
