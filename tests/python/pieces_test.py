"""Models in pieces, and functions of Python's for what has no code: against ONNX Runtime."""
import unittest

import support
from support import InFolder, TensorProto, helper, np, numpy_helper, onnx, run_in_onnxruntime

import gopt

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def model_of(nodes, inputs, outputs, weights=(), domains=(), values=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node(op, i, o, name=f"{op}_{k}", **a) for k, (op, i, o, a) in enumerate(nodes)],
                              "pieces", [info(*v) for v in inputs], [info(*v) for v in outputs],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in weights],
                              value_info=[info(*v) for v in values])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


def found_places():
    """Rows of a table by the places of what is large: how many there are is found out when it runs, 0 too."""
    draw = np.random.default_rng(3)
    nodes = [("Exp", ["x"], ["e"], {}), ("Greater", ["e", "one"], ["g"], {}), ("NonZero", ["g"], ["places"], {}),
             ("Transpose", ["places"], ["pairs"], {"perm": [1, 0]}), ("GatherND", ["x", "pairs"], ["picked"], {}),
             ("Gather", ["places", "column"], ["columns"], {"axis": 0}),
             ("Gather", ["table", "columns"], ["rows"], {"axis": 0}), ("MatMul", ["rows", "w"], ["product"], {}),
             ("Unsqueeze", ["picked", "last"], ["wide"], {}), ("Mul", ["product", "wide"], ["y"], {})]
    weights = [("one", np.float32(1)), ("column", np.int64(1)), ("last", np.array([1])),
               ("table", draw.standard_normal((5, 16)).astype(np.float32)),
               ("w", draw.standard_normal((16, 24)).astype(np.float32))]
    return model_of(nodes, [("x", FLOAT, ["n", 5])], [("y", FLOAT, ["found", 24]), ("e", FLOAT, ["n", 5])], weights)


def sequences():
    nodes = [("Sin", ["x"], ["s"], {}), ("SplitToSequence", ["s", "sizes"], ["parts"], {"axis": 0}),
             ("SequenceAt", ["parts", "second"], ["part"], {}), ("Softmax", ["part"], ["p"], {"axis": -1}),
             ("SequenceInsert", ["parts", "p"], ["more"], {}),
             ("ConcatFromSequence", ["more"], ["all"], {"axis": 0}), ("Tanh", ["all"], ["y"], {})]
    weights = [("sizes", np.array([2, 3])), ("second", np.int64(1))]
    return model_of(nodes, [("x", FLOAT, [5, 4])], [("y", FLOAT, [8, 4])], weights,
                    values=[("part", FLOAT, [3, 4]), ("all", FLOAT, [8, 4])])


def strings():
    nodes = [("Cast", ["names"], ["numbers"], {"to": FLOAT}), ("Exp", ["x"], ["e"], {}),
             ("Add", ["e", "numbers"], ["y"], {}), ("Identity", ["names"], ["same"], {})]
    return model_of(nodes, [("x", FLOAT, [3]), ("names", STRING, [3])], [("y", FLOAT, [3]), ("same", STRING, [3])])


def shifted():
    """An operator that nobody knows, between two of ONNX's."""
    nodes = [("Exp", ["x"], ["e"], {}), ("Shift", ["e"], ["s"], {"domain": "com.acme"}), ("Neg", ["s"], ["y"], {})]
    return model_of(nodes, [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])], domains=["com.acme"],
                    values=[("s", FLOAT, [2, 3])])


def compiled(model, **options):
    with support.unittest.TestCase().assertWarnsRegex(UserWarning, "in pieces"):
        return gopt.compile(model, cost="analytic", **options)


