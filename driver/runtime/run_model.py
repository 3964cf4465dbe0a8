"""Runs one ONNX model in ONNX Runtime as often as it is asked to.

usage: run_model.py [MODEL [optimized]]      without a model: says whether the runtime is there

The model runs as it is written; `optimized`, as the runtime's default optimizations leave it.

Prints "ready" once the model is loaded. Then, for each pair of lines on standard input, INPUTS.npz and OUTPUTS.npz, runs
it, writes the outputs under their positions, and prints "done". What goes wrong is one line on standard error, exit
status 1.
"""
import importlib
import sys


def load(path, is_optimized):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is said once, by the exception
    if not is_optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def serve(session):
    import numpy
    known = {value.name for value in session.get_inputs()}
    print("ready", flush=True)
    for line in sys.stdin:
        with numpy.load(line.rstrip("\n")) as arrays:
            feed = {name: arrays[name] for name in arrays.files if name in known}
        outputs = session.run(None, feed)
        target = sys.stdin.readline().rstrip("\n")
        numpy.savez(target, **{str(position): output for position, output in enumerate(outputs)})
        print("done", flush=True)


def main():
    for module in ("numpy", "onnxruntime"):
        try:
            importlib.import_module(module)
        except ImportError as error:
            sys.exit(f"the Python {sys.executable} cannot import {module} ({error}); install it with: "
                     f"{sys.executable} -m pip install {module}")
    if len(sys.argv) == 1:
        print("ready", flush=True)
        return
    try:
        serve(load(sys.argv[1], sys.argv[2:] == ["optimized"]))
    except Exception as error:
        sys.exit(f"onnxruntime: {error}")


if __name__ == "__main__":
    main()
