#!/usr/bin/env python3
"""Audits pruning: what `rulegen --prune none` finds has the same classes as what the default finds, and each equal pair
follows from the rules that the default keeps (`rulegen derive`), or is no rule: refuted, or not proved by itself. Pairs that
need what weights alone are made into ("folded") are apart: folding makes those equal, which no rule says.

usage: bench/audit_pruning.py RULEGEN [--max-ops N] [--family F,...] [--sample S] [--seed S] [--threads T] [--work DIR]

A row for each family: classes, pairs, how many of a random sample follow, are not proved, need folding, or none of these. Exit status 1 if
classes differ or a pair is proved but does not follow. Rules of families that come earlier prune too, so each family is
generated with those before it. The sample is of pairs that are rules in one direction at least, as they are offered.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

FAMILY = re.compile(r"^family (\S+)", re.MULTILINE)


def run(rulegen, *arguments):
    done = subprocess.run([rulegen, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(done.args)}: {done.stderr}")
    return done


def generated(rulegen, work, name, *arguments):
    rules, report = os.path.join(work, name + ".rules"), os.path.join(work, name + ".json")
    run(rulegen, *arguments, "--force", "--out", rules, "--report", report)
    with open(report, encoding="utf-8") as file:
        return rules, json.load(file)


def stanzas(path):
    with open(path, encoding="utf-8") as file:
        return [text for text in re.split(r"(?m)^(?=rule )", file.read()) if text.startswith("rule ")]


def folds_weights(stanza):
    """Whether an operator applies to what depends on no activation."""
    weights = set(re.findall(r"(?m)^  var (\S+) .* weight$", stanza)) | set(re.findall(r"constant (\w+) =", stanza))
    for names, operator, arguments in re.findall(r"(?m)^    ([\w, ]+) = (\w+)\(([^)]*)\)", stanza):
        own = [argument.strip() for argument in arguments.split(",") if argument.strip()]
        if all(argument in weights for argument in own):
            if own:
                return True
            weights.update(name.strip() for name in names.split(","))
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rulegen")
    parser.add_argument("--max-ops", default="2")
    parser.add_argument("--family", default="merge,dense,matrix,parts")
    parser.add_argument("--sample", type=int, default=40, help="pairs of a family that are derived")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--work", help="keep what is made in DIR: verdicts, rules, answers")
    o = parser.parse_args()
    work = o.work or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    common = ["--max-ops", o.max_ops, "--threads", o.threads]
    print(f"{'family':<24}{'classes':>9}{'none':>9}{'pairs':>8}{'sample':>8}{'follow':>8}{'unproved':>9}{'folded':>8}{'not':>5}{'s':>7}")
    bad = 0
    for family in o.family.split(","):
        start = time.time()
        kept, pruned = generated(o.rulegen, work, family, *common, "--family", family,
                                 "--checkpoint", os.path.join(work, "checkpoint"))
        every, whole = generated(o.rulegen, work, family + "-none", *common, "--family", family, "--prune", "none", "--unproved")
        pairs = stanzas(every)
        sample = random.Random(o.seed).sample(pairs, min(o.sample, len(pairs)))
        sampled = os.path.join(work, family + "-sample.rules")
        with open(sampled, "w", encoding="utf-8") as file:
            # Names come from contents, and pairs that differ by the order of inputs alone can share one.
            file.write("\n".join(re.sub(r"^rule (\S+)", rf"rule \1-{i}", text) for i, text in enumerate(sample)))
        answers = os.path.join(work, family + "-answers.json")
        run(o.rulegen, "derive", "--rules", kept, "--json", answers, "--force", "--brief", "--any-kind", "--threads", o.threads, sampled)
        with open(answers, encoding="utf-8") as file:
            rows = json.load(file)  # of the pairs that are proved
        texts = dict((text.split(None, 2)[1], text) for text in stanzas(sampled))
        open_rows = [row for row in rows if row["verdict"] != "follows"]
        left = [row for row in open_rows if not folds_weights(texts[row["name"]])]
        bad += len(left) + (pruned["classes"] != whole["classes"])
        print(f"{family:<24}{pruned['classes']:>9}{whole['classes']:>9}{len(pairs):>8}{len(sample):>8}"
              f"{len(rows) - len(open_rows):>8}{len(sample) - len(rows):>9}{len(open_rows) - len(left):>8}{len(left):>5}{time.time() - start:>7.0f}", flush=True)
        for row in left:
            print(f"    {row['name']}: {row['verdict']} {row.get('reason', '')}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
