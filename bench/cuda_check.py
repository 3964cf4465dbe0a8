#!/usr/bin/env python3
"""Emits CUDA code with gopt, builds it, and checks and times it on this machine's GPU against ONNX Runtime on the original.

usage: cuda_check.py --gopt build/tools/gopt/gopt [--runs 100] [--out DIR] [--csv FILE] [--profile N] MODEL.onnx ...
needs: a GPU; numpy, onnxruntime, cmake, nvcc, cuDNN

A row a model: max |a-b| / max |a| of the code emitted from the graph as it is and from the optimized one (the original in ONNX
Runtime on the CPU is the reference, inputs of a fresh seed), and medians in milliseconds: `run` with inputs and outputs in host
memory, `device` with both in device memory, waiting after each run, `queued` the same with twenty runs queued at once. Exit
status 1 when a difference is above 1e-4, NaN, or a step fails.
"""
import argparse, concurrent.futures, csv, ctypes, os, pathlib, subprocess, sys, tempfile, time
import numpy as np

from check_models import LIMIT, Emitted, difference, draw, session


def prepare(gopt, model, folder, extra):
    folder.parent.mkdir(parents=True, exist_ok=True)
    steps = ([gopt, "optimize", model, "--target", "cuda", "--emit", folder, "--check", "off", "--force", *extra],
             ["cmake", "-S", folder, "-B", folder / "build"], ["cmake", "--build", folder / "build", "-j2"])
    for step in steps:
        done = subprocess.run([str(c) for c in step], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{step[0]}: " + (done.stderr or done.stdout)[-900:])


class OnDevice:
    """Inputs and outputs of an emitted model in device memory."""

    def __init__(self, emitted, feed):
        self.emitted, self.cuda = emitted, ctypes.CDLL("libcudart.so.13")
        arrays = [np.ascontiguousarray(feed[n]) for n in emitted.names]
        self.inputs, self.outputs = self.own_memory("input", arrays, True), self.own_memory("output", emitted.outputs, False)
        self.stream = ctypes.c_void_p()
        self.call("cudaStreamCreate", ctypes.byref(self.stream))

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: error {status}")

    def own_memory(self, port, arrays, filled):
        """Where the model's kernels read and write themselves, so that a run copies nothing."""
        find = getattr(self.emitted.lib, f"gopt_device_{port}")
        find.restype = ctypes.c_void_p
        pointers = (ctypes.c_void_p * max(1, len(arrays)))()
        for k, a in enumerate(arrays):
            pointers[k] = find(ctypes.c_void_p(self.emitted.model), k)
            if filled and a.nbytes:
                self.call("cudaMemcpy", ctypes.c_void_p(pointers[k]), ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(a.nbytes), 1)
        return pointers

    def run(self, count):
        for _ in range(count):
            if self.emitted.lib.gopt_run(ctypes.c_void_p(self.emitted.model), self.inputs, self.outputs, self.stream):
                raise RuntimeError("gopt_run failed")
        self.call("cudaStreamSynchronize", self.stream)

    def results(self):
        arrays = [np.empty_like(a) for a in self.emitted.outputs]
        for a, p in zip(arrays, self.outputs):
            self.call("cudaMemcpy", ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(p), ctypes.c_size_t(a.nbytes), 2)
        return arrays


def median_ms(call, runs, each=1):
    times = []
    for k in range(runs + 5):
        start = time.perf_counter()
        call()
        if k >= 5:
            times.append((time.perf_counter() - start) * 1e3 / each)
    return sorted(times)[len(times) // 2]


def profile(emitted, feed, runs=20):
    lib, model = emitted.lib, ctypes.c_void_p(emitted.model)
    lib.gopt_kernel_name.restype = ctypes.c_char_p
    count = lib.gopt_kernel_count()
    arrays = [np.ascontiguousarray(feed[n]) for n in emitted.names]
    pointers = lambda xs: (ctypes.c_void_p * max(1, len(xs)))(*[x.ctypes.data for x in xs])
    total = (ctypes.c_double * count)()
    for _ in range(runs):
        if lib.gopt_profile(model, pointers(arrays), pointers(emitted.outputs), None, total):
            raise RuntimeError("gopt_profile failed")
    return sorted(((total[k] / runs * 1e3, lib.gopt_kernel_name(k).decode()) for k in range(count)), reverse=True)


def check(args, model, folder, kind, expected, feed):
    emitted = Emitted(folder, 0)
    row = {"model": f"{model.parent.name}/{model.stem}", "graph": kind, "kernels": emitted.lib.gopt_kernel_count()}
    row["difference"] = difference(expected, emitted.run(feed))
    row["run_ms"] = median_ms(lambda: emitted.run(feed), args.runs)
    device = OnDevice(emitted, feed)
    device.run(1)
    row["device_difference"] = difference(expected, device.results())
    row["device_ms"] = median_ms(lambda: device.run(1), args.runs)
    row["queued_ms"] = median_ms(lambda: device.run(20), args.runs // 5, 20)
    for time_us, name in profile(emitted, feed)[: args.profile]:
        print(f"    {time_us:9.1f} us  {name}")
    emitted.lib.gopt_destroy(ctypes.c_void_p(emitted.model))
    return row


def check_all(args, out):
    kinds = {"plain": ["--search", "none"], "optimized": args.extra}
    folder = lambda model, kind: out / f"{model.parent.name}_{model.stem}_{kind}"
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        prepared = {(m, k): pool.submit(prepare, args.gopt, m, folder(m, k), extra) for m in args.models for k, extra in kinds.items()}
    rows, failed = [], 0
    for model in args.models:
        reference = session(model, 0)
        feed = draw(reference, args.seed)
        expected = reference.run(None, feed)
        for kind in kinds:
            try:
                prepared[model, kind].result()
                row = check(args, model, folder(model, kind), kind, expected, feed)
            except Exception as e:
                failed += 1
                print(f"{model.parent.name}/{model.stem} {kind}: {e}", flush=True)
                continue
            good = all(row[k] <= LIMIT for k in ("difference", "device_difference"))
            failed += not good
            rows.append(row)
            print("  ".join(v if isinstance(v, str) else f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()),
                  "" if good else "  WRONG", flush=True)
    return rows, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--csv")
    parser.add_argument("--profile", type=int, default=0, help="print so many kernels that take the longest")
    parser.add_argument("--extra", nargs="*", default=[], help="further flags of gopt optimize")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        rows, failed = check_all(args, args.out or pathlib.Path(temporary))
    if args.csv and rows:
        with open(args.csv, "w", newline="") as f:
            writer = csv.DictWriter(f, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
