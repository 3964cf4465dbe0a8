"""gopt.optimize and gopt.compare: what comes out, in files and as values, and what is refused."""
import faulthandler
import json
import os
import re
import signal
import threading
import unittest
import warnings

import support
from support import EXAMPLE, InFolder, convolution_model, np, onnx, run_gopt, run_in_onnxruntime

import gopt


class Optimize(InFolder):
    def test_a_path_bytes_and_a_message_are_the_same(self):
        model = convolution_model()
        onnx.save(model, self.file("m.onnx"))
        results = {gopt.optimize(one, check="off").model for one in (self.file("m.onnx"), model.SerializeToString(), model)}
        self.assertEqual(len(results), 1)

    def test_a_result_is_a_model_again(self):
        once = gopt.optimize(convolution_model())
        self.assertEqual(gopt.optimize(once).applied, {})

    def test_the_model_computes_the_same_in_onnx_runtime(self):
        model = convolution_model(seed=int.from_bytes(os.urandom(4), "little"))
        result = gopt.optimize(model)
        self.assertTrue(result.check.checked and result.check.passed)
        rewritten = onnx.load_from_string(result.model)
        self.assertNotIn("BatchNormalization", [node.op_type for node in rewritten.graph.node])
        feed = {"x": np.random.default_rng().standard_normal((1, 3, 8, 8), dtype=np.float32)}
        for a, b in zip(run_in_onnxruntime(model.SerializeToString(), feed), run_in_onnxruntime(result.model, feed)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

    def test_it_is_what_the_program_does(self):
        flags = ["--allow", "finite-only", "--steps", "20"]
        done = run_gopt("optimize", EXAMPLE, "-o", self.file("y.onnx"), "--report", self.file("r.json"), *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = gopt.optimize(EXAMPLE, allow="finite-only", steps=20)
        with open(self.file("y.onnx"), "rb") as file:
            self.assertEqual(result.model, file.read())
        with open(self.file("r.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(result.report.keys(), report.keys())
        for field in ("operators", "graphs", "rules", "check"):
            self.assertEqual(result.report[field], report[field])
        self.assertEqual(result.applied, {"sin-cos-squares": 1})

    def test_saved_once_and_never_over_what_was_read(self):
        onnx.save(convolution_model(), self.file("m.onnx"))
        result = gopt.optimize(self.file("m.onnx"))
        result.save(self.file("out.onnx"))
        with open(self.file("out.onnx"), "rb") as file:
            self.assertEqual(file.read(), result.model)
        with self.assertRaisesRegex(gopt.Error, "exists; give --force"):
            result.save(self.file("out.onnx"))
        result.save(self.file("out.onnx"), force=True)
        with self.assertRaisesRegex(gopt.Error, "is the input itself"):
            result.save(self.file("m.onnx"), force=True)

    def test_weights_beside_the_model_stay_beside_it(self):
        onnx.save(convolution_model(channels=256), self.file("m.onnx"), save_as_external_data=True, location="m.data",
                  size_threshold=0)
        result = gopt.optimize(self.file("m.onnx"))
        result.save(self.file("out.onnx"))
        self.assertTrue(os.path.exists(self.file("out.onnx.data")))
        self.assertTrue(gopt.compare(self.file("out.onnx"), result))

    def test_files_that_are_asked_for(self):
        gopt.optimize(convolution_model(), emit=self.file("code"), report=[self.file("r.html"), self.file("r.json")],
                      output=self.file("o.onnx"), no_measure=True, cost="analytic")
        self.assertEqual(sorted(os.listdir(self.folder)), ["code", "o.onnx", "r.html", "r.json"])
        self.assertTrue(gopt.compare(self.file("o.onnx"), self.file("code")))

    def test_warnings_come_as_warnings(self):
        shown = run_gopt("rules", "--show", "sin-cos-squares").stdout
        stanza = shown[:shown.index("\nend\n") + 5]
        with open(self.file("stale.rules"), "w", encoding="utf-8") as file:
            file.write(re.sub(r'definitions="\w+"', 'definitions="0000000000000000"', stanza))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = gopt.optimize(EXAMPLE, rules=self.file("stale.rules"), allow="finite-only")
        self.assertEqual(result.applied, {})
        self.assertEqual([str(one.message) for one in caught], result.warnings)
        self.assertRegex(result.warnings[0], "sin-cos-squares")


class Refused(InFolder):
    def refuse(self, expected, model, **options):
        with self.assertRaises(gopt.Error) as raised:
            gopt.optimize(model, **options)
        self.assertIn(expected, str(raised.exception))
        return str(raised.exception)

    def test_with_the_message_of_the_program(self):
        cases = [({"cost": "guess"}, ["--cost", "guess"]), ({"threads": 0}, ["--threads", "0"]),
                 ({"allow": ["everything"]}, ["--allow", "everything"]), ({"budget": "soon"}, ["--budget", "soon"]),
                 ({"disable": "no-such-rule"}, ["--disable", "no-such-rule"]),
                 ({"shape": {"x": [2, -1]}}, ["--shape", "x=2x-1"]), ({"rtol": -1}, ["--rtol", "-1"]),
                 ({"report": self.file("r.txt")}, ["--report", self.file("r.txt")]),
                 ({"emit": "code", "target": "onnx"}, ["--emit", "code", "--target", "onnx"])]
        for options, flags in cases:
            with self.subTest(options):
                printed = run_gopt("optimize", EXAMPLE, "-o", self.file("out.onnx"), *flags)
                self.assertEqual(printed.returncode, 1)
                self.assertIn(self.refuse("", EXAMPLE, **options), printed.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_models_that_are_none(self):
        self.refuse("no such file", self.file("missing.onnx"))
        self.refuse("the model: is not an ONNX model", b"text")
        cut = convolution_model().SerializeToString()[:-20]
        self.assertNotIn("/", self.refuse("is truncated", cut))

    def test_what_is_no_model_and_options_that_there_are_not(self):
        with self.assertRaisesRegex(TypeError, "not int"):
            gopt.optimize(3)
        with self.assertRaisesRegex(TypeError, "no option 'alow'; the options are allow, "):
            gopt.optimize(EXAMPLE, alow="finite-only")


class WhileItWorks(InFolder):
    """A pipe in place of a file of rules holds the work until something is written: nothing here waits for a time."""

    def setUp(self):
        super().setUp()
        os.mkfifo(self.file("pipe.rules"))
        faulthandler.dump_traceback_later(500, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def test_other_threads_run(self):
        results = []
        worker = threading.Thread(target=lambda: results.append(gopt.optimize(EXAMPLE, rules=self.file("pipe.rules"))))
        worker.start()
        with open(self.file("pipe.rules"), "w", encoding="utf-8"):  # comes back when the worker reads
            pass
        worker.join()
        self.assertEqual(results[0].applied, {})

    def test_an_interruption_ends_it(self):
        handled = threading.Event()

        def interrupt(*_):
            handled.set()
            raise KeyboardInterrupt

        def press_once():
            with open(self.file("pipe.rules"), "w", encoding="utf-8"):
                signal.raise_signal(signal.SIGINT)
                handled.wait()

        before = signal.signal(signal.SIGINT, interrupt)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        presser = threading.Thread(target=press_once)
        presser.start()
        with self.assertRaises(KeyboardInterrupt):
            gopt.optimize(EXAMPLE, rules=self.file("pipe.rules"))
        presser.join()
        self.assertTrue(gopt.optimize(EXAMPLE).check.passed, "the next one is not interrupted")


class Compare(InFolder):
    def test_models_that_differ(self):
        one, other = convolution_model(1), convolution_model(2)
        self.assertTrue(gopt.compare(one, one, repeats=2))
        comparison = gopt.compare(one, other)
        self.assertFalse(comparison)
        (difference,) = comparison.draws[0]
        self.assertEqual((difference.output, difference.comparable, difference.passed), ("y", True, False))
        self.assertGreater(difference.max_absolute, 0)
        self.assertTrue(gopt.compare(one, other, rtol=1e9))

    def test_on_inputs_that_are_given(self):
        zeros = np.zeros((1, 3, 8, 8), np.float32)
        one, other = (convolution_model(seed) for seed in (1, 1))
        self.assertTrue(gopt.compare(one, gopt.load(other), inputs={"x": zeros}))
        with self.assertRaisesRegex(gopt.Error, "no input 'z'; it has x"):
            gopt.compare(one, other, inputs={"z": zeros})
        with self.assertRaisesRegex(gopt.Error, "no output 'y'"):
            renamed = convolution_model(1)
            renamed.graph.output[0].name = renamed.graph.node[2].output[0] = "z"
            gopt.compare(one, renamed)


if __name__ == "__main__":
    support.main()
