"""Builds every mutant of cargo-mutants at once, each behind a switch, and runs the tests with one
after the other switched on.

A mutant costs a run of the tests this way, not a build. Called by tools/mutants.sh, which says
what is mutated and what is run. Mutants that do not compile, and the few in constants, are left
out and counted.

    switch.py OUT SHARDS SHARD     with OUT/list-LAYER.json from `cargo mutants --list --json`
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import tree_sitter
import tree_sitter_rust

# The quickest first; a line is a test program and its arguments. One failing test is enough.
LOG = "log --skip twice_over --skip every_"
SUITES = {
    "model": ["model_rules", "lib", "model_apply", "model_transactions", "model_oracle"],
    "log": ["lib", LOG, "crash", "offline", "log every_", "log twice_over"],
    "engine": ["lib", "codec_lengths", "store_sim", "store_poison", "crash", "offline",
               "model_transactions", "storage_format", LOG],
}
# How much the crash tests explore.
KNOBS = {
    "SHARESTATE_CRASH_STATES": "300",
    "SHARESTATE_LOST_PAGES": "200",
    "SHARESTATE_REORDERED_WRITES": "200",
    "SHARESTATE_SHORT_READS": "50",
    "RUST_BACKTRACE": "0",
}
BUILD = ["--locked", "--no-default-features", "--features=testing", "--message-format=json",
         "--config=profile.dev.package.sharestate.opt-level=1",
         "--config=profile.dev.package.sharestate.debug=0"]
CPU_SECONDS = 120
WALL_SECONDS = 600
MODULE = """
pub(crate) mod mutant {
    pub(crate) fn on(id: u32) -> bool {
        static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        let read = || std::env::var("MUTANT").ok().and_then(|id| id.parse().ok());
        *ON.get_or_init(|| read().unwrap_or(0)) == id
    }
}
"""
# What node of the syntax tree a mutant is about.
NODES = {
    "FnValue": ("function_item",),
    "BinaryOperator": ("binary_expression", "compound_assignment_expr"),
    "UnaryOperator": ("unary_expression",),
    "MatchArm": ("match_arm",),
    "MatchArmGuard": ("match_pattern",),
    "StructField": ("field_initializer", "shorthand_field_initializer"),
}
RUST = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def on(mutant):
    return f"crate::mutant::on({mutant['id']})"


class File:
    """One source file with switches. Comments around each tell whom the compiler complains of:
    `/*<7*/ /*7>*/` around the changed code, `/*[7*/ /*7]*/` around both."""

    def __init__(self, data, mutants):
        self.data = data
        self.root = RUST.parse(data).root_node
        self.at = collections.defaultdict(list)
        self.unplaced = []
        starts = [0]
        for line in data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)

        def offset(place):
            start = starts[place["line"] - 1]
            line = data[start:starts[place["line"]]].decode()
            return start + len(line[: place["column"] - 1].encode())

        for mutant in mutants:
            node = self.find(mutant, offset(mutant["span"]["start"]), offset(mutant["span"]["end"]))
            if node is None:
                self.unplaced.append(mutant["id"])
            else:
                self.at[node.start_byte, node.end_byte, node.type].append(mutant)

    def find(self, mutant, start, end):
        node = self.root.descendant_for_byte_range(start, max(start, end - 1))
        while node is not None:
            if node.type in NODES[mutant["genre"]]:
                operator = node.child_by_field_name("operator")
                operator = node.children[0] if node.type == "unary_expression" else operator
                if operator is None or operator.start_byte == start:
                    return node
            node = node.parent
        return None

    def text(self, start, end):
        return self.data[start:end].decode()

    def of(self, node):
        return self.text(node.start_byte, node.end_byte)

    def mutants(self, node):
        return self.at.get((node.start_byte, node.end_byte, node.type), [])

    def inner(self, node, emit=None):
        out, at = [], node.start_byte
        for child in node.children:
            out += [self.text(at, child.start_byte), (emit or self.emit)(child)]
            at = child.end_byte
        return "".join(out) + self.text(at, node.end_byte)

    @staticmethod
    def choice(mutants, changed, plain):
        for mutant, text in reversed(list(zip(mutants, changed))):
            number = mutant["id"]
            plain = f"if {on(mutant)} {{ /*<{number}*/{text}/*{number}>*/ }} else {{ {plain} }}"
        opened = "".join(f"/*[{mutant['id']}*/" for mutant in mutants)
        closed = "".join(f"/*{mutant['id']}]*/" for mutant in mutants)
        return f"{opened}({plain}){closed}"

    def emit(self, node):
        mutants = self.mutants(node)
        if node.type == "match_pattern" and mutants:
            return self.pattern(node, None)
        if not mutants:
            return self.inner(node)
        return getattr(self, node.type)(node, mutants)

    def function_item(self, node, mutants):
        body = node.child_by_field_name("body")
        returns = "".join(
            f"if {on(m)} {{ /*<{m['id']}*/return {m['replacement']};/*{m['id']}>*/ }} "
            for m in mutants
        )
        return self.text(node.start_byte, body.start_byte) + "{ " + returns + self.emit(body)[1:]

    def binary_expression(self, node, mutants):
        left = self.emit(node.child_by_field_name("left"))
        right = self.emit(node.child_by_field_name("right"))
        operator = self.of(node.child_by_field_name("operator"))
        changed = [f"{left} {mutant['replacement']} {right}" for mutant in mutants]
        return self.choice(mutants, changed, f"{left} {operator} {right}")

    compound_assignment_expr = binary_expression

    def unary_expression(self, node, mutants):
        operand = self.emit(node.children[-1])
        return self.choice(mutants, [operand], self.of(node.children[0]) + operand)

    def match_arm(self, node, mutants):
        pattern = node.child_by_field_name("pattern")
        number = mutants[0]["id"]

        def emit(child):
            return self.pattern(child, mutants[0]) if child == pattern else self.emit(child)

        return f"/*[{number}*/{self.inner(node, emit)}/*{number}]*/"

    def pattern(self, node, without):
        """The pattern of an arm with its guard; the arm is gone when `without` is on."""
        guard = node.child_by_field_name("condition")
        if guard is None:
            return f"{self.of(node)} if !{on(without)}"
        guarded, mutants = self.emit(guard), self.mutants(node)
        if mutants:
            guarded = self.choice(mutants, [m["replacement"] for m in mutants], guarded)
        if without:
            guarded = f"!{on(without)} && ({guarded})"
        return self.text(node.start_byte, guard.start_byte) + guarded

    def field_initializer(self, node, mutants):
        fields = node.parent
        name = self.of(fields.parent.child_by_field_name("name"))
        base = next(c for c in fields.children if c.type == "base_field_initializer")
        field = node.child_by_field_name("field") or node
        value = node.child_by_field_name("value") or node
        from_base = f"let base: {name} = {self.of(base)[2:]}; base.{self.of(field)}"
        plain = self.emit(value) if value != node else self.of(node)
        return f"{self.of(field)}: " + self.choice(mutants, [from_base], plain)

    shorthand_field_initializer = field_initializer


def place(tree, mutants):
    """Writes the sources with the switches; the ids that have none."""
    shutil.rmtree(tree / "src", ignore_errors=True)
    shutil.copytree("src", tree / "src")
    unplaced, files = set(), collections.defaultdict(list)
    for mutant in mutants:
        files[mutant["file"]].append(mutant)
    for name, its in files.items():
        file = File(pathlib.Path(name).read_bytes(), its)
        text = file.emit(file.root)
        if name == "src/log/entry.rs":  # used in no constant
            text = text.replace("const fn ", "fn ")
        (tree / name).write_text(text)
        unplaced.update(file.unplaced)
    lib = tree / "src/lib.rs"
    lib.write_text("#![allow(warnings)]\n" + lib.read_text() + MODULE)
    return unplaced


def blamed(tree, messages):
    """The mutants that the compiler's errors are about."""
    marks = re.compile(rb"/\*(?:([<\[])(\d+)|(\d+)([>\]]))\*/")
    found, unknown = set(), []
    for message in messages:
        for span in sorted(message["spans"], key=lambda span: not span["is_primary"]):
            if span["file_name"].startswith("/"):
                continue
            opened, regions = {}, []
            for mark in marks.finditer((tree / span["file_name"]).read_bytes()):
                if mark[1]:
                    opened[mark[1] == b"<", int(mark[2])] = mark.start()
                else:
                    key = (mark[4] == b">", int(mark[3]))
                    regions.append((opened[key], mark.end(), *key))
            start, end = span["byte_start"], span["byte_end"]
            around = [r for r in regions if r[0] <= start and r[1] >= end]
            if (message["code"] or {}).get("code") == "E0004":  # an arm that the match needs
                around = [r for r in regions if start <= r[0] and not r[2]][:1]
            # The changed code rather than the whole, the innermost of each.
            around.sort(key=lambda r: (not r[2], r[1] - r[0]))
            if around:
                found.add(around[0][3])
                break
        else:
            unknown.append(message["message"])
    if not found:
        sys.exit("switch.py: the build fails without a mutant to blame: " + "; ".join(unknown[:5]))
    return found


