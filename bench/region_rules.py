#!/usr/bin/env python3
"""What rules about windows over space are worth: without them, with those that hold everywhere (rules/spatial.rules), and with those that
compute a border as before, too (rules/corrected.rules).

usage: region_rules.py --gopt build/tools/gopt/gopt [--target cpu|onnx] [--threads 1] [--rounds 15] [--cost analytic] [--models NAME ...] [MODEL.onnx ...]
needs: numpy, onnx, onnxruntime, cmake and a C++ compiler with oneDNN

Of each model (those of window_models.py, and the files that are named) a row: estimated milliseconds in the three ways, the largest difference of the optimized
ONNX files from the original in ONNX Runtime, as max |a-b| / max |a|, how much faster the two others run than the first, timed in turns, each in a process of its
own (median ratio and the ranks between which it lies 19 times of 20), and the rules of the two files that were applied. Exit status 1 when a difference
is above 1e-4 or NaN.
"""
import argparse, json, pathlib, re, subprocess, sys, tempfile

import window_models
from check_models import difference, draw, session
from turns import Served, in_turns, interval

RULES = pathlib.Path(__file__).resolve().parent.parent / "rules"
OURS = ["spatial.rules", "corrected.rules"]


def files(count):
    """The shipped files, with the first `count` of ours."""
    left_out = ["shortcut.rules", *OURS[count:]]
    return sorted(p for p in RULES.glob("*.rules") if p.name not in left_out)


def names():
    return set(re.findall(r"^rule (\S+)", "".join((RULES / f).read_text() for f in OURS), re.M))


def optimize(args, model, out, count):
    """Both what runs and the ONNX file: of code each in a run of its own, since a file is another choice beside code."""
    out.mkdir(parents=True)
    report, written, code = out / "report.json", out / "model.onnx", out / "code"
    command = [args.gopt, "optimize", model, "--target", args.target, "--cost", args.cost, "--threads", args.threads, "--report", report, "--rules", *files(count)]
    command += ["--no-measure"] if args.target == "onnx" or args.cost == "analytic" else []
    for last in (["-o", written], ["--emit", code]) if args.target == "cpu" else (["-o", written],):
        done = subprocess.run([str(c) for c in command + ["--force", *last]], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"gopt optimize {model}: {done.stderr[-600:]}")
    return json.loads(report.read_text()), written, code


def compare(args, model, folder):
    found = [optimize(args, model, folder / model.stem / str(count), count) for count in (0, 1, 2)]
    reference = session(model, 1)
    feed = draw(reference, args.seed)
    expected = reference.run(None, feed)
    worst = max(difference(expected, session(written, 1).run(None, feed)) for _, written, _ in found)
    engine = "emitted" if args.target == "cpu" else "onnxruntime"
    served = []
    try:
        for _, written, code in found:
            served.append(Served(engine, code if engine == "emitted" else written, args.seed, args.threads))
        in_turns(served, args.rounds)
    finally:
        for one in served:
            one.close()
    faster = [interval([a / b for a, b in zip(served[0].times, other.times)]) for other in served[1:]]
    known, applied = names(), {}
    for step in found[2][0]["applied"]:
        if step["rule"] in known:
            applied[step["rule"]] = applied.get(step["rule"], 0) + 1
    estimates = [report["cost"]["after_ms"] for report, _, _ in found]
    return estimates, worst, faster, applied


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--target", choices=["cpu", "onnx"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cost", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", nargs="*", help="of the drawn ones, by name; none for no name")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        drawn = [p for p in window_models.write(folder, args.seed) if args.models is None or p.stem in args.models]
        print(f"{'model':<24} {'without':>9} {'whole':>9} {'corrected':>9} ms   differs  whole faster        corrected faster")
        for model in drawn + args.files:
            estimates, worst, faster, applied = compare(args, model, pathlib.Path(folder))
            ratios = "  ".join(f"{a:.3f} ({b:.3f}-{c:.3f})" for a, b, c in faster)
            print(f"{model.stem:<24} {estimates[0]:>9.3f} {estimates[1]:>9.3f} {estimates[2]:>9.3f}      {worst:.1e}  {ratios}  "
                  + " ".join(f"{n}x{k}" for n, k in applied.items()), flush=True)
            status |= not worst <= 1e-4
    return status


if __name__ == "__main__":
    sys.exit(main())
