#!/usr/bin/env python3
"""Nodes that gopt leaves of models, beside onnxsim, OnnxSlim and ONNX Runtime's basic optimizations.

usage: simplifiers.py --gopt build/tools/gopt/gopt [--csv FILE] [--only WORD] [--models MODEL.onnx ...]
needs: numpy, onnx, onnxruntime; onnxsim and onnxslim where they are to be compared (a column each that is there)

Without --models: small models of one idiom each (simplifier_idioms.py). A row a model: its nodes, and those that each tool leaves;
constants are not counted. What a tool writes is run in ONNX Runtime, without optimizations, on random inputs: `wrong` where it
computes something else, `fails` where there is none. `*` marks the rows where another tool leaves fewer than gopt. The last line
says how many these are, and the mean of what is left.
"""
import argparse, csv, pathlib, subprocess, sys, tempfile

import numpy as np
import onnx
import onnxruntime as ort

from simplifier_idioms import idioms

# Each in a process of its own: some of them crash.
TOOLS = {
    "onnxsim": "import sys, onnx, onnxsim; m, ok = onnxsim.simplify(onnx.load(sys.argv[1])); onnx.save(m, sys.argv[2])",
    "onnxslim": "import sys, onnx, onnxslim; onnx.save(onnxslim.slim(onnx.load(sys.argv[1])), sys.argv[2])",
    "ort": "import sys, onnxruntime as o; s = o.SessionOptions(); s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_BASIC; "
           "s.optimized_model_filepath = sys.argv[2]; o.InferenceSession(sys.argv[1], s, providers=['CPUExecutionProvider'])",
}


def nodes_of(graph):
    own = [n for n in graph.node if n.op_type != "Constant"]
    return len(own) + sum(nodes_of(a.g) for n in own for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)


def run(path, feed):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feed)


def draw(path, rng):
    feed = {}
    for value in ort.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs():
        dims = [d if isinstance(d, int) else 3 for d in value.shape]
        is_float = "float" in value.type
        feed[value.name] = rng.normal(size=dims).astype(np.float32) if is_float else rng.integers(0, 2, dims).astype(
            {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}[value.type])
    return feed


def agree(a, b):
    for x, y in zip(a, b):
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if x.dtype.kind != "f":
            same = np.array_equal(x, y)
        else:
            same = np.array_equal(np.isnan(x), np.isnan(y)) and np.allclose(x, y, rtol=1e-3, atol=1e-4 * (1e-9 + np.nanmax(np.abs(x), initial=0)), equal_nan=True)
        if not same:
            return False
    return len(a) == len(b)


def left_by(command, model, out, feed, expected):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode or not out.exists():
        return "fails"
    try:
        if feed is not None and not agree(expected, run(str(out), feed)):
            return "wrong"
    except Exception:  # what it wrote is no valid model
        return "wrong"
    return nodes_of(onnx.load(str(out), load_external_data=False).graph)


def row_of(name, model, args, tools, folder, rng):
    feed = draw(str(model), rng)
    expected = run(str(model), feed)
    row = {"model": name, "nodes": nodes_of(onnx.load(str(model), load_external_data=False).graph)}
    for tool, command in {"gopt": [args.gopt, "optimize", str(model), "--force", "-o"], **{t: [sys.executable, "-c", c, str(model)] for t, c in tools.items()}}.items():
        out = folder / f"{tool}.onnx"
        out.unlink(missing_ok=True)
        row[tool] = left_by([*command, str(out)], model, out, feed, expected)
    best = min((row[t] for t in tools if isinstance(row[t], int)), default=row["nodes"])
    row["worse"] = "*" if not isinstance(row["gopt"], int) or row["gopt"] > best else ""
    return row


def available(tools):
    return {t: c for t, c in tools.items() if t == "ort" or subprocess.run([sys.executable, "-c", f"import {t}"], capture_output=True).returncode == 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--csv")
    parser.add_argument("--only", default="")
    parser.add_argument("--models", nargs="*", type=pathlib.Path, default=[])
    args = parser.parse_args()
    tools, rows, rng = available(TOOLS), [], np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = []
        for path in args.models:  # with their weights inside: some tools write files that others do not find the weights of
            models.append((f"{path.parent.name}/{path.stem}", folder / f"{path.parent.name}_{path.stem}.onnx"))
            onnx.save(onnx.load(str(path)), str(models[-1][1]))
        for name, proto in [] if args.models else idioms().items():
            models.append((name, folder / f"{name}.onnx"))
            onnx.save(proto, str(models[-1][1]))
        for name, model in models:
            if args.only not in name:
                continue
            rows.append(row_of(name, model, args, tools, folder, rng))
            print("  ".join([f"{rows[-1]['model']:34}"] + [f"{k} {v:>5}" for k, v in rows[-1].items() if k not in ("model", "worse")] + [rows[-1]["worse"]]), flush=True)
    for tool in ("gopt", *tools):
        numbers = [r[tool] for r in rows if isinstance(r[tool], int)]
        print(f"{tool}: {sum(numbers) / max(1, len(numbers)):.2f} nodes in the mean of {len(numbers)}, {sum(r[tool] == 'wrong' for r in rows)} wrong, {sum(r[tool] == 'fails' for r in rows)} failed")
    print(f"of {len(rows)} models another tool leaves fewer nodes than gopt in {sum(r['worse'] != '' for r in rows)}")
    if args.csv and rows:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
