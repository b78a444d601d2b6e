"""Builds every mutant of cargo-mutants at once, each behind a switch, and runs the tests with one
after the other switched on: a mutant costs a run of the tests this way, not a build.

    run.py OUT SHARDS SHARD PATTERN

OUT/list-LAYER.json is from `cargo mutants --list --json`. Takes every mutant whose number is SHARD
modulo SHARDS and in whose name the regular expression PATTERN is found.

Why the verdicts can be believed: the same programs must pass without a mutant, before the run and
again and again in it; what does not compile behind a switch, or finds no place for one, is counted
and listed as unbuilt, never as killed; a mutant that no test reaches survives. OUT/verdicts.tsv has
them all.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import threading

import build

import tests

CONTROL_EVERY = 100
PERCENT_MIN = 90


def chosen(out, shards, shard, pattern):
    mutants = []
    for layer in tests.QUICK:
        listed = json.loads((out / f"list-{layer}.json").read_text())
        mutants += [{**m, "layer": layer} for n, m in enumerate(listed) if n % shards == shard]
    mutants = [m for m in mutants if re.search(pattern, m["name"])]
    for number, mutant in enumerate(mutants, 1):
        mutant["id"] = number
    return mutants


class Verdicts:
    """What became of each mutant."""

    def __init__(self, path):
        self.file = open(path, "w")
        self.lock = threading.Lock()
        self.counts = collections.Counter()

    def add(self, mutant, verdict, by=""):
        with self.lock:
            row = (verdict, mutant["layer"], mutant["name"], by)
            print(*row, sep="\t", file=self.file, flush=True)
            self.counts[mutant["layer"], verdict] += 1
            if verdict != "killed":
                print(*row[:3], flush=True)

    def total(self, verdict):
        return sum(count for (_, of), count in self.counts.items() if of == verdict)

    def report(self):
        for layer in tests.QUICK:
            told = (f"{v}={self.counts[layer, v]}" for v in ("killed", "survived", "unbuilt"))
            print(f"mutants layer={layer}", *told)
        killed, viable = self.total("killed"), self.total("killed") + self.total("survived")
        percent = 100 * killed / max(viable, 1)
        print(
            f"mutants killed={killed} viable={viable} unbuilt={self.total('unbuilt')}",
            f"percent={percent:.1f}",
        )
        return percent >= PERCENT_MIN


def each(pool, programs, suite, mutants, done):
    """Runs its lines of a suite on every mutant; calls `done` with each and what killed it."""
    controls = iter(range(sys.maxsize))

    def judge(mutant):
        lines = suite(mutant)
        is_due = next(controls) % CONTROL_EVERY == 0
        if is_due and (failed := programs.killer(lines, 0)):
            print(f"mutants: fails without a mutant: {failed}", flush=True)
            os._exit(2)
        done(mutant, programs.killer(lines, mutant["id"]))

    for result in [pool.submit(judge, mutant) for mutant in mutants]:
        result.result()


def judge_all(programs, mutants, verdicts):
    left = []

    def quick(mutant, by):
        verdicts.add(mutant, "killed", by) if by else left.append(mutant)

    def slow(mutant, by):
        verdicts.add(mutant, "killed" if by else "survived", by or "")

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        each(pool, programs, tests.quick, mutants, quick)
        print(f"mutants: {len(left)} of {len(mutants)} survive the quick tests", flush=True)
        left.sort(key=lambda mutant: mutant["id"])
        each(pool, programs, tests.slow, left, slow)


def main():
    out, shards, shard, pattern = sys.argv[1:]
    out = pathlib.Path(out).resolve()
    mutants = chosen(out, int(shards), int(shard), pattern)
    tree = out / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    skip = shutil.ignore_patterns(".git", "target*", "fuzz", out.name)
    shutil.copytree(".", tree, ignore=skip)

    executables, left_out = build.compiled(tree, mutants, tests.NAMES)
    programs = tests.Programs(tree, executables)
    if failed := programs.measure(tests.LINES):
        sys.exit(f"mutants: fails without a mutant: {failed}")

    verdicts = Verdicts(out / "verdicts.tsv")
    for mutant in mutants:
        if mutant["id"] in left_out:
            verdicts.add(mutant, "unbuilt")
    judge_all(programs, [m for m in mutants if m["id"] not in left_out], verdicts)
    sys.exit(0 if verdicts.report() else 1)


main()
