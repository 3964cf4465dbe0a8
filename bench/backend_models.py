#!/usr/bin/env python3
"""Builds CPU code for ONNX's backend models, runs it on their data sets, and prints how many are right, and what keeps the others.

usage: backend_models.py [--gopt build/tools/gopt/gopt] [--data DIR ...] [--only PART] [--jobs 2] [--cache DIR] [--json FILE]

DIR holds node/, simple/, pytorch-converted/ and pytorch-operator/ (Debian: libonnx-testdata). Models of strings, sequences, optionals and randomness
are counted apart. Node tests leave sizes and axes open, which
models have as initializers: a test that has no code as it is is tried again with its integer inputs of at most one axis, and then with all inputs of at most one axis, fixed.
Code is built at -O0: what is asked here is whether it is right. With --cache, what was built once is not built again.
"""
import argparse, collections, concurrent.futures, json, os, pathlib, re, shutil, subprocess, sys, tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, numpy_helper
except ImportError:
    sys.exit(77)  # a test that is skipped

RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}
WRAPPER = '#!/bin/sh\nfor word do\n  shift\n  test "$word" = -O3 && word=-O0\n  set -- "$@" "$word"\ndone\nexec {compiler} "$@"\n'


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from all_nodes(body)


def left_out(model):
    """Why the model is not asked about; empty where it is."""
    nodes = list(all_nodes(model.graph))
    types = [v.type for v in [*model.graph.input, *model.graph.output]]
    if any(not t.HasField("tensor_type") for t in types) or any(re.match("Sequence|SplitToSequence|ConcatFromSequence|Optional", n.op_type) for n in nodes):
        return "sequences and optionals"
    if any(t.tensor_type.elem_type == TensorProto.STRING for t in types):
        return "strings"
    if any(n.op_type in ("Cast", "CastLike") and any(a.name == "to" and a.i == TensorProto.STRING for a in n.attribute) for n in nodes):
        return "strings"
    training = any(n.op_type == "Dropout" and len(n.input) > 2 for n in nodes)
    if training or any(n.op_type in RANDOM for n in nodes):
        return "randomness"
    return ""


def tensors(folder, kind):
    return [onnx.load_tensor(str(folder / f"{kind}_{k}.pb")) for k in range(len(list(folder.glob(f"{kind}_*.pb"))))]


def is_fixed(how, value):
    tensor = value.type.tensor_type
    return how != "as it is" and len(tensor.shape.dim) <= 1 and (how == "small fixed" or tensor.elem_type in INTEGERS)


def difference(expected, actual, relative):
    if actual is None or expected.shape != actual.shape:
        return f"shape {None if actual is None else actual.shape}, expected {expected.shape}"
    if expected.dtype != actual.dtype:
        return f"type {actual.dtype}, expected {expected.dtype}"
    if expected.dtype.kind in "biu":
        return "" if np.array_equal(expected, actual) else "other numbers"
    digits = 4e-3 if expected.dtype == np.float16 else relative
    return "" if np.allclose(expected.astype(np.float64), actual.astype(np.float64), rtol=digits, atol=1e-6, equal_nan=True) else "other numbers"


def cause_of(said):
    """The operator or type that is in the way, or what the message says."""
    lines = said.strip().splitlines() or ["no message"]
    text = lines[0] if "Please report" in lines[-1] else lines[-1]
    kind = re.search(r"no code for tensors of type (\w+)", text)
    operator = re.search(r"\((\w+)\) has no definition|a node (\w+) has no definition", text)
    if kind:
        return f"type {kind[1]}"
    return f"operator {operator[1] or operator[2]}" if operator else text[-110:]


def as_stored(tensor, wanted):
    """Old data sets hold bf16 as the integers of its bits."""
    if wanted == TensorProto.BFLOAT16 and tensor.data_type == TensorProto.UINT16:
        bits = numpy_helper.to_array(tensor)
        tensor = TensorProto(name=tensor.name, data_type=wanted, dims=tensor.dims, raw_data=bits.tobytes())
    return tensor


def with_f32_outputs(model):
    """NumPy's files have no bf16: such outputs are given as f32 too, which holds them exactly."""
    for value in model.graph.output:
        if value.type.tensor_type.elem_type == TensorProto.BFLOAT16:
            inner = value.name + "_bf16"
            for node in model.graph.node:
                for names in (node.input, node.output):
                    names[:] = [inner if n == value.name else n for n in names]
            model.graph.node.append(onnx.helper.make_node("Cast", [inner], [value.name], to=TensorProto.FLOAT))
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    return model


