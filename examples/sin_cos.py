#!/usr/bin/env python3
"""Writes sin_cos.onnx: f(x) = sin(x)^2 + cos(x)^2, which is 1. The README's tour optimizes it.

usage: sin_cos.py OUT.onnx      needs: pip install onnx (or Debian's python3-onnx)
"""
import sys

import onnx
from onnx import TensorProto, helper


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    nodes = [
        helper.make_node("Sin", ["x"], ["sine"]),
        helper.make_node("Cos", ["x"], ["cosine"]),
        helper.make_node("Mul", ["sine", "sine"], ["sine_squared"]),
        helper.make_node("Mul", ["cosine", "cosine"], ["cosine_squared"]),
        helper.make_node("Add", ["sine_squared", "cosine_squared"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph(nodes, "sin_cos", [x], [y])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
