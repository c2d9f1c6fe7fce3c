"""Mutation testing: lines of the core are drawn at random, and one small fault (a mutant) is planted in each.

Each mutant is tried on the contracts and, if they do not notice it, on the repository's tests. A mutant that survives is printed as a
patch for a person to judge: either it does not change behaviour, or nothing checks the behaviour that it changes.

NB: none of the tools for mutation testing fits. mutmut (3.8) wraps mutants in functions of ``*args``, but a row is read from the
parameters of its formulas. cosmic-ray (8.7) and mutatest (3.1) run one command that does not stop at the first failing contract, and write
into the source tree or its bytecode. None of them mutates the text from which operations are generated.
"""

from __future__ import annotations

import ast
import difflib
import fnmatch
import functools
import hashlib
import itertools
import json
import platform
import random
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from xpgrad_conformance.contract import Contract, contracts
from xpgrad_conformance.faults import KILLS, MutantError, load
from xpgrad_conformance.fork_server import Server, pool
from xpgrad_conformance.journal import Journal
from xpgrad_conformance.mutants import LIBRARIES, copy, run_tests, surroundings, survey as statuses_of
from xpgrad_conformance.reach import Reach, folder_of, reach
from xpgrad_conformance.session import Outcome, Request, run, runners

__all__ = ["OPERATORS", "Edit", "Verdict", "check_soundness", "differs", "draw", "edits", "patch", "sources", "survey", "table"]

