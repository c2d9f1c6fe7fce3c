"""Law: each public name has a page, an example that runs, and documented parameters, results and errors; and the tables are true."""

from __future__ import annotations

import importlib.util
import os
import re
import zlib
from pathlib import Path

import pytest

from xpgrad_reference import backends, files, follows, holding
from xpgrad_reference.chapters import chapters
from xpgrad_reference.facts import Facts, all_facts
from xpgrad_reference.names import Name, public
from xpgrad_reference.pages import LARGE, pages, places
from xpgrad_reference.sections import example, failure, merged, missing, parts

NAMES = {name.full: name for name in public()}
CHAPTERS = chapters(list(NAMES.values()))


def names_of(chapter: str) -> list[Name]:
    """Return the names of a chapter and the members of its classes."""
    tops = {name.full for found in CHAPTERS if found.slug == chapter for name in found.names}
    return [name for name in NAMES.values() if name.full in tops or name.owner in tops]


@pytest.mark.parametrize("chapter", [chapter.slug for chapter in CHAPTERS])
def test_nothing_is_left_out_and_nothing_told_twice(chapter: str) -> None:
    assert {name.full: said for name in names_of(chapter) if (said := missing(name, NAMES))} == {}


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("chapter", [chapter.slug for chapter in CHAPTERS])
def test_the_examples_print_what_they_say(chapter: str) -> None:
    """The examples print what they show, if JAX and PyTorch are installed, which two of them need."""
    here = [name for name in names_of(chapter) if all(map(importlib.util.find_spec, re.findall(r"import (jax|torch)\b", example(name))))]
    assert [report for name in here if (report := failure(name))] == []


def test_examples_stand_under_their_heading() -> None:
    """Law: an example session is only in the section `Examples`; in another section it would be parsed as entries."""
    held = {(name.full, heading) for name in NAMES.values() for heading, text in parts(merged(name)).items() if ">>> " in text}
    assert {heading for _, heading in held} == {"Examples"}
    two = {"": "Says.", "Raises": "ValueError\n    If not.", "Examples": ">>> 1\n1\n\n>>> 2\n2"}
    assert parts("Says.\n\nRaises\n------\nValueError\n    If not.\n\n>>> 1\n1\n\n>>> 2\n2\n") == two


def test_attributes_show_their_texts() -> None:
    """The page contains the texts of attributes with a default value, since autodoc does not show them."""
    pytest.importorskip("sphinx", reason="it looks for the texts of attributes")
    page = pages(list(NAMES.values()))["xpgrad.backend.Capabilities.rst"]
    shown = page.partition("autoattribute:: xpgrad.backend.Capabilities.jit\n\n")[2]
    assert re.match(r"    The library compiles.*\n\n    \.\. rubric:: Examples\n\n    >>> ", shown)


def test_facts_are_about_public_names() -> None:
    assert all_facts().keys() - NAMES.keys() == set()


def test_each_name_is_in_one_chapter_and_on_one_page() -> None:
    pytest.importorskip("sphinx", reason="it looks for the texts of attributes")
    listed = [name.full for chapter in CHAPTERS for name in chapter.names]
    assert sorted(listed) == sorted(name.full for name in NAMES.values() if name.kind not in {"method", "property", "attribute"})
    file = places(NAMES.values())
    alone = [file[name.full] for name in NAMES.values() if name.owner not in file or name.owner in LARGE]
    assert len({place.lower() for place in alone}) == len(alone)
    written = pages(list(NAMES.values()))
    for name in NAMES.values():
        if all_facts().get(name.full, Facts()).internal:
            assert f"* ``{name.short}``: " in written[f"{file[name.owner]}.rst"]
        else:
            assert re.search(rf"^\.\. auto\w+:: {re.escape(name.full)}$", written[f"{file[name.full]}.rst"], re.MULTILINE), name.full


def test_every_signature_has_types() -> None:
    """Law: each parameter and result of a function, and each property, has a type."""
    bare = []
    for name in NAMES.values():
        thing = name.thing.fget if name.kind == "property" else name.thing
        if name.kind not in {"function", "method", "property"} or not hasattr(thing, "__annotations__"):
            continue
        typed = set(thing.__annotations__)
        untyped = [p for p in name.parameters if p not in typed]
        if (untyped or "return" not in typed) and not all_facts().get(name.full, Facts()).internal:
            bare.append((name.full, untyped))
    assert bare == []


