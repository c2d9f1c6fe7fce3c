"""Implement the pytest plugin: tests with the marker `differentiable`, and the table at the end of a run."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xpgrad.testing._checking import check_differentiable
from xpgrad.testing._pages import html_page, json_page, markdown_page, summary_lines
from xpgrad.testing._results import CHECKS, NotDifferentiable, Result, rows_from
from xpgrad.testing._tables import OneCheck

_PAGES = {"html": html_page, "json": json_page, "md": markdown_page}


def give_arguments(metafunc: Any, marker: Any) -> None:
    """Bind a marker's arguments to the first parameters of its test.

    Raises
    ------
    pytest.Collector.CollectError
        The marker has no arguments and the test does not use the fixture, or it has more arguments than the test has parameters.
    """
    name = f"{metafunc.definition.nodeid}: @pytest.mark.differentiable"
    if not marker.args:
        if "differentiable" not in metafunc.fixturenames:
            msg = (
                f"{name} has no arguments and the test does not use the fixture `differentiable`; write "
                "`@pytest.mark.differentiable(array, ...)` above a test that takes them and returns the result, or let the test take "
                "`differentiable` and call `differentiable(f, *args)`"
            )
            raise _pytest().Collector.CollectError(msg)
        return
    parameters = _parameters(metafunc.function)
    if len(parameters) < len(marker.args):
        msg = f"{name} has {len(marker.args)} arguments, but the test takes {len(parameters)}"
        raise _pytest().Collector.CollectError(msg)
    metafunc.parametrize(parameters[: len(marker.args)], [tuple(marker.args)], ids=[getattr(_pytest(), "HIDDEN_PARAM", "arrays")])


def _pytest() -> Any:
    return importlib.import_module("pytest")


def _parameters(function: Callable[..., Any]) -> list[str]:
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names[1:] if names[:1] == ["self"] else names


def check_marked(item: Any, marker: Any) -> None:
    """Check a marked test as a function of the marker's arguments; its other parameters are fixtures, which are constants."""
    __tracebackhide__ = True
    given = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    own = [name for name in _parameters(item.obj) if name in given][: len(marker.args)]
    fixtures = {name: value for name, value in given.items() if name not in own}

    @functools.wraps(item.obj)
    def function(*args: Any) -> Any:
        return item.obj(**dict(zip(own, args)), **fixtures)

    make_checker(item, marker)(function, *marker.args, name=marker.kwargs.get("name", item.name.partition("[")[0].removeprefix("test_")))


def make_checker(item: Any, marker: Any) -> Callable[..., Result]:
    """Return a wrapper of `check_differentiable` that applies a marker's options and records the rows on the test."""

    def check(f: Callable[..., Any], *args: Any, **options: Any) -> Result:
        __tracebackhide__ = True
        options = {**(marker.kwargs if marker is not None else {}), **options}
        chosen = item.config.getoption("--differentiability-backends")
        if chosen is not None and options.get("backends", "all") == "all":
            options["backends"] = chosen
        try:
            result = check_differentiable(f, *args, **options)
        except NotDifferentiable as exc:
            _note(item, exc.result)
            raise
        _note(item, result)
        return result

    return check


def _note(item: Any, result: Result) -> None:
    """Store the rows of a result on a test item, for the report."""
    item.xpgrad_differentiability = [*getattr(item, "xpgrad_differentiability", []), *result.to_list()]


def note_check(item: Any) -> None:
    """Store the rows of a test that `parametrize_with_checks` made, for the report."""
    check = getattr(getattr(item, "callspec", None), "params", {}).get("check")
    if isinstance(check, OneCheck):
        _note(item, check.known_result())


def finish(rows: Sequence[dict[str, Any]], terminal: Any, config: Any) -> None:
    """Print the summary, and write the requested reports.

    Parameters
    ----------
    rows : list of dict
        The rows of all tests.
    terminal, config : object
        pytest's terminal reporter and configuration.
    """
    found = sorted(rows_from(rows), key=lambda row: (row.function, row.backend, list(CHECKS).index(row.check), row.argument or 0))
    if found:
        terminal.section("differentiability")
        for line in summary_lines(found):
            terminal.write_line(line)
    for form in dict.fromkeys(config.option.differentiability_report):
        path = Path(config.option.differentiability_path)
        path = path if path.suffix == f".{form}" else path.with_name(f"{path.name}.{form}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PAGES[form](found), encoding="utf-8")
        terminal.write_line(f"differentiability: wrote {path}")
