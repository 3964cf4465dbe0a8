"""gopt.compile and gopt.load: arrays in and out."""
import os
import threading
import unittest

import support
from support import EXAMPLE, InFolder, TensorProto, convolution_model, identity_model, np, run_in_onnxruntime

import gopt

ELEMENTS = {TensorProto.FLOAT16: np.float16, TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64,
            TensorProto.INT8: np.int8, TensorProto.INT16: np.int16, TensorProto.INT32: np.int32,
            TensorProto.INT64: np.int64, TensorProto.UINT8: np.uint8, TensorProto.UINT16: np.uint16,
            TensorProto.UINT32: np.uint32, TensorProto.UINT64: np.uint64, TensorProto.BOOL: np.bool_}


def drawn(dtype, shape):
    return np.random.default_rng().integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


class Compiled(InFolder):
    @classmethod
    def setUpClass(cls):
        cls.source = convolution_model(seed=int.from_bytes(os.urandom(4), "little"))
        cls.model = gopt.compile(cls.source, cost="analytic", no_measure=True)

    def draw(self):
        return {"x": np.random.default_rng().standard_normal((1, 3, 8, 8), dtype=np.float32)}

    def test_it_computes_what_onnx_runtime_does(self):
        self.assertEqual(self.model.engine, "cpu")
        feed = self.draw()
        expected = run_in_onnxruntime(self.source.SerializeToString(), feed)
        for a, b in zip(expected, self.model.run(None, feed)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

    def test_its_inputs_and_outputs_are_those_of_onnx_runtime(self):
        session = support.onnxruntime.InferenceSession(self.source.SerializeToString(),
                                                       providers=["CPUExecutionProvider"])
        for ours, theirs in ((self.model.get_inputs(), session.get_inputs()),
                             (self.model.get_outputs(), session.get_outputs())):
            self.assertEqual([(v.name, v.type, v.shape) for v in ours], [(v.name, v.type, v.shape) for v in theirs])

    def test_threads_get_what_each_asked_for(self):
        feeds = [self.draw() for _ in range(8)]
        expected = [self.model.run(["y"], feed)[0] for feed in feeds]
        found = [[] for _ in feeds]
        workers = [threading.Thread(target=lambda k=k: found[k].extend(self.model.run(["y"], feeds[k])[0]
                                                                       for _ in range(50)))
                   for k in range(len(feeds))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for want, got in zip(expected, found):
            self.assertEqual(len(got), 50)
            for one in got:
                np.testing.assert_array_equal(one, want)

    def test_what_does_not_fit_is_named(self):
        x = self.draw()["x"]
        cases = [({}, "input x is missing"), ({"x": x, "w": x}, "the model has no input 'w'; it has x"),
                 ({"x": x.astype(np.float64)}, "input x is f64[1,3,8,8], expected f32[1,3,8,8]"),
                 ({"x": x[..., :7]}, "input x is f32[1,3,8,7], expected f32[1,3,8,8]"),
                 ({"x": x[0]}, "input x is f32[3,8,8], expected f32[1,3,8,8]"),
                 ({"x": x.astype(np.complex64)}, "input x is an array of complex64, which no tensor is of"),
                 ({"x": "text"}, "input x is an array of <U4, which no tensor is of")]
        for model in (self.model, gopt.load(self.source, engine="interpreter")):
            for feed, message in cases:
                with self.subTest(message, engine=model.engine), self.assertRaises(gopt.Error) as raised:
                    model.run(None, feed)
                self.assertEqual(str(raised.exception), message)
        with self.assertRaisesRegex(gopt.Error, "no output 'z'; it has y"):
            self.model.run(["z"], {"x": x})

    def test_an_emitted_folder_is_loaded(self):
        gopt.optimize(self.source, emit=self.file("code"), cost="analytic", no_measure=True)
        feed = self.draw()
        np.testing.assert_allclose(gopt.load(self.file("code")).run(None, feed)[0], self.model.run(None, feed)[0],
                                   rtol=1e-5, atol=1e-5)


class Arrays(unittest.TestCase):
    def test_of_every_type_as_they_are(self):
        model = gopt.load(identity_model(ELEMENTS, [2, 3]), engine="interpreter")
        feed = {f"x{number}": drawn(dtype, (2, 3)) for number, dtype in enumerate(ELEMENTS.values())}
        for (name, given), found in zip(feed.items(), model.run(None, feed)):
            with self.subTest(name):
                self.assertEqual(found.dtype, given.dtype)
                np.testing.assert_array_equal(found, given)
                self.assertTrue(found.flags.writeable)

    def test_strided_foreign_and_small_ones(self):
        for given in (drawn(np.float32, (4, 6))[::2, ::2], drawn(np.float32, (3, 2)).T,
                      drawn(np.float32, (2, 3)).astype(">f4"), np.float32(7), drawn(np.float32, (2, 0))):
            model = gopt.load(identity_model([TensorProto.FLOAT], list(given.shape)), engine="interpreter")
            (found,) = model.run(None, {"x0": given})
            self.assertEqual(found.shape, given.shape)
            np.testing.assert_array_equal(found, given)

    def test_an_output_outlives_its_input(self):
        model = gopt.load(identity_model([TensorProto.FLOAT], [1000]), engine="interpreter")
        given = drawn(np.float32, (1000,))
        kept = given.copy()
        (found,) = model.run(None, {"x0": given})
        given[:] = -1
        del given, model
        np.testing.assert_array_equal(found, kept)

    def test_symbols_are_named(self):
        model = gopt.load(identity_model([TensorProto.FLOAT], ["batch", 3]), engine="interpreter")
        self.assertEqual(model.get_inputs()[0].shape, ["batch", 3])
        for batch in (1, 5):
            self.assertEqual(model.run(None, {"x0": drawn(np.float32, (batch, 3))})[0].shape, (batch, 3))
        for shape in ({"batch": 4}, {"x0": [4, 3]}, "batch=4"):
            compiled = gopt.compile(identity_model([TensorProto.FLOAT], ["batch", 3]), cost="analytic", shape=shape)
            self.assertEqual(compiled.get_inputs()[0].shape, [4, 3])
        any_batch = gopt.compile(identity_model([TensorProto.FLOAT], ["batch", 3]), cost="analytic", maximum="batch=7")
        self.assertEqual(any_batch.get_inputs()[0].shape, ["batch", 3])
        for batch in (1, 5, 7):
            given = drawn(np.float32, (batch, 3))
            np.testing.assert_array_equal(any_batch.run(None, {"x0": given})[0], given)
        with self.assertRaisesRegex(gopt.Error, "batch is from 0 to 7"):
            any_batch.run(None, {"x0": drawn(np.float32, (8, 3))})


if __name__ == "__main__":
    support.main()
