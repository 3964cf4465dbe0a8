"""Times one ONNX model in a runtime, when it is asked to: gopt starts a process of this for each model that it compares.

usage: time_model.py RUNTIME [MODEL INPUTS.npz THREADS]      without a model: says whether the runtime is there

Prints "ready" once the model is loaded and has run. Then, for each line N on standard input, runs it once untimed and N
times timed, and prints the least milliseconds of these. What goes wrong is one line on standard error, exit status 1.
"""
import importlib
import sys
import time


def load_onnxruntime(path, feed, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def load_openvino(path, feed, threads):
    import openvino
    model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"})
    request = model.create_infer_request()
    return lambda: request.infer(feed)


LOADERS = {"onnxruntime": load_onnxruntime, "openvino": load_openvino}


def milliseconds(run, clock):
    start = clock()
    run()
    return (clock() - start) * 1e3


def serve(run, clock):
    for _ in range(2):
        run()
    print("ready", flush=True)
    for line in sys.stdin:
        run()
        print(min(milliseconds(run, clock) for _ in range(int(line))), flush=True)


def main():
    runtime = sys.argv[1]
    for module in ("numpy", runtime):
        try:
            importlib.import_module(module)
        except ImportError as error:
            sys.exit(f"the Python {sys.executable} cannot import {module} ({error}); install it with: "
                     f"{sys.executable} -m pip install {module}")
    if len(sys.argv) == 2:
        print("ready", flush=True)
        return
    import numpy
    model, inputs, threads = sys.argv[2:5]
    try:
        with numpy.load(inputs) as arrays:
            feed = {name: arrays[name] for name in arrays.files}
        # One thread's time is its processor's: what else the machine does adds nothing to it.
        clock = time.process_time if int(threads) == 1 else time.perf_counter
        serve(LOADERS[runtime](model, feed, int(threads)), clock)
    except Exception as error:
        sys.exit(f"{runtime}: {error}")


if __name__ == "__main__":
    main()
