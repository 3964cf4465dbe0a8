#!/usr/bin/env python3
"""Times single layers that nobody chose on a GPU: draws them (draw_layers.py), emits CUDA code for each, and times it in turns with PyTorch.

usage: torch_layers.py --gopt build/tools/gopt/gopt --out DIR [--precision fp16] [--count 60] [--seed 1] [--family conv2d,...] [--tuning 200] [--runs 20] [--csv FILE]
needs: a GPU; torch, onnx, numpy, cmake, nvcc, cuDNN

PyTorch runs eager under a CUDA graph; compositions that it has a function for (SiLU, Gelu, attention) are that function. Of images like is compared with like: plain ones
with plain ones, and such with channels last, as PyTorch takes and gives them, with a layer whose images are transposed from and to that order at its borders. In fp16
layer and peer are of halves from input to output. Kernel times are measured for a dozen layers at once, as one model, for at most --tuning seconds; DIR keeps them and all else, so that the same command goes on where it was stopped. `error` is max |a-b| / max |a| to PyTorch in float64, in
brackets PyTorch's own; wrong is what is above both what the precision may lose and half as much again as PyTorch loses. A ratio
is PyTorch's time over ours; a layer's the lesser of its two. Prints a row a layer, geometric mean, median and least of each family and the ten worst; ends with 1 when a result is wrong or a layer fails.
"""
import argparse, concurrent.futures, csv, ctypes, json, math, pathlib, statistics, sys, time
import numpy as np
import onnx
import onnx.compose
import torch
from onnx import numpy_helper

import draw_layers
from check_models import Emitted, difference
from cuda_check import OnDevice
from torch_operators import Layer, NoPeer
from torch_turns import LOSSES, TYPES, graphed, queued_ms, run_command


def in_halves(model):
    """The same layer with float16 in place of float32: constants beyond its range become its largest numbers."""
    limit = float(np.finfo(np.float16).max)
    for w in model.graph.initializer:
        if w.data_type == onnx.TensorProto.FLOAT:
            w.CopyFrom(numpy_helper.from_array(np.clip(numpy_helper.to_array(w), -limit, limit).astype(np.float16), w.name))
    for v in [*model.graph.input, *model.graph.output]:
        if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            v.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.FLOAT16
    del model.graph.value_info[:]
    scales = {n.input[2] for n in model.graph.node if n.op_type == "Resize" and len(n.input) > 2}
    for w in model.graph.initializer:  # which stay float32 in any model
        if w.name in scales:
            w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w).astype(np.float32), w.name))
    return model


OF_IMAGES = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "Resize", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "DepthToSpace", "SpaceToDepth"}


def is_of_images(model):
    return any(n.op_type in OF_IMAGES for n in model.graph.node) and any(len(v.type.tensor_type.shape.dim) == 4 for v in model.graph.input)


def with_channels_last(model):
    """The same layer of images that lie with channels last: inputs and outputs of four axes are transposed."""
    last = onnx.ModelProto()
    last.CopyFrom(model)
    before, after = [], []
    for value in last.graph.input:
        if len(value.type.tensor_type.shape.dim) == 4:
            before.append(onnx.helper.make_node("Transpose", [value.name + "_last"], [value.name], perm=[0, 3, 1, 2]))
    for value in last.graph.output:
        if len(value.type.tensor_type.shape.dim) == 4:
            after.append(onnx.helper.make_node("Transpose", [value.name], [value.name + "_last"], perm=[0, 2, 3, 1]))
    nodes = [*before, *last.graph.node, *after]
    del last.graph.node[:]
    last.graph.node.extend(nodes)
    for value in [*last.graph.input, *last.graph.output]:
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 4:
            value.name += "_last"
            n, c, h, w = (d.dim_value for d in dims)
            for d, extent in zip(dims, (n, h, w, c)):
                d.dim_value = extent
    return last


def variants_of(model):
    """What is timed, by the name of the order of images."""
    return {"plain": model, **({"channels last": with_channels_last(model)} if is_of_images(model) else {})}


