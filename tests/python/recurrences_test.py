"""RNN, GRU and LSTM of many steps, whole as code: against ONNX Runtime."""
import unittest
import warnings

import support
from support import TensorProto, helper, np, numpy_helper, run_in_onnxruntime

import gopt

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def operator(op, ways, hidden, inputs, draw, **attributes):
    """The node, its constants by name."""
    width = GATES[op] * hidden
    number = lambda *shape: draw.standard_normal(shape).astype(np.float32) * np.float32(0.4)
    small = np.float32(1 / np.sqrt(hidden))  # whose states do not run away from each other
    constants = {"w": number(ways, width, inputs), "r": number(ways, width, hidden) * small, "b": number(ways, 2 * width)}
    if op == "GRU":
        attributes["linear_before_reset"] = 1
    return {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward", **attributes}, constants


def model_of(nodes, inputs, outputs, constants):
    info = lambda values: [helper.make_tensor_value_info(*v) for v in values]
    graph = helper.make_graph(nodes, "recurrent", info(inputs), info(outputs),
                              [numpy_helper.from_array(v, name) for name, v in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])


class Recurrences(unittest.TestCase):
    draw = np.random.default_rng(5)

    def number(self, *shape):
        return self.draw.standard_normal(shape).astype(np.float32)

    def expect_equal(self, model, ours, feed):
        for want, got in zip(run_in_onnxruntime(model.SerializeToString(), feed), ours.run(None, feed), strict=True):
            self.assertEqual(want.shape, got.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_an_lstm_of_all_inputs(self):
        attributes, constants = operator("LSTM", 2, 19, 7, self.draw)
        constants["p"] = self.number(2, 3 * 19)
        node = helper.make_node("LSTM", ["x", "w", "r", "b", "lengths", "h", "c", "p"], ["y", "yh", "yc"], **attributes)
        model = model_of([node], [("x", FLOAT, [11, 5, 7]), ("lengths", INT32, [5]), ("h", FLOAT, [2, 5, 19]), ("c", FLOAT, [2, 5, 19])],
                         [("y", FLOAT, None), ("yh", FLOAT, None), ("yc", FLOAT, None)], constants)
        feed = {"x": self.number(11, 5, 7), "lengths": np.array([11, 3, 1, 10, 6], np.int32), "h": self.number(2, 5, 19), "c": self.number(2, 5, 19)}
        self.expect_equal(model, gopt.compile(model, cost="analytic"), feed)

    def test_any_number_of_steps_and_sequences(self):
        for op in GATES:
            attributes, constants = operator(op, 2, 33, 9, self.draw)
            outputs = ["", "yh"] if op == "RNN" else ["y", "yh"]
            node = helper.make_node(op, ["x", "w", "r", "b"], outputs, **attributes)
            model = model_of([node], [("x", FLOAT, ["steps", "batch", 9])], [(name, FLOAT, None) for name in outputs if name], constants)
            ours = gopt.compile(model, cost="analytic")
            for steps, batch in ((1, 1), (40, 3), (3, 13)):
                self.expect_equal(model, ours, {"x": self.number(steps, batch, 9)})

    def test_as_many_steps_as_places_are_found(self):
        """The operator is a step of the caller's there, and is written as such."""
        for op in GATES:
            attributes, constants = operator(op, 2, 5, 2, self.draw, **({"activations": ["Relu", "Relu"]} if op == "RNN" else {}))
            nodes = [helper.make_node("Greater", ["x", "zero"], ["g"]), helper.make_node("NonZero", ["g"], ["places"]),
                     helper.make_node("Cast", ["places"], ["numbers"], to=FLOAT), helper.make_node("Mul", ["numbers", "tenth"], ["small"]),
                     helper.make_node("Transpose", ["small"], ["pairs"], perm=[1, 0]), helper.make_node("Unsqueeze", ["pairs", "one"], ["steps"]),
                     helper.make_node(op, ["steps", "w", "r", "b"], ["y"], **attributes)]
            constants.update(zero=np.float32(0), tenth=np.float32(0.1), one=np.array([1]))
            model = model_of(nodes, [("x", FLOAT, [4, 6])], [("y", FLOAT, None)], constants)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = gopt.compile(model, cost="analytic")
            self.expect_equal(model, ours, {"x": self.number(4, 6)})


if __name__ == "__main__":
    support.main()
