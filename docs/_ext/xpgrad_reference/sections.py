"""Put a docstring and its facts together into one text of numpydoc's sections; and say what both leave out."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator

import xpgrad
from xpgrad._rows.namespace import IN_PLACE, METHODS
from xpgrad_reference.facts import Facts, facts
from xpgrad_reference.names import Name

_HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
_DESCRIBED = re.compile(r"^(\*{0,2}\w[\w, *]*?)(?: ?:.*)?$")


def parts(doc: str) -> dict[str, str]:
    """The sections of a docstring by their headings; what stands before the first has the heading ``""``.

    A session between blank lines that begins at the margin is an example, whichever section it ends: there it would be read as entries.
    """
    pieces = _HEADING.split(doc)
    found = {"": pieces[0].rstrip(), **{heading: text.rstrip() for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}}
    for heading in [heading for heading in found if heading != "Examples"]:
        before, _, session = found[heading].partition("\n\n>>> ")
        if session:
            found[heading] = before.rstrip()
            found["Examples"] = "\n\n".join(text for text in (found.get("Examples"), f">>> {session}") if text)
    return found


def described(section: str) -> set[str]:
    """The parameters that a section tells of: the lines that are not indented."""
    lines = (line for line in section.splitlines() if line and not line[0].isspace())
    found = (_DESCRIBED.match(line) for line in lines)
    return {name.strip().lstrip("*") for match in found if match for name in match[1].split(",")}


def parameters(name: Name, told: Facts) -> dict[str, str]:
    """The parameters that the docstring leaves to the facts, in the order of the call."""
    done = set().union(*(described(text) for heading, text in parts(name.doc).items() if heading in {"Parameters", "Attributes"}))
    left = [p for p in name.parameters if p not in done]
    texts = told.defaults | told.parameters
    return {p: texts[p] for p in left if p in texts}


def example(name: Name) -> str:
    """The example of a name: from its docstring, or from its facts, or from those of the name that they refer to."""
    return ("\n".join(_sessions(name.doc)) or facts(name.full).example).strip("\n")


def _sessions(doc: str) -> Iterator[str]:
    for piece in doctest.DocTestParser().parse(doc):
        if isinstance(piece, doctest.Example):
            first, *more = piece.source.rstrip("\n").split("\n")
            yield "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in more)])
            if piece.want or piece.exc_msg:
                yield piece.want.rstrip("\n")


def of_class(name: Name) -> str:
    """What the docstring of its class says of an attribute, among its attributes or parameters."""
    if name.cls is None or name.kind == "method":
        return ""
    found = parts(inspect.getdoc(name.cls) or "")
    for heading in ("Attributes", "Parameters"):
        entries = re.split(r"\n(?=\S)", found.get(heading, ""))
        for entry in entries:
            head, _, text = entry.partition("\n")
            if name.short in described(head):
                return " ".join(text.split()) or head
    return ""


def merged(name: Name) -> str:
    """The docstring of a name with the sections that its facts add, in numpydoc's order."""
    told, found = facts(name.full), parts(name.doc)
    text = found.pop("") or told.summary or of_class(name)
    if extra := parameters(name, told):
        there = found.get("Parameters")
        found["Parameters"] = "\n".join([*([there] if there else []), *map(_entry, extra.items())])
    if told.returns and name.returns and "Returns" not in found and "Yields" not in found:
        found["Returns"] = _entry(("", told.returns))
    if told.raises and "Raises" not in found and name.kind in {"function", "method", "class"}:
        found["Raises"] = "\n".join(_entry(("", line)) for line in told.raises)
    if told.see and "See Also" not in found:
        found["See Also"] = told.see
    if told.example and ">>>" not in name.doc:
        found["Examples"] = told.example
    order = ["Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples"]
    known = sorted(found, key=lambda heading: order.index(heading) if heading in order else len(order))
    return "\n\n".join([text, *(f"{heading}\n{'-' * len(heading)}\n{found[heading]}" for heading in known)]).strip() + "\n"


def _entry(item: tuple[str, str]) -> str:
    key, text = item
    kind, _, about = text.partition(" : ")
    head = f"{key} : {kind}" if key else kind
    return f"{head}\n    {about}" if about else head


def plain(text: str) -> str:
    """A text in which `.grad`, and other ends of names that many have, is code and not a link."""
    return re.sub(r"(?<![`\w)\]])`(\.[\w.()]+|grad)`(?!`)", r"``\1``", text)


def missing(name: Name, known: dict[str, Name]) -> list[str]:
    """What neither the docstring nor the facts of a name say; and what both say."""
    told = facts(name.full)
    if told.internal:
        return []
    found = parts(name.doc)
    said = [] if found[""] or told.summary or of_class(name) else ["a summary"]
    done = described(found.get("Parameters", "")) | described(found.get("Attributes", ""))
    texts = told.defaults | told.parameters
    said += [f"parameter {p}" for p in name.parameters if p not in done and p not in texts]
    said += [f"parameter {p} is told twice" for p in told.parameters if p in done]
    said += [f"there is no parameter {p}" for p in told.parameters if p not in name.parameters]
    if name.returns and not {"Returns", "Yields"} & found.keys() and not told.returns:
        said.append("what it returns")
    if name.kind in {"function", "method"} and "Raises" not in found and told.raises is None:
        said.append("what it raises (an empty list, if nothing)")
    own = example(name)
    if told.example and ">>>" in name.doc:
        said.append("two examples, one in the docstring")
    if told.see:
        shown = example(known[told.see]) if told.see in known else ""
        short = told.see.rpartition(".")[2] if name.owner == "xpgrad.Tensor" and name.short in {*METHODS, *IN_PLACE} else name.short
        if not re.search(rf"\b{re.escape(short)}\b", shown):
            said.append(f"an example: {told.see} has none that shows {name.short}")
    elif not own:
        said.append("an example")
    elif not re.search(rf"\b{re.escape(name.short)}\b", own) and name.kind != "exception":
        said.append("an example that uses it")
    return said


def failure(name: Name) -> str:
    """Run the example of a name; the report of what it did not print, else an empty text."""
    text = example(name)
    globals_: dict[str, object] = {}
    exec("import numpy as np\nimport xpgrad as xp", globals_)  # noqa: S102 (what each example starts with)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(text + "\n", globals_, name.full, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
    before = xpgrad.get_default_device()
    runner.run(test, out=report.append)
    if not xpgrad.is_grad_enabled() or xpgrad.get_default_device() != before:
        xpgrad.set_grad_enabled(True)
        xpgrad.set_default_device(before)
        report.append("it leaves recording, or the default device, in another state")
    return "".join(report)
