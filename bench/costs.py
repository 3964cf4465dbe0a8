#!/usr/bin/env python3
"""Measures kernel costs on this machine's processor or GPU, and how well the sums of them foretell whole models.

usage: costs.py --gopt build/tools/gopt/gopt --target cpu|cuda --out DIR [--cache FILE] [--kinds plain optimized ...] [--threads 1] [--precision fp32] [--seconds S] MODEL.onnx ...
needs: numpy, cmake, a C++ compiler and oneDNN; for cuda a GPU, nvcc, cuDNN

Three passes over the models, each of the graph as it is (plain), of the optimized one, and (other kinds) of plans that go without
something: kernels that the cache lacks are timed, until none is left; all emitted code is built; a model's kinds are run in turns,
each in a process of its own (cpu), or each with inputs and outputs in device memory, twenty runs queued at once (cuda). What is
done is kept in DIR/results.json and not done again: the same command goes on where it was stopped, by --seconds too. The cache
(one a model in DIR unless --cache says otherwise) travels: `gopt optimize --target cuda --cache FILE` plans by it on a machine
without a GPU.

A row a model and kind: kernels, seconds of timing them in the first run and in the next, measured latency, and the estimates of
measured and of analytic costs over it (1: as measured). Then, for both kinds of costs: the median error, the rank correlation
over all rows; of all pairs of kinds of one model that differ by more than three times the noise how many are foretold in their
order, and the median over models of the rank correlation of its kinds, where three of them differ; and what fusion by cost gains over
fusion by rule, foretold and measured, where both kinds are there. Exit status 1 when a step fails.
"""
import argparse, concurrent.futures, ctypes, itertools, json, os, pathlib, subprocess, sys, time
import numpy as np

from check_models import Emitted
from cuda_check import OnDevice, median_ms
from turns import Served, feed_of, in_turns, interval

PLAIN = ["--search", "none"]
KINDS = {
    "plain": PLAIN,
    "optimized": [],
    "no blocks": [*PLAIN, "--disable", "layout:blocked"],
    "no layouts": [*PLAIN, "--disable", "layout:blocked", "layout:channels-last"],
    "no winograd": [*PLAIN, "--disable", "kernel:winograd"],
    "no epilogues": [*PLAIN, "--disable", "fusion:epilogues"],
    "no inlining": [*PLAIN, "--disable", "fusion:inlining"],
    "fused by rule": [*PLAIN, "--disable", "fusion:by-cost"],
    "no fusion": [*PLAIN, "--disable", "fusion:epilogues", "fusion:inlining"],
    "no blocks nor epilogues": [*PLAIN, "--disable", "layout:blocked", "fusion:epilogues"],
    "no blocks nor fusion": [*PLAIN, "--disable", "layout:blocked", "fusion:epilogues", "fusion:inlining"],
    "no layouts nor epilogues": [*PLAIN, "--disable", "layout:blocked", "layout:channels-last", "fusion:epilogues"],
    "no layouts nor inlining": [*PLAIN, "--disable", "layout:blocked", "layout:channels-last", "fusion:inlining"],
    "no layouts nor winograd": [*PLAIN, "--disable", "layout:blocked", "layout:channels-last", "kernel:winograd"],
    "no direct": [*PLAIN, "--disable", "kernel:direct"],
}
PROCESSES = 5  # that serve a folder
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
    command = [args.gopt, "optimize", model, "--target", args.target, "--check", "off", "--no-measure", "--force", "--report", report, "--threads",
               args.threads, *KINDS[kind]]
    command += ["--precision", args.precision] if args.target == "cuda" else []
    cache = args.cache or args.out / f"{model.parent.name}_{model.stem}.kernel_times"
    command += ["--cost", "measured", "--cache", cache, "--emit", folder] if costs == "measured" else ["--cost", "analytic"]
    run(command)
    return json.loads(report.read_text())["cost"]


def estimate(args, model, folder, kind):
    timed, seconds = 0, []
    for _ in range(TIMINGS):
        cost = optimize(args, model, folder, kind, "measured")
        timed += cost["kernels_timed"]
        seconds.append(cost["timing_seconds"])
        if cost["kind"] != "measured":
            raise RuntimeError("kernels could not be timed; run gopt optimize to see why")
        if cost["kernels_timed"] == 0:
            break
    values = {"kernels": cost["after_kernels"], "timed": timed, "first_s": seconds[0], "again_s": seconds[-1], "machine": cost["machine"],
              "estimated_ms": cost["after_ms"]}
    if kind != "optimized":  # analytic costs would lead to another optimized graph
        values["analytic_ms"] = optimize(args, model, folder, kind, "analytic")["after_ms"]
    return values


