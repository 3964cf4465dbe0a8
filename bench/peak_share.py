#!/usr/bin/env python3
"""Says, kernel by kernel, what share of what one thread of this machine can do a model's CPU code reaches.

usage: peak_share.py MODEL.onnx ... [--gopt build/tools/gopt/gopt] [--tiles GFLOPS] [--keep DIR] [--rounds 7] [--runs 10] [--kernels 12] [--json FILE] [--optimize "flags"]

What a kernel needs at least is the larger of its operations at the peak of the unit that it uses, and its bytes at the bandwidth of
where they lie: its weights come from where all of the model's weights fit, what the kernel before wrote from where that fits. The share
is that time over the measured one, the median of rounds. Operations are those of the definition: Winograd's convolutions do fewer, so that
they may have more than 100 %. Of what is gathered from a table not all is read: bytes count for no more than the time that was measured.
The unit column is operations over time and peak alone. The unit is fused multiply-adds, or, of kernels on matrix tiles (tiles-x6 and the
like) and with --tiles, those: GFLOPS are what one thread does at most in bf16 (bench/cpu_tiles.cc prints it), of which sums of two terms
take three for one, sums of three six.
A model's sum is of its kernels. The peak is the one that the report has (measured by gopt); bandwidths are those of numpy's copies and
dot products of floats. With --keep, folders and reports stay in DIR, and are used again. Needs numpy.
"""
import os
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
import argparse, collections, json, pathlib, statistics, subprocess, sys, tempfile, time
import numpy as np


def least_seconds(call, tries=9):
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


