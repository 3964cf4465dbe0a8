#!/usr/bin/env python3
"""What each part of the optimizer is worth: optimizes models with parts left out, and makes tables and plots of what comes of it.

usage: ablations.py MODEL.onnx ... [--out DIR] [--gopt build/tools/gopt/gopt] [--groups rules,operators,search,alpha,cost,cost-model,passes,plan,regions,mutants] [--budget 20s]
                    [--cost analytic] [--cache FILE] [--measure] [--threads 1] [--shape NAME=1x3x224x224]

  rules      none; those that a person wrote; the core; the core and what follows from it; all that ship
  operators  of all that ship, rules whose left sides have at most 1, 2, 3, 4 operators
  search     greedy, beam, saturation, backtracking; none
  alpha      1, 1.01, 1.05, 1.2
  cost       analytic, measured kernel times
  cost-model graphs compared by their plans, or by the sum of their operators' costs
  passes     each of them off
  plan       parts of plans off: layouts, ways to run library kernels, fusion
  regions    rules about windows over space: none of them; those that hold everywhere; those also that compute a border as before, whose pieces are put
             together by kernels of their own; these, fused
  mutants    without and with rules that the model's own operators ask for, of 20 seconds

A run's report is DIR/MODEL/GROUP/VARIANT.json: what is there, of the same flags, is not run again, so that the same command goes on where it was stopped. DIR/ablations.csv has a row a
run, DIR/GROUP.png (where matplotlib is installed) a bar a run: the model's estimated time, of the original's; with --measure that of its code. All that the groups do not vary
is as by default, but --cost. Estimates of the group `cost` are by the costs that the run went by: only --measure compares these. Milliseconds are in units of
what the processor did when the run began: ratios compare runs.
"""
import argparse, csv, json, os, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ["merge-equal-nodes", "drop-identities", "narrow-to-reads", "fold-constants", "merge-commuted-nodes"]
PARTS = ["layout:blocked", "layout:channels-last", "fusion:epilogues", "fusion:inlining", "fusion:pieces", "fusion:by-cost", "kernel:winograd", "kernel:channels-last", "kernel:planar"]
COLUMNS = ["model", "group", "variant", "before_ms", "after_ms", "ratio", "operators", "kernels", "rules", "applied", "steps", "tried", "seconds", "stopped",
           "measured_before_ms", "measured_after_ms", "speedup", "checked"]


def stanzas(text):
    """Rules of a file as text, each with the operators of its left side."""
    for stanza in re.findall(r"^rule .*?^end$", text, re.M | re.S):
        left = re.search(r"^  left$(.*?)^  right$", stanza, re.M | re.S)
        yield stanza, len(re.findall(r"= *(?!Constant\b)[A-Z]\w*\(", left.group(1))) if left else 0


def shipped_rules():
    """The files that gopt reads where none are named, those that a person wrote first."""
    return sorted((f for f in (ROOT / "rules").glob("*.rules") if f.name != "shortcut.rules"), key=lambda f: (f.name != "hand.rules", f.name))


def rules_up_to(operators, out):
    path = out / "rules" / f"up_to_{operators}.rules"
    chosen = [s for f in shipped_rules() for s, count in stanzas(f.read_text()) if count <= operators]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(chosen) + "\n")
    return path


def files_without(*names):
    return ["--rules", *(f for f in shipped_rules() if f.name not in names)]


