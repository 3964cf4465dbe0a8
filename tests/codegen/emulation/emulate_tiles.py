#!/usr/bin/env python3
"""Compiles the runtime's tile kernels for the processor and runs them there: what they index and add is tested without a GPU.

usage: emulate_tiles.py RUNTIME_FOLDER
needs: g++, the CUDA toolkit's headers (CUDA_HOME, or /usr/local/cuda); without these headers the exit status is 77

The kernels are compiled as they are, but for the headers of this folder in place of the runtime's of the same names, the instructions of
gopt_fragments.cuh, and where a block's shared memory is.
"""
import os, pathlib, shutil, subprocess, sys, tempfile

OWN = pathlib.Path(__file__).parent
SKIPPED = 77


def between(text, begin, end):
    return text[text.index(begin) : text.index(end)]


def fragments(text):
    """Elements and fours as they are, with instructions of this folder."""
    head = text[: text.index("// ---- operands ----")]
    elements = between(text, "__device__ __forceinline__ unsigned as_bits", "// Of two numbers") + between(text, "// Sets one element of a chunk", "__device__ __forceinline__ unsigned load_word")
    return head + '#include "instructions.h"\n' + elements + text[text.index("// Up to four elements") :]


def with_memory(text):
    changed = text.replace("extern __shared__ __align__(128) char shared[];", "char* shared = emulation::own_block().memory;")
    changed = changed.replace("static_cast<unsigned>(__cvta_generic_to_shared(shared))", "0")
    if changed.count("emulation::own_block") != 1 or "cvta" in changed:
        sys.exit("a kernel of tiles names a block's shared memory in another way: change this script")
    return changed


def main():
    runtime, toolkit = pathlib.Path(sys.argv[1]), pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if not (toolkit / "include" / "cuda_fp16.h").exists():
        print(f"no CUDA headers in {toolkit}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for header in [*(runtime.parents[2] / "include/gopt/runtime").glob("*.h"), *runtime.glob("*.h"), *runtime.glob("*.cuh"), *OWN.glob("*.h"), *OWN.glob("*.cuh"), OWN / "tiles_emulation.cc"]:
            shutil.copy(header, folder)
        pieces = folder / "gopt_fragments.cuh"
        for tiles in (folder / "gopt_tiles.cuh", folder / "gopt_patches.cuh", folder / "gopt_channels.cuh", folder / "gopt_channel_tiles.cuh", folder / "gopt_vectors.cuh", folder / "gopt_quantized_vectors.cuh"):
            tiles.write_text(with_memory(tiles.read_text()))
        pieces.write_text(fragments(pieces.read_text()))
        # What the launches on the host need of CUDA is not there.
        problem = folder / "gopt_tiles.h"
        problem.write_text(problem.read_text().replace('#include "gopt_primitive.h"', '#include "gopt_library.h"'))
        program = folder / "emulation"
        subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-pthread", f"-I{folder}", f"-isystem{toolkit}/include", str(folder / "tiles_emulation.cc"), "-o", str(program)], check=True)
        return subprocess.run([str(program)]).returncode


if __name__ == "__main__":
    sys.exit(main())
