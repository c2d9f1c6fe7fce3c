"""Read the numpydoc sections of a name's docstring, say what they leave out, and run its example."""

from __future__ import annotations

import dis
import doctest
import inspect
import re
from collections.abc import Iterator

import xpgrad
from xpgrad._basics.docstrings import ORDER
from xpgrad._rows.namespace import METHODS
from xpgrad_reference.facts import facts
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


def example(name: Name) -> str:
    """Return the example of a name, with the imports that it needs: that of its docstring, or of its facts."""
    if found := "\n".join(_sessions(name.doc)).strip("\n"):
        return found
    text = facts(name.full).example
    imports = ("import numpy as np", "import xpgrad as xp") if text else ()
    return "\n".join([*(f">>> {line}" for line in imports if f"{line.split()[-1]}." in text), text])


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
    """Return the docstring of a name, or for a constant or an attribute what its facts and its class say."""
    told, found = facts(name.full), parts(name.doc)
    text = found.pop("") or told.summary or of_class(name)
    if told.see and "See Also" not in found:
        found["See Also"] = told.see
    if told.example:
        found["Examples"] = example(name)
    known = sorted(found, key=lambda heading: ORDER.index(heading) if heading in ORDER else len(ORDER))
    return "\n\n".join([text, *(f"{heading}\n{'-' * len(heading)}\n{found[heading]}" for heading in known)]).strip() + "\n"


def plain(text: str) -> str:
    """A text in which `.grad`, and other ends of names that many have, is code and not a link."""
    return re.sub(r"(?<![`\w)\]])`(\.[\w.()]+|grad)`(?!`)", r"``\1``", text)


def missing(name: Name, known: dict[str, Name]) -> list[str]:
    """Return what neither the docstring nor the facts of a name say."""
    told = facts(name.full)
    if told.internal:
        return []
    found = parts(name.doc)
    said = [] if found[""] or told.summary or of_class(name) else ["a summary"]
    done = described(found.get("Parameters", "")) | described(found.get("Attributes", ""))
    said += [f"parameter {p}" for p in name.parameters if p not in done]
    if name.returns and not {"Returns", "Yields"} & found.keys():
        said.append("what it returns")
    if name.kind in {"function", "method"} and "Raises" not in found and _raises(name.thing):
        said.append("what it raises")
    if told.example and ">>>" in name.doc:
        said.append("two examples, one in the docstring")
    words = {name.short}
    if name.owner == "xpgrad.Tensor" and (function := METHODS.get(name.short)):
        words.add(function.__name__)
    beside = (told.see, *found.get("See Also", "").splitlines())
    own = "\n".join([example(name), *(example(known[other]) for other in beside if other in known)])
    if not own.strip():
        said.append("an example")
    elif name.kind != "exception" and not any(re.search(rf"\b{re.escape(word)}\b", own) for word in words):
        said.append("an example that uses it")
    return said


def _raises(function: object) -> bool:
    """Return whether the body of a function raises an error itself."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
    return code is not None and any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(code))


def failure(name: Name) -> str:
    """Run the example of a name; the report of what it did not print, else an empty text."""
    text = example(name)
    globals_: dict[str, object] = {}
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