#: The backends on which a mutant is tried, in this order, up to the first that notices it. They run different code: NumPy's kernels replace
#: the core's, the read-only variant joins pieces instead of writing, MLX has neither views nor float64, and only simstream has streams.
TARGETS = ("numpy", "numpy+readonly", "strict", "simstream", "mlx")
#: Time limits in seconds for one contract, and for the tests of one mutant.
LIMIT, TESTS_LIMIT = 60.0, 900.0
OPERATORS = ("comparison", "constant", "statement", "condition", "arguments", "arithmetic", "text", "formula")
#: Sources that are mutated only if `--files` names them, because PyTorch's documentation, and so the catalogue, says nothing about them:
#: the command line, drawings and pages, hints, finding backends, devices' namespaces, compiling and what it knows of kernels, rules made
#: from functions, interoperation with other libraries, the advice in messages about conversions, SciPy's functions, NumPy's functions on
#: Tensors, audits, sparse derivatives, central differences for these two, names of JAX and HIPS autograd (loops, branches), docstrings'
#: common parts, and what only solvers, loops and compiled losses need of the tape.
OUTSIDE = (
    "xpgrad/_cli/*", "xpgrad/__main__.py", "xpgrad/_operations/__main__.py", "xpgrad/_info.py", "xpgrad/autograd/_drawing*",
    "xpgrad/autograd/_profile_pages.py", "xpgrad/_hint*.py", "xpgrad/_backends/*", "xpgrad/registry.py", "xpgrad/hookspecs.py",
    "xpgrad/_namespaces.py", "xpgrad/autograd/_rule.py", "xpgrad/autograd/interop.py", "xpgrad/autograd/_scipy.py", "xpgrad/programs/*",
    "xpgrad/_rows/kernels.py", "xpgrad/scipy/*", "xpgrad/_numpy/*", "xpgrad/dialects/hips/*", "xpgrad/func/_named.py",
    "xpgrad/func/_loop*.py", "xpgrad/func/_scans.py", "xpgrad/func/_whiles.py", "xpgrad/func/_branches.py", "xpgrad/func/_recomputed.py",
    "xpgrad/_einops.py", "xpgrad/_tape/links.py", "xpgrad/_tape/finished_node.py", "xpgrad/testing/*", "xpgrad/_basics/differences.py",
    "xpgrad/_tensor/conversion_errors.py", "xpgrad/_basics/docstrings.py", "xpgrad/_audit/*", "xpgrad/func/_sparse/*",
)  # fmt: skip

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "%"), ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"), ast.MatMult: ("@", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
#: Replacements in lines of generated text, which have no syntax tree.
WORDS = {" is not None": " is None", " is None": " is not None", " == ": " != ", " > ": " >= ", " is _cls": " is not _cls"}
#: Functions whose arguments are not exchanged, because that only raises a TypeError.
ORDERED = {"isinstance", "issubclass", "getattr", "hasattr", "setattr"}
#: The decorators that declare rows: strings among their arguments are formulas.
DECLARATIONS = {"elementwise", "rule", "view", "nondifferentiable", "composite"}
#: The tests that are tried on a mutant, by the beginning of its file's name. The last line is for all other files.
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("xpgrad/rules/", ("rules", "transforms/test_vmap.py", "transforms/test_forward_mode.py", "tape/test_tensor.py", "random_programs")),
    ("xpgrad/linalg.py", ("rules", "transforms/test_vmap.py")),
    ("xpgrad/fft.py", ("rules", "transforms/test_vmap.py")),
    ("xpgrad/_operations/", ("rules", "tape", "memory", "transforms")),
    ("xpgrad/_transforms/", ("transforms", "random_programs", "rules/test_shapes.py")),
    ("xpgrad/func/_sparse/", ("sparsity",)),
    ("xpgrad/func/", ("transforms", "random_programs/test_transforms.py")),
    ("xpgrad/_rows/kernels.py", ("programs", "random_programs/test_compiled.py")),
    ("xpgrad/programs/", ("programs", "random_programs/test_compiled.py")),
    ("xpgrad/scipy/integrate/", ("equations",)),
    ("xpgrad/scipy/interpolate/", ("signals/test_interpolants.py", "signals/test_together.py")),
    ("xpgrad/scipy/linalg/", ("matrices",)),
    ("xpgrad/scipy/optimize.py", ("solvers",)),
    ("xpgrad/scipy/_objectives.py", ("solvers",)),
    ("xpgrad/scipy/_bounds.py", ("solvers",)),
    ("xpgrad/scipy/_implicit.py", ("solvers", "equations")),
    ("xpgrad/scipy/_cutting.py", ("solvers", "equations")),
    ("xpgrad/scipy/fft.py", ("signals",)),
    ("xpgrad/scipy/signal.py", ("signals",)),
    ("xpgrad/scipy/", ("special", "signals", "matrices")),
    ("xpgrad/_numpy/", ("numpy_protocols",)),
    ("xpgrad/autograd/", ("tape", "transforms", "memory")),
    ("xpgrad/utils/", ("memory", "transforms/test_compositions.py")),
    ("xpgrad/_tensor/", ("tape", "random_programs", "rules/test_namespace.py", "rules/test_array_api.py")),
    ("xpgrad/_aliasing/", ("memory", "tape", "random_programs")),
    ("xpgrad/_tape/", ("tape", "memory", "random_programs", "transforms/test_forward_tape.py", "transforms/test_compositions.py")),
    ("", ("rules", "tape", "memory", "transforms", "backends/test_registry.py", "backends/test_devices.py")),
)


class Edit(NamedTuple):
    """A mutant: one span of a source file and its replacement.

    Attributes
    ----------
    file : str
        The source, relative to the folder of its package.
    line : int
        The line in which the span begins, from 1.
    operator : str
        One of `OPERATORS`.
    begin, end : int
        The first byte of the span in the file, and the one after its last.
    new : str
        The text that replaces the span.
    """

    file: str
    line: int
    operator: str
    begin: int
    end: int
    new: str

    def apply_to(self, source: bytes) -> bytes:
        """Return the source with the fault in it."""
        return source[: self.begin] + self.new.encode() + source[self.end :]


class Verdict(NamedTuple):
    """The result of trying a mutant.

    Attributes
    ----------
    edit : Edit
        The mutant.
    outcome : str
        ``"contract"`` or ``"test"``: a contract or a test noticed it; ``"timeout"``: a run hung or crashed; ``"survived"``: nothing noticed
        it; ``"broken"``: its module cannot be imported, so it does not count as a mutant.
    by : str
        The contract or the test that noticed it; for a survivor that no contract runs, a remark that says so.
    """

    edit: Edit
    outcome: str
    by: str = ""