class Bandwidth:
    """Bytes a second of one thread that reads, or copies, so many bytes again and again."""

    def __init__(self):
        self.sizes = [1 << k for k in range(15, 29)]
        self.reading, self.copying = [], []
        for size in self.sizes:
            count, calls = size // 4, max(1, (1 << 22) // size)
            a, half = np.ones(count, np.float32), np.ones(count // 2, np.float32)
            self.reading.append(size * calls / least_seconds(lambda: [np.dot(a, a) for _ in range(calls)]))
            self.copying.append(size * calls / least_seconds(lambda: [np.copyto(a[: count // 2], half) for _ in range(calls)]))

    def of(self, speeds, size):
        return float(np.interp(np.log2(max(size, 1)), np.log2(self.sizes), speeds))

    def seconds(self, weights, all_weights, moved):
        return weights / self.of(self.reading, all_weights) + moved / self.of(self.copying, moved)


def emit(a, model, place):
    folder, report = place / model.stem, place / f"{model.stem}.json"
    if not (folder.exists() and report.exists()):
        command = [a.gopt, "optimize", model, "--emit", folder, "--report", report, "--threads", 1, "--check", "off", "--no-measure", "--force", *a.optimize.split()]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    return folder, json.loads(report.read_text())


def profile(a, folder, place):
    """Milliseconds of each kernel: medians of rounds."""
    times, out = collections.defaultdict(list), place / "profile.json"
    for _ in range(a.rounds):
        command = [a.gopt, "bench", folder, "--threads", 1, "--runs", a.runs, "--profile", "--json", out, "--force"]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
        for kernel in json.loads(out.read_text())["models"][0]["kernels"]:
            times[kernel["name"]].append(kernel["ms"])
    return {name: statistics.median(t) for name, t in times.items()}


TILE_PRODUCTS = {"bf16": 1, "x3": 3, "x6": 6}  # for one of the definition's, by how a kernel's name ends


def peak_of(implementation, fma, tiles):
    unit, _, terms = implementation.rpartition("-")
    return tiles / TILE_PRODUCTS[terms] if tiles and unit in ("tiles", "attention") else fma


def kernel_rows(report, times, bandwidth, tiles):
    plan, fma = report["plans"]["after"], report["cost"]["roofline"]["gflops"]
    buffers = plan["buffers"]
    size_of = lambda ids: sum(buffers[b]["bytes"] for b in set(ids) if buffers[b]["place"] == "weight")
    all_weights = size_of(range(len(buffers)))
    rows = []
    for k in plan["kernels"]:
        weights = min(size_of(k["reads"]), k["bytes"])
        memory = min(times[k["name"]], 1e3 * bandwidth.seconds(weights, all_weights, k["bytes"] - weights))
        arithmetic = 1e-6 * k["operations"] / peak_of(k["implementation"], fma, tiles)
        rows.append({"name": k["name"], "kind": k["kind"], "implementation": k["implementation"], "ms": times[k["name"]],
                     "arithmetic_ms": arithmetic, "memory_ms": memory, "least_ms": max(arithmetic, memory)})
    return rows


def print_model(name, rows, limit):
    total = sum(r["ms"] for r in rows)
    print(f"\n{name}: kernels by time")
    print(f"{'kernel':<44}{'by':<14}{'ms':>9}{'of all':>8}{'unit':>7}{'bytes':>7}{'share':>7}")
    for r in sorted(rows, key=lambda r: -r["ms"])[:limit]:
        print(f"{r['name'][:43]:<44}{(r['implementation'] or r['kind'])[:13]:<14}{r['ms']:>9.4f}{r['ms'] / total:>8.1%}"
              f"{r['arithmetic_ms'] / r['ms']:>7.0%}{r['memory_ms'] / r['ms']:>7.0%}{r['least_ms'] / r['ms']:>7.0%}")


def print_sums(models):
    """Products are what libraries or tiles compute; the rest moves and maps."""
    print(f"\n{'model':<22}{'ms':>9}{'least ms':>10}{'share':>7}{'unit':>7}{'products: of time':>19}{'share':>7}{'unit':>7}{'rest: share':>13}")
    for name, rows in models.items():
        products = [r for r in rows if r["kind"] not in ("generated", "pooling", "reorder")]
        rest = [r for r in rows if r not in products]
        total = lambda which, key: sum(r[key] for r in which)
        over = lambda which, key: total(which, key) / total(which, "ms") if which else float("nan")
        print(f"{name:<22}{total(rows, 'ms'):>9.3f}{total(rows, 'least_ms'):>10.3f}{over(rows, 'least_ms'):>7.0%}{over(rows, 'arithmetic_ms'):>7.0%}"
              f"{total(products, 'ms') / total(rows, 'ms'):>19.0%}{over(products, 'least_ms'):>7.0%}{over(products, 'arithmetic_ms'):>7.0%}{over(rest, 'least_ms'):>13.0%}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="+", type=pathlib.Path)
    ap.add_argument("--gopt", default="build/tools/gopt/gopt")
    ap.add_argument("--tiles", type=float, default=0, help="GFLOP/s of one thread on matrix tiles, in bf16")
    ap.add_argument("--keep", type=pathlib.Path)
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--runs", type=int, default=10)
    ap.add_argument("--kernels", type=int, default=12, help="of each model, those that take most")
    ap.add_argument("--json", type=pathlib.Path)
    ap.add_argument("--optimize", default="", help="more flags for gopt optimize")
    a = ap.parse_args()
    bandwidth = Bandwidth()
    print("GB/s by bytes, read and copied: " + ", ".join(f"{s >> 10} KB {r / 1e9:.0f} {c / 1e9:.0f}" for s, r, c in zip(bandwidth.sizes, bandwidth.reading, bandwidth.copying)))
    models = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = a.keep or pathlib.Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        for model in a.models:
            folder, report = emit(a, model, place)
            models[model.stem] = kernel_rows(report, profile(a, folder, place), bandwidth, a.tiles)
            print_model(model.stem, models[model.stem], a.kernels)
            print(f"FMA peak {report['cost']['roofline']['gflops']:.0f} GFLOP/s", flush=True)
    print_sums(models)
    if a.json:
        a.json.write_text(json.dumps(models, indent=1))


if __name__ == "__main__":
    main()
