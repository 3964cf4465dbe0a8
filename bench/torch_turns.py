#!/usr/bin/env python3
"""gopt's CUDA code and PyTorch on one GPU, in turns: latency, memory and differences of models of torchvision and transformers, and of ONNX files.

usage: torch_turns.py NAME ... --gopt build/tools/gopt/gopt --out DIR [--precision fp16] [--batch 1] [--runs 40] [--compile] [--max-autotune]
                      [--levers rewriting attention ...|all] [--gpus 1] [--markdown FILE] [--seconds S] [--extra="FLAGS"]
needs: a GPU; torch, torchvision, onnx (transformers for bert_base), numpy, cmake, nvcc, cuDNN

NAME is a model of torchvision.models, bert_base, one of your own (FILE.py:FUNCTION, where FUNCTION(batch) gives a module and its one input), or an ONNX file. Of all
but the last weights are drawn (seeded), the model is exported to ONNX, optimized and emitted by gopt with its
default flags and measured costs, and timed in turns with PyTorch in the same precision: eager under a CUDA graph, with images plain and with channels
last; with --compile torch.compile in mode reduce-overhead, with --max-autotune in mode max-autotune, too. Times are medians of twenty runs queued at
once, inputs and outputs in device memory; `error` is max |a-b| / max |a| to PyTorch in float64 on the same inputs. A file is timed without PyTorch, on
inputs drawn by its types and shapes (--batch N gives it another batch); its `error` is to gopt's own code of --precision fp32 --search none --cost
analytic, from the same file.
--levers: the time of code emitted without that part of gopt, planned by the same file of kernel times, over that of the code with all parts, in the same
turns. Of one that fails the row says why. A part of plans is a lever, too: kernel:wgmma:128x64.
`floor`: the weights' bytes at the bandwidth of a copy on this GPU or the operations at the speed of a large product of torch's in that precision, the
longer of the two, and 1.3 us for each kernel of this plan. Weights that stay in the GPU's own cache from run to run may come in faster, as may fp32, which gopt has from the tensor cores. `memory`: what the device has less of
once gopt's model is made, with code that libraries load; `planned`, tensors alone; of PyTorch the most that an eager run has allocated. `from the cache`:
seconds of the same `gopt optimize` once more.
DIR keeps results.json, and what was emitted and timed, so that the same command goes on where it was stopped. Each model has a process of its own: a
fault on the GPU ends all that its process does there. --gpus N: on so many GPUs, one model at a time on each. --markdown: tables of all that is in DIR.
The exit status is 1 when a difference is NaN or above both what the precision may lose and half as much again as PyTorch loses, or a step fails.
"""
import argparse, concurrent.futures, copy, ctypes, json, os, pathlib, queue, runpy, shlex, shutil, subprocess, sys, threading, time
import numpy as np
import torch

from check_models import Emitted, difference
from cpu_models import shapes
from cuda_check import OnDevice
from gpu_rows import LEVERS, file_name, flags_of, floor_ms, is_file, is_lever, is_own, join_flags, key_of, label_of, markdown, means, merge_rows, planned_bytes, row_file, text_of, write_whole
from turns import feed_of

LOSSES = {"fp32": 1e-5, "tf32": 1e-2, "fp16": 1e-2, "bf16": 1e-1}
TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
AS_IT_IS = "--precision fp32 --search none --cost analytic"  # what a file's own code is compared with


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
    if is_own(name):
        path, function = name.rsplit(":", 1)
        model, x = runpy.run_path(path)[function](batch)
        return FirstOutput(model).eval(), x
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


def compiled(model, image, mode):
    """A function that runs what torch.compile makes of the model."""
    made = torch.compile(model, mode=mode)

    def run():
        torch.compiler.cudagraph_mark_step_begin()
        return made(image)

    with torch.no_grad():
        for _ in range(5):
            run()
    return run


def peers(own, image, modes):
    """Ways to run it in PyTorch, by name."""
    ways = {"eager": graphed(own, image)}
    for name, mode in modes.items():
        ways[name] = compiled(own, image, mode)
    if image.dim() == 4:
        last = copy.deepcopy(own).to(memory_format=torch.channels_last)  # a captured graph reads the other's weights where they are
        ways["channels last"] = graphed(last, image.contiguous(memory_format=torch.channels_last))
    return ways


