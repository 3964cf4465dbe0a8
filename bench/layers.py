#!/usr/bin/env python3
"""Times single layers that nobody chose: draws them (draw_layers.py), emits code for each, and times it beside other runtimes.

usage: layers.py [--gopt build/tools/gopt/gopt] [--count 100] [--seed 1] [--family conv2d,...] [--threads 2] [--rounds 3] [--analytic] [--peers onnxruntime,openvino] [--csv FILE] [--layers DIR]

Each engine runs in a process of its own, in turn; of each process's runs the median counts, of the rounds the least. A ratio is the
fastest peer's time over ours: above 1 ours is faster. OpenVINO computes in f32. Prints the geometric mean, median and least ratio of each family, and the ten worst layers.
Needs numpy, onnx and the peers.
"""
import argparse, collections, csv, json, pathlib, statistics, subprocess, sys, tempfile
import numpy as np

TIMING = """
import sys, time, json, numpy as np
draw = np.random.default_rng(0)
def drawn(shape, is_index):
    return draw.integers(0, 1000, shape) if is_index else draw.standard_normal(shape).astype(np.float32)
def time_calls(call):
    times, spent = [], 0.0
    while len(times) < 8 or (spent < float(sys.argv[3]) and len(times) < 1000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        spent += times[-1]
    print(json.dumps(sorted(times)[len(times) // 2] * 1e3))
"""
PEERS = {
    "onnxruntime": """
import onnxruntime as rt
options = rt.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = rt.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feed = {i.name: drawn(i.shape, "int64" in i.type) for i in session.get_inputs()}
names = [o.name for o in session.get_outputs()]
time_calls(lambda: session.run(names, feed))
""",
    "openvino": """
import openvino as ov
core = ov.Core()
model = core.compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": int(sys.argv[2])})
request = model.create_infer_request()
for i in model.inputs:
    request.set_tensor(i, ov.Tensor(drawn(list(i.shape), "i64" in str(i.element_type))))
time_calls(request.infer)
""",
}


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


def time_peers(a, model):
    """The least of their times; why there is none."""
    times, why = [], ""
    for peer in a.peers.split(","):
        out, own_why = run([sys.executable, "-c", TIMING + PEERS[peer], model, a.threads, a.seconds], 300)
        times += [json.loads(out)] if out else []
        why = why or f"{peer}: {own_why}"
    return (min(times), "") if times else (None, why)


def measure(a, model, scratch):
    """Milliseconds of ours and of the peer, and what went wrong."""
    folder = scratch / "emitted"
    out, why = run([a.gopt, "optimize", model, "-o", scratch / "out.onnx", "--emit", folder, "--threads", a.threads, *(["--no-measure"] if a.analytic else []), "--force", *a.optimize.split()], 600)
    if out is None:
        return None, None, f"optimize: {why}"
    if "FAILED" in out:
        return None, None, "the result differs"
    ours = peer = None
    for _ in range(a.rounds):
        b, why = time_peers(a, model)
        if b is None:
            return ours, None, why
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
    ap.add_argument("--analytic", action="store_true", help="kernels by analytic costs, not by measured ones as is the default: quicker")
    ap.add_argument("--peers", default="onnxruntime", help=f"of {', '.join(PEERS)}, with commas")
    ap.add_argument("--csv", type=pathlib.Path)
    ap.add_argument("--layers", type=pathlib.Path, help="a folder that draw_layers.py wrote, instead of drawing")
    ap.add_argument("--only", help="only these layers of it: their numbers, with commas")
    a = ap.parse_args()
    unknown = [p for p in a.peers.split(",") if p not in PEERS]
    if unknown:
        ap.error(f"--peers {unknown[0]}: there are {', '.join(PEERS)}")
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
