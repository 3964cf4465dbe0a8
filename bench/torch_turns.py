#!/usr/bin/env python3
"""gopt's CUDA code and PyTorch on one GPU, in turns: latency and differences of models of torchvision and transformers.

usage: torch_turns.py --gopt build/tools/gopt/gopt --out DIR [--precision fp16] [--batch 1] [--runs 40] [--compile] [--seconds S] [--extra FLAG ...] NAME ...
needs: a GPU; torch, torchvision, onnx (transformers for bert_base), numpy, cmake, nvcc, cuDNN

NAME is a model of torchvision.models, or bert_base. Weights are drawn (seeded), the model is exported to ONNX, optimized and
emitted by gopt with its default flags and measured costs, and timed in turns with PyTorch in the same precision: eager under a
CUDA graph, with images plain and with channels last, and with --compile torch.compile in mode reduce-overhead. Times are
medians of twenty runs queued at once, inputs and outputs in device memory; `error` is max |a-b| / max |a| to PyTorch in float64 on
the same inputs. DIR keeps results.json, and what was emitted and timed, so that the same command goes on where it was stopped.
Each model has a process of its own: a fault on the GPU ends all that its process does there.
The exit status is 1 when a difference is NaN or above both what the precision may lose and half as much again as PyTorch loses, or a step fails.
"""
import argparse, copy, ctypes, json, math, pathlib, subprocess, sys, time
import numpy as np
import torch

from check_models import Emitted, difference
from cuda_check import OnDevice

LOSSES = {"fp32": 1e-5, "tf32": 1e-2, "fp16": 1e-2, "bf16": 1e-1}
TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class FirstOutput(torch.nn.Module):
    """A model whose output is one tensor, and whose further inputs are constants."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        out = self.model(x)
        return out if isinstance(out, torch.Tensor) else out[0]


def make_model(name, batch):
    torch.manual_seed(11)
    if name == "bert_base":
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig(), add_pooling_layer=False)
        model.config.return_dict = False
        x = torch.randint(0, 30000, (batch, 128))
    else:
        import torchvision

        # Models with a second head for training are made without it.
        model = getattr(torchvision.models, name)(weights=None, **({"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}))
        side = 299 if name == "inception_v3" else 224
        x = torch.randn(batch, 3, side, side)
    with torch.no_grad():  # as after training: statistics of images, heads that are not 0
        for module in model.modules():
            if isinstance(module, torch.nn.Linear) and not module.weight.any():
                module.weight.normal_(std=0.02)
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
                module.weight.uniform_(0.8, 1.2), module.bias.uniform_(-0.1, 0.1)
        if x.is_floating_point():  # else 16 bits overflow in the depth of inception_v3
            model.train()(torch.randn(4, *x.shape[1:]))
    return FirstOutput(model).eval(), x


def graphed(model, x):
    """A function that replays the model under a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(5):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        graph.output = model(x)
    return graph.replay


