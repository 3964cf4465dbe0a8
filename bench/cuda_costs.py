#!/usr/bin/env python3
"""Measures kernel costs for --target cuda on this machine's GPU, and how well the sums of them foretell whole models.

usage: cuda_costs.py --gopt build/tools/gopt/gopt --out DIR [--cache FILE] [--kinds plain optimized] [--precision fp32] [--seconds S] MODEL.onnx ...
needs: a GPU, nvcc, cuDNN, cmake; numpy

Three passes over the models, each of the graph as it is (plain) and of the optimized one: kernels that the cache lacks are
timed, until none is left; all emitted code is built, as many at once as there are processors; each model is run, its inputs
and outputs in device memory, twenty runs queued at once. What is done is kept in DIR/results.json and not done again: the
same command goes on where it was stopped, by --seconds too. The cache (DIR/kernel_times unless --cache says otherwise)
travels: `gopt optimize --target cuda --cache FILE` plans by it on a machine without a GPU.

A row a model: kernels, measured latency, and the estimates of measured and of analytic costs over it (1: as measured). Then,
for each kind of costs, the median error, the rank correlation over all rows, and of how many models whose two graphs differ
by over 2 % the estimates say which is the faster. Exit status 1 when a step fails.
"""
import argparse, concurrent.futures, ctypes, json, os, pathlib, subprocess, sys, time
import numpy as np

from check_models import NUMPY, Emitted
from cuda_check import OnDevice, median_ms

SEARCH = {"plain": ["--search", "none"], "optimized": []}
TIMINGS = 8  # runs of gopt at most until nothing is left to be timed: each spends a minute


class Results:
    """What is known of each model and kind, in a file that is saved whenever something is added."""

    def __init__(self, path):
        self.path = path
        self.rows = json.loads(path.read_text()) if path.exists() else {}

    def row(self, name):
        return self.rows.setdefault(name, {})

    def add(self, name, **values):
        self.row(name).update(values)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.rows, indent=1) + "\n")
        beside.replace(self.path)


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: " + (done.stderr or done.stdout)[-900:])


def optimize(args, model, folder, kind, costs):
    """The part of the report that is about costs."""
    report = folder.parent / f"{folder.name}.{costs}.json"
    command = [args.gopt, "optimize", model, "--target", "cuda", "--check", "off", "--force", "--report", report, "--precision",
               args.precision, *SEARCH[kind]]
    command += ["--cost", "measured", "--cache", args.cache, "--emit", folder] if costs == "measured" else ["--cost", "analytic"]
    run(command)
    return json.loads(report.read_text())["cost"]


def estimate(args, model, folder, kind):
    timed = 0
    for _ in range(TIMINGS):
        cost = optimize(args, model, folder, kind, "measured")
        timed += cost["kernels_timed"]
        if cost["kind"] != "measured":
            raise RuntimeError("kernels could not be timed; run gopt optimize to see why")
        if cost["kernels_timed"] == 0:
            break
    values = {"kernels": cost["after_kernels"], "timed": timed, "machine": cost["machine"], "estimated_ms": cost["after_ms"]}
    if kind == "plain":  # analytic costs would lead to another optimized graph
        values["analytic_ms"] = optimize(args, model, folder, kind, "analytic")["after_ms"]
    return values


def build(folder):
    run(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
    run(["cmake", "--build", folder / "build", "-j2"])


def draw(emitted):
    rng, feed = np.random.default_rng(0), {}
    for k in range(emitted.lib.gopt_input_count()):
        info = emitted.lib.gopt_input(k)[0]
        shape, kind = [info.dims[d] for d in range(info.rank)], NUMPY[info.element]
        feed[info.name.decode()] = rng.standard_normal(shape).astype(kind) if issubclass(kind, np.floating) else rng.integers(0, 2, shape).astype(kind)
    return feed


def latency(args, folder):
    emitted = Emitted(folder, 0)
    device = OnDevice(emitted, draw(emitted))
    device.run(args.runs)  # until the device's clock is up
    queued = median_ms(lambda: device.run(20), args.runs, 20)
    emitted.lib.gopt_destroy(ctypes.c_void_p(emitted.model))
    return {"measured_ms": queued}


def ranks(values):
    return np.argsort(np.argsort(values)).astype(float)


def summary(rows):
    for name, row in rows.items():
        ratios = "  ".join(f"{k} {row[k] / row['measured_ms']:5.2f}" for k in ("estimated_ms", "analytic_ms") if row.get(k))
        print(f"{name:<44} {row['kernels']:4} kernels  {row['measured_ms']:8.4f} ms  {ratios}")
    for key in ("estimated_ms", "analytic_ms"):
        known = [(r[key], r["measured_ms"]) for r in rows.values() if r.get(key)]
        if len(known) < 3:
            continue
        estimated, measured = map(np.array, zip(*known))
        error = np.median(np.abs(estimated / measured - 1))
        print(f"{key}: {len(known)} rows, median error {100 * error:.1f} %, ratio {np.min(estimated / measured):.2f} to "
              f"{np.max(estimated / measured):.2f}, rank correlation {np.corrcoef(ranks(estimated), ranks(measured))[0, 1]:.3f}")
    pairs = [(rows[n], rows[n[: -len("plain")] + "optimized"]) for n in rows if n.endswith(" plain") and n[: -len("plain")] + "optimized" in rows]
    pairs = [(a, b) for a, b in pairs if abs(a["measured_ms"] / b["measured_ms"] - 1) > 0.02]
    right = sum((a["estimated_ms"] > b["estimated_ms"]) == (a["measured_ms"] > b["measured_ms"]) for a, b in pairs)
    print(f"of {len(pairs)} models whose graphs differ, the faster one is foretold of {right}")


class Passes:
    def __init__(self, args):
        self.args, self.results, self.failed = args, Results(args.out / "results.json"), 0
        self.end = time.monotonic() + args.seconds
        self.work = [(f"{m.parent.name}/{m.stem} {k}", m, k, args.out / f"{m.parent.name}_{m.stem}_{k}") for m in args.models for k in args.kinds]

    def left(self, key, needs=None):
        """What has no such value yet; of what has what it needs, and as long as there is time."""
        for name, *rest in self.work:
            row = self.results.row(name)
            if key not in row and (needs is None or needs in row) and time.monotonic() < self.end:
                yield name, *rest

    def tried(self, name, step):
        try:
            self.results.add(name, **step())
            print(f"{name}: " + "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in self.results.row(name).items()), flush=True)
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            self.failed += 1
            print(f"{name}: {e}", flush=True)

    def run(self):
        for name, model, kind, folder in self.left("estimated_ms"):
            self.tried(name, lambda: estimate(self.args, model, folder, kind))
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
            built = [(name, pool.submit(build, folder)) for name, _, _, folder in self.left("built", "estimated_ms")]
            for name, one in built:
                self.tried(name, lambda: one.result() or {"built": True})
        for name, _, _, folder in self.left("measured_ms", "built"):
            self.tried(name, lambda: latency(self.args, folder))
        summary({name: row for name, row in self.results.rows.items() if "measured_ms" in row})
        unfinished = sum("measured_ms" not in self.results.row(name) for name, *_ in self.work)
        if unfinished:
            print(f"{unfinished} of {len(self.work)} are not done yet; the same command goes on")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--kinds", nargs="+", choices=SEARCH, default=list(SEARCH))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32"])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    args.cache = args.cache or args.out / "kernel_times"
    return Passes(args).run()


if __name__ == "__main__":
    sys.exit(main())