def drawn_layers(args):
    for name, family, model, text, _ in draw_layers.draw_all(args.family, args.count, args.seed):
        yield name, family, text, in_halves(model) if args.precision == "fp16" else model


def joined(models):
    """One model of several, side by side."""
    whole = None
    for i, model in enumerate(models):
        own = onnx.compose.add_prefix(model, f"l{i}_")
        whole = own if whole is None else onnx.compose.merge_models(whole, own, io_map=[])
    return whole


def optimize(args, path, folder=None):
    precision = [] if args.precision == "fp16" else ["--precision", args.precision]  # halves are in the graph
    written = ["--emit", folder] if folder else ["-o", path.with_suffix(".opt.onnx")]
    run_command([args.gopt, "optimize", path, "--target", "cuda", *precision, "--cost", "measured", "--cache", args.out / "kernel_times", "--check", "off", "--no-measure",
                 "--force", "--budget", "10s", *written, *args.extra])


def tune(args, layers):
    """Fills the cache of kernel times, some layers at once."""
    end = time.monotonic() + args.tuning
    for first in range(0, len(layers), 12):
        done = args.out / f"tuned_{first}"
        for _ in range(3):  # a command times kernels for a minute, and goes on where it stopped
            if done.exists() or time.monotonic() > end:
                break
            path = args.out / f"joined_{first}.onnx"
            onnx.save(joined([v for *_, model in layers[first : first + 12] for v in variants_of(model).values()]), path)
            begun = time.monotonic()
            optimize(args, path)
            if time.monotonic() - begun < 55:
                done.touch()