def peers(model, x, precision, compiles):
    """Ways to run it in PyTorch, by name, and what the first gives."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    own = model.to("cuda", TYPES[precision])
    image = x.cuda().to(TYPES[precision]) if x.is_floating_point() else x.cuda()
    ways = {"eager": graphed(own, image)}
    with torch.no_grad():
        result = own(image).to(torch.float64).cpu().numpy()
    if compiles:
        compiled = torch.compile(own, mode="reduce-overhead")

        def run():
            torch.compiler.cudagraph_mark_step_begin()
            return compiled(image)

        with torch.no_grad():
            for _ in range(5):
                run()
        ways["compile"] = run
    if x.dim() == 4:
        last = copy.deepcopy(own).to(memory_format=torch.channels_last)  # a captured graph reads the other's weights where they are
        ways["channels last"] = graphed(last, image.contiguous(memory_format=torch.channels_last))
    return ways, result


def queued_ms(run, count=20):
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.no_grad():
        for _ in range(count):
            run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3 / count


def run_command(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: " + (done.stderr or done.stdout)[-900:])


def emit(args, name, model, x):
    path, folder, report = (args.out / f"{name}{end}" for end in (".onnx", "_code", ".json"))
    torch.onnx.export(model, (x,), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    start = time.perf_counter()
    run_command([args.gopt, "optimize", path, "--target", "cuda", "--precision", args.precision, "--cost", "measured", "--cache", args.out / f"{name}.kernel_times",
                 "--check", "off", "--force", "--emit", folder, "--report", report, *args.extra])
    seconds = time.perf_counter() - start
    run_command(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
    run_command(["cmake", "--build", folder / "build", "-j16"])
    cost = json.loads(report.read_text())["cost"]
    return folder, {"kernels": cost["after_kernels"], "estimated_ms": cost["after_ms"], "tuning_s": seconds}


def measure(args, name):
    model, x = make_model(name, args.batch)
    folder, row = emit(args, name, model, x)
    with torch.no_grad():
        expected = model.to("cuda", torch.float64)(x.cuda().to(torch.float64) if x.is_floating_point() else x.cuda()).cpu().numpy()
    emitted = Emitted(folder, 0)
    device = OnDevice(emitted, {"x": x.numpy()})
    device.run(1)
    row["error"] = float(difference([expected], device.results()))
    torch_ways, of_torch = peers(model, x, args.precision, args.compile)
    row["torch_error"] = float(difference([expected], [of_torch]))
    ways = {"gopt": None, **torch_ways}
    times = {way: [] for way in ways}
    for turn in range(args.runs + 3):
        for way, run in ways.items():
            if way == "gopt":
                start = time.perf_counter()
                device.run(20)
                ms = (time.perf_counter() - start) * 1e3 / 20
            else:
                ms = queued_ms(run)
            if turn >= 3:
                times[way].append(ms)
    row["ms"] = {way: sorted(t)[len(t) // 2] for way, t in times.items()}
    row["ratio"] = min(ms for way, ms in row["ms"].items() if way != "gopt") / row["ms"]["gopt"]
    device.emitted.lib.gopt_destroy(ctypes.c_void_p(device.emitted.model))
    return row


def in_processes(args):
    """One process a model, then the mean of all that is there; 1 where one failed."""
    end, failed = time.monotonic() + args.seconds, 0
    options = [word for word in sys.argv[1:] if word not in args.names]
    for name in args.names:
        if time.monotonic() < end:
            failed |= subprocess.run([sys.executable, __file__, name, *options]).returncode
    path = args.out / "results.json"
    ratios = [row["ratio"] for row in json.loads(path.read_text()).values()] if path.exists() else []
    if ratios:
        print(f"geometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}x")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--precision", choices=LOSSES, default="fp16")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--compile", action="store_true", help="time torch.compile, too (a minute a model)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("--extra", nargs="*", default=[], help="further flags of gopt optimize")
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if len(args.names) > 1:
        return in_processes(args)
    name, path = args.names[0], args.out / "results.json"
    rows = json.loads(path.read_text()) if path.exists() else {}
    key = f"{name} {args.precision} b{args.batch}"
    if key in rows:
        return 0
    try:
        row = rows[key] = measure(args, name)
    except Exception as e:  # of any of three programs
        print(f"{key}: {e}", flush=True)
        return 1
    path.write_text(json.dumps(rows, indent=1) + "\n")
    good = row["error"] <= max(LOSSES[args.precision], 1.5 * row["torch_error"])  # a deep model may lose more in any hands
    ways = "  ".join(f"{way} {ms:.4f}" for way, ms in row["ms"].items())
    print(f"{key:<28} {row['ratio']:5.2f}x  {ways}  estimated {row['estimated_ms']:.4f}  {row['kernels']} kernels  error {row['error']:.2g} (torch {row['torch_error']:.2g})  tuning {row['tuning_s']:.0f} s",
          "" if good else "  WRONG", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
