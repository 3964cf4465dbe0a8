#!/usr/bin/env python3
"""How much faster than its input an ONNX runtime runs what gopt writes, by default and with --runtime.

usage: onnx_speed.py --gopt build/tools/gopt/gopt [--runtime onnxruntime|openvino] [--threads 1] [--rounds 31] [--modes default runtime]
                     [--csv FILE] MODEL.onnx ...
needs: numpy, onnxruntime, openvino for --runtime openvino

For each model and mode `gopt optimize` writes a file: as it does by default, or judged by the runtime. Input and output are then
timed in turns, each in a process of its own that runs all the time of the comparison. A row each: nodes before and after, medians
in milliseconds, the median ratio of the rounds (above 1: the output is faster) with the ranks between which it lies 19 times of
20, bytes of weights after over before, and seconds of gopt. The last rows are the geometric means.
"""
import argparse, json, pathlib, subprocess, sys, tempfile, time

from turns import Served, geometric_mean, in_turns, interval, show, write_csv


def compare(before, after, args):
    models = []
    try:
        for path in (before, after):
            models.append(Served(args.runtime, path, args.seed, args.threads))
        in_turns(models, args.rounds)
    finally:
        for model in models:
            model.close()
    ratios = interval([a / b for a, b in zip(*(m.times for m in models))])
    return *(interval(m.times)[0] for m in models), *ratios


def size(path):
    return sum(f.stat().st_size for f in (path, path.with_suffix(".weights"), pathlib.Path(str(path) + ".data")) if f.exists())


def row_of(model, mode, folder, args):
    out, report = folder / "model.onnx", folder / "report.json"
    flags = ["--runtime", args.runtime, "--python", sys.executable, "--threads", str(args.threads)] if mode == "runtime" else []
    start = time.perf_counter()
    done = subprocess.run([args.gopt, "optimize", str(model), "-o", str(out), "--report", str(report), "--force", *flags, *args.optimize.split()],
                          capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr[-300:].replace("\n", " "))
    said = json.loads(report.read_text())
    nodes = [sum(c[k] for c in said["operators"].values()) for k in ("before", "after")]
    same = not said["applied"] and not any(p["changed"] for p in said["passes"])
    timed = compare(model, out, args)
    return {"model": f"{model.parent.name}/{model.stem}", "mode": mode, "nodes": nodes[0], "nodes_after": nodes[1],
            "before_ms": timed[0], "after_ms": timed[1], "ratio": timed[2], "low": timed[3], "high": timed[4],
            "bytes": size(out) / size(model), "seconds": seconds, "changed": not same}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--runtime", choices=["onnxruntime", "openvino"], default="onnxruntime")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", nargs="+", choices=["default", "runtime"], default=["default", "runtime"])
    parser.add_argument("--csv")
    parser.add_argument("--optimize", default="", help="further flags of gopt optimize, in one word")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    rows, failed = [], 0
    for model in args.models:
        for mode in args.modes:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows.append(row_of(model, mode, pathlib.Path(folder), args))
                    show(rows[-1])
                except (RuntimeError, ValueError, OSError) as error:
                    failed += 1
                    print(f"FAIL {model} {mode}: {error}", flush=True)
    for mode in args.modes:
        ratios = [r["ratio"] for r in rows if r["mode"] == mode]
        if ratios:
            print(f"{mode}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}, least {min(ratios):.3f}")
    if args.csv and rows:
        write_csv(args.csv, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
