"""The pytest plugin of `xpgrad.testing`: the marker `differentiable`, the fixture of that name, a summary and reports.

The module imports only pytest, which loads it in every project that has xpgrad installed; functions import xpgrad when a run needs it.
If plugins are not loaded automatically, pass ``-p xpgrad_pytest``.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

_MARKER = (
    "differentiable(*args, argnums=None, backends='all', order=2, ...): check a function's derivatives; the options are those of "
    "xpgrad.testing.check_differentiable. With arguments, the test is the function itself: it takes them as its parameters and returns the "
    "result. Without, it calls the fixture: `differentiable(f, *args)`."
)


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("xpgrad-testing", "xpgrad's checks of differentiability")
    group.addoption(
        "--differentiability-report", action="append", default=[], choices=["html", "json", "md"],
        help="write a table of functions and backends; may be given several times",
    )  # fmt: skip
    group.addoption(
        "--differentiability-path", default="differentiability", metavar="PATH",
        help="where to: a file's path, whose ending is that of the form (default: %(default)s)",
    )  # fmt: skip
    group.addoption(
        "--differentiability-backends", default=None, metavar="NAMES",
        help="run tests and tables for all backends on these only, e.g. numpy,strict",
    )  # fmt: skip


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.pluginmanager.register(_Rows(), "xpgrad_pytest_rows")
    _limit_tables(config.getoption("--differentiability-backends"))


def pytest_unconfigure(config: Any) -> None:
    _limit_tables(None)


def _limit_tables(names: str | None) -> None:
    """Limit the backends of tables, whose tests are made when their modules are imported; None ends the limit."""
    if names is not None or "xpgrad.testing" in sys.modules:
        from xpgrad.testing._tables import limit_backends

        limit_backends(names)


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrize a marked test, which is itself the function to check, with the arguments of its marker."""
    marker = metafunc.definition.get_closest_marker("differentiable")
    if marker is not None:
        from xpgrad.testing._marked import give_arguments

        give_arguments(metafunc, marker)


def pytest_pyfunc_call(pyfuncitem: Any) -> Any:
    """Check a marked test, which is itself the function to check, instead of calling it once."""
    __tracebackhide__ = True
    marker = pyfuncitem.get_closest_marker("differentiable")
    if marker is None or not marker.args:
        return None
    from xpgrad.testing._marked import check_marked

    check_marked(pyfuncitem, marker)
    return True


@pytest.fixture
def differentiable(request: Any) -> Any:
    """Return `check_differentiable` with the options of the test's marker; its outcomes enter the summary and the report."""
    from xpgrad.testing._marked import make_checker

    return make_checker(request.node, request.node.get_closest_marker("differentiable"))


class _Rows:
    """The rows of all tests of a run; worker processes send theirs with the reports of the tests."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call":
            self.rows += getattr(report, "xpgrad_differentiability", [])

    def pytest_terminal_summary(self, terminalreporter: Any, config: Any) -> None:
        if self.rows or config.option.differentiability_report:
            from xpgrad.testing._marked import finish

            finish(self.rows, terminalreporter, config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Add the rows of a test to its report, which pytest sends to the process that controls the run."""
    report = yield
    if call.when == "call" and "xpgrad.testing" in sys.modules:
        from xpgrad.testing._marked import note_check

        note_check(item)
    rows = getattr(item, "xpgrad_differentiability", None)
    if rows and call.when == "call":
        report.xpgrad_differentiability = rows
    return report
