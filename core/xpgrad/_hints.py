"""Hints for names of PyTorch, NumPy and JAX that xpgrad lacks, for errors about missing attributes.

The names stay unknown: `hasattr` is False for them and `dir` does not show them; only the error says more.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable

from xpgrad._array.base import OF_THE_LAYERS
from xpgrad._tensor.missing import MISSING

#: Modules that may have a missing name, besides the package.
_ELSEWHERE = ("linalg", "fft", "func", "autograd", "autograd.graph")


@functools.cache
def texts() -> dict[str, str]:
    """Return what to write instead of each missing name."""
    found = importlib.import_module("xpgrad._hint_texts").TEXTS.strip().replace("\n    ", "")
    entries = (line.split(": ", 1) for line in found.splitlines())
    return {name: text for names, text in entries for name in names.split()}


@functools.cache
def reasons() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of missing names, each with the reason."""
    found = importlib.import_module("xpgrad._hint_texts").REASONS.strip().replace("\n    ", "")
    return [(re.compile(pattern), reason) for pattern, reason in (line.rsplit(": ", 1) for line in found.splitlines())]


@functools.cache
def keywords() -> dict[str, str]:
    """Return what to write instead of each keyword that transforms have elsewhere."""
    entries = (line.split(": ", 1) for line in importlib.import_module("xpgrad._hint_texts").KEYWORDS.strip().splitlines())
    return {name: text for names, text in entries for name in names.split()}


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> str:
    """Return the message of the error for a keyword that a transform does not have, but `known` others."""
    start, text = f"{function}() got an unexpected keyword argument {name!r}", keywords().get(name)
    if text is None or (text.startswith("`") and text.strip("`") not in known):
        return f"{start}; it has {', '.join(f'`{k}`' for k in known)}"
    return f"{start}; use {text}" if text.startswith("`") else f"{start}; leave it out: {text}"


def _exported(module: str) -> list[str]:
    """Return the public names of a module of the package."""
    names: list[str] = importlib.import_module(module).__all__
    return names


def has_attribute(name: str) -> bool:
    """Return whether Tensors have a public attribute."""
    if name in MISSING or name in OF_THE_LAYERS:  # reading a missing attribute would ask for this hint again
        return False
    return hasattr(importlib.import_module("xpgrad").Tensor, name)


def _elsewhere(name: str, place: str) -> str | None:
    """Return how to write a name that xpgrad has in another place than `place`: a function, or a method of Tensors."""
    package = importlib.import_module("xpgrad")
    if "Tensor" not in vars(package):  # the package is still being imported
        return None
    if place and name in (*package.__all__, *package._LAZY):
        return f"`xpgrad.{name}`, a function" if place == "Tensor" and callable(getattr(package, name)) else f"`xpgrad.{name}`"
    if place != "Tensor" and has_attribute(name):
        method = getattr(package.Tensor, name)
        return f"the method `x.{name}(...)`" if callable(method) else f"`x.{name}`"
    for module in _ELSEWHERE:
        if module != place and name in _exported(f"xpgrad.{module}"):
            return f"`xpgrad.{module}.{name}`"
    return None


def _in_place(name: str) -> str | None:
    """Return how to write a method that writes in place and that Tensors lack."""
    base = name.removesuffix("_")
    if base == name:
        return None
    text = texts().get(base) or _elsewhere(base, "Tensor")
    if text is None:
        text = f"`x.{base}(...)`" if has_attribute(base) and base != "T" else None
    if text is None:
        return None
    alias = re.match(r"`xpgrad\.(\w+)`", text)
    return f"`x.{alias[1]}_(...)`" if alias and has_attribute(f"{alias[1]}_") else f"`x[...] = value`; the value is {text}"


@functools.cache  # libraries ask again and again which names an array has
def hint(name: str, place: str = "") -> str | None:
    """Return the end of the error about a missing name, or None if nothing is known about it.

    Parameters
    ----------
    name : str
    place : str
        Where it is missing: a module below `xpgrad`, such as ``"linalg"``, ``"Tensor"``, or "" for the package.
    """
    if name.startswith("_"):
        return None
    text = texts().get(f"{place}.{name}" if place else name) or _elsewhere(name, place) or texts().get(name)
    text = text or next((texts()[f"{module}.{name}"] for module in _ELSEWHERE if f"{module}.{name}" in texts()), None) or _in_place(name)
    if text is not None:
        return f"use {text}"
    reason = next((reason for pattern, reason in reasons() if pattern.fullmatch(name)), None)
    return None if reason is None else f"not part of xpgrad, because {reason}"


def missing_name(owner: str, name: str, place: str = "") -> str:
    """Return the message of the error for a name that `owner`, the repr of a namespace or class, does not have; `place` as in `hint`."""
    start = f"{owner} has no attribute {name!r}"
    found = hint(name, place)
    return start if found is None else f"{start}; {found}"
