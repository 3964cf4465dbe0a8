#!/usr/bin/env python3
"""The house's rules, checked on its sources: who includes what, in which namespace things are, one name for one type.

usage: check_structure.py ROOT      prints what is wrong and exits with 1 if anything is
       check_structure.py --map ROOT   prints which folder includes which stage's entry header, as docs/architecture.md has it
"""
import collections
import os
import re
import sys

FOLDERS = ["ir", "rules", "generator", "verifier", "checker", "optimizer", "planner", "codegen", "driver", "tools", "python"]

# Entry headers of stages, and who may include them besides programs and tests: the folder that implements one, and the
# driver, which joins stages. All other headers of include/gopt are values that everybody may have.
STAGES = {
    "generator.h": "generator",
    "verifier.h": "verifier",
    "confirm_rule.h": "verifier",
    "proof_check.h": "checker",
    "log_binding.h": "checker",
    "optimizer.h": "optimizer",
    "near_misses.h": "optimizer",
    "derivation.h": "optimizer",
    "rule_matches.h": "optimizer",
    "node_plan.h": "planner",
    "node_operations.h": "planner",
    "kernel_costs.h": "planner",
    "codegen.h": "codegen",
    "runnable_model.h": "driver",
    "sized_plans.h": "driver",
    "model_pieces.h": "driver",
    "driver.h": "driver",
    "mutants.h": "driver",
    "node_explanation.h": "driver",
    "bisect.h": "driver",
    "model_timer.h": "driver",
    "file_runner.h": "driver",
    "onnx.h": "ir",
    "interpreter.h": "ir",
    "taso_json.h": "rules",
    "ranks.h": "generator",
}
# Values or functions of the graph that a stage needs as such.
ALLOWED = {
    ("verifier", "interpreter.h"),  # replays counterexamples
    ("optimizer", "interpreter.h"),  # folds constants
    ("codegen", "interpreter.h"),  # folds weights
}
# Libraries that only one folder may name.
ONLY_IN = {"z3": ["verifier"], "onnx/": ["ir/onnx"], "google/protobuf": ["ir/onnx"], "mpi.h": ["tools/rulegen"], "oneapi/tbb": ["ir"], "tbb/": ["ir"],
           "CLI/": ["tools", "python"], "nlohmann": ["rules", "tools", "driver"], "nanobind/": ["python"], "Python.h": ["python"]}
# Folders whose headers another one may have: the Python module calls what the program's commands do.
LIBRARIES_OF = {"python": ["tools"]}


def sources(root):
    for folder in ["include/gopt"] + FOLDERS:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".h", ".cc")) and "runtime" not in os.path.relpath(path, root).split(os.sep):
                    full = os.path.join(path, name)
                    yield folder, os.path.relpath(full, root), open(full, encoding="utf-8").read()


def private_headers(root):
    """File name -> folders of the house that have a header of that name."""
    found = collections.defaultdict(set)
    for folder, path, _ in sources(root):
        if path.endswith(".h") and folder != "include/gopt":
            found[os.path.basename(path)].add(path)
    return found


def check_includes(root):
    headers = private_headers(root)
    for folder, path, text in sources(root):
        for include in re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.M):
            for library, places in ONLY_IN.items():
                if include.startswith(library) and not any(path.startswith(place + "/") for place in places):
                    yield f"{path}: includes {include}, which is for {', '.join(places)} alone"
            if include.startswith("gopt/"):
                name = include[len("gopt/"):]
                owner = STAGES.get(name)
                joins = folder in ("driver", "tools", "python", "include/gopt")
                if owner and folder == "include/gopt" and os.path.basename(path) not in STAGES:
                    yield f"{path}: a value's header includes {include}, the entry of {owner}"
                if owner and owner != folder and not joins and (folder, name) not in ALLOWED:
                    yield f"{path}: includes {include}, the entry of {owner}; only the driver and programs join stages"
            elif re.search(rf'#include "{re.escape(include)}"', text):
                inside = headers[os.path.basename(include)]
                if inside and not os.path.exists(os.path.join(root, folder, include)) and not any(
                        other.startswith(own + "/") for other in inside for own in [folder, *LIBRARIES_OF.get(folder, [])]):
                    yield f"{path}: includes {include}, which is inside {', '.join(sorted(inside))}"


def expected_namespace(folder):
    return {"tools": "cli", "include/gopt": None}.get(folder, folder)


def check_namespaces(root):
    for folder, path, text in sources(root):
        own = expected_namespace(folder)
        allowed = {"gopt"} if own is None or path.endswith(".cc") else set()
        if own:
            allowed.add("gopt::" + own)
        for name in re.findall(r"^namespace ([\w:]+) \{", text, re.M):
            if name not in allowed and name != "fs":
                yield f"{path}: namespace {name}, expected {' or '.join(sorted(allowed))}"


def types(root):
    """Name -> places where a type of that name is defined at namespace scope, and whether it is seen outside its file."""
    found = collections.defaultdict(list)
    for _, path, text in sources(root):
        anonymous = False
        for line in text.split("\n"):
            if line.startswith("namespace {"):
                anonymous = True
            elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
                anonymous = False
            line = re.sub(r" *//.*", "", line)
            match = re.match(r"(?:template <[^>]*> )?(?:class|struct|enum class|union) (?:\[\[\w+\]\] )?(\w+)\b(?!::)", line)
            if match and not line.rstrip().endswith(";"):
                found[match.group(1)].append((path, anonymous))
    return found


def check_types(root):
    for name, places in sorted(types(root).items()):
        shared = sorted({path for path, anonymous in places if not anonymous})
        if shared and len({path for path, _ in places}) > 1:
            yield f"{name} names more than one type: {', '.join(sorted({path for path, _ in places}))}"


def public_includes(text):
    return re.findall(r'^#include "gopt/(\w+\.h)"', text, re.M)


def print_map(root):
    public = {os.path.basename(path): public_includes(text) for folder, path, text in sources(root)
              if folder == "include/gopt"}
    used = collections.defaultdict(set)
    for folder, _, text in sources(root):
        open_names, seen = public_includes(text) if folder != "include/gopt" else [], set()
        while open_names:
            name = open_names.pop()
            if name not in seen:
                seen.add(name)
                open_names += public.get(name, [])
        used[folder] |= {STAGES[name] for name in seen if name in STAGES and STAGES[name] != folder}
    for folder in FOLDERS:
        print(f"{folder:<10} -> {', '.join(sorted(used[folder])) or 'values alone'}")


def check_folders(root):
    """Every folder of sources is looked at, and has some."""
    others = {"include", "tests", "bench", "build", "examples"}
    for name in sorted(os.listdir(root)):
        holds = any(f.endswith((".cc", ".h")) for _, _, names in os.walk(os.path.join(root, name)) for f in names)
        if holds and name not in FOLDERS and name not in others and not name.startswith((".", "build")):
            yield f"{name}: a folder that this check does not know"
    seen = {folder for folder, _, _ in sources(root)}
    if not seen:
        yield f"{root} holds no sources"


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--map":
        print_map(sys.argv[2])
        return 0
    if not os.path.isdir(sys.argv[1]):
        print(f"{sys.argv[1]} is no folder")
        return 1
    problems = [p for check in (check_folders, check_includes, check_namespaces, check_types) for p in check(sys.argv[1])]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems" if problems else "the structure holds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