# -- finding what can be broken ----------------------------------------------------------------------------------------------------


#: All sources but those `OUTSIDE`.
CORE = ("xpgrad/*",)


def sources(patterns: Sequence[str] = CORE) -> dict[str, bytes]:
    """Return the sources that match one of the patterns, by their names relative to the folder that contains their package.

    With the default pattern, those `OUTSIDE` are left out.

    Raises
    ------
    MutantError
        If no file matches.
    """
    found: dict[str, bytes] = {}
    left_out = tuple(patterns) == CORE
    for package in sorted({pattern.partition("/")[0] for pattern in patterns}):
        if (folder := folder_of(package)) is None:
            continue
        for path in sorted(folder.rglob("*.py")):
            name = f"{package}/{path.relative_to(folder).as_posix()}"
            if any(fnmatch.fnmatch(name, p) for p in patterns) and not (left_out and any(fnmatch.fnmatch(name, p) for p in OUTSIDE)):
                found[name] = path.read_bytes()
    if not found:
        msg = f"no source matches {', '.join(patterns)}; write patterns of files of an installed package, e.g. xpgrad/rules/*"
        raise MutantError(msg)
    return found


def edits(source: bytes, file: str = "") -> list[Edit]:
    """Return every mutant of a source, in the order of its text. NB: a few do not compile or do not change the program (`differs`)."""
    finder = _Finder(source, file)
    finder.body(ast.parse(source).body)
    return sorted(set(finder.found), key=lambda e: (e.begin, e.end, e.operator, e.new))


def differs(edit: Edit, source: bytes) -> bool:
    """Return whether a mutant compiles to a program that differs from the source."""
    try:
        return _digest(edit.apply_to(source)) != _digest_once(source)
    except SyntaxError:
        return False


def _digest(source: bytes) -> bytes:
    """Return a digest of a program, which does not depend on its comments and spaces."""
    return hashlib.sha256(ast.dump(ast.parse(source)).encode()).digest()


