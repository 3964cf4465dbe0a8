#!/usr/bin/env python3
"""Precisions of CUDA code against each other: each model planned by measured kernel times, checked, and timed in turns.

usage: precisions.py --gopt build/tools/gopt/gopt --out DIR [--precisions fp32 tf32 fp16 ...] [--runs 40] [--seconds S] [--extra FLAG ...] MODEL.onnx ...
needs: a GPU; numpy, onnxruntime, cmake, nvcc, cuDNN

A row a model: the median of twenty runs queued at once, inputs and outputs in device memory, the precisions in turns, and of each
max |a-b| / max |a| to the original in ONNX Runtime on the CPU in fp32, on inputs of a fresh seed. DIR keeps results.json, the
emitted folders and one cache of kernel times (NAME.kernel_times) a model; the same command goes on where it was stopped, also by
--seconds. The exit status is 1 when a difference is NaN or above what a precision may lose, or a step fails.
"""
import argparse, concurrent.futures, ctypes, json, os, pathlib, subprocess, sys, time
import numpy as np

from check_models import Emitted, difference, session
from cuda_check import OnDevice

LOSSES = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 1e-2, "bf16": 1e-1}  # of the largest output


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: " + (done.stderr or done.stdout)[-900:])


def prepare(args, model, precision):
    """Emits and builds one precision of a model; returns the folder, what the plan says of itself, and the seconds."""
    name = f"{model.parent.name}_{model.stem}"
    folder, report = args.out / f"{name}_{precision}", args.out / f"{name}_{precision}.json"
    start = time.perf_counter()
    run([args.gopt, "optimize", model, "--target", "cuda", "--precision", precision, "--cost", "measured", "--cache", args.out / f"{name}.kernel_times",
         "--check", "off", "--no-measure", "--force", "--emit", folder, "--report", report, *args.extra])
    cost = json.loads(report.read_text())["cost"]
    return folder, {"kernels": cost["after_kernels"], "estimated_ms": cost["after_ms"], "kernels_timed": cost["kernels_timed"], "tuning_s": time.perf_counter() - start}


def build(folder):
    run(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
    run(["cmake", "--build", folder / "build", "-j8"])


def draw(s, seed):
    rng = np.random.default_rng(seed)
    feed = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        feed[i.name] = rng.integers(0, 2 if "mask" in i.name or "type" in i.name else 1000, shape) if "int" in i.type else rng.standard_normal(shape).astype(np.float32)
    return feed


def queued_ms(device, count=20):
    start = time.perf_counter()
    device.run(count)
    return (time.perf_counter() - start) * 1e3 / count


def compare(args, model, folders):
    """Differences and medians by precision."""
    reference = session(model, 0)
    feed = draw(reference, args.seed)
    expected = reference.run(None, feed)
    devices, rows = {}, {}
    for precision, folder in folders.items():
        emitted = Emitted(folder, 0)
        devices[precision] = OnDevice(emitted, feed)
        devices[precision].run(1)
        rows[precision] = {"difference": difference(expected, devices[precision].results()), "times": []}
    for turn in range(args.runs + 3):
        for precision, device in devices.items():
            ms = queued_ms(device)
            if turn >= 3:
                rows[precision]["times"].append(ms)
    for precision, device in devices.items():
        times = sorted(rows[precision].pop("times"))
        rows[precision]["ms"] = times[len(times) // 2]
        device.emitted.lib.gopt_destroy(ctypes.c_void_p(device.emitted.model))
    return rows


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = json.loads(path.read_text()) if path.exists() else {}

    def save(self):
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.rows, indent=1) + "\n")
        beside.replace(self.path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--precisions", nargs="+", choices=LOSSES, default=["fp32", "tf32", "fp16"])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--extra", nargs="*", default=["--search", "none"], help="further flags of gopt optimize")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    results, end, failed = Results(args.out / "results.json"), time.monotonic() + args.seconds, 0
    print(f"seed {args.seed}", flush=True)
    for model in args.models:
        name = f"{model.parent.name}/{model.stem}"
        row = results.rows.setdefault(name, {})
        if all("ms" in row.get(p, {}) for p in args.precisions):
            continue
        folders = {}
        with concurrent.futures.ThreadPoolExecutor(len(args.precisions)) as pool:
            builds = {}
            for precision in args.precisions:  # one after another: kernels are timed on the device
                if time.monotonic() > end:
                    break
                try:
                    folder, said = prepare(args, model, precision)
                    row.setdefault(precision, {}).update(said)
                    builds[precision] = (folder, pool.submit(build, folder))
                except RuntimeError as e:
                    failed += 1
                    print(f"{name} {precision}: {e}", flush=True)
            for precision, (folder, built) in builds.items():
                try:
                    built.result()
                    folders[precision] = folder
                except RuntimeError as e:
                    failed += 1
                    print(f"{name} {precision}: {e}", flush=True)
        if not folders:
            continue
        try:
            for precision, measured in compare(args, model, folders).items():
                row[precision].update(measured)
                good = measured["difference"] <= LOSSES[precision]
                failed += not good
                said = row[precision]
                print(f"{name:<28} {precision}  {said['ms']:8.4f} ms  estimated {said['estimated_ms']:8.4f}  {said['kernels']:4} kernels  difference {said['difference']:.2g}"
                      f"  {said['kernels_timed']} kernels timed, {said['tuning_s']:.0f} s", "" if good else "  WRONG", flush=True)
        except RuntimeError as e:
            failed += 1
            print(f"{name}: {e}", flush=True)
        results.save()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
