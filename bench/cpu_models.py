#!/usr/bin/env python3
"""Whole models on the CPU as gopt ships them, beside ONNX Runtime and OpenVINO (f32), and with parts of gopt switched off.

usage: cpu_models.py MODEL.onnx ... [--gopt build/tools/gopt/gopt] [--threads 2] [--busy 0 2] [--rounds 5] [--batch N]
                     [--levers rewriting winograd ...|all] [--peers onnxruntime openvino] [--out DIR] [--optimize "flags"] [--csv FILE]
needs: numpy, onnxruntime, openvino; what each is at its defaults, but for the number of threads

Each engine has a process of its own, in turns; a turn's figure is the median of its runs, a model's that of the turns, in milliseconds.
--busy 2 times all of them once more while two other processes compute. --levers: gopt's code without that part, over gopt's code with all
of them, both emitted in the same way. What the same command made in --out is not emitted again. --batch N changes the batch of a static model, for all engines.
"""
import argparse, hashlib, json, os, pathlib, shutil, subprocess, sys, tempfile

from turns import Served, geometric_mean, interval, show, write_csv

LEVERS = {
    "rewriting": "--search none --disable narrow-to-reads",
    "narrowing": "--disable narrow-to-reads",
    "measured costs": "--cost analytic",
    "winograd": "--disable kernel:winograd",
    "own convolutions": "--disable kernel:planar kernel:unfolded kernel:channel-lanes",
    "panels": "--disable kernel:panels",
    "blocks": "--disable kernel:blocks",
    "attention": "--disable kernel:attention",
    "layouts": "--disable layout:blocked layout:channels-last",
    "epilogues": "--disable fusion:epilogues",
    "fusion": "--disable fusion:inlining fusion:epilogues fusion:by-cost",
    "tiles": "--disable kernel:tiles-x6 kernel:tiles-x3 kernel:tiles-bf16",
    "one region": "--disable launch:one-region",
    "one thread alone": "--disable launch:alone",
}
# What is not a flag of gopt's but of the threads' library: threads that sleep at the end of each kernel.
SLEEPING = "waiting awake"
TURN_MS = 300


class Shipped:
    """Code that gopt emitted, run by `gopt bench`."""

    def __init__(self, gopt, folder, threads, environment=None):
        self.command = [gopt, "bench", folder, "--threads", threads]
        self.environment, self.times, self.runs = {**os.environ, **(environment or {})}, [], 5
        self.runs = max(5, min(1000, int(TURN_MS / self.turn())))

    def turn(self):
        with tempfile.TemporaryDirectory() as place:
            out = pathlib.Path(place) / "bench.json"
            command = [str(c) for c in (*self.command, "--runs", self.runs, "--json", out)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=self.environment)
            return json.loads(out.read_text())["models"][0]["median_ms"]

    def close(self):
        pass


def shapes(model, batch):
    """Words of --shape: each input with that batch."""
    if not batch:
        return []
    import onnx
    graph = onnx.load(str(model), load_external_data=False).graph
    constants, words = {i.name for i in graph.initializer}, []
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in constants and dims:
            words.append(f"{value.name}=" + "x".join(str(d.dim_value or 1) if k else str(batch) for k, d in enumerate(dims)))
    return ["--shape", *words]


def emit(args, model, lever, place):
    """The folder of the model's code, made unless one lies there that the same command made."""
    command = [args.gopt, "optimize", model, "--threads", args.threads, *shapes(model, args.batch), *args.optimize.split(),
               *(LEVERS[lever].split() if lever in LEVERS else [])]
    command = [str(c) for c in command]
    folder = place / f"{model.stem}-{hashlib.sha256(' '.join([str(model.resolve()), *command]).encode()).hexdigest()[:12]}"
    if not folder.exists():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        done = subprocess.run([*command, "--emit", str(making)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-300:])
        making.rename(folder)
    return folder


def with_batch(args, model, place):
    """The model with the batch that is asked for, else as it is, for the other engines."""
    if not args.batch:
        return model
    out = place / f"{model.stem}-batch-{args.batch}.onnx"
    command = [args.gopt, "optimize", model, "-o", out, *shapes(model, args.batch), "--search", "none", "--check", "off", "--no-measure", "--force",
               "--disable", "merge-equal-nodes", "drop-identities", "narrow-to-reads", "fold-constants", "merge-commuted-nodes"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return out


def turns(engines, rounds):
    for engine in engines.values():
        engine.times = []
    for k in range(rounds):
        for engine in list(engines.values())[:: 1 if k % 2 == 0 else -1]:
            engine.times.append(engine.turn())
    return {name: interval(engine.times)[0] for name, engine in engines.items()}


def beside(busy, call):
    others = [subprocess.Popen([sys.executable, "-c", f"import os\nwhile os.getppid() == {os.getpid()}: pass"]) for _ in range(busy)]
    try:
        return call()
    finally:
        for other in others:
            other.kill()
            other.wait()


def rows_of(args, model, place):
    levers = list(LEVERS) + [SLEEPING] if "all" in args.levers else args.levers
    engines = {"gopt": Shipped(args.gopt, emit(args, model, None, place), args.threads)}
    for lever in levers:
        sleeps = lever == SLEEPING
        engines["without " + lever] = Shipped(args.gopt, emit(args, model, None if sleeps else lever, place), args.threads,
                                              {"OMP_WAIT_POLICY": "passive"} if sleeps else None)
    given = with_batch(args, model, place)
    for peer in args.peers:
        engines[peer] = Served(peer, given, 0, args.threads, is_typical=True, turn_ms=TURN_MS)
    try:
        for busy in args.busy:
            yield {"model": model.stem, "busy": busy} | beside(busy, lambda: turns(engines, args.rounds))
    finally:
        for engine in engines.values():
            engine.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--gopt", default="build/tools/gopt/gopt")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--levers", nargs="+", default=[], choices=[*LEVERS, SLEEPING, "all"])
    parser.add_argument("--peers", nargs="*", default=["onnxruntime", "openvino"], choices=["onnxruntime", "openvino"])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--optimize", default="", help="further flags of gopt optimize, in one word")
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    if args.csv and not args.csv.resolve().parent.is_dir():
        parser.error(f"--csv: there is no folder {args.csv.resolve().parent}")
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as made:
        place = args.out or pathlib.Path(made)
        place.mkdir(parents=True, exist_ok=True)
        for model in args.models:
            try:
                for row in rows_of(args, model, place):
                    if args.peers:
                        row["best peer / gopt"] = min(row[p] for p in args.peers) / row["gopt"]
                    rows.append(row)
                    show(row)
            except (RuntimeError, subprocess.CalledProcessError, OSError, IndexError) as error:
                failed += 1
                print(f"FAIL {model}: {error}", flush=True)
    for busy in args.busy:
        those = [r for r in rows if r["busy"] == busy]
        for name in those[0] if those else ():
            if name == "best peer / gopt" or name.startswith("without "):
                ratios = [r[name] / (1 if name.startswith("best") else r["gopt"]) for r in those]
                print(f"beside {busy}: {name}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}, {min(ratios):.3f} to {max(ratios):.3f}")
    if args.csv and rows:
        write_csv(args.csv, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
