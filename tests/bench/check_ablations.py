#!/usr/bin/env python3
"""Runs bench/ablations.py on a small model: a row a variant, and what was run is not run again.

usage: check_ablations.py ablations.py GOPT MODEL.onnx
"""
import csv, importlib.util, pathlib, subprocess, sys, tempfile

WANTED = {"rules": ["none", "hand", "core", "core+shortcut", "all that ship"], "search": ["none", "greedy", "beam", "saturation", "backtracking"], "cost-model": ["plan", "sum"],
          "regions": ["none", "full", "corrected", "corrected, fused"]}


def check(condition, message):
    if not condition:
        sys.exit(f"check_ablations.py: {message}")


def check_operators(script):
    """Operators of a left side: constants are none."""
    spec = importlib.util.spec_from_file_location("ablations", script)
    ablations = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ablations)
    text = "rule a\n  var x f32[]\n  left\n    constant v0 = f32[] {0.0}\n    v1 = Add(v0, x)\n    return v1\n  right\n    v2 = Relu(x)\n    return v2\nend\n"
    check([count for _, count in ablations.stanzas(text + "\n" + text)] == [1, 1], "operators of a left side are miscounted")


def run(script, gopt, model, out):
    command = [sys.executable, script, model, "--gopt", gopt, "--out", out, "--groups", ",".join(WANTED), "--budget", "1000h"]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    with open(pathlib.Path(out) / "ablations.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file)), done.stdout


def main():
    script, gopt, model = sys.argv[1:]
    check_operators(script)
    with tempfile.TemporaryDirectory() as out:
        rows, printed = run(script, gopt, model, out)
        check([(r["group"], r["variant"]) for r in rows] == [(g, v) for g, variants in WANTED.items() for v in variants], f"other rows than wanted: {rows}")
        check(all(float(r["ratio"]) <= 1 for r in rows if r["group"] != "cost-model"), f"a result that costs more: {rows}")
        check("core+shortcut" in printed, printed)
        reports = sorted(pathlib.Path(out).glob("*/*/*.json"))
        check(len(reports) == len(rows), f"{len(reports)} reports for {len(rows)} rows")
        written = [report.stat().st_mtime_ns for report in reports]
        reports[0].unlink()
        again, _ = run(script, gopt, model, out)
        check([report.stat().st_mtime_ns for report in reports[1:]] == written[1:], "what was there was run again")
        check(reports[0].exists(), "what was missing was not run")
        same = ("variant", "operators", "kernels", "rules", "steps")  # milliseconds are in units of what the processor does at the time
        check([[r[c] for c in same] for r in again] == [[r[c] for c in same] for r in rows], "another result the second time")


main()
