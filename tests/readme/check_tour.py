#!/usr/bin/env python3
"""Runs the commands of the README's tour and checks that they print what the README shows.

usage: check_tour.py README.md PROGRAM [HEADING] [--update]      --update writes what is printed into the README instead

The tour is the first fenced block after the heading ("A tour"): lines that begin with "$ " are commands, the others what they
print. PROGRAM is one that they call (its folder comes first in the PATH).
They run in an empty folder beside a link to examples/, with an empty cache. Numbers, hashes and runs of blanks may differ: they are masked on both sides.
"""
import os, pathlib, re, subprocess, sys, tempfile


def block_after(heading: str) -> re.Pattern[str]:
    return re.compile(rf"(^## {re.escape(heading)}$.*?^```\n)(.*?)(^```$)", re.M | re.S)


def tour(readme: pathlib.Path, heading: str) -> list[tuple[str, list[str]]]:
    block = block_after(heading).search(readme.read_text())
    if not block:
        sys.exit(f"{readme}: there is no fenced block after the heading '{heading}'")
    steps: list[tuple[str, list[str]]] = []
    for line in block.group(2).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps:
            steps[-1][1].append(line)
    return steps


def masked(lines: list[str]) -> list[str]:
    text = [re.sub(r'"[0-9a-f]{16,32}"', '"#"', line) for line in lines]
    text = [re.sub(r"\d+(\.\d+)*(e[-+]?\d+)?", "#", line) for line in text]
    return [" ".join(line.split()) for line in text if line.strip()]


def main() -> None:
    update = sys.argv[-1] == "--update"
    words = sys.argv[1:-1] if update else sys.argv[1:]
    if len(words) not in (2, 3):
        sys.exit(__doc__)
    heading = words[2] if len(words) == 3 else "A tour"
    # A link is left as it is: a virtual environment's Python is one.
    readme, program = pathlib.Path(words[0]).resolve(), pathlib.Path(words[1]).absolute()
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}")
    steps = tour(readme, heading)
    if not steps:
        sys.exit("the tour has no command")
    failures = 0
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_CACHE_HOME"] = str(pathlib.Path(folder) / "cache")
        os.symlink(readme.parent / "examples", pathlib.Path(folder) / "examples")
        for command, expected in steps:
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
            printed += f"$ {command}\n{done.stdout}"
            print(f"$ {command}\n{done.stdout}", end="")
            if done.returncode != 0:
                print(f"-- exit status {done.returncode}")
                failures += 1
            if not update and masked(done.stdout.splitlines()) != masked(expected):
                print("-- the README shows instead:\n" + "\n".join(expected))
                failures += 1
    if update and not failures:
        readme.write_text(block_after(heading).sub(lambda block: block.group(1) + printed + block.group(3), readme.read_text(), 1))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