class Pieces(InFolder):
    def expect_equal(self, model, ours, feed):
        expected = run_in_onnxruntime(model.SerializeToString(), feed)
        found = ours.run(None, feed)
        self.assertEqual(len(found), len(expected))
        for want, got in zip(expected, found):
            self.assertEqual(want.shape, got.shape)
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(got, want)

    def test_as_many_places_as_are_found(self):
        model = found_places()
        ours = compiled(model)
        draw = np.random.default_rng()
        for rows in (1, 4, 7):
            self.expect_equal(model, ours, {"x": draw.standard_normal((rows, 5)).astype(np.float32)})
        self.expect_equal(model, ours, {"x": np.full((3, 5), -1, np.float32)})  # nothing is found

    def test_sequences_and_strings(self):
        draw = np.random.default_rng()
        model = sequences()
        self.expect_equal(model, compiled(model), {"x": draw.standard_normal((5, 4)).astype(np.float32)})
        model = strings()
        feed = {"x": draw.standard_normal(3).astype(np.float32), "names": np.array(["1", "-2.5", "3e1"], dtype=object)}
        self.expect_equal(model, compiled(model), feed)

    def test_a_function_takes_the_place_of_a_step(self):
        model, calls = found_places(), []

        def places(mask):
            calls.append(mask.shape)
            return np.array(np.nonzero(mask))

        ours = compiled(model, functions={"NonZero": places})
        self.expect_equal(model, ours, {"x": np.random.default_rng().standard_normal((2, 5)).astype(np.float32)})
        self.assertEqual(calls, [(2, 5)])

    def test_a_folder_is_loaded_again(self):
        model = found_places()
        onnx.save(model, self.file("m.onnx"))
        ran = support.run_gopt("optimize", self.file("m.onnx"), "--emit", self.file("code"), "--cost", "analytic")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        ours = gopt.load(self.file("code"))
        self.assertEqual([step["kind"] for step in ours.steps], ["code", "yours", "code"])
        self.assertEqual([(v.name, v.type, v.shape) for v in ours.get_inputs()], [("x", "tensor(float)", ["n", 5])])
        self.assertEqual([v.name for v in ours.get_outputs()], ["y", "e"])
        self.expect_equal(model, ours, {"x": np.random.default_rng().standard_normal((3, 5)).astype(np.float32)})
        with self.assertRaisesRegex(gopt.Error, "input x is missing"):
            ours.run(None, {})
        with self.assertRaisesRegex(gopt.Error, "the model has no output 'z'; it has y, e"):
            ours.run(["z"], {"x": np.zeros((1, 5), np.float32)})

    def test_what_nothing_runs_asks_for_a_function(self):
        nodes = [("Exp", ["x"], ["e"], {}), ("Pick", ["e"], ["p"], {"domain": "com.acme"}), ("Neg", ["x"], ["y"], {})]
        model = model_of(nodes, [("x", FLOAT, [3])], [("p", FLOAT, ["some"]), ("y", FLOAT, [3])], domains=["com.acme"])
        with self.assertRaisesRegex(gopt.Error, r'give a function for it, functions=\{"com.acme::Pick": f\}'):
            compiled(model)
        ours = compiled(model, functions={"com.acme::Pick": lambda e: e[e > 1]})
        p, y = ours.run(None, {"x": np.array([1, -1, 2], np.float32)})
        np.testing.assert_allclose(p, np.exp(np.float32([1, 2])), rtol=1e-5)
        np.testing.assert_array_equal(y, np.float32([-1, 1, -2]))


class Functions(unittest.TestCase):
    x = np.array([[0, 1, 2], [3, 4, 5]], np.float32)

    def test_an_operator_of_a_model_that_is_whole(self):
        ours = gopt.compile(shifted(), cost="analytic", functions={"com.acme::Shift": lambda e: (e + 1).T.copy().T})
        np.testing.assert_allclose(ours.run(None, {"x": self.x})[0], -(np.exp(self.x) + 1), rtol=1e-5)

    def test_no_number_stands_in_for_what_is_missing(self):
        ours = gopt.compile(shifted(), cost="analytic")
        with self.assertRaisesRegex(gopt.Error, r'node `Shift_1` applies com.acme::Shift, .*functions=\{"com.acme::Shift"'):
            ours.run(None, {"x": self.x})

    def test_what_a_function_raises_or_gives_wrong_is_told(self):
        def fails(_):
            raise ValueError("no shift today")

        for function, text in ((fails, "no shift today"), (lambda e: e[0], r"as f32\[3\], expected f32\[2,3\]"),
                               (lambda e: e.astype(np.int64), r"as i64\[2,3\], expected f32\[2,3\]")):
            ours = gopt.compile(shifted(), cost="analytic", functions={"Shift_1": function})
            with self.assertRaisesRegex(gopt.Error, text):
                ours.run(None, {"x": self.x})


if __name__ == "__main__":
    support.main()
