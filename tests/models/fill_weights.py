#!/usr/bin/env python3
"""Makes the weights of the models in this folder.

A model here is an architecture as its exporter wrote it; its large initializers are external data in NAME.weights, which is
not kept. NAME.weights.json says, for each tensor in file order, its shape and the statistics that it had. This script draws
the tensors anew and writes NAME.weights beside a copy of NAME.onnx. Only NumPy is needed, and the same file comes out on
every machine: each tensor has a generator of its own, seeded by its name.

What is drawn is normal with the statistics that the tensor had, except where the output would then not depend on the input:
  - convolution kernels around zero get a deviation of sqrt(2 / fan-in), so that the signal neither dies nor explodes;
  - vectors around zero get at most 0.1, so that biases do not drown the signal;
  - a matrix of zeros (a head that was not trained) gets 0.02;
  - a mask (its minimum is the lowest float) is causal.

usage: fill_weights.py OUT [MODEL.onnx ...]      all models of this folder where none is named
"""
import json
import math
import pathlib
import shutil
import sys
import zlib

import numpy as np

ALIGNMENT = 64  # bytes between tensors, as the models' offsets have it
LOWEST = -1e30  # below: a mask's way to say minus infinity
LARGEST_KERNEL = 1024  # elements of a spatial kernel; larger ones are no convolutions


def draw(name, shape):
    """Standard normal numbers, the same for the same name everywhere."""
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, np.float32)


def make_tensor(name, stats):
    shape, mean, std = stats["shape"], stats["mean"], stats["std"]
    centered = abs(mean) < std
    if stats["min"] < LOWEST:
        return np.triu(np.full(shape, stats["min"], np.float32), 1)
    if std == 0 and (mean != 0 or len(shape) < 2):
        return np.full(shape, mean, np.float32)
    if std == 0:
        return draw(name, shape) * np.float32(0.02)
    if len(shape) == 4 and shape[2] * shape[3] <= LARGEST_KERNEL and centered:
        return draw(name, shape) * np.float32(math.sqrt(2 / math.prod(shape[1:])))
    if len(shape) == 1 and centered:
        std = min(std, 0.1)
    return np.clip(draw(name, shape) * np.float32(std) + np.float32(mean), stats["min"], stats["max"])


def fill(model, out):
    statistics = json.loads(model.with_name(model.stem + ".weights.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    with open(out / (model.stem + ".weights"), "wb") as file:
        for name, stats in statistics.items():
            data = make_tensor(name, stats).astype(np.float32).tobytes()
            file.write(data + bytes(-len(data) % ALIGNMENT))
    shutil.copyfile(model, out / model.name)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parent
    models = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or sorted(here.rglob("*.onnx"))
    for model in models:
        folder = pathlib.Path(sys.argv[1]) / (model.parent.name if model.parent != here else "")
        fill(model, folder)
        print(folder / model.name)


if __name__ == "__main__":
    main()
