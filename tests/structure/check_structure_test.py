#!/usr/bin/env python3
"""Each thing that check_structure.py is for, planted in a small tree of its own: it must be found, and nothing else."""
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_structure.py")
CLEAN = {
    "include/gopt/plan.h": "namespace gopt {\nstruct Plan {\n};\n}\n",
    "include/gopt/verifier.h": "namespace gopt {\nvoid verify();\n}\n",
    "planner/cover.h": '#include "gopt/plan.h"\nnamespace gopt::planner {\nclass Cover {\n};\n}\n',
    "planner/cover.cc": '#include "cover.h"\nnamespace gopt::planner {\n}\nnamespace gopt {\n}\n',
    "verifier/terms.h": '#include <z3++.h>\nnamespace gopt::verifier {\nstruct Summand {\n};\n}\n',
    "driver/driver.cc": '#include "gopt/verifier.h"\nnamespace gopt {\n}\n',
}
PLANTED = {
    "another folder's header": ("planner/cover.cc", '#include "terms.h"\n', "inside verifier/terms.h"),
    "another stage's entry": ("planner/cover.cc", '#include "gopt/verifier.h"\n', "the entry of verifier"),
    "a value that needs a stage": ("include/gopt/plan.h", '#include "gopt/verifier.h"\n', "a value's header includes"),
    "a library out of its place": ("planner/cover.cc", "#include <z3++.h>\n", "for verifier alone"),
    "a wrong namespace": ("planner/wrong.h", "namespace gopt::verifier {\n}\n", "expected gopt::planner"),
    "a public namespace in a private header": ("planner/wrong.h", "namespace gopt {\n}\n", "expected gopt::planner"),
    "two types of one name": ("verifier/cover.h", "namespace gopt::verifier {\nclass Cover {\n};\n}\n", "Cover names"),
    "a folder that nobody looks at": ("fusion/fusion.h", "namespace gopt::fusion {\n}\n", "does not know"),
    "a hidden type of a shared name": (
        "verifier/a.cc", "namespace gopt::verifier {\nnamespace {\nstruct Plan {\n};\n}  // namespace\n}\n", "Plan names"),
}


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "a", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main():
    failed = 0
    code, out = run(CLEAN)
    if code != 0:
        print(f"the clean tree: {out}")
        failed += 1
    code, out = run({})
    if code == 0 or "holds no sources" not in out:
        print(f"an empty tree: {out}")
        failed += 1
    for what, (path, text, expected) in PLANTED.items():
        files = dict(CLEAN)
        files[path] = files.get(path, "") + text
        code, out = run(files)
        lines = out.strip().split("\n")
        if code == 0 or expected not in lines[0] or lines[1:] != ["1 problems"]:
            print(f"{what}: expected '{expected}' alone, got: {out}")
            failed += 1
    print(f"{failed} failed" if failed else "all found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