def cargo(tree, command):
    """Runs cargo; its messages, and whether it succeeded."""
    run = subprocess.run(["cargo", *command, *BUILD], cwd=tree, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith(b"{")]
    if run.returncode and not lines:
        sys.exit(run.stderr.decode())
    return lines, run.returncode == 0


def compiled(tree, mutants):
    """Builds with all mutants that compile: the test programs, and the ids left out."""
    out = set()
    names = sorted({line.split()[0] for suite in SUITES.values() for line in suite} - {"lib"})
    tests = ["test", "--no-run", "--lib", *(f"--test={name}" for name in names)]
    for command in ["check", "--lib"], ["build", "--lib"], tests:
        while True:
            out |= place(tree, [m for m in mutants if m["id"] not in out])
            lines, ok = cargo(tree, command)
            if ok:
                break
            messages = [line["message"] for line in lines if line["reason"] == "compiler-message"]
            out |= blamed(tree, [m for m in messages if m["level"] == "error" and m["spans"]])
    programs = {}
    for line in lines:
        if line.get("executable") and line["profile"]["test"]:
            target = line["target"]
            programs["lib" if "lib" in target["kind"] else target["name"]] = line["executable"]
    return programs, out


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def killer(tree, programs, layer, number):
    """The first program and test that fails with this mutant, or nothing."""
    environment = {**os.environ, **KNOBS, "MUTANT": str(number)}
    for line in SUITES[layer]:
        name, *arguments = line.split()
        try:
            run = subprocess.run([programs[name], *arguments], cwd=tree, env=environment,
                                 preexec_fn=limited, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, timeout=WALL_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{name}: hung"
        if run.returncode:
            failed = re.findall(rb"^test (.*) \.\.\. FAILED$", run.stdout, re.MULTILINE)
            return f"{name}: {min(failed).decode() if failed else f'ended {run.returncode}'}"
    return None


def main():
    out, shards, shard = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3])
    mutants = []
    for layer in SUITES:
        listed = json.loads((out / f"list-{layer}.json").read_text())
        mutants += [{**m, "layer": layer} for n, m in enumerate(listed) if n % shards == shard]
    for number, mutant in enumerate(mutants, 1):
        mutant["id"] = number
    tree = out / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    skip = shutil.ignore_patterns(".git", "target*", "mutants*", "fuzz", out.name)
    shutil.copytree(".", tree, ignore=skip)
    programs, left_out = compiled(tree, mutants)
    for layer in SUITES:
        if failed := killer(tree, programs, layer, 0):
            sys.exit(f"switch.py: fails without any mutant: {failed}")

    counts = collections.Counter()
    def judge(mutant):
        if mutant["id"] in left_out:
            return "unbuilt", ""
        by = killer(tree, programs, mutant["layer"], mutant["id"])
        return ("killed", by) if by else ("survived", "")

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool, \
            open(out / "verdicts.tsv", "w") as verdicts:
        for mutant, (verdict, by) in zip(mutants, pool.map(judge, mutants)):
            print(verdict, mutant["layer"], mutant["name"], by, sep="\t", file=verdicts, flush=True)
            counts[mutant["layer"], verdict] += 1
            if verdict == "survived":
                print("survived", mutant["name"], flush=True)
    for layer in SUITES:
        told = (f"{verdict}={counts[layer, verdict]}" for verdict in ("killed", "survived", "unbuilt"))
        print(f"mutants layer={layer}", *told)
    killed = sum(n for (_, verdict), n in counts.items() if verdict == "killed")
    viable = killed + sum(n for (_, verdict), n in counts.items() if verdict == "survived")
    print(f"mutants killed={killed} viable={viable}")
    sys.exit(killed * 10 < viable * 9 or killed == 0)


main()