_digest_once = functools.cache(_digest)  # for sources without a mutant


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is text for people (messages, documentation), which no contract checks word by word."""
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(node: ast.AST) -> str:
    """Return a name, or the last name of an attribute; empty for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class _Finder:
    """A visitor that collects the possible mutants of a source in `found`.

    Parameters
    ----------
    source : bytes
        The text that is parsed: a file, or a formula in a string of a file.
    file : str
        The name of the file.
    base, line : int
        The position of the text's first byte in the file, and its line there.
    operator : str
        The operator of all edits; empty to use that of each kind.
    """

    def __init__(self, source: bytes, file: str, base: int = 0, line: int = 1, operator: str = "") -> None:
        self.source, self.file, self.base, self.line, self.operator = source, file, base, line, operator
        self.starts = [0, *itertools.accumulate(len(row) for row in source.splitlines(keepends=True))]
        self.found: list[Edit] = []
        self.generates = file.startswith("xpgrad/_operations/")

    def span(self, node: Any) -> tuple[int, int]:
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Any) -> str:
        begin, end = self.span(node)
        return self.source[begin:end].decode()

    def record(self, operator: str, begin: int, end: int, new: str) -> None:
        line = self.line + self.source.count(b"\n", 0, begin)
        self.found.append(Edit(self.file, line, self.operator or operator, self.base + begin, self.base + end, new))

    def replace(self, operator: str, node: Any, new: str) -> None:
        self.record(operator, *self.span(node), new)

    # Statements.

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Record the mutants of a statement, and its removal."""
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal() | ast.Raise() | ast.Pass():
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node)
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
                return
            case ast.ClassDef():
                for each in node.decorator_list:
                    self.expression(each)
                self.body(node.body)
                return
            case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
                return
            case ast.Expr(value=ast.Call(func=func)) if _name(func) in ("warn", "warn_explicit"):
                self.replace("statement", node, "pass")
                return
            case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__" | "msg" | "message")]):
                return
            case ast.Assign(value=value) if _is_text(value):
                return
            case ast.Return(value=ast.Call(func=func)) if _name(func).endswith(("Error", "Warning")):
                return
            case ast.If(test=test) | ast.While(test=test):
                self.condition(test, loops=isinstance(node, ast.While))
            case ast.Expr(value=ast.Call(func=func)) if self.generates and self.writes_text(func):
                pass  # `mutate_generated` mutates the text line by line
            case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
                self.replace("statement", node, "pass")
            case ast.Assign(targets=targets) if all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets):
                self.replace("statement", node, "pass")
            case ast.Return(value=value) if value is not None:
                self.replace("statement", node, "return None")
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            self.replace_between(node.target, node.value, f"{old}=", f"{new}=", "arithmetic")
        for child in ast.iter_child_nodes(node):
            self.child(child, node)

    def child(self, child: ast.AST, parent: ast.AST) -> None:
        if isinstance(child, ast.stmt):
            self.statement(child)
        elif isinstance(child, ast.expr):
            if not (isinstance(parent, ast.AnnAssign) and child is parent.annotation):
                self.expression(child)
        elif isinstance(child, (ast.excepthandler, ast.match_case, ast.withitem, ast.comprehension, ast.keyword)):
            if isinstance(child, ast.comprehension):
                for test in child.ifs:
                    self.condition(test)
            for grandchild in ast.iter_child_nodes(child):
                if not (isinstance(child, ast.ExceptHandler) and grandchild is child.type):
                    self.child(grandchild, child)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any(_name(each) == "overload" for each in node.decorator_list):
            return
        for each in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.expression(each)
        self.body(node.body)

    # Expressions.

    def expression(self, node: ast.expr) -> None:
        """Record the mutants of an expression."""
        match node:
            case ast.JoinedStr():
                return
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
                    self.replace_between(left, right, *COMPARISONS[type(op)], "comparison")
            case ast.Constant(value=bool(value)):
                self.replace("constant", node, str(not value))
            case ast.Constant(value=int(value) | float(value)):
                self.replace("constant", node, repr(value + 1))
            case ast.IfExp(test=test):
                self.condition(test)
            case ast.BoolOp(op=op, values=values):
                for part in values:
                    self.replace("condition", part, "True" if isinstance(op, ast.And) else "False")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.replace("condition", node, f"({self.text(operand)})")
            case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
                self.replace("arithmetic", node, f"({self.text(operand)})")
            case ast.BinOp(left=left, op=op, right=right) if not _is_text(node):
                self.replace_between(left, right, *ARITHMETIC[type(op)], "arithmetic")
            case ast.Call():
                self.call(node)
            case ast.Lambda():
                for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
                    self.expression(default)
                self.expression(node.body)
                return
        for child in ast.iter_child_nodes(node):
            self.child(child, node)

    def condition(self, test: ast.expr, loops: bool = False) -> None:
        for forced in ("False",) if loops else ("True", "False"):
            self.replace("condition", test, forced)

    def replace_between(self, left: Any, right: Any, old: str, new: str, operator: str) -> None:
        """Record a replacement of the operator between two expressions; brackets and comments may surround it."""
        begin, end = self.span(left)[1], self.span(right)[0]
        pattern = r"\s+".join(re.escape(word) for word in old.split())
        if found := re.search(pattern.encode(), self.source[begin:end]):
            self.record(operator, begin + found.start(), begin + found.end(), new)

    def call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name not in ORDERED and not any(isinstance(a, ast.Starred) for a in node.args):
            for one, other in itertools.pairwise(node.args):
                begin, middle, after, end = self.span(one)[0], self.span(one)[1], *self.span(other)
                new = self.text(other) + self.source[middle:after].decode() + self.text(one)
                self.record("arguments", begin, end, new)
        if name in DECLARATIONS and isinstance(node.func, ast.Name):
            for formula in node.args:
                self.formula(formula)
            for keyword in node.keywords:
                if keyword.arg == "guard":
                    self.formula(keyword.value)
                    self.replace("condition", keyword.value, '"True"')
                    self.replace("condition", keyword.value, '"False"')
                elif keyword.arg == "op" and isinstance(keyword.value, ast.Constant):
                    for old, new in ARITHMETIC.values():
                        if keyword.value.value == old:
                            self.replace("formula", keyword.value, f'"{new}"')
        if self.generates and self.writes_text(node.func) and node.args:
            self.mutate_generated(node.args[0])

    # Text from which programs are made.

    def formula(self, node: ast.expr) -> None:
        """Record the mutants of a formula: those of the expression in a string, or exchanged operands in a lambda."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.text(node)[1:-1] == node.value:
            begin = self.span(node)[0] + 1
            inner = _Finder(node.value.encode(), self.file, self.base + begin, self.line + self.source.count(b"\n", 0, begin), "formula")
            tree = ast.parse(node.value, mode="eval").body
            inner.expression(tree)
            inner.names(tree, {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} | {"x", "out", "x1", "x2"})
            self.found += inner.found
        elif isinstance(node, ast.Lambda):
            self.names(node.body, {a.arg for a in node.args.args})

    def names(self, tree: ast.expr, readable: set[str]) -> None:
        other = {"x1": "x2", "x2": "x1", "x": "out", "out": "x"}
        for each in ast.walk(tree):
            if isinstance(each, ast.Name) and other.get(each.id) in readable:
                self.replace("formula", each, other[each.id])

    def writes_text(self, func: ast.expr) -> bool:
        """Return whether a call adds lines to a generated text: ``t(...)`` or ``t.block(...)``."""
        return (isinstance(func, ast.Name) and func.id == "t") or (
            isinstance(func, ast.Attribute) and func.attr == "block" and _name(func.value) == "t"
        )

    def mutate_generated(self, node: ast.expr) -> None:
        """Record the mutants of the lines of a generated text."""
        if isinstance(node, ast.IfExp):
            self.mutate_generated(node.body)
            self.mutate_generated(node.orelse)
        if not (isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))):
            return
        begin = self.span(node)[0]
        opened = re.match(r"[fr]*(\"\"\"|'''|\"|')", text := self.text(node))
        assert opened is not None
        at = begin + len(opened.group().encode())
        for line in text[len(opened.group()) : -len(opened.group(1))].split("\n"):
            stripped = line.strip()
            start = at + len(line[: len(line) - len(line.lstrip())].encode())
            at += len(line.encode()) + 1
            if stripped and stripped.count("{") == stripped.count("}"):
                self.mutate_generated_line(stripped, start)

    def mutate_generated_line(self, line: str, begin: int) -> None:
        size = len(line.encode())
        if head := re.fullmatch(r"(?:if|elif) (.*):(?:  # .*)?", line):
            place = begin + line.index(head.group(1))
            for forced in ("True", "False"):
                self.record("text", place, place + len(head.group(1).encode()), forced)
        elif line.startswith("return "):
            self.record("text", begin, begin + size, "return None")
        elif not line.endswith(":") and line != "pass":
            self.record("text", begin, begin + size, "pass")
        for old, new in WORDS.items():
            if line.count(old) == 1:
                place = begin + len(line[: line.index(old)].encode())
                self.record("text", place, place + len(old.encode()), new)


