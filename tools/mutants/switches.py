"""Writes sources in which every mutant sits behind a switch.

A mutant becomes a branch: `a < b` turns into `(if on(7) { a <= b } else { a < b })`, and a replaced
function returns first thing. With no switch on, the code does what it did: the tests, which must
pass then, are the proof. The syntax comes from tree-sitter, the list of mutants from cargo-mutants.
"""

import collections
import shutil

import tree_sitter
import tree_sitter_rust

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
    `/*<7*/ /*7>*/` around the changed code, `/*[7*/ /*7]*/` around both, `/*{7*/ /*7}*/` around an
    arm of a match that a mutant takes away."""

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
            line = data[start : starts[place["line"]]].decode()
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
        for mutant, text in reversed(list(zip(mutants, changed, strict=True))):
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

        return f"/*{{{number}*/{self.inner(node, emit)}/*{number}}}*/"

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


def place(source, tree, mutants):
    """Writes the sources with the switches to a tree; the ids of mutants that have none."""
    shutil.rmtree(tree / "src", ignore_errors=True)
    shutil.copytree(source, tree / "src")
    unplaced, files = set(), collections.defaultdict(list)
    for mutant in mutants:
        files[mutant["file"]].append(mutant)
    for name, its in files.items():
        file = File((source.parent / name).read_bytes(), its)
        text = file.emit(file.root)
        if name == "src/log/entry.rs":  # used in no constant
            text = text.replace("const fn ", "fn ")
        (tree / name).write_text(text)
        unplaced.update(file.unplaced)
    lib = tree / "src/lib.rs"
    lib.write_text("#![allow(warnings)]\n" + lib.read_text() + MODULE)
    return unplaced