def build(folder):
    run(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
    run(["cmake", "--build", folder / "build", "-j2"])


def latency_on_device(args, folder):
    emitted = Emitted(folder, 0)
    device = OnDevice(emitted, feed_of(emitted, np.random.default_rng(0)))
    device.run(args.runs)  # until the device's clock is up
    queued = median_ms(lambda: device.run(20), args.runs, 20)
    emitted.lib.gopt_destroy(ctypes.c_void_p(emitted.model))
    return {"measured_ms": queued, "noise": 0.01}


def latencies_in_turns(args, folders):
    """Of each folder the median of its turns, and the noise: half the width of the interval that the median lies in, of it. Each is served by several
    processes, one after another: where its memory happens to lie makes one up to 8 % slower than the next, as long as it lives."""
    times = [[] for _ in folders]
    for _ in range(PROCESSES):
        models = []
        try:
            for folder in folders:
                models.append(Served("emitted", folder, 0, args.threads))
            in_turns(models, max(3, args.runs // PROCESSES))
        finally:
            for model in models:
                model.close()
        for own, model in zip(times, models):
            own += model.times
    rows = []
    for own in times:
        middle, low, high = interval(own)
        rows.append({"measured_ms": middle, "noise": max(0.005, (high - low) / 2 / middle)})
    return rows


def ranks(values):
    return np.argsort(np.argsort(values)).astype(float)


def rank_correlation(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def differ(a, b):
    return abs(np.log(a["measured_ms"] / b["measured_ms"])) > 3 * max(a["noise"], b["noise"])


def within_models(rows, key):
    """(pairs of a model's kinds that differ, those of them in the order that is foretold, rank correlations of models with three that differ)"""
    models = {}
    for name, row in rows.items():
        if row.get(key):
            models.setdefault(name.split(" ")[0], []).append(row)
    pairs = right = 0
    correlations = []
    for own in models.values():
        distinct = []
        for row in sorted(own, key=lambda r: r["measured_ms"]):
            if all(differ(row, other) for other in distinct):
                distinct.append(row)
        for a, b in itertools.combinations(own, 2):
            if differ(a, b):
                pairs += 1
                right += (a[key] < b[key]) == (a["measured_ms"] < b["measured_ms"])
        if len(distinct) >= 3:
            correlations.append(rank_correlation([r[key] for r in distinct], [r["measured_ms"] for r in distinct]))
    return pairs, right, correlations


def fusion_gains(rows):
    """(model, foretold, measured) gain of fusion by cost over fusion by rule, as ratios of times, where the plans differ."""
    for name, row in rows.items():
        model = name.removesuffix(" fused by rule")
        by_cost = rows.get(model + " plain")
        if model != name and by_cost and by_cost["estimated_ms"] != row["estimated_ms"]:
            yield model, row["estimated_ms"] / by_cost["estimated_ms"], row["measured_ms"] / by_cost["measured_ms"]


def summary(rows):
    for name, row in rows.items():
        ratios = "  ".join(f"{k} {row[k] / row['measured_ms']:5.2f}" for k in ("estimated_ms", "analytic_ms") if row.get(k))
        print(f"{name:<44} {row['kernels']:4} kernels  first {row['first_s']:5.1f} s  again {row['again_s']:4.1f} s  {row['measured_ms']:9.4f} ms  {ratios}")
    for key in ("estimated_ms", "analytic_ms"):
        known = [(r[key], r["measured_ms"]) for r in rows.values() if r.get(key)]
        if len(known) < 3:
            continue
        estimated, measured = map(np.array, zip(*known))
        error = np.median(np.abs(estimated / measured - 1))
        print(f"{key}: {len(known)} rows, median error {100 * error:.1f} %, ratio {np.min(estimated / measured):.2f} to "
              f"{np.max(estimated / measured):.2f}, rank correlation {rank_correlation(estimated, measured):.3f}")
        pairs, right, correlations = within_models(rows, key)
        of_models = f"; rank correlation of a model's kinds {np.median(correlations):.2f} in the median of {len(correlations)} models" if correlations else ""
        print(f"{key}: of {pairs} pairs of a model's kinds that differ, {right} are foretold{of_models}")
    for model, foretold, measured in fusion_gains(rows):
        print(f"{model}: fusion by cost is foretold to gain {foretold:.3f} times, and gains {measured:.3f}")


class Passes:
    def __init__(self, args):
        self.args, self.results, self.failed = args, Results(args.out / "results.json"), 0
        self.end = time.monotonic() + args.seconds
        self.work = [(f"{m.parent.name}/{m.stem} {k}", m, k, args.out / f"{m.parent.name}_{m.stem}_{k.replace(' ', '_')}") for m in args.models for k in args.kinds]

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

    def measure(self):
        left = list(self.left("measured_ms", "built"))
        if self.args.target == "cuda":
            for name, _, _, folder in left:
                if time.monotonic() < self.end:
                    self.tried(name, lambda: latency_on_device(self.args, folder))
            return
        for _, group in itertools.groupby(left, key=lambda work: work[1]):  # all kinds of one model, so that they can be compared
            group = list(group)
            if time.monotonic() > self.end:
                break
            rows = []
            try:
                rows = latencies_in_turns(self.args, [folder for _, _, _, folder in group])
            except (RuntimeError, OSError) as e:
                self.failed += 1
                print(f"{group[0][0]}: {e}", flush=True)
            for (name, *_), row in zip(group, rows):
                self.tried(name, lambda: row)

    def run(self):
        for name, model, kind, folder in self.left("estimated_ms"):
            self.tried(name, lambda: estimate(self.args, model, folder, kind))
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
            built = [(name, pool.submit(build, folder)) for name, _, _, folder in self.left("built", "estimated_ms")]
            for name, one in built:
                self.tried(name, lambda: one.result() or {"built": True})
        self.measure()
        summary({name: row for name, row in self.results.rows.items() if "measured_ms" in row})
        unfinished = sum("measured_ms" not in self.results.row(name) for name, *_ in self.work)
        if unfinished:
            print(f"{unfinished} of {len(self.work)} are not done yet; the same command goes on")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--target", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["plain", "optimized"])
    parser.add_argument("--threads", default="1")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return Passes(args).run()


if __name__ == "__main__":
    sys.exit(main())
