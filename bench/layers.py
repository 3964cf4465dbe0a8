#!/usr/bin/env python3
"""Times single layers that nobody chose: draws them (draw_layers.py), emits code for each, and times it beside ONNX Runtime.

usage: layers.py [--gopt build/tools/gopt/gopt] [--count 100] [--seed 1] [--family conv2d,...] [--threads 2] [--rounds 3] [--csv FILE] [--layers DIR]

Each engine runs in a process of its own, in turn; of each process's runs the median counts, of the rounds the least. A ratio is ONNX Runtime's time over
ours: above 1 ours is faster. Prints the geometric mean, median and least ratio of each family, and the ten worst layers. Needs numpy, onnx, onnxruntime.
"""
import argparse, collections, csv, json, pathlib, statistics, subprocess, sys, tempfile
import numpy as np

PEER = """
import sys, time, json, numpy as np, onnxruntime as rt
options = rt.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = rt.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
draw = np.random.default_rng(0)
feed = {i.name: draw.integers(0, 1000, i.shape) if "int64" in i.type else draw.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
names, times, spent = [o.name for o in session.get_outputs()], [], 0.0
while len(times) < 8 or (spent < float(sys.argv[3]) and len(times) < 1000):
    start = time.perf_counter()
    session.run(names, feed)
    times.append(time.perf_counter() - start)
    spent += times[-1]
print(json.dumps(sorted(times)[len(times) // 2] * 1e3))
"""


def run(command, limit):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, f"over {limit} s"
    return (done.stdout, "") if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1:])


def time_ours(a, folder, scratch, runs):
    report = scratch / "bench.json"
    out, why = run([a.gopt, "bench", folder, "--threads", a.threads, "--runs", runs, "--warmup", 3, "--json", report, "--force"], 300)
    if out is None:
        return None, why
    return json.loads(report.read_text())["models"][0]["median_ms"], ""


def time_peer(a, model):
    out, why = run([sys.executable, "-c", PEER, model, a.threads, a.seconds], 300)
    return (json.loads(out), "") if out else (None, why)


def measure(a, model, scratch):
    """Milliseconds of ours and of the peer, and what went wrong."""
    folder = scratch / "emitted"
    out, why = run([a.gopt, "optimize", model, "-o", scratch / "out.onnx", "--emit", folder, "--threads", a.threads, "--no-measure", "--force", *a.optimize.split()], 600)
    if out is None:
        return None, None, f"optimize: {why}"
    if "FAILED" in out:
        return None, None, "the result differs"
    ours = peer = None
    for _ in range(a.rounds):
        b, why = time_peer(a, model)
        if b is None:
            return ours, None, f"ONNX Runtime: {why}"
        c, why = time_ours(a, folder, scratch, max(8, min(500, int(a.seconds * 1e3 / max(b, 1e-3)))))
        if c is None:
            return None, b, f"bench: {why}"
        ours, peer = min(c, ours or c), min(b, peer or b)
    return ours, peer, ""


def print_tables(rows):
    good = [r for r in rows if r["ratio"]]
    groups = collections.defaultdict(list)
    for r in good:
        groups[r["family"]].append(r["ratio"])
        groups["all"].append(r["ratio"])
    print(f"\n{'family':<16}{'layers':>7}{'geometric':>11}{'median':>9}{'least':>8}{'below 0.9':>11}")
    for name, ratios in sorted(groups.items()):
        below = sum(r < 0.9 for r in ratios)
        print(f"{name:<16}{len(ratios):>7}{np.exp(np.mean(np.log(ratios))):>11.2f}{statistics.median(ratios):>9.2f}{min(ratios):>8.3f}{below:>11}")
    print("\nthe ten worst")
    for r in sorted(good, key=lambda r: r["ratio"])[:10]:
        print(f"{r['ratio']:8.3f}  {r['ours_ms']:9.3f} ms against {r['peer_ms']:9.3f}  {r['file']}  {r['layer']}")
    for r in rows:
        if r["note"]:
            print(f"not timed: {r['file']}  {r['layer']}: {r['note']}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--gopt", default="build/tools/gopt/gopt")
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--family")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=0.3, help="of timed runs in each process")
    ap.add_argument("--optimize", default="--check off", help="more flags for gopt optimize")
    ap.add_argument("--csv", type=pathlib.Path)
    ap.add_argument("--layers", type=pathlib.Path, help="a folder that draw_layers.py wrote, instead of drawing")
    ap.add_argument("--only", help="only these layers of it: their numbers, with commas")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as place:
        scratch = pathlib.Path(place)
        layers = a.layers or scratch / "layers"
        if not a.layers:
            drawing = [sys.executable, pathlib.Path(__file__).with_name("draw_layers.py"), layers, "--count", a.count, "--seed", a.seed]
            subprocess.run([str(c) for c in drawing + (["--family", a.family] if a.family else [])], check=True, stdout=subprocess.DEVNULL)
        rows, chosen = [], a.only.split(",") if a.only else None
        for layer in json.loads((layers / "layers.json").read_text()):
            if chosen and layer["file"].split("_")[0] not in chosen:
                continue
            ours, peer, note = measure(a, layers / layer["file"], scratch)
            row = {**layer, "ours_ms": ours, "peer_ms": peer, "ratio": peer / ours if ours and peer else None, "note": note}
            rows.append(row)
            print(f"{row['ratio'] or 0:8.3f}  {ours or 0:9.3f} {peer or 0:9.3f}  {layer['file']}  {layer['layer']}  {note}", flush=True)
        print_tables(rows)
        if a.csv:
            with a.csv.open("w", newline="") as f:
                writer = csv.DictWriter(f, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
