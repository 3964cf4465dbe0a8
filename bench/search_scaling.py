#!/usr/bin/env python3
"""Seconds of the search and peak memory of `gopt optimize` over 1, 2, 4, ... copies of a block, one after another.

usage: search_scaling.py --gopt build/tools/gopt/gopt [--copies 1 2 4 8 16 94] [--cost analytic] [--csv FILE]
needs: numpy, onnx

The block (32 nodes): three branches of convolutions with batch normalization and activations, joined; then three products
that share their left side, and what attention does with them. A row each: nodes, seconds of the search, steps, estimated
gain, peak memory.
"""
import argparse, csv, json, pathlib, subprocess, sys, tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIDE = 24, 8


class Model:
    def __init__(self, seed=7):
        self.nodes, self.weights, self.rng, self.count = [], [], np.random.default_rng(seed), 0

    def weight(self, *shape, low=-0.3, high=0.3):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(self.rng.uniform(low, high, shape).astype(np.float32), name))
        return name

    def numbers(self, *values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, kind, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(kind, inputs, [f"v{self.count}"], f"{kind}_{self.count}", **attributes))
        return f"v{self.count}"

    def convolution(self, x, channels, kernel):
        y = self.add("Conv", x, self.weight(channels, CHANNELS, kernel, kernel), self.weight(channels),
                     kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)
        y = self.add("BatchNormalization", y, self.weight(channels, low=0.5, high=1.5), self.weight(channels),
                     self.weight(channels), self.weight(channels, low=0.5, high=1.5))
        return self.add("Relu", y)

    def block(self, x):
        third = CHANNELS // 3
        joined = self.add("Concat", *(self.convolution(x, third, k) for k in (1, 1, 3)), axis=1)
        flat = self.add("Reshape", joined, self.numbers(CHANNELS, SIDE * SIDE))
        rows = self.add("Transpose", flat, perm=[1, 0])
        q, k, v = (self.add("Add", self.add("MatMul", rows, self.weight(CHANNELS, CHANNELS)), self.weight(CHANNELS))
                   for _ in range(3))
        scores = self.add("Softmax", self.add("MatMul", q, self.add("Transpose", k, perm=[1, 0])), axis=-1)
        mixed = self.add("Add", self.add("MatMul", self.add("MatMul", scores, v), self.weight(CHANNELS, CHANNELS)), rows)
        gated = self.add("Mul", mixed, self.add("Sigmoid", mixed))
        back = self.add("Reshape", self.add("Transpose", gated, perm=[1, 0]), self.numbers(1, CHANNELS, SIDE, SIDE))
        return self.add("Add", back, x)

    def save(self, copies, path):
        shape, x = [1, CHANNELS, SIDE, SIDE], "x"
        for _ in range(copies):
            x = self.block(x)
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "copies", [value("x")], [value(x)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", default="build/tools/gopt/gopt")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 2, 4, 8, 16, 94])
    parser.add_argument("--cost", default="analytic")
    parser.add_argument("--csv")
    options = parser.parse_args()
    columns = ["copies", "nodes", "search_s", "per_copy_ms", "steps", "gain", "total_s", "peak_mb"]
    print(" ".join(f"{c:>11}" for c in columns))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for copies in options.copies:
            model, path, report = Model(), f"{folder}/copies.onnx", f"{folder}/report.json"
            model.save(copies, path)
            command = [options.gopt, "optimize", path, "--target", "cpu", "--cost", options.cost, "--check", "off",
                       "--no-measure", "--report", report, "--force"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            told = json.loads(pathlib.Path(report).read_text())
            search = sum(p["seconds"] for p in told["phases"] if p["name"] == "searching")
            points = told["search"]["trajectory"]
            rows.append([copies, len(model.nodes), round(search, 2), round(1e3 * search / copies, 1),
                         told["search"]["steps"], round(points[0]["best_ms"] / points[-1]["best_ms"], 3),
                         round(told["seconds"], 2), round(told["peak_memory_mb"])])
            print(" ".join(f"{c:>11}" for c in rows[-1]), flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])


if __name__ == "__main__":
    main()
