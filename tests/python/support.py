"""What the tests of the module share: models, and the program to compare with."""
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "sin_cos.onnx")
GOPT = ""


def convolution_model(seed=0, channels=4):
    """Conv, BatchNormalization, Relu, with drawn weights: rules fold the second into the first."""
    draw = np.random.default_rng(seed)
    shapes = {"k": (channels, 3, 3, 3), **{name: (channels,) for name in ("scale", "shift", "mean", "variance")}}
    weights = [numpy_helper.from_array(np.abs(draw.standard_normal(shape)).astype(np.float32) + 0.5, name)
               for name, shape in shapes.items()]
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"]),
             helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["b"]),
             helper.make_node("Relu", ["b"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 6, 6])
    graph = helper.make_graph(nodes, "convolution", [x], [y], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def identity_model(elements, shape):
    """An output `y` for each input `x`, of these types of elements."""
    nodes, inputs, outputs = [], [], []
    for number, element in enumerate(elements):
        nodes.append(helper.make_node("Identity", [f"x{number}"], [f"y{number}"]))
        inputs.append(helper.make_tensor_value_info(f"x{number}", element, shape))
        outputs.append(helper.make_tensor_value_info(f"y{number}", element, shape))
    graph = helper.make_graph(nodes, "identity", inputs, outputs)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def run_in_onnxruntime(model: bytes, feed):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def run_gopt(*arguments):
    return subprocess.run([GOPT, *map(str, arguments)], text=True, capture_output=True, timeout=500, check=False)


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def file(self, name):
        return os.path.join(self.folder, name)


def main():
    global GOPT
    GOPT = sys.argv.pop(1)
    unittest.main(module="__main__")