# -- drawing -----------------------------------------------------------------------------------------------------------------------


def draw(texts: Mapping[str, bytes], seed: int) -> Iterator[Edit]:
    """Yield mutants in a random order, at most one per line; every line is equally likely.

    For each line, the mutant has the operator that was drawn least often so far among those possible there.
    """
    generator = random.Random(seed)
    places: dict[tuple[str, int], dict[str, list[Edit]]] = {}
    for file in sorted(texts):
        for edit in edits(texts[file], file):
            places.setdefault((file, edit.line), {}).setdefault(edit.operator, []).append(edit)
    order = sorted(places)
    generator.shuffle(order)
    drawn: Counter[str] = Counter()
    for place in order:
        found = [edit for operator in sorted(places[place]) for edit in places[place][operator]]
        generator.shuffle(found)
        found.sort(key=lambda edit: drawn[edit.operator])
        for edit in found:
            if differs(edit, texts[edit.file]):
                drawn[edit.operator] += 1
                yield edit
                break


def patch(edit: Edit, source: bytes) -> str:
    """Return a mutant as a unified diff."""
    old, new = (text.decode().splitlines(keepends=True) for text in (source, edit.apply_to(source)))
    return "".join(difflib.unified_diff(old, new, f"a/{edit.file}", f"b/{edit.file}", n=2))


