#!/usr/bin/env python3
"""How much faster than its input ONNX Runtime runs what gopt writes, by default and with --runtime onnxruntime.

usage: onnx_speed.py --gopt build/tools/gopt/gopt [--threads 1] [--rounds 31] [--modes default runtime] [--csv FILE] MODEL.onnx ...
needs: numpy, onnxruntime

For each model and mode `gopt optimize` writes a file; input and output are then timed in turns, each in a process of its own
that runs all the time of the comparison. A row each: nodes before and after, medians in milliseconds, the median ratio of the
rounds (above 1: the output is faster) with the ranks between which it lies 19 times of 20, bytes of weights after over
before, and seconds of gopt. The last rows are the geometric means.
"""
import argparse, csv, json, math, pathlib, subprocess, sys, tempfile, time

TURN_MS = 60


def serve(path, seed, threads):
    """The process of one model: draws its inputs, then times what it is asked for."""
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng, feed = np.random.default_rng(seed), {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        drawn = rng.integers(0, 2, shape) if "int" in i.type else rng.standard_normal(shape)
        feed[i.name] = drawn.astype({"tensor(int64)": np.int64, "tensor(int32)": np.int32}.get(i.type, np.float32))
    # One thread's time is its processor's: what else the machine does adds nothing to it.
    clock = time.process_time if threads == 1 else time.perf_counter
    for _ in range(2):
        session.run(None, feed)
    print("ready", flush=True)
    for line in sys.stdin:
        session.run(None, feed)
        times = []
        for _ in range(int(line)):
            start = clock()
            session.run(None, feed)
            times.append((clock() - start) * 1e3)
        print(min(times), flush=True)


class Model:
    def __init__(self, path, args):
        command = [sys.executable, __file__, "--serve", str(path), str(args.seed), str(args.threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"ONNX Runtime does not run {path}")
        self.runs, self.times = 1, []
        self.runs = max(1, min(50, int(TURN_MS / self.turn())))

    def turn(self):
        print(self.runs, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(before, after, args):
    models = []
    try:
        models = [Model(before, args), Model(after, args)]
        for k in range(args.rounds):
            for model in models if k % 2 == 0 else reversed(models):
                model.times.append(model.turn())
    finally:
        for model in models:
            model.close()
    ratios = sorted(a / b for a, b in zip(*(m.times for m in models)))
    rank = max(0, int((args.rounds - 1.96 * math.sqrt(args.rounds)) / 2))
    middle = lambda values: sorted(values)[len(values) // 2]
    return middle(models[0].times), middle(models[1].times), middle(ratios), ratios[rank], ratios[-1 - rank]


def size(path):
    return sum(f.stat().st_size for f in (path, path.with_suffix(".weights"), pathlib.Path(str(path) + ".data")) if f.exists())


def row_of(model, mode, folder, args):
    out, report = folder / "model.onnx", folder / "report.json"
    flags = ["--runtime", "onnxruntime", "--python", sys.executable, "--threads", str(args.threads)] if mode == "runtime" else []
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


def show(row):
    print("  ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
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
            print(f"{mode}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of {len(ratios)}, least {min(ratios):.3f}")
    if args.csv and rows:
        with open(args.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
