"""Code for several sizes of a model's open extents, against ONNX Runtime."""
import os
import unittest

import support
from support import InFolder, TensorProto, helper, np, numpy_helper, run_in_onnxruntime

import gopt

WIDTH, HEADS = 32, 4


def attention_model(seed):
    """An embedding and one attention block over [batch, seq] tokens, drawn weights."""
    draw = np.random.default_rng(seed)

    def weight(name, *shape):
        return numpy_helper.from_array((draw.standard_normal(shape) * 0.2).astype(np.float32), name)

    def integers(name, *values):
        return numpy_helper.from_array(np.array(values, np.int64), name)

    nodes = [helper.make_node("Gather", ["table", "ids"], ["e0"]), helper.make_node("Shape", ["ids"], ["shape"]),
             helper.make_node("Gather", ["shape", "one"], ["length"]),
             helper.make_node("Slice", ["positions", "zero", "length"], ["places"]),
             helper.make_node("Add", ["e0", "places"], ["e"])]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [helper.make_node("MatMul", ["e", "w" + name], [name + "1"]),
                  helper.make_node("Reshape", [name + "1", "apart"], [name + "2"]),
                  helper.make_node("Transpose", [name + "2"], [name], perm=order)]
    nodes += [helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["o"]),
              helper.make_node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
              helper.make_node("Reshape", ["o1", "together"], ["o2"]), helper.make_node("Add", ["o2", "e"], ["y"])]
    weights = [weight("table", 50, WIDTH), *(weight("w" + name, WIDTH, WIDTH) for name in "qkv"),
               integers("apart", 0, 0, HEADS, WIDTH // HEADS), integers("together", 0, 0, WIDTH),
               weight("positions", 20, WIDTH), integers("zero", 0), integers("one", 1)]
    graph = helper.make_graph(nodes, "attention",
                              [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "seq", WIDTH])], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class SeveralSizes(InFolder):
    @classmethod
    def setUpClass(cls):
        cls.source = attention_model(seed=int.from_bytes(os.urandom(4), "little"))
        cls.model = gopt.compile(cls.source, cost="analytic", specialize=["batch=1,3", "seq=6,17"])

    def feed(self, batch, seq):
        return {"ids": np.random.default_rng().integers(0, 50, (batch, seq))}

    def test_each_computes_what_onnx_runtime_does(self):
        for batch, seq in [(1, 6), (3, 17), (1, 17), (3, 6), (1, 6), (2, 17), (11, 6), (2, 7), (1, 1), (5, 20)]:
            feed = self.feed(batch, seq)
            (want,), (got,) = run_in_onnxruntime(self.source.SerializeToString(), feed), self.model.run(None, feed)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_inputs_and_outputs_are_open_as_onnx_runtime_says(self):
        session = support.onnxruntime.InferenceSession(self.source.SerializeToString(),
                                                       providers=["CPUExecutionProvider"])
        for ours, theirs in ((self.model.get_inputs(), session.get_inputs()),
                             (self.model.get_outputs(), session.get_outputs())):
            self.assertEqual([(v.name, v.type, v.shape) for v in ours], [(v.name, v.type, v.shape) for v in theirs])

    def test_a_size_at_which_the_model_has_no_meaning_is_refused(self):
        with self.assertRaises(gopt.Error) as raised:
            self.model.run(None, self.feed(2, 21))
        self.assertIn("the model has no meaning at batch=2 seq=21; of ", str(raised.exception))
        self.assertIn("the range 0 to seq lies within the axis of extent 20", str(raised.exception))

    def test_any_size_needs_no_other(self):
        model = gopt.compile(self.source, cost="analytic", maximum=["batch=4", "seq=20"])
        for batch, seq in [(3, 17), (4, 20), (1, 1), (2, 13)]:
            feed = self.feed(batch, seq)
            (want,), (got,) = run_in_onnxruntime(self.source.SerializeToString(), feed), model.run(None, feed)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        with self.assertRaises(gopt.Error) as raised:
            model.run(None, self.feed(5, 6))
        self.assertEqual(str(raised.exception), "there is no code for batch=5 seq=6: batch is from 0 to 4")

    def test_a_model_file_has_no_sizes(self):
        with self.assertRaisesRegex(gopt.Error, "an ONNX file keeps its open extents"):
            gopt.optimize(self.source, specialize="batch=1")


if __name__ == "__main__":
    support.main()