def variants(a):
    """Group -> name of the variant -> flags."""
    rules = ROOT / "rules"
    groups = {
        "rules": {"none": ["--search", "none"], "hand": ["--rules", rules / "hand.rules"], "core": ["--rules", rules / "core.rules"],
                  "core+shortcut": ["--rules", rules / "core.rules", rules / "shortcut.rules"], "all that ship": []},
        "operators": {f"up to {n}": ["--rules", rules_up_to(n, a.out)] for n in (1, 2, 3, 4)} if "operators" in a.groups else {},
        "search": {"none": ["--search", "none"], "greedy": ["--search", "greedy"], "beam": ["--search", "beam"], "saturation": ["--search", "saturation"], "backtracking": []},
        "alpha": {f"{alpha:g}": ["--alpha", str(alpha)] for alpha in (1, 1.01, 1.05, 1.2)},
        "cost": {"analytic": ["--cost", "analytic"], "measured": ["--cost", "measured"]},
        "cost-model": {"plan": ["--cost-model", "plan"], "sum": ["--cost-model", "sum"]},
        "plan": {"all on": []} | {f"no {name}": ["--disable", name] for name in PARTS},
        "regions": {"none": files_without("spatial.rules", "corrected.rules"), "full": files_without("corrected.rules"),
                    "corrected": ["--disable", "fusion:pieces"], "corrected, fused": []},
        "mutants": {"none": [], "20s": ["--mutate", "20s"]},
        "passes": {"all on": []} | {f"no {name}": ["--disable", name] for name in PASSES} | {"none": ["--disable", *PASSES]},
    }
    unknown = set(a.groups) - set(groups)
    if unknown:
        sys.exit(f"no group is named {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
    return {name: groups[name] for name in a.groups}


def file_name(variant):
    return re.sub(r"[^\w.+-]+", "_", variant)


def run(a, model, flags, report):
    """The report of one run: the one that is there, if it is of these flags, else a new one. None, with a line on standard error, where it fails."""
    flags = [*(flags if "--cost" in flags else ["--cost", a.cost, *flags]), "--budget", a.budget, "--threads", a.threads]
    flags += ["--cache", a.cache] if a.cache else []
    flags += ["--shape", *a.shape] if a.shape else []
    flags += ["--emit", a.out / "code", "--force"] if a.measure else []
    flags = [str(flag) for flag in flags]
    if report.exists() and (known := json.loads(report.read_text()))["flags"] == flags:
        return known
    report.parent.mkdir(parents=True, exist_ok=True)
    unfinished = report.with_suffix(f".{os.getpid()}.json")
    unfinished.unlink(missing_ok=True)
    done = subprocess.run([str(a.gopt), "optimize", str(model), "--report", str(unfinished), *flags], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{model.stem}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    kept = {key: value for key, value in json.loads(unfinished.read_text()).items() if key not in ("graphs", "plans", "plan")}
    kept["flags"] = flags
    unfinished.write_text(json.dumps(kept, indent=1))
    unfinished.rename(report)
    return kept


def names_of(models):
    """Models by their files' names, with the folder's where these are not enough."""
    stems = [model.stem for model in models]
    return {model: model.stem if stems.count(model.stem) == 1 else f"{model.parent.name}_{model.stem}" for model in models}


def row_of(name, group, variant, report):
    cost, search, latency = report["cost"], report["search"], report.get("latency", {})
    return {"model": name, "group": group, "variant": variant, "before_ms": cost["before_ms"], "after_ms": cost["after_ms"],
            "ratio": cost["after_ms"] / cost["before_ms"] if cost["before_ms"] else 1.0,
            "operators": sum(count["after"] for count in report["operators"].values()), "kernels": cost["after_kernels"],
            "rules": len({a["rule"] for a in report["applied"]}), "applied": len(report["applied"]), "steps": search["steps"],
            "tried": search["rules_tried"], "seconds": search["seconds"], "stopped": search["stop_reason"],
            "measured_before_ms": latency.get("before_ms"), "measured_after_ms": latency.get("after_ms"), "speedup": latency.get("speedup"),
            "checked": "passed" if report["check"]["passed"] else "not checked" if not report["check"]["checked"] else "failed"}


def print_table(rows):
    print(f"{'model':<20} {'group':<10} {'variant':<24} {'of original':>11} {'operators':>9} {'kernels':>8} {'rules':>6} {'steps':>6} {'search s':>9} {'speedup':>8}")
    for r in rows:
        speedup = f"{r['speedup']:.3f}" if r["speedup"] else "-"
        print(f"{r['model']:<20} {r['group']:<10} {r['variant']:<24} {r['ratio']:>11.4f} {r['operators']:>9} {r['kernels']:>8} {r['rules']:>6} {r['steps']:>6} "
              f"{r['seconds']:>9.2f} {speedup:>8}")


def plot(rows, group, path, plt):
    """Times of the original's as bars, a group of bars a model; below, what the search took."""
    from matplotlib.ticker import FuncFormatter
    measured = all(r["speedup"] for r in rows)
    models = list(dict.fromkeys(r["model"] for r in rows))
    names = list(dict.fromkeys(r["variant"] for r in rows))
    value = {(r["model"], r["variant"]): 1 / r["speedup"] if measured else r["ratio"] for r in rows}
    seconds = {(r["model"], r["variant"]): r["seconds"] for r in rows}
    figure, (above, below) = plt.subplots(2, 1, figsize=(max(7, 1.1 + 0.42 * len(models) * (len(names) + 1)), 6.5), sharex=True, height_ratios=[2, 1])
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        at = [m + (k - (len(names) - 1) / 2) * width for m in range(len(models))]
        heights = [value.get((model, name), float("nan")) for model in models]
        bars = above.bar(at, heights, width, label=name)
        above.bar_label(bars, [f"{h:.2f}" if h == h else "" for h in heights], fontsize=7, rotation=90, padding=2)
        below.bar(at, [max(seconds.get((model, name), 0), 1e-3) for model in models], width)
    above.axhline(1, color="0.6", linewidth=0.8)
    above.set_ylim(0, 1.18 * max([v for v in value.values() if v == v] + [1]))
    above.set_ylabel("time of the code\n(of the original's)" if measured else "estimated time\n(of the original's)")
    columns = max(1, min(len(names), int(9 * figure.get_figwidth() / (4 + max(len(name) for name in names)))))
    above.legend(ncols=columns, fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.1)
    figure.suptitle(group, x=0.02, ha="left")
    below.set_yscale("log")
    below.set_ylim(min(max(s, 1e-3) for s in seconds.values()) / 2)
    for axis in (below.yaxis.set_major_formatter, below.yaxis.set_minor_formatter):
        axis(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "125" else ""))
    below.set_ylabel("search, s")
    below.set_xticks(range(len(models)), models)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def pyplot():
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    return plt


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("ablations"))
    parser.add_argument("--gopt", default=ROOT / "build/tools/gopt/gopt")
    parser.add_argument("--groups", type=lambda text: text.split(","), default=["rules", "operators", "search", "alpha", "cost", "cost-model", "passes"])
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--cost", default="analytic", choices=["analytic", "measured"])
    parser.add_argument("--cache")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", action="append")
    parser.add_argument("--measure", action="store_true", help="build and time each result's code against the original's")
    return parser.parse_args()


def main():
    a = arguments()
    a.out = a.out.resolve()
    groups, rows, failed = variants(a), [], 0
    for model, name in names_of(a.models).items():
        for group, flags_of in groups.items():
            for variant, flags in flags_of.items():
                report = run(a, model, flags, a.out / name / group / f"{file_name(variant)}.json")
                if report is None:
                    failed += 1
                else:
                    rows.append(row_of(name, group, variant, report))
    a.out.mkdir(parents=True, exist_ok=True)
    with open(a.out / "ablations.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print_table(rows)
    plt = pyplot()
    if plt is None:
        print("no plots: matplotlib is not installed")
    for group in groups if plt else []:
        own = [r for r in rows if r["group"] == group]
        if own:
            plot(own, group, a.out / f"{group}.png", plt)
    print(f"wrote            {a.out / 'ablations.csv'}" + (f" and {len(groups)} plots" if plt else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
