#!/usr/bin/env python3
"""Checks what bench/torch_turns.py computes and prints without a GPU (bench/gpu_rows.py), and that gopt has the flags of every lever.

usage: check_gpu_rows.py BENCH_FOLDER GOPT MODEL.onnx
"""
import pathlib, subprocess, sys, tempfile

sys.path.insert(0, sys.argv[1])
import gpu_rows


def check(condition, message):
    if not condition:
        sys.exit(f"check_gpu_rows.py: {message}")


def buffer(place, size, value, dims=(1,), view_of=None):
    return {"place": place, "bytes": size, "value": value, "dims": list(dims), "view_of": view_of}


def report():
    """A table of 1000 rows of which four are gathered, and a product."""
    nodes = [{"op": "Constant", "inputs": [], "types": ["f32[1000,8]"]}, {"op": "Input", "inputs": [], "types": ["i64[4]"]},
             {"op": "Gather", "inputs": [[0, 0], [1, 0]], "types": ["f32[4,8]"]}, {"op": "Constant", "inputs": [], "types": ["f32[8,64]"]},
             {"op": "MatMul", "inputs": [[2, 0], [3, 0]], "types": ["f32[4,64]"]}]
    buffers = [buffer("weight", 32000, [0, 0], (1000, 8)), buffer("input", 32, [1, 0]), buffer("arena", 128, [2, 0]), buffer("arena", 128, [2, 0], view_of=2),
               buffer("weight", 1024, [3, 0], (8, 64)), buffer("output", 1024, [4, 0])]
    return {"graphs": {"after": {"nodes": nodes}}, "plans": {"after": {"arena_bytes": 256, "buffers": buffers, "kernels": [{"operations": 0.0}, {"operations": 4096.0}]}}}


def check_floor():
    check(gpu_rows.weight_bytes(report()) == 4 * 8 * 4 + 1024, "bytes of weights")
    check(gpu_rows.planned_bytes(report()) == 256 + 32000 + 32 + 1024 + 1024, "planned bytes")
    for bandwidth, peak, wanted in ((1152e3, 1e15, 1.0), (1e15, 4096e3, 1.0), (1152e3, 2048e3, 2.0)):
        check(abs(gpu_rows.floor_ms(report(), bandwidth, peak) - wanted - 2 * gpu_rows.LAUNCH_MS) < 1e-9, "floor")
    both = report()
    both["graphs"]["after"]["nodes"].append({"op": "MatMul", "inputs": [None, [0, 0]], "types": ["f32[4,64]"]})
    check(gpu_rows.weight_bytes(both) == 32000 + 1024, "a table that is not only gathered from")


def check_flags(gopt, model):
    usual = ["--cost", "measured", "--disable", "a", "b", "--force"]
    check(gpu_rows.join_flags(usual, ["--cost=analytic"], ["--disable", "c"]) == ["--disable", "a", "b", "--force", "--cost=analytic", "--disable", "c"], "joined flags")
    check(gpu_rows.join_flags(["--search", "beam"], [], ["--search", "none"]) == ["--search", "none"], "a flag that replaces another")
    for text in ("none", "", "kernel:", "kernel:tiles+attentive", "kernel:a,launch:b", "launch:grouped --force", "+kernel:tiles"):
        check(not gpu_rows.is_lever(text), f"'{text}' is no lever")
    for lever in [*gpu_rows.LEVERS, "kernel:wgmma:128x64+launch:grouped"]:
        check(gpu_rows.is_lever(lever), lever)
        words = gpu_rows.join_flags(["--target", "cuda", "--cost", "analytic", "--check", "off", "--no-measure", "--dry-run"], gpu_rows.flags_of(lever).split())
        done = subprocess.run([gopt, "optimize", model, *words], capture_output=True, text=True)
        check(done.returncode == 0, f"{lever}: {done.stderr}")


def check_names():
    check(gpu_rows.key_of("alexnet", "fp16", None) == "alexnet fp16 b1" and gpu_rows.key_of("/a/b/c.onnx", "tf32", None) == "b/c tf32", "keys")
    check(gpu_rows.key_of("/a/b/c.onnx", "tf32", 4) == "b/c tf32 b4" and gpu_rows.file_name("b/c without it") == "b_c_without_it", "keys of files")


def rows():
    one = {"kernels": 2, "estimated_ms": 0.1, "tuning_s": 20.0, "recached_s": 3.0, "error": 1e-3, "floor_ms": 0.05, "to_floor": 2.0, "memory_mib": {"gopt": 60.0, "planned": 50.0},
           "ms": {"gopt": 0.1}, "levers": {"attention": {"ratio": 2.0}, "fusion": {"failed": "no\n such part"}}, "device": "G", "bandwidth": 3e12, "peak": 7e14}
    two = {**one, "torch_error": 2e-3, "ratio": 3.0, "ms": {"gopt": 0.1, "eager": 0.3}, "memory_mib": {**one["memory_mib"], "torch": 70.0}, "levers": {"attention": {"ratio": 8.0}}}
    old = {"kernels": 2, "estimated_ms": 0.1, "tuning_s": 20.0, "error": 1e-3, "torch_error": 2e-3, "ms": {"gopt": 0.1, "eager": 0.3, "compile": 0.2}, "ratio": 12.0}
    return {"b/file fp16": one, "two fp16 b1": two, "old fp16 b1": old}


def check_tables():
    found = gpu_rows.means(rows())
    check({name: (count, round(mean, 6)) for name, (count, mean) in found.items()} ==
          {"best of PyTorch / gopt": (2, 6.0), "gopt / floor": (2, 2.0), "without attention / with": (2, 4.0)}, f"means: {found}")
    check(gpu_rows.means({}) == {}, "means of nothing")
    check("attention 2.000x  fusion failed: no such part" in gpu_rows.text_of(rows()["b/file fp16"]) and "torch 70" in gpu_rows.text_of(rows()["two fp16 b1"]), "lines of rows")
    text = gpu_rows.markdown(rows(), "torch_turns.py x")
    tables = [[line.count("|") for line in part.splitlines()] for part in text.split("\n\n") if part.startswith("|")]
    check([len(t) for t in tables] == [6, 5] and all(len(set(t)) == 1 for t in tables), f"tables:\n{text}")
    for line in ("Made by `torch_turns.py x`", "- G: 3000 GB/s, 700 Tflop/s", "| geometric mean | 4.000 | - |", "- b/file fp16 without fusion: no such part"):
        check(line in text, f"no {line} in\n{text}")


def check_results(out):
    gpu_rows.write_whole(out / "results.json", {"a": 1})
    gpu_rows.write_whole(gpu_rows.row_file(out, "b/c fp16 b1"), {"b/c fp16 b1": 2})
    for _ in range(2):
        check(gpu_rows.merge_rows(out) == {"a": 1, "b/c fp16 b1": 2} and not list((out / "rows").iterdir()), "merged rows")


def main():
    check_floor()
    check_names()
    check_tables()
    with tempfile.TemporaryDirectory() as out:
        check_results(pathlib.Path(out))
    check_flags(*sys.argv[2:])


main()
