#!/usr/bin/env python3
"""What `gopt optimize` leaves of small models of one idiom each: computes what the model does in ONNX Runtime, and has few nodes.

usage: check_idioms.py GOPT      exit status 77 (skipped) without numpy, onnx and onnxruntime
"""
import pathlib, sys, tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from simplifier_idioms import idioms
from simplifiers import draw, left_by, run

# One node is left of all others. These are what they are, or wait for a rule: a runtime fuses Gelu and its like by itself, and
# the opset of the models has no such operator.
LEFT = {"gelu-erf": 5, "gelu-tanh": 8, "hardswish": 4, "silu": 2, "clip-twice": 2, "equal-nodes": 2, "matmul-batch-add": 2,
        "reshape-matmul-add": 2, "qkv": 2, "global-pool-flatten": 2, "reciprocal-mul": 2, "sqrt-square": 2, "max-relu": 2,
        "not-twice": 2, "xor-false": 2}


def main():
    gopt, rng, failed = sys.argv[1], np.random.default_rng(7), 0
    with tempfile.TemporaryDirectory() as temporary:
        model, out = (pathlib.Path(temporary) / name for name in ("model.onnx", "out.onnx"))
        for name, proto in idioms().items():
            onnx.save(proto, str(model))
            feed = draw(str(model), rng)
            left = left_by([gopt, "optimize", str(model), "--force", "-o", str(out)], model, out, feed, run(str(model), feed))
            out.unlink(missing_ok=True)
            if left != LEFT.get(name, 1):
                print(f"{name}: {left}, not {LEFT.get(name, 1)}")
                failed += 1
    print(f"{len(idioms())} models, {failed} not as they should be")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