def test_the_table_of_backends_lists_failures_only() -> None:
    """Each entry is a failure of an example on a tested backend other than NumPy."""
    tried, fails = backends.table()
    assert "numpy" in tried
    for full, row in fails.items():
        assert backends.is_tried(NAMES[full]), (
            "run `python -m xpgrad_reference.backends ...`, as docs/_ext/xpgrad_reference/backends.py says"
        )
        assert row.keys() <= set(tried) - {"numpy"}
        assert row
        assert "ok" not in row.values()


#: Backends that are fast enough to be tested here; the command also tries JAX and dask.
LIBRARIES = {"strict": "array_api_strict", "torch": "torch", "simstream": "numpy", "mlx": "mlx.core"}


@pytest.mark.parametrize("backend", LIBRARIES)
def test_the_table_of_backends_is_true(backend: str) -> None:
    """A sample of the examples, drawn with the seed, runs as the table says."""
    pytest.importorskip(LIBRARIES[backend])
    pytest.importorskip(f"xpgrad_{backend}", reason="the plugin is not installed")
    seed = os.environ.get("XPGRAD_TEST_SEED", "")
    drawn = [name for name in NAMES.values() if backends.is_tried(name) and zlib.crc32(f"{seed} {name.full}".encode()) % 12 == 0]
    assert drawn
    wrong = {name.full: said for name in drawn if (said := backends.run(name, backend)) != backends.expected(name)[backend]}
    assert wrong == {}


@pytest.mark.skipif(not all(map(importlib.util.find_spec, ("torch", "scipy", "array_api_strict"))), reason="looks names up in these")
def test_the_table_of_what_is_followed_is_true() -> None:
    assert follows.look_up() == follows.table(), "run `python -m xpgrad_reference.follows`"
    import torch

    for name in NAMES.values():
        theirs = follows.followed(name).get("torch")
        assert not theirs or follows.resolve(theirs) is not None, (name.full, theirs, torch.__version__)


def test_contracts_hold_what_they_speak_of() -> None:
    held = {full: holding.contracts(name) for full, name in NAMES.items()}
    assert "BWD-01" in held["xpgrad.autograd.backward"]
    assert "BWD-09" in held["xpgrad.Tensor.backward"]
    assert set().union(*held.values()) <= holding.rules().keys()
    assert len(held["xpgrad.autograd.grad"]) > 20


def _name(doc: str, kind: str = "function") -> Name:
    def thing(x: object, axis: int = 0) -> object:
        return x

    thing.__doc__ = doc
    return Name("xpgrad.thing", kind, thing, "xpgrad")


def test_what_a_docstring_leaves_out_is_found() -> None:
    doc = "One line.\n\nParameters\n----------\nx : Tensor\n    Any.\n"
    assert missing(_name(doc), {}) == ["parameter axis", "what it returns", "an example"]
    doc += "axis : int\n    The axis.\n\nReturns\n-------\nTensor\n    As `x`.\n\nExamples\n--------\n>>> 1\n1\n"
    assert missing(_name(doc), {}) == ["an example that uses it"]

    def refuse(x: object) -> None:
        """Refuse `x`.

        Parameters
        ----------
        x : object

        Examples
        --------
        >>> refuse(1)
        """
        raise TypeError

    name = Name("xpgrad.refuse", "function", refuse, "xpgrad")
    assert missing(name, {}) == ["what it raises"]


def test_an_example_that_prints_something_else_is_a_failure() -> None:
    assert failure(_name("Add.\n\n>>> import xpgrad as xp\n>>> xp.tensor(1.0) + 1\ntensor(2.)")) == ""
    assert "Expected:\n    tensor(3.)" in failure(_name("Add.\n\n>>> import xpgrad as xp\n>>> xp.tensor(1.0) + 1\ntensor(3.)"))
    assert "NameError" in failure(_name("Add.\n\n>>> xp.tensor(1.0) + 1\ntensor(2.)"))  # an example imports what it uses


def test_numbers_of_another_backend_are_compared_as_numbers() -> None:
    same = backends._Checker().check_output
    assert same("tensor([ 1.2345, 0.0000])", "tensor([1.2345001, 1e-9], device='torch')", 0)
    assert not same("tensor([ 1.2345, 0.0000])", "tensor([1.2445, 0.0000])", 0)
    assert not same("tensor([ 1.2345, 0.0000])", "tensor([1.2345])", 0)
    assert not same("True", "False", 0)


def test_a_folder_holds_what_was_written_and_what_did_not_change_keeps_its_date(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    files.write(folder, {"kept": "1", "changed": "2", "gone": "3"})
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    files.write(folder, {"kept": "1", "changed": "4"})
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {"kept": "1", "changed": "4"}
    assert (folder / "kept").stat().st_mtime == 1
    assert (folder / "changed").stat().st_mtime > 1