def eager_run(own, image):
    """What an ordinary run gives, and the MiB that PyTorch has allocated at most: weights, activations, workspaces."""
    with torch.no_grad():
        own(image)  # algorithms are chosen, with workspaces that no other run takes
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        result = own(image)
    torch.cuda.synchronize()
    return result.to(torch.float64).cpu().numpy(), torch.cuda.max_memory_allocated() / 2**20


def queued_ms(run, count=20):
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.no_grad():
        for _ in range(count):
            run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3 / count


def device_ms(device, count=20):
    start = time.perf_counter()
    device.run(count)
    return (time.perf_counter() - start) * 1e3 / count


def speeds(precision):
    """Bytes a second that a copy on this GPU reads and writes, and operations a second of a large product."""
    source = torch.randint(0, 256, (2**30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy_ms = min(queued_ms(lambda: target.copy_(source)) for _ in range(5))
    a, b = (torch.randn(8192, 8192, device="cuda").to(TYPES[precision]) for _ in range(2))
    c = torch.empty_like(a)
    product_ms = min(queued_ms(lambda: torch.matmul(a, b, out=c)) for _ in range(5))
    return 2 * source.numel() / copy_ms * 1e3, 2 * 8192**3 / product_ms * 1e3


def run_command(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: " + (done.stderr or done.stdout or f"exit status {done.returncode}")[-900:])


def export(args, name, model, x):
    path = args.out / f"{name}.onnx"
    torch.onnx.export(model, (x,), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    return path


def code_of(args, name):
    return args.out / f"{file_name(name)}_code"


def emit(args, path, name, end="", flags=""):
    """Emits the model's code to the folder of NAME and END; what a row says of it, and the report."""
    folder, report = code_of(args, name + end), args.out / f"{file_name(name + end)}.json"
    usual = ["--target", "cuda", "--precision", args.precision, "--cost", "measured", "--cache", args.out / f"{name}.kernel_times", "--check", "off", "--force",
             *(shapes(path, args.batch) if is_file(args.only) else [])]
    start = time.perf_counter()
    run_command([args.gopt, "optimize", path, "--emit", folder, "--report", report, *join_flags(usual, shlex.split(args.extra), flags.split())])
    seconds, written = time.perf_counter() - start, json.loads(report.read_text())
    for note in written["notes"]:  # kernels that could not be timed, for one
        print(f"{name}{end}: {note}", file=sys.stderr)
    return {"kernels": written["cost"]["after_kernels"], "estimated_ms": written["cost"]["after_ms"], "tuning_s": seconds}, written


def seconds_from_cache(args, path, name):
    """Of the same command once more, with nothing left to measure."""
    row, _ = emit(args, path, name, "_again")
    shutil.rmtree(code_of(args, name + "_again"))
    (args.out / f"{name}_again.json").unlink()
    return row["tuning_s"]


def emit_levers(args, path, name):
    """By lever what the row says of the code without it."""
    rows = {}
    for lever in args.levers:
        try:
            rows[lever], _ = emit(args, path, name, f"_without_{lever}", flags_of(lever))
        except (RuntimeError, OSError) as e:
            rows[lever] = {"failed": str(e)}
    return rows


def build(folder, jobs):
    run_command(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"])
    run_command(["cmake", "--build", folder / "build", f"-j{jobs}"])


def build_all(args, folders):
    """By folder a future that has ended."""
    at_once = min(4, len(folders))
    jobs = max(1, (os.cpu_count() or 1) // args.gpus // at_once)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return {folder: pool.submit(build, folder, jobs) for folder in folders}


def load(folder, feed=None):
    """Code on the device, with these inputs or drawn ones, after a run; the inputs; and the MiB that the device has less of than before."""
    torch.cuda.synchronize()
    before, _ = torch.cuda.mem_get_info()
    emitted = Emitted(folder, 0)
    after, _ = torch.cuda.mem_get_info()
    feed = feed or feed_of(emitted, np.random.default_rng(11))
    device = OnDevice(emitted, feed)
    device.run(1)
    return device, feed, (before - after) / 2**20


def load_lever(folder, feed, expected, allowed):
    run_command([folder / "build" / "example", folder / "weights.bin"])  # a fault is one of that process
    device, _, _ = load(folder, feed)
    error = float(difference(expected, device.results()))
    if not error <= allowed:
        raise RuntimeError(f"error {error:.2g}")
    return device, error


def load_levers(args, name, row, built, feed, expected):
    """By lever its code on the device; the row says which failed."""
    devices = {}
    for lever, own in row["levers"].items():
        if "failed" not in own:
            folder = code_of(args, f"{name}_without_{lever}")
            try:
                built[folder].result()
                devices[lever], own["error"] = load_lever(folder, feed, expected, allowed_error(args, row))
            except (RuntimeError, OSError) as e:
                own["failed"] = str(e)
    return devices


def allowed_error(args, row):
    return max(LOSSES[args.precision], 1.5 * row.get("torch_error", 0))  # a deep model may lose more in any hands


def in_turns(ways, turns):
    """Milliseconds of each way: the median of its turns, after three that do not count."""
    times = {way: [] for way in ways}
    for turn in range(turns + 3):
        for way, run in ways.items():
            ms = run()
            if turn >= 3:
                times[way].append(ms)
    return {way: sorted(t)[len(t) // 2] for way, t in times.items()}


def torch_side(args, model, x, row):
    """What the model gives in float64, and ways to run it in PyTorch."""
    to_gpu = lambda kind: (model.to("cuda", kind), x.cuda().to(kind) if x.is_floating_point() else x.cuda())
    own, image = to_gpu(torch.float64)
    with torch.no_grad():
        expected = [own(image).cpu().numpy()]
    torch.backends.cudnn.benchmark = True
    own, image = to_gpu(TYPES[args.precision])
    result, row["memory_mib"]["torch"] = eager_run(own, image)
    row["torch_error"] = float(difference(expected, [result]))
    modes = {name: mode for name, mode, is_asked in (("compile", "reduce-overhead", args.compile), ("max-autotune", "max-autotune", args.max_autotune)) if is_asked}
    return expected, {way: lambda run=run: queued_ms(run) for way, run in peers(own, image, modes).items()}


def measure(args):
    name, reference = file_name(label_of(args.only)), None
    if is_file(args.only):
        path, feed = pathlib.Path(args.only), None
    else:
        model, x = make_model(args.only, args.batch or 1)
        path, feed = export(args, name, model, x), {"x": x.numpy()}
    row, report = emit(args, path, name)
    row["recached_s"] = seconds_from_cache(args, path, name)
    row["levers"] = emit_levers(args, path, name)
    if is_file(args.only):
        emit(args, path, name, "_reference", AS_IT_IS)
        reference = code_of(args, name + "_reference")
    needed = [code_of(args, name), *([reference] if reference else [])]
    built = build_all(args, needed + [code_of(args, f"{name}_without_{lever}") for lever, own in row["levers"].items() if "failed" not in own])
    for folder in needed:
        built[folder].result()

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    device, feed, mib = load(code_of(args, name), feed)
    row["memory_mib"] = {"gopt": mib, "planned": planned_bytes(report) / 2**20}
    if reference:
        expected, torch_ways = load(reference, feed)[0].results(), {}
    else:
        expected, torch_ways = torch_side(args, model, x, row)
    row["error"] = float(difference(expected, device.results()))
    without = load_levers(args, name, row, built, feed, expected)
    ways = {"gopt": device, **{f"without {lever}": other for lever, other in without.items()}}
    ms = in_turns({**{way: lambda d=d: device_ms(d) for way, d in ways.items()}, **torch_ways}, args.runs)
    row["ms"] = {way: ms[way] for way in ("gopt", *torch_ways)}
    for lever in without:
        row["levers"][lever] |= {"ms": ms[f"without {lever}"], "ratio": ms[f"without {lever}"] / ms["gopt"]}
    if torch_ways:
        row["ratio"] = min(ms[way] for way in torch_ways) / ms["gopt"]
    for each in ways.values():
        each.emitted.lib.gopt_destroy(ctypes.c_void_p(each.emitted.model))
    row["device"], (row["bandwidth"], row["peak"]) = torch.cuda.get_device_name(), speeds(args.precision)
    row["floor_ms"] = floor_ms(report, row["bandwidth"], row["peak"])
    row["to_floor"] = ms["gopt"] / row["floor_ms"]
    return row


def one_model(args):
    """In the process of that model: 1 where a step failed or a result is wrong."""
    key = key_of(args.only, args.precision, args.batch)
    try:
        row = measure(args)
    except Exception as e:  # of any of three programs
        print(f"{key}: {e}", flush=True)
        return 1
    write_whole(row_file(args.out, key), {key: row})
    is_right = row["error"] <= allowed_error(args, row)
    print(f"{key:<28} {text_of(row)}" + ("" if is_right else "  WRONG"), flush=True)
    return 0 if is_right and not any("failed" in own for own in row["levers"].values()) else 1


def environments(args):
    """Of the processes on each GPU; what they compile is kept apart."""
    if args.gpus == 1:
        return [None]
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    numbers = seen.split(",")[: args.gpus] if seen else range(args.gpus)
    return [{**os.environ, "CUDA_VISIBLE_DEVICES": str(n), "XDG_CACHE_HOME": str(args.out.resolve() / f"cache_{n}")} for n in numbers]


def in_processes(args):
    """One process a model, as many at once as there are GPUs, then the means of all that is there; 1 where one failed."""
    end, lock, free, rows = time.monotonic() + args.seconds, threading.Lock(), queue.SimpleQueue(), merge_rows(args.out)
    for environment in environments(args):
        free.put(environment)

    def process(name):
        environment = free.get()
        try:
            if time.monotonic() >= end:
                return 0
            return subprocess.run([sys.executable, __file__, *sys.argv[1:], "--only", name], env=environment).returncode
        finally:
            free.put(environment)
            with lock:
                merge_rows(args.out)

    missing = [name for name in dict.fromkeys(args.names) if key_of(name, args.precision, args.batch) not in rows]
    with concurrent.futures.ThreadPoolExecutor(args.gpus) as pool:
        failed = any(list(pool.map(process, missing)))
    rows = merge_rows(args.out)
    for name, (count, mean) in means(rows).items():
        print(f"{name}: geometric mean of {count}: {mean:.3f}x")
    if args.markdown:
        args.markdown.write_text(markdown(rows, shlex.join(sys.argv)), encoding="utf-8")
    return 1 if failed else 0


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def lever(text):
    if text != "all" and not is_lever(text):
        raise argparse.ArgumentTypeError(f"{text}: neither of {', '.join(LEVERS)}, all nor parts of plans")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gopt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--precision", choices=LOSSES, default="fp16")
    parser.add_argument("--batch", type=positive, help="default: 1; that of the file")
    parser.add_argument("--runs", type=positive, default=40)
    parser.add_argument("--compile", action="store_true", help="time torch.compile, too (a minute a model)")
    parser.add_argument("--max-autotune", action="store_true", help="time torch.compile in mode max-autotune, too (minutes a model)")
    parser.add_argument("--levers", nargs="+", default=[], type=lever, metavar="NAME", help=", ".join(LEVERS) + ", all, or parts of plans as --disable names them, joined by +")
    parser.add_argument("--gpus", type=positive, default=1)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("--extra", default="", help="further flags of gopt optimize, in one word: --extra='--search none'")
    parser.add_argument("--only", help=argparse.SUPPRESS)  # of the names the one that this process is for
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    args.levers = list(LEVERS) if "all" in args.levers else list(dict.fromkeys(args.levers))
    args.out.mkdir(parents=True, exist_ok=True)
    if args.only:
        return one_model(args)
    if args.gpus < 1 or len(environments(args)) < args.gpus:
        parser.error("--gpus: at least 1, and no more than CUDA_VISIBLE_DEVICES names")
    if len({key_of(name, args.precision, args.batch) for name in args.names}) < len(set(args.names)):
        parser.error("two files have the same name in folders of the same name")
    return in_processes(args)


if __name__ == "__main__":
    sys.exit(main())