class Runner:
    def __init__(self, a, scratch):
        self.a, self.scratch = a, scratch
        tools = scratch / "tools"
        tools.mkdir()
        (tools / "g++").write_text(WRAPPER.format(compiler=shutil.which("g++")))
        (tools / "g++").chmod(0o755)
        cache = pathlib.Path(a.cache).resolve() if a.cache else scratch / "cache"
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(cache)}

    def run_set(self, model, how, data, folder):
        """None where there is code and it is right, else (verdict, cause)."""
        inputs, expected = tensors(data, "input"), tensors(data, "output")
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        with_f32_outputs(changed)
        given = []
        initializers = {t.name for t in model.graph.initializer}
        open_inputs = [v for v in model.graph.input if v.name not in initializers] if len(inputs) < len(model.graph.input) else list(model.graph.input)
        for value, tensor in zip(open_inputs, inputs):
            tensor = as_stored(tensor, value.type.tensor_type.elem_type)
            if is_fixed(how, value):
                for k, known in enumerate(changed.graph.input):
                    if known.name == value.name:
                        del changed.graph.input[k]
                        break
                changed.graph.initializer.add().CopyFrom(tensor)
                changed.graph.initializer[-1].name = value.name
            else:
                file = folder / f"{len(given)}.pb"
                file.write_bytes(tensor.SerializeToString())
                given.append(f"{value.name}={file}")
        path, results = folder / "model.onnx", folder / "outputs.npz"
        path.write_bytes(changed.SerializeToString())
        results.unlink(missing_ok=True)
        command = [self.a.gopt, "run", path, "--engine", self.a.engine, "-o", results]
        for text in given:
            command += ["--inputs", text]
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=self.a.timeout, env=self.environment)
        except subprocess.TimeoutExpired:
            return "not emitted", f"over {self.a.timeout} s"
        if done.returncode:
            return "not emitted", cause_of(done.stderr)
        made = np.load(results)
        for value, tensor in zip(model.graph.output, expected):
            wanted = numpy_helper.to_array(as_stored(tensor, value.type.tensor_type.elem_type))
            is_bf16 = value.type.tensor_type.elem_type == TensorProto.BFLOAT16
            if is_bf16:
                wanted = wanted.astype(np.float32)
            wrong = difference(wanted, made.get(value.name), 3e-2 if is_bf16 else 1e-3)
            if wrong:
                return "wrong", wrong
        return None

    def check(self, test):
        """(test, verdict, how, cause)"""
        model = onnx.load(str(test / "model.onnx"))
        why = left_out(model)
        if why:
            return str(test), "left out", "", why
        first = None
        for how in ("as it is", "integers fixed", "small fixed"):
            if how != "as it is" and not any(is_fixed(how, v) for v in model.graph.input):
                continue
            with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
                worst = None
                for data in sorted(test.glob("test_data_set_*")):
                    worst = worst or self.run_set(model, how, data, pathlib.Path(folder))
            if worst is None:
                return str(test), "right", how, ""
            first = worst if first is None or worst[0] == "wrong" else first if first[0] == "wrong" else worst
            if worst[0] == "wrong":
                break
        return str(test), first[0], how, first[1]


def table(results):
    verdicts = collections.Counter(r[1] for r in results)
    asked = len(results) - verdicts["left out"]
    kinds = collections.defaultdict(collections.Counter)
    for test, verdict, how, cause in results:
        kinds[pathlib.Path(test).parent.name][verdict if verdict != "right" or how == "as it is" else "right, " + how] += 1
    names = ["right", "right, integers fixed", "right, small fixed", "wrong", "not emitted", "left out"]
    print(f"{'':18}" + "".join(f"{n:>23}" for n in names))
    for kind, counts in kinds.items():
        print(f"{kind:18}" + "".join(f"{counts[n]:23}" for n in names))
    print(f"right {verdicts['right']} of {asked} ({100 * verdicts['right'] / max(asked, 1):.1f} %), wrong {verdicts['wrong']}, not emitted {verdicts['not emitted']}; left out {verdicts['left out']}")
    causes = collections.defaultdict(list)
    for test, verdict, how, cause in results:
        if verdict != "right":
            causes[verdict, cause].append(pathlib.Path(test).name.removeprefix("test_"))
    for (verdict, cause), tests in sorted(causes.items(), key=lambda c: (c[0][0], -len(c[1]))):
        print(f"{len(tests):4}  {verdict}: {cause}: {' '.join(tests[:6])}{' ...' if len(tests) > 6 else ''}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gopt", default="build/tools/gopt/gopt")
    parser.add_argument("--data", nargs="+", type=pathlib.Path, default=[pathlib.Path("/usr/share/libonnx-testdata/data")])
    parser.add_argument("--only", default="", help="tests whose names hold this, as a regular expression")
    parser.add_argument("--engine", default="cpu", choices=("cpu", "interpreter"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--cache", help="folder of what was built, kept")
    parser.add_argument("--json", type=pathlib.Path, help="every test's verdict")
    parser.add_argument("--least", type=int, default=0, help="exit status 1 where fewer are right")
    a = parser.parse_args()
    if not any(d.is_dir() for d in a.data):
        print(f"no folder of backend models at {', '.join(map(str, a.data))} (Debian: libonnx-testdata; --data)", file=sys.stderr)
        return 77
    tests = [t for d in a.data for k in KINDS if (d / k).is_dir() for t in sorted((d / k).iterdir()) if (t / "model.onnx").exists() and re.search(a.only, t.name)]
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(a, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            results = list(pool.map(runner.check, tests))
    table(results)
    if a.json:
        a.json.write_text(json.dumps([dict(zip(("test", "verdict", "how", "cause"), r)) for r in results], indent=1))
    return 1 if sum(r[1] == "right" for r in results) < a.least else 0


if __name__ == "__main__":
    sys.exit(main())