def prepare(args, layer):
    name, _, _, model = layer
    folders = {}
    for order, variant in variants_of(model).items():
        stem = name if order == "plain" else f"{name}_last"
        path, folder = args.out / f"{stem}.onnx", args.out / f"{stem}_code"
        folders[order] = folder
        if (folder / "build" / "done").exists():
            continue
        onnx.save(variant, path)
        optimize(args, path, folder)
        run_command(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
        run_command(["cmake", "--build", folder / "build", "-j2"])
        (folder / "build" / "done").touch()
    return folders


def on_device_as(dtype, feed):
    on_device = [torch.from_numpy(v).cuda() for v in feed.values()]
    return [v.to(dtype) if v.is_floating_point() else v for v in on_device]


def ways_of(layer, feed, dtype, orders):
    own = layer.to(dtype)
    on_device = on_device_as(dtype, feed)
    ways = {"plain": graphed(lambda x: own(*x), on_device)}
    if "channels last" in orders:
        last = layer.to(dtype, torch.channels_last)
        images = [v.contiguous(memory_format=torch.channels_last) if v.dim() == 4 else v for v in on_device]
        ways["channels last"] = graphed(lambda x: last(*x), images)
    return ways


def as_plain(array):
    return np.transpose(array, (0, 3, 1, 2)) if array.ndim == 4 else array


def measure(args, layer, folders):
    name, family, text, model = layer
    draw = np.random.default_rng(args.seed)
    types = {v.name: onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input}
    feed = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    feed = {n: draw.integers(0, 1000, s) if types[n] == np.int64 else draw.standard_normal(s).astype(types[n]) for n, s in feed.items()}
    layer = Layer(model)
    in_type = lambda dtype: [layer.to(dtype)(*on_device_as(dtype, feed)).double().cpu().numpy()]
    exact = in_type(torch.float64)
    feeds = {"plain": feed, "channels last": {n + "_last" if v.ndim == 4 else n: np.ascontiguousarray(np.transpose(v, (0, 2, 3, 1))) if v.ndim == 4 else v for n, v in feed.items()}}
    devices, errors = {}, []
    for order, folder in folders.items():
        device = devices[order] = OnDevice(Emitted(folder, 0), feeds[order])
        device.run(1)
        results = device.results()
        errors.append(float(difference(exact, results if order == "plain" else [as_plain(r) for r in results])))
    row = {"layer": text, "family": family, "kernels": devices["plain"].emitted.lib.gopt_kernel_count(), "error": max(errors, key=lambda e: math.inf if math.isnan(e) else e),
           "torch_error": float(difference(exact, in_type(TYPES[args.precision])))}
    ours = {f"gopt, {order}": (lambda device=device: device.run(20)) for order, device in devices.items()}
    ways = {**ours, **{order: (lambda run=run: queued_ms(run)) for order, run in ways_of(layer, feed, TYPES[args.precision], folders).items()}}
    times = {way: [] for way in ways}
    for turn in range(args.runs + 2):
        for way, run in ways.items():
            start = time.perf_counter()
            ms = run()
            times[way].append((time.perf_counter() - start) * 1e3 / 20 if ms is None else ms)
    row["us"] = {way: sorted(t[2:])[len(t[2:]) // 2] * 1e3 for way, t in times.items()}
    row["ratio"], row["order"] = min((row["us"][order] / row["us"][f"gopt, {order}"], order) for order in folders)
    for device in devices.values():
        device.emitted.lib.gopt_destroy(ctypes.c_void_p(device.emitted.model))
    return row


def summarize(rows):
    families = {}
    for row in rows.values():
        families.setdefault(row["family"], []).append(row["ratio"])
        families.setdefault("all", []).append(row["ratio"])
    for family, ratios in sorted(families.items()):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{family:<14} {len(ratios):4d}  mean {mean:.2f}  median {statistics.median(ratios):.2f}  least {min(ratios):.2f}  below 0.8: {sum(r < 0.8 for r in ratios)}")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["ratio"])[:10]:
        print(f"  {row['ratio']:.2f}  {name}  {row['layer']}  " + "  ".join(f"{way} {us:.1f}" for way, us in row["us"].items()) + " us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--precision", choices=["fp32", "tf32", "fp16"], default="fp16")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family")
    parser.add_argument("--tuning", type=float, default=200)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--csv")
    parser.add_argument("--extra", nargs="*", default=[], help="further flags of gopt optimize")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    layers = list(drawn_layers(args))
    tune(args, layers)
    path, failed = args.out / "results.json", 0
    rows = json.loads(path.read_text()) if path.exists() else {}
    rows = {name: row for name, row in rows.items() if "order" in row}  # others are of one order alone
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # builds all end before anything is timed
        folders = [pool.submit(prepare, args, layer) for layer in layers if layer[0] not in rows]
    for layer, folder in zip([l for l in layers if l[0] not in rows], folders):
        try:
            row = rows[layer[0]] = measure(args, layer, folder.result())
        except NoPeer as e:
            print(f"{layer[0]} {layer[2]}: left out: {e}", flush=True)
            continue
        except Exception as e:  # of any of three programs: the others go on
            failed += 1
            print(f"{layer[0]} {layer[2]}: {e}", flush=True)
            continue
        path.write_text(json.dumps(rows, indent=1) + "\n")
        peers = row.get("torch_error", 0)  # a function may multiply what its argument has lost, in any hands
        good = row["error"] <= max(LOSSES[args.precision], 1.5 * peers if math.isfinite(peers) else 0)
        failed += not good
        print(f"{layer[0]:<20} {row['ratio']:5.2f}x  " + "  ".join(f"{way} {us:.1f}" for way, us in row["us"].items()) + f" us  {row['kernels']} kernels  error {row['error']:.2g} (torch {row.get('torch_error', math.nan):.2g})  {row['layer']}",
              "" if good else "  WRONG", flush=True)
    summarize(rows)
    if args.csv and rows:
        with open(args.csv, "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["name", "family", "layer", "order", "ratio", "gopt_us", "torch_us", "error", "torch_error"])
            for name, row in rows.items():
                writer.writerow([name, row["family"], row["layer"], row["order"], row["ratio"], row["us"][f"gopt, {row['order']}"], row["us"][row["order"]], row["error"], row.get("torch_error")])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
