"""Write the reference as Sphinx reads it: a page for each chapter, for each function and class, and for each member of `Tensor`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

from xpgrad_reference import holding, links
from xpgrad_reference.chapters import Chapter, chapters
from xpgrad_reference.facts import facts
from xpgrad_reference.names import Name
from xpgrad_reference.sections import merged, of_class, plain

_DIRECTIVES = {
    "function": "autofunction",
    "class": "autoclass",
    "exception": "autoexception",
    "method": "automethod",
    "property": "autoproperty",
    "attribute": "autoattribute",
    "data": "autodata",
}
#: Classes whose members have pages of their own.
LARGE = {"xpgrad.Tensor"}


def pages(names: list[Name]) -> dict[str, str]:
    """The text of each page, by its place in the folder of the reference."""
    found = {}
    listed = chapters(names)
    inner: dict[str, list[Name]] = {}
    for name in names:
        inner.setdefault(name.owner, []).append(name)
    file = places(names)
    for chapter in listed:
        found[f"{chapter.slug}.rst"] = _chapter(chapter, file)
        for name in chapter.names:
            found[f"{file[name.full]}.rst"] = _page(name, inner.get(name.full, []), file)
            if name.kind == "data" and (methods := _methods(name, names)):
                found[f"{file[name.full]}.rst"] += "\n".join(["", _heading("Methods", "-"), *methods]) + "\n"
    for name in (member for cls in LARGE for member in inner[cls] if not facts(member.full).internal):
        found[f"{file[name.full]}.rst"] = _page(name, [], file)
    found["index.rst"] = _index(listed)
    return found


def places(names: Iterable[Name]) -> dict[str, str]:
    """The file of each name: its own, or that of its class; no two differ in capitals alone, which not all file systems tell apart."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name.owner in found and name.owner not in LARGE:
            found[name.full] = found[name.owner]
            continue
        place = name.full if name.full.lower() not in taken else f"{name.full}-{name.kind}"
        taken.add(place.lower())
        found[name.full] = place
    return found


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _index(listed: list[Chapter]) -> str:
    about = """\
Each public name has a page: what it takes and returns, with shapes and dtypes, what it raises, an example that the tests run, the page of
PyTorch or of the standard that it follows and where it differs, the rules of the :doc:`contracts <../contracts>` that hold it, and the
backends on which its example runs.
"""
    return f"{_heading('Reference')}\n{about}\n.. toctree::\n    :maxdepth: 1\n\n" + "".join(f"    {chapter.slug}\n" for chapter in listed)


def _chapter(chapter: Chapter, file: dict[str, str]) -> str:
    lines = [_heading(chapter.title), plain(chapter.about), "", *_table(chapter.names, file), "", ".. toctree::", "    :hidden:", ""]
    lines += [f"    {name.short} <{file[name.full]}>" for name in chapter.names]
    return "\n".join(lines) + "\n"


def _table(names: Iterable[Name], file: dict[str, str]) -> Iterator[str]:
    yield ".. list-table::"
    yield "    :class: names"
    yield "    :widths: 30 70"
    yield ""
    for name in names:
        yield f"    * - :doc:`{name.short} <{file[name.full]}>`"
        yield f"      - {summary(name)}"


def summary(name: Name) -> str:
    """The first sentence of a name's text, on one line."""
    text = (name.doc or facts(name.full).summary or of_class(name)).split("\n\n")[0]
    text = plain(" ".join(text.split()))
    return (re.split(r"(?<=[.?!]) (?=[A-Z`])", text, maxsplit=1)[0] if text else "") or "\\ "


def _page(name: Name, members: list[Name], file: dict[str, str]) -> str:
    title = name.full.removeprefix("xpgrad.") if name.owner in LARGE else name.full
    lines = [_heading(title.replace("_", r"\_")), f".. currentmodule:: {_module(name)}", "", *_object(name)]
    users = [member for member in members if not facts(member.full).internal]
    if name.full in LARGE:
        lines += [_heading("Members", "-"), *_table(users, file), "", ".. toctree::", "    :hidden:", ""]
        lines += [f"    {member.short} <{file[member.full]}>" for member in users]
    else:
        for member in users:
            lines += _object(member)
    internal = [member for member in members if facts(member.full).internal]
    if internal:
        lines += ["", _heading("Not for users", "-"), "These have no underscore, and belong to the engine all the same.", ""]
        lines += [f"* ``{member.short}``: {plain(facts(member.full).internal)}" for member in internal]
    return "\n".join(lines) + "\n"


def _methods(name: Name, names: list[Name]) -> list[str]:
    """Return a table of the methods of an object whose class is public, with the signatures that they have on this object."""
    classes = {other.thing: other.full for other in names if other.kind == "class"}
    owner = next((classes[cls] for cls in type(name.thing).__mro__ if cls in classes), None)
    if owner is None or name.owner not in owner:
        return []
    lines = [".. list-table::", "    :class: names", "    :widths: 40 60", ""]
    for member in (other for other in names if other.owner == owner and other.kind == "method"):
        lines += [f"    * - :meth:`{member.short}{_signature(name, member)} <{member.full}>`", f"      - {summary(member)}"]
    return lines if len(lines) > 4 else []


def _signature(name: Name, member: Name) -> str:
    """Return the parameters of a method on an object, without their types."""
    found = inspect.signature(getattr(name.thing, member.short))
    untyped = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=untyped, return_annotation=found.empty))


def _module(name: Name) -> str:
    return name.owner.rpartition(".")[0] if name.kind in {"method", "property", "attribute"} else name.owner


def _object(name: Name) -> list[str]:
    """The directive that shows a name, and its facts beneath."""
    lines = [f".. {_DIRECTIVES[name.kind]}:: {name.full}", *([] if name.kind != "data" else ["    :no-value:"]), ""]
    if _unread(name):
        shown = re.sub(r"^Examples\n-+\n", ".. rubric:: Examples\n\n", text(name), flags=re.MULTILINE)
        lines += [*(f"    {line}".rstrip() for line in shown.splitlines()), ""]
    return [*lines, *links.block(name), ""]


def text(name: Name) -> str:
    """The docstring of a name, completed by its facts, with links to the report in place of the ids of rules."""
    return plain(holding.ID.sub(lambda match: links.contract(match[0]) if match[0] in holding.rules() else match[0], merged(name)))


def _unread(name: Name) -> bool:
    """Whether autodoc asks for no docstring: for an attribute with a value of its class's, or an annotation alone, and no text beside."""
    from sphinx.pycode import ModuleAnalyzer  # for the site alone: what the reference says is also checked where Sphinx is not installed

    if name.kind != "attribute" or name.cls is None or inspect.isdatadescriptor(inspect.getattr_static(name.cls, name.short, None)):
        return False
    beside = (ModuleAnalyzer.for_module(cls.__module__).find_attr_docs() for cls in name.cls.__mro__ if cls.__module__ != "builtins")
    return not any(short == name.short for found in beside for _, short in found)
