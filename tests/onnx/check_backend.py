"""Runs ONNX's own node tests in ONNX Runtime, as they are and as gopt wrote them, against the expected outputs.

usage: check_backend.py TESTS WRITTEN        TESTS/NAME/model.onnx and data sets; WRITTEN/NAME.onnx

Tests that the runtime does not pass as they are say nothing and are left out. Prints each test that fails as written, and
how many did not; exit status 1 if any did, or if fewer than 600 were compared.
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

FEWEST_COMPARED = 600


def tensors(folder, kind):
    values = []
    for number in range(len(list(folder.glob(f"{kind}_*.pb")))):
        values.append(numpy_helper.to_array(onnx.load_tensor(str(folder / f"{kind}_{number}.pb"))))
    return values


def run(path, names, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    return session.run(None, {name: value for name, value in zip(names, inputs) if name in known})


def is_close(expected, actual):
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if expected.dtype.kind != "f":
        return bool(numpy.array_equal(expected, actual))
    return bool(numpy.allclose(expected, actual, rtol=1e-3, atol=1e-6, equal_nan=True))


def passes(path, names, inputs, outputs):
    actual = run(path, names, inputs)
    return len(actual) == len(outputs) and all(is_close(e, a) for e, a in zip(outputs, actual))


def check(test, written):
    """None: the runtime does not pass the test as it is. Else what is wrong, empty where nothing is."""
    data = test / "test_data_set_0"
    names = [value.name for value in onnx.load(str(test / "model.onnx")).graph.input]
    try:
        inputs, outputs = tensors(data, "input"), tensors(data, "output")
        if not passes(test / "model.onnx", names, inputs, outputs):
            return None
    except Exception:
        return None
    try:
        return "" if passes(written, names, inputs, outputs) else "other outputs than expected"
    except Exception as error:
        return str(error).split("\n")[0]


def main():
    tests, written = map(pathlib.Path, sys.argv[1:3])
    compared = failed = 0
    for path in sorted(written.glob("*.onnx")):
        wrong = check(tests / path.stem, path)
        compared += wrong is not None
        if wrong:
            failed += 1
            print(f"{path.stem}: {wrong}")
    print(f"{compared} tests compared, {failed} fail as written")
    return 1 if failed or compared < FEWEST_COMPARED else 0


if __name__ == "__main__":
    sys.exit(main())