# -- trying ------------------------------------------------------------------------------------------------------------------------


def _order_contracts(file: str) -> list[Contract]:
    """Return the contracts in order of likely success: those that notice planted faults in the same file, in its folder, then others."""
    every, faults = contracts(), load()
    kills = tomllib.loads(KILLS.read_text(encoding="utf-8"))
    pairs = [*kills["killer"].items(), *((m, c) for c, m in kills["proof"].items())]
    near: Counter[str] = Counter()
    for fault, contract in pairs:
        if fault in faults:
            other = faults[fault].file
            near[contract] += 100 if other == file else 10 if other.rpartition("/")[0] == file.rpartition("/")[0] else 1
    names = list(every)
    # NB: the laws over all functions (group X) come early because they run most of the code.
    return sorted(
        (c for c in every.values() if c.function is not None), key=lambda c: (-near[c.id] - 50 * (c.rule.group == "X"), names.index(c.id))
    )


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _find_targets(
    edit: Edit, source: bytes, rows: Sequence[Contract], reached: Mapping[str, Reach]
) -> list[tuple[str, Sequence[Contract]]]:
    """Return the targets on which contracts run a mutant's statement, each with the contracts that may run it.

    If no contract is known to run it on any target, return only the first target. A contract is tried on a further target only if it runs
    other lines of the file there: with the same lines, the same verdict is expected, and a mutant that survives costs a fifth of the time.
    """
    place = (edit.file, source.decode(), edit.line, edit.line + source[edit.begin : edit.end].count(b"\n"))
    targets = [name for name, found in reached.items() if found.could_notice(*place, certain=True)] or list(reached)[:1]
    seen: dict[str, list[frozenset[int]]] = {}
    places: list[tuple[str, Sequence[Contract]]] = []
    for name in targets:
        near = reached[name].could_notice(*place)
        chosen: list[Contract] = []
        for c in rows:
            if c.id in near:
                lines = (reached[name].run[c.id] or {}).get(edit.file, frozenset())
                if lines not in seen.setdefault(c.id, []):
                    seen[c.id].append(lines)
                    chosen.append(c)
        if chosen:
            places.append((name, chosen))
    return places


def try_contracts(
    edit: Edit,
    source: bytes,
    chosen: Sequence[Contract] | None = None,
    reached: Mapping[str, Reach] | None = None,
    runner: Callable[[Request], Outcome] = run,
) -> Verdict:
    """Try a mutant on the contracts that run its statement, target by target, up to the first contract that notices it.

    `reached` has the lines that contracts run, by target. Without it, all contracts (or those `chosen`) are tried on NumPy.
    """
    with tempfile.TemporaryDirectory(prefix="xpgrad-mutant-") as folder:
        environment = _plant(edit, source, Path(folder))
        rows = _order_contracts(edit.file) if chosen is None else chosen
        places = [("numpy", rows)] if reached is None else _find_targets(edit, source, rows, reached)
        if not places:
            return Verdict(edit, "survived", "no contract runs it")
        for target, near in places:
            request = Request(target, target, near, "mutants", limit=LIMIT, environment=environment, exitfirst=True, as_listed=True)
            outcome = runner(request._replace(modules=("xpgrad", _module(edit.file))))
            if outcome.cause:
                return Verdict(edit, "broken")
            for row in outcome.rows:
                if row.kind in ("timeout", "crash") and row.status == "failed":
                    return Verdict(edit, "timeout", row.id)
                if row.status == "failed":
                    return Verdict(edit, "contract", row.id)
    return Verdict(edit, "survived")


