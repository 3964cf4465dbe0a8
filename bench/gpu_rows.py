"""What torch_turns.py says of the models that it times: parts of gopt and the flags without them, floors, tables.

Needs neither a GPU nor a package. `rows` are what results.json holds: by a model's key (key_of) times and the rest.
"""
import json, math, pathlib, re

from turns import geometric_mean

LEVERS = {
    "rewriting": "--search none --disable narrow-to-reads",
    "narrowing": "--disable narrow-to-reads",
    "dependent launch": "--disable launch:dependent",
    "grouping": "--disable launch:grouped",
    "own kernels": "--disable kernel:tiles kernel:wgmma kernel:patches kernel:gemv kernel:channels kernel:attention",
    "attention": "--disable kernel:attention",
    "channels last": "--disable layout:channels-last layout:channels-last-in-parts",
    "weights by columns": "--disable layout:transposed-weights",
    "epilogues": "--disable fusion:epilogues",
    "fusion": "--disable fusion:inlining fusion:epilogues fusion:by-cost",
    "measured costs": "--cost analytic",
}
PART = re.compile(r"(layout|kernel|fusion|launch):[\w-]+(:[\w-]+)*")


def flags_of(lever):
    """Flags without a lever: one of LEVERS, or parts of plans, "kernel:wgmma:128x64+kernel:tiles"."""
    return LEVERS[lever] if lever in LEVERS else "--disable " + lever.replace("+", " ")


def is_lever(text):
    return text in LEVERS or all(PART.fullmatch(part) for part in text.split("+"))


# A launch of a kernel within a graph takes so long, whatever it does.
LAUNCH_MS = 1.3e-3
NONE = "-"


def is_file(name):
    return name.endswith(".onnx")


def is_own(name):
    """A function of a Python file, FILE.py:FUNCTION."""
    return ".py:" in name


def label_of(name):
    """A model of torchvision or transformers by its name, a function of one's own by that, a file by its own name and its folder's."""
    path = pathlib.Path(name).resolve()
    return f"{path.parent.name}/{path.stem}" if is_file(name) else name.rsplit(":", 1)[-1] if is_own(name) else name


def key_of(name, precision, batch):
    """Without a batch, a file has that which it was made for, and any other model one of 1."""
    batch = batch or (None if is_file(name) else 1)
    return f"{label_of(name)} {precision}" + (f" b{batch}" if batch else "")


def file_name(text):
    return re.sub(r"[^\w.-]", "_", text)


def join_flags(*groups):
    """One command line: a flag replaces the same one of an earlier group, but what --disable names adds up."""
    joined = []
    for group in groups:
        own = []
        for word in map(str, group):
            if word.startswith("-"):
                own.append((word.partition("=")[0], [word]))
            else:
                own[-1][1].append(word)
        said = {flag for flag, _ in own} - {"--disable"}
        joined = [item for item in joined if item[0] not in said] + own
    return [word for _, words in joined for word in words]


