#!/usr/bin/env python3
"""Optimizes sin_cos.onnx from Python, compiles the result and runs it. README.md shows what it prints.

usage: from_python.py      needs: pip install . (in the repository's root)
"""
import pathlib

import numpy as np

import gopt

path = pathlib.Path(__file__).parent / "sin_cos.onnx"

# The options are the command line's flags. The result holds the model, the report and the check.
result = gopt.optimize(path, allow="finite-only", cost="analytic")
for rule, times in result.applied.items():
    print(f"applied {rule} x{times}")
print("operators", {name: count["after"] for name, count in result.report["operators"].items()})
print("check", "passed" if result.check.passed else result.check.why_not)
result.save("rewritten.onnx", force=True)

# A compiled model is called as ONNX Runtime's sessions are.
model = gopt.compile(result, cost="analytic")
for value in model.get_inputs():
    print("input", value.name, value.type, value.shape)
x = np.random.default_rng(0).standard_normal((2, 3), dtype=np.float32)
(y,) = model.run(None, {"x": x})
print("largest |y - 1|", np.abs(y - 1).max())

# The original by its definitions, the other as it was written.
print("agree" if gopt.compare(path, "rewritten.onnx") else "differ")

try:
    model.run(None, {"x": x.astype(np.float64)})
except gopt.Error as error:
    print("error:", error)