def check_soundness(target: str = "numpy", runner: Callable[[Request], Outcome] = run) -> None:
    """Check that every contract passes without a fault: one that fails would seem to notice every mutant.

    Raises
    ------
    MutantError
        If a contract fails.
    """
    statuses = statuses_of(None, [c for c in contracts().values() if c.function is not None], target, runner)
    if broken := [name for name, status in statuses.items() if status in ("failed", "timeout", "crash", "unexpected pass")]:
        msg = f"the library must be sound before it is broken, but {', '.join(broken)} fail on {target} without a fault; mend that first"
        raise MutantError(msg)


def _plant(edit: Edit, source: bytes, folder: Path) -> dict[str, str]:
    """Put a copy of the library with the fault into a folder, and return the environment of a process that imports it."""
    copy(edit.file, edit.apply_to(source), folder)
    return surroundings(folder)


def repository() -> Path | None:
    """Return the checkout that the library runs from; None if the library is installed without its tests."""
    folder = folder_of("xpgrad")
    root = folder.parents[1] if folder is not None else None
    return root if root is not None and (root / "tests" / "conftest.py").exists() and (root / "pyproject.toml").exists() else None


def tests_of(file: str, root: Path) -> list[str]:
    """Return the tests to try on mutants of a source (`TESTS`), as arguments of pytest."""
    found = next(paths for beginning, paths in TESTS if file.startswith(beginning))
    return [str(root / "tests" / path) for path in found if (root / "tests" / path).exists()]


def try_tests(edit: Edit, source: bytes, root: Path, server: Server | None = None) -> Verdict:
    """Try a mutant on the repository's tests of its file (`TESTS`), on NumPy, up to the first that fails."""
    arguments = ["--all", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-rf", *tests_of(edit.file, root)]
    with tempfile.TemporaryDirectory(prefix="xpgrad-mutant-") as folder:
        _plant(edit, source, Path(folder))
        code, output = run_tests(arguments, root, Path(folder), {"XPGRAD_TEST_DEVICES": "numpy"}, TESTS_LIMIT, server)
    if code is None:
        return Verdict(edit, "timeout", "tests")
    if code == 0:
        return Verdict(edit, "survived")
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return Verdict(edit, "test", named.group(1) if named is not None else "the tests cannot be collected")


def survey(
    n: int, seed: int, patterns: Sequence[str] = CORE, workers: int = 2, tests: bool = True, journal: Path | None = None
) -> list[Verdict]:
    """Draw mutants and try them, several at a time, with progress bars.

    Parameters
    ----------
    n : int
        The number of mutants, not counting those whose module cannot be imported.
    seed : int
        The seed of the draw; the same seed draws the same mutants of the same sources.
    patterns : sequence of str
        The sources to mutate, as in `sources`.
    workers : int
        The number of processes that run at a time.
    tests : bool
        Whether mutants that no contract notices are tried on the repository's tests, if the library runs from a checkout.
    journal : Path, optional
        A file to which each outcome is added at once. A mutant whose outcome it already has is not tried again.

    Returns
    -------
    list of Verdict
        The outcomes in the order of the draw, including those of mutants that cannot be imported.

    Raises
    ------
    MutantError
        If a contract fails without a fault.
    """
    texts = sources(patterns)
    targets = [target for target in TARGETS if folder_of(f"xpgrad_{target.partition('+')[0]}") is not None]
    known = Journal(journal)
    with runners(workers) as runner:
        with ThreadPoolExecutor(workers) as threads:
            list(threads.map(lambda target: check_soundness(target, runner), targets))
        reached = {target: reach(target) for target in targets}
        attempt = _use_journal(known, "contracts", lambda edit: try_contracts(edit, texts[edit.file], None, reached, runner))
        verdicts = _try_until(draw(texts, seed), attempt, n, workers)
    root = repository() if tests else None
    if root is not None:
        unnoticed = [v.edit for v in verdicts if v.outcome == "survived"]
        with pool(workers, *LIBRARIES) as lend:

            def attempt_tests(edit: Edit) -> Verdict:
                with lend() as server:
                    return try_tests(edit, texts[edit.file], root, server)

            attempt = _use_journal(known, "tests", attempt_tests)
            tried = {v.edit: v for v in _try_until(iter(unnoticed), attempt, len(unnoticed), workers)}
        verdicts = [tried.get(v.edit, v) for v in verdicts]
    return verdicts


def _use_journal(journal: Journal, stage: str, attempt: Callable[[Edit], Verdict]) -> Callable[[Edit], Verdict]:
    """Return an attempt that looks up its outcome in the journal first, and otherwise makes it and records the outcome."""
    known = journal.read()

    def outcome(edit: Edit) -> Verdict:
        name = json.dumps([stage, edit.file, edit.begin, edit.end, edit.new])
        if name in known:
            return Verdict(edit, *known[name])
        verdict = attempt(edit)
        journal.add(name, [verdict.outcome, verdict.by])
        return verdict

    return outcome


def _try_until(drawn: Iterator[Edit], attempt: Callable[[Edit], Verdict], n: int, workers: int) -> list[Verdict]:
    """Try mutants as they are drawn, several at a time, until `n` of them could be imported.

    NB: which mutants are tried does not depend on the order in which the attempts end.
    """
    from tqdm import tqdm

    done: dict[int, Verdict] = {}
    running: dict[Future[Verdict], int] = {}
    number = itertools.count()
    with ThreadPoolExecutor(workers) as pool, tqdm(total=n, unit="mutant", disable=None) as bar:
        while True:
            sound = sum(v.outcome != "broken" for v in done.values())
            while sound + len(running) < n and len(running) < workers and (edit := next(drawn, None)) is not None:
                running[pool.submit(attempt, edit)] = next(number)
            if not running:
                return [done[k] for k in sorted(done)]
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                verdict = done[running.pop(future)] = future.result()
                bar.update(verdict.outcome != "broken")
                counts = Counter(v.outcome for v in done.values())
                bar.set_description(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))


