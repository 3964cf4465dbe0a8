#!/usr/bin/env python3
"""CPU code in fp32, bf16x3 and bf16 beside ONNX Runtime (fp32) and OpenVINO in f32 and as it computes by default (bf16, where the processor has instructions for it).

usage: cpu_precisions.py MODEL.onnx ... [--gopt build/tools/gopt/gopt] [--threads 1] [--rounds 3] [--precisions fp32,bf16x3,bf16] [--out FOLDER] [--optimize "--budget 20s"]

Each engine runs in a process of its own, in turn; of each process's runs the median counts, of the rounds the least. Prints a row a model: milliseconds,
and in brackets the largest error over the largest output, against ONNX Runtime on one draw of inputs. What lies in --out is not made again.
"""
import argparse, json, pathlib, subprocess, sys, tempfile
import numpy as np
import layers

OPENVINO = """
import openvino as ov
from openvino import Tensor
core = ov.Core()
options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": int(sys.argv[2])} | json.loads(sys.argv[4])
model = core.compile_model(sys.argv[1], "CPU", options)
request = model.create_infer_request()
feed = np.load(sys.argv[5])
for i in model.inputs:
    request.set_tensor(i, Tensor(np.ascontiguousarray(feed[i.get_any_name()])))
request.infer()
np.savez(sys.argv[6], *[request.get_output_tensor(k).data for k in range(len(model.outputs))])
time_calls(request.infer)
"""


def draw_inputs(model, place):
    """Inputs in an .npz file, and ONNX Runtime's outputs for them."""
    import onnxruntime as rt
    session, draw = rt.InferenceSession(str(model), providers=["CPUExecutionProvider"]), np.random.default_rng(3)
    shape = lambda i: [d if isinstance(d, int) else 1 for d in i.shape]
    feed = {i.name: draw.integers(0, 2 if "mask" in i.name or "type" in i.name else 1000, shape(i)).astype(np.int64) if "int" in i.type else draw.standard_normal(shape(i)).astype(np.float32) for i in session.get_inputs()}
    np.savez(place, **feed)
    return session.run(None, feed)


def error(got, wanted):
    return max(float(np.max(np.abs(g.astype(np.float64) - w))) / max(1e-30, float(np.max(np.abs(w)))) for g, w in zip(got, wanted))


def emit(a, model, precision, inputs, folder):
    if not (folder / "model.cc").exists():
        command = [a.gopt, "optimize", model, "-o", folder.with_suffix(".onnx"), "--emit", folder, "--precision", precision, "--threads", a.threads, "--force", *a.optimize.split()]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    made = folder.with_suffix(".npz")
    subprocess.run([str(c) for c in [a.gopt, "run", folder, "--inputs", inputs, "-o", made, "--force"]], check=True, stdout=subprocess.DEVNULL)
    return made


def timed(command):
    out, why = layers.run(command, 300)
    return (json.loads(out), "") if out else (None, why)


def measure(a, model, scratch):
    inputs = scratch / "inputs.npz"
    wanted = draw_inputs(model, inputs)
    engines, errors = {}, {}
    for precision in a.precisions.split(","):
        folder = (a.out or scratch) / f"{model.stem}_{precision}"
        made = np.load(emit(a, model, precision, inputs, folder))
        errors[precision] = error([made[k] for k in made.files], wanted)
        engines[precision] = lambda folder=folder: layers.time_ours(a, folder, scratch, 30)
    for name, options in (("OpenVINO f32", {"INFERENCE_PRECISION_HINT": "f32"}), ("OpenVINO", {})):
        made = scratch / f"{name}.npz"
        command = [sys.executable, "-c", layers.TIMING + OPENVINO, model, a.threads, 1.0, json.dumps(options), inputs, made]

        engines[name] = lambda command=command: timed(command)
    engines["ONNX Runtime"] = lambda: timed([sys.executable, "-c", layers.TIMING + layers.PEERS["onnxruntime"], model, a.threads, 1.0])
    times = {}
    for _ in range(a.rounds):
        for name, time in engines.items():
            ms, why = time()
            if ms is None:
                print(f"{model.stem}, {name}: {why}", file=sys.stderr)
            else:
                times[name] = min(ms, times.get(name, ms))
    for name in engines:
        made = scratch / f"{name}.npz"
        if name not in errors and made.exists():
            outputs = np.load(made)
            errors[name] = error([outputs[k] for k in outputs.files], wanted)
    return times, errors


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="+", type=pathlib.Path)
    ap.add_argument("--gopt", default="build/tools/gopt/gopt")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--precisions", default="fp32,bf16x3,bf16")
    ap.add_argument("--optimize", default="--budget 20s", help="more flags for gopt optimize")
    ap.add_argument("--out", type=pathlib.Path)
    a = ap.parse_args()
    if a.out:
        a.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for model in a.models:
            times, errors = measure(a, model, pathlib.Path(place))
            print(f"{model.stem:<16}" + "".join(f"  {name} {times[name]:.2f} ({errors.get(name, float('nan')):.1e})" for name in times), flush=True)


if __name__ == "__main__":
    main()
