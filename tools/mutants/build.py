"""Compiles the sources with all mutants at once, without those that the compiler refuses.

Marks around each mutant (see switches.py) tell whom an error is about. It is left out, and the
build begins anew; an error that no mutant is to blame for ends the run.
"""

import json
import re
import shutil
import subprocess
import sys

import switches

OPTIONS = [
    "--locked",
    "--no-default-features",
    "--features=testing",
    "--message-format=json",
    "--config=profile.dev.package.sharestate.opt-level=1",
    "--config=profile.dev.package.sharestate.debug=0",
]
MARK = re.compile(rb"/\*(?:([<\[{])(\d+)|(\d+)([>\]}]))\*/")
CHANGED, AROUND, ARM = b"<>", b"[]", b"{}"


def regions(source):
    """Start, end, kind and mutant of all that is marked."""
    opened, found = {}, []
    for mark in MARK.finditer(source):
        kind = next(kind for kind in (CHANGED, AROUND, ARM) if (mark[1] or mark[4]) in kind)
        mutant = int(mark[2] or mark[3])
        if mark[1]:
            opened[kind, mutant] = mark.start()
        else:
            found.append((opened[kind, mutant], mark.end(), kind, mutant))
    return found


def to_blame(tree, message):
    """The mutant that an error is about, or nothing."""
    for span in sorted(message["spans"], key=lambda span: not span["is_primary"]):
        if span["file_name"].startswith("/"):
            continue
        start, end = span["byte_start"], span["byte_end"]
        marked = regions((tree / span["file_name"]).read_bytes())
        around = [r for r in marked if r[0] <= start and r[1] >= end]
        if (message["code"] or {}).get("code") == "E0004":  # an arm that the match needs
            around = sorted(r for r in marked if start <= r[0] and r[2] == ARM)[:1]
        # The changed code rather than the whole, the innermost of each.
        around.sort(key=lambda r: (r[2] != CHANGED, r[1] - r[0]))
        if around:
            return around[0][3]
    return None


def blamed(tree, messages):
    """The mutants that the compiler's errors are about."""
    found = {to_blame(tree, message) for message in messages} - {None}
    if not found:
        texts = [message["rendered"] for message in messages[:5]]
        sys.exit("mutants: the build fails without a mutant to blame:\n" + "\n".join(texts))
    return found


def cargo(tree, command):
    """Runs cargo; its messages, and whether it succeeded."""
    run = subprocess.run(["cargo", *command, *OPTIONS], cwd=tree, capture_output=True, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith(b"{")]
    if run.returncode and not lines:
        sys.exit(run.stderr.decode())
    return lines, run.returncode == 0


def executables(tree, lines):
    """The test programs by name: copies, for another build may take the place of cargo's own."""
    found = {}
    for line in lines:
        if line.get("executable") and line["profile"]["test"]:
            target = line["target"]
            name = "lib" if "lib" in target["kind"] else target["name"]
            found[name] = shutil.copy2(line["executable"], tree.parent / f"program-{name}")
    return found


def compiled(tree, mutants, names):
    """Builds the test programs with all mutants that compile: programs by name, and the ids of
    the mutants that are left out."""
    # A copy, for the work on the sources may go on.
    source = tree.parent / "original" / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(tree / "src", source)
    out = set()
    tests = ["test", "--no-run", "--lib", *(f"--test={name}" for name in names if name != "lib")]
    for command in ["check", "--lib"], ["build", "--lib"], tests:
        while True:
            out |= switches.place(source, tree, [m for m in mutants if m["id"] not in out])
            lines, ok = cargo(tree, command)
            if ok:
                break
            messages = [line["message"] for line in lines if line["reason"] == "compiler-message"]
            out |= blamed(tree, [m for m in messages if m["level"] == "error" and m["spans"]])
    return executables(tree, lines), out