# -- reporting ---------------------------------------------------------------------------------------------------------------------

COLUMNS = ("contract", "test", "survived", "timeout", "broken")


def table(verdicts: Iterable[Verdict]) -> str:
    """Return a table of the outcomes by file, and the share of mutants that the contracts notice."""
    counts: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        counts.setdefault(verdict.edit.file, Counter())[verdict.outcome] += 1
    width = max(map(len, counts), default=4)
    lines = [f"{'file':{width}}  contracts  tests  survived  time-out  (cannot be imported, drawn again)"]
    rows = [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]
    for file, found in rows:
        contract, test, survived, timeout, broken = (found[c] for c in COLUMNS)
        lines.append(f"{file:{width}}  {contract:9}  {test:5}  {survived:8}  {timeout:8}  {broken or '':>6}".rstrip())
    total = rows[-1][1]
    judged = total["contract"] + total["test"] + total["survived"]
    if judged:
        lines.append(
            f"contracts alone notice {total['contract']} of {judged} ({100 * total['contract'] / judged:.0f} %); time-outs do not count"
        )
    return "\n".join(lines)


def document(verdicts: Sequence[Verdict], texts: Mapping[str, bytes], n: int, seed: int) -> str:
    """Return the outcomes as a JSON document."""
    rows = [
        {"file": e.file, "line": e.line, "operator": e.operator, "outcome": outcome, "by": by, "patch": patch(e, texts[e.file])}
        for e, outcome, by in verdicts
    ]
    about = {"n": n, "seed": seed, "contracts": len(contracts()), "python": platform.python_version()}
    return json.dumps({**about, "mutants": rows}, indent=1) + "\n"


def command(n: int, seed: int, patterns: Sequence[str], workers: int, tests: bool, path: str | None, journal: Path | None = None) -> int:
    """Run the survey, print the survivors' patches and the table, and return the exit code: 1 if a mutant survived, else 0."""
    texts = sources(patterns)
    verdicts = survey(n, seed, patterns, workers, tests, journal)
    survivors = [v for v in verdicts if v.outcome == "survived"]
    for edit, _, why in survivors:
        print(f"SURVIVED  {edit.file}:{edit.line} ({edit.operator}{', ' * bool(why)}{why})\n{patch(edit, texts[edit.file])}")
    print(table(verdicts))
    if path is not None:
        Path(path).write_text(document(verdicts, texts, n, seed), encoding="utf-8")
    return 1 if survivors else 0