def weight_bytes(report):
    """Bytes of weights that a run reads at the least: all of them, but of tables only the rows that are gathered."""
    nodes, total = report["graphs"]["after"]["nodes"], 0
    for buffer in own_buffers(report, "weight"):
        readers = [n for n in nodes if buffer["value"] and buffer["value"] in n["inputs"]]
        size = buffer["bytes"]
        if readers and all(n["op"] == "Gather" and n["inputs"].index(buffer["value"]) == 0 for n in readers):
            gathered = sum(math.prod(map(int, re.findall(r"\d+", n["types"][0].partition("[")[2]))) for n in readers)
            size = min(size, gathered * size // max(1, math.prod(buffer["dims"])))
        total += size
    return total


def own_buffers(report, place):
    return [b for b in report["plans"]["after"]["buffers"] if b["place"] == place and b["view_of"] is None]


def planned_bytes(report):
    """Of the device's memory: weights, the arena of all that lies between, inputs and outputs."""
    return report["plans"]["after"]["arena_bytes"] + sum(b["bytes"] for place in ("weight", "input", "output") for b in own_buffers(report, place))


def floor_ms(report, bandwidth, peak):
    """Milliseconds that a run takes at the least, at `bandwidth` bytes and `peak` operations a second."""
    kernels = report["plans"]["after"]["kernels"]
    return 1e3 * max(weight_bytes(report) / bandwidth, sum(k["operations"] for k in kernels) / peak) + LAUNCH_MS * len(kernels)


# ---- results.json ----


def write_whole(path, rows):
    """Who reads the file sees it as it was or as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_suffix(".making")
    making.write_text(json.dumps(rows, indent=1) + "\n")
    making.replace(path)


def row_file(out, key):
    return out / "rows" / (file_name(key) + ".json")


def merge_rows(out):
    """All rows there are; those that a model's process has written go into results.json."""
    path, parts = out / "results.json", sorted((out / "rows").glob("*.json"))
    rows = json.loads(path.read_text()) if path.exists() else {}
    for part in parts:
        rows.update(json.loads(part.read_text()))
    if parts:
        write_whole(path, rows)
    for part in parts:
        part.unlink()
    return rows


# ---- what is printed ----


def text_of(row):
    """A row in one line, and one more for the parts of gopt."""
    memory = row["memory_mib"]
    words = [f"{row['ratio']:5.2f}x" if "ratio" in row else f"{NONE:>6}", "  ".join(f"{way} {ms:.4f}" for way, ms in row["ms"].items()),
             f"floor {row['floor_ms']:.4f} ({row['to_floor']:.2f}x)", f"estimated {row['estimated_ms']:.4f}", f"{row['kernels']} kernels",
             f"error {row['error']:.2g}" + (f" (torch {row['torch_error']:.2g})" if "torch_error" in row else ""),
             f"memory {memory['gopt']:.0f} MiB ({memory['planned']:.0f} planned" + (f", torch {memory['torch']:.0f})" if "torch" in memory else ")"),
             f"tuning {row['tuning_s']:.0f} s", f"from the cache {row['recached_s']:.0f} s"]
    levers = [f"{lever} " + (f"failed: {' '.join(own['failed'].split())}" if "failed" in own else f"{own['ratio']:.3f}x") for lever, own in row["levers"].items()]
    return "  ".join(words) + ("\n    without  " + "  ".join(levers) if levers else "")


def lever_ratios(rows):
    """By lever, by key: the time without it over that with it."""
    found = {}
    for key, row in rows.items():
        for lever, own in row.get("levers", {}).items():
            found.setdefault(lever, {})[key] = own.get("ratio")
    return found


def means(rows):
    """Geometric means, by what they are of: their number and they."""
    columns = {"best of PyTorch / gopt": [row.get("ratio") for row in rows.values()], "gopt / floor": [row.get("to_floor") for row in rows.values()]}
    columns |= {f"without {lever} / with": own.values() for lever, own in lever_ratios(rows).items()}
    there = {name: [r for r in ratios if r] for name, ratios in columns.items()}
    return {name: (len(ratios), geometric_mean(ratios)) for name, ratios in there.items() if ratios}


def markdown_table(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] + ["---:"] * (len(head) - 1), *lines)) + "\n"


def cell(value, form):
    return NONE if value is None else format(value, form)


def models_table(rows):
    ways = list(dict.fromkeys(way for row in rows.values() for way in row["ms"] if way != "gopt"))
    head = ["model", "gopt ms", *ways, "best / gopt", "floor ms", "gopt / floor", "gopt MiB", "planned MiB", "PyTorch MiB", "kernels", "error", "PyTorch's error", "tuning s", "from the cache s"]
    lines = []
    for key, row in rows.items():
        memory = row.get("memory_mib", {})
        lines.append([key, *(cell(row["ms"].get(way), ".4f") for way in ("gopt", *ways)), cell(row.get("ratio"), ".2f"), cell(row.get("floor_ms"), ".4f"), cell(row.get("to_floor"), ".2f"),
                      *(cell(memory.get(side), ".0f") for side in ("gopt", "planned", "torch")), str(row["kernels"]), cell(row["error"], ".2g"), cell(row.get("torch_error"), ".2g"),
                      cell(row["tuning_s"], ".0f"), cell(row.get("recached_s"), ".0f")])
    found = means(rows)
    mean = {column: cell(found[name][1], ".2f") for column, name in (("best / gopt", "best of PyTorch / gopt"), ("gopt / floor", "gopt / floor")) if name in found}
    lines.append([mean.get(column, "geometric mean" if column == "model" else "") for column in head])
    return markdown_table(head, lines)


def levers_table(rows):
    found, of_all = lever_ratios(rows), means(rows)
    lines = [[key, *(cell(own.get(key), ".3f") for own in found.values())] for key, row in rows.items() if row.get("levers")]
    lines.append(["geometric mean", *(cell(of_all.get(f"without {lever} / with", (0, None))[1], ".3f") for lever in found)])
    return markdown_table(["time without / with", *found], lines)


def markdown(rows, command):
    """Tables of all rows, and the command that made them."""
    gpus = sorted({f"{row['device']}: {row['bandwidth'] / 1e9:.0f} GB/s, {row['peak'] / 1e12:.0f} Tflop/s" for row in rows.values() if "device" in row})
    text = f"Made by `{command}`\n\n" + "".join(f"- {gpu}\n" for gpu in gpus) + "\n" + models_table(rows)
    if lever_ratios(rows):
        text += "\n" + levers_table(rows)
        text += "".join(f"\n- {key} without {lever}: {' '.join(own['failed'].split())}" for key, row in rows.items() for lever, own in row.get("levers", {}).items() if "failed" in own)
    return text.rstrip("\n") + "\n"
