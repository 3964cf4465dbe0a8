#!/usr/bin/env python3
"""Optimizes models with gopt and checks and times what comes out, against ONNX Runtime on the original.

usage: check_models.py --gopt build/tools/gopt/gopt [--threads 2] [--runs 20] [--out DIR] [--csv FILE] MODEL.onnx ...
needs: numpy, onnxruntime, onnx, cmake and a C++ compiler with oneDNN

For each model: `gopt optimize` writes the optimized ONNX and code for the CPU. The optimized ONNX runs in ONNX Runtime, the
code is built from its folder alone; both are compared with the original in ONNX Runtime on inputs of a fresh seed, as
max |a-b| / max |a|, and the code is timed in turns with ONNX Runtime (original model, same threads). A row a model: operators
before and after, rules applied, both differences, medians, the paired ratio (ONNX Runtime over gopt: above 1 gopt is faster),
seconds and peak memory of `gopt optimize`. Exit status 1 when a difference is above 1e-4, NaN, or a step fails.
"""
import argparse, csv, ctypes, json, os, pathlib, shutil, subprocess, sys, tempfile, time
import numpy as np

LIMIT = 1e-4
NUMPY = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("element", ctypes.c_int), ("rank", ctypes.c_int),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("size_bytes", ctypes.c_size_t)]


class Emitted:
    """An emitted folder, built by its own CMakeLists.txt and called through its C interface."""

    def __init__(self, folder, threads):
        build = folder / "build"
        # Most sources are the runtime's, the same in every folder: ccache compiles them once, if it may forget where they lie.
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        environment = {**os.environ, "CCACHE_BASEDIR": str(folder)}
        for step in (["cmake", "-S", folder, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *launcher], ["cmake", "--build", build, "-j2"]):
            done = subprocess.run(step, capture_output=True, text=True, env=environment)
            if done.returncode:
                raise RuntimeError("building the emitted code: " + (done.stderr or done.stdout)[-600:])
        self.lib = ctypes.CDLL(str(build / "libmodel.so"))
        self.lib.gopt_create.restype = ctypes.c_void_p
        self.lib.gopt_input.restype = self.lib.gopt_output.restype = ctypes.POINTER(TensorInfo)
        error = ctypes.create_string_buffer(512)
        self.model = self.lib.gopt_create(str(folder / "weights.bin").encode(), threads, error, 512)
        if not self.model:
            raise RuntimeError("gopt_create: " + error.value.decode())
        infos = [self.lib.gopt_output(k)[0] for k in range(self.lib.gopt_output_count())]
        self.outputs = [np.empty([i.dims[d] for d in range(i.rank)], NUMPY[i.element]) for i in infos]
        self.names = [self.lib.gopt_input(k)[0].name.decode() for k in range(self.lib.gopt_input_count())]

    def run(self, feed):
        arrays = [np.ascontiguousarray(feed[n]) for n in self.names]
        pointers = lambda xs: (ctypes.c_void_p * max(1, len(xs)))(*[x.ctypes.data for x in xs])
        if self.lib.gopt_run(ctypes.c_void_p(self.model), pointers(arrays), pointers(self.outputs), None):
            raise RuntimeError("gopt_run failed")
        return self.outputs


def session(path, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def draw(s, seed):
    rng = np.random.default_rng(seed)
    feed = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        feed[i.name] = rng.integers(0, 1000, shape) if "int" in i.type else rng.standard_normal(shape).astype(np.float32)
    return feed


def difference(expected, actual):
    worst = 0.0
    for a, b in zip(expected, actual, strict=True):
        if a.shape != b.shape or np.isnan(np.asarray(b, np.float64)).any():
            return float("nan")
        scale = float(np.abs(a.astype(np.float64)).max(initial=0))
        gap = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0))
        worst = max(worst, gap / scale if scale else gap)
    return worst


def optimize(gopt, model, out, threads, extra):
    onnx_file, folder, report = out / "model.opt.onnx", out / "emitted", out / "report.json"
    command = [gopt, "optimize", model, "-o", onnx_file, "--emit", folder, "--report", report, "--threads", str(threads), "--force", *extra]
    start = time.perf_counter()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("gopt optimize: " + done.stderr[-600:])
    return onnx_file, folder, json.loads(report.read_text()), time.perf_counter() - start


def paired(feed, reference, emitted, runs):
    times = ([], [])
    for k in range(runs + 3):
        for side, call in enumerate((lambda: reference.run(None, feed), lambda: emitted.run(feed))):
            start = time.perf_counter()
            call()
            if k >= 3:
                times[side].append((time.perf_counter() - start) * 1e3)
    ratios = sorted(a / b for a, b in zip(*times))
    return *(sorted(t)[len(t) // 2] for t in times), ratios[len(ratios) // 2]


def check(args, model, out):
    row = {"model": f"{model.parent.name}/{model.stem}"}
    onnx_file, folder, report, row["seconds"] = optimize(args.gopt, model, out, args.threads, args.extra)
    row["peak_mb"] = report["peak_memory_mb"]
    weights = sum(f.stat().st_size for f in (model, model.with_suffix(".weights")) if f.exists()) / 2**20
    row["weights_mb"] = round(weights, 1)
    row["before"], row["after"] = (sum(c[k] for c in report["operators"].values()) for k in ("before", "after"))
    applied = {}
    for a in report["applied"]:
        applied[a["rule"]] = applied.get(a["rule"], 0) + 1
        if "proof" not in a:
            raise RuntimeError(f"rule {a['rule']} was applied without a proof")
    row["rules"] = " ".join(f"{n}x{k}" for n, k in applied.items())
    import onnx
    onnx.checker.check_model(str(onnx_file))
    reference = session(model, args.threads)
    feed = draw(reference, args.seed)
    expected = reference.run(None, feed)
    row["onnx_difference"] = difference(expected, session(onnx_file, args.threads).run(None, feed))
    emitted = Emitted(folder, args.threads)
    row["code_difference"] = difference(expected, emitted.run(feed))
    row["onnxruntime_ms"], row["gopt_ms"], row["ratio"] = paired(feed, reference, emitted, args.runs)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--csv")
    parser.add_argument("--extra", nargs="*", default=["--no-measure", "--check", "off"], help="further flags of gopt optimize")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    print(f"seed {args.seed}, {args.threads} threads", flush=True)
    rows, failed = [], 0
    for model in args.models:
        with tempfile.TemporaryDirectory(dir=args.out) as folder:
            try:
                row = check(args, model, pathlib.Path(folder))
                good = row["onnx_difference"] <= LIMIT and row["code_difference"] <= LIMIT
            except Exception as error:
                row, good = {"model": f"{model.parent.name}/{model.stem}", "error": str(error).replace("\n", " ")}, False
        failed += not good
        rows.append(row)
        print(("ok   " if good else "FAIL ") + "  ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)
    if args.csv:
        names = list(dict.fromkeys(k for row in rows for k in row))
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
