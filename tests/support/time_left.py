"""Shows in a terminal how long a run of the tests will still take, beside the percentage that pytest shows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["TimeLeft", "show"]

#: The key of pytest's cache under which the seconds of each test function are kept, per case.
CACHE = "xpgrad/seconds"


def show(config: pytest.Config) -> None:
    """Show the time left in this run; not in a log, and not in the processes that pytest-xdist starts."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    # NB: `isatty` was an attribute before it became a method.
    terminal = getattr(reporter, "isatty", False)
    if terminal() if callable(terminal) else terminal:
        config.pluginmanager.register(TimeLeft(config, reporter), "xpgrad_time_left")


class TimeLeft:
    """A pytest plugin that adds the time left to the progress.

    The time so far is extrapolated. A test counts as much as the cases of its function took on average in the last run (pytest's cache has
    these seconds); in the first run all tests count the same, and the estimate is rough.
    """

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        self.cache = getattr(config, "cache", None)
        self.known: dict[str, float] = self.cache.get(CACHE, {}) if self.cache is not None else {}
        self.usual = sum(self.known.values()) / len(self.known) if self.known else 1.0
        self.seconds: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.begin = self.done = self.all = 0.0
        message = reporter._get_progress_information_message
        reporter._get_progress_information_message = lambda: message().replace("]", f"{self.left()}]")
        reporter._screen_width -= len(", 00:00 left")  # lines of dots end earlier

    def _weight(self, test: str) -> float:
        return self.known.get(_function(test), self.usual)

    def left(self) -> str:
        """Return the time left as text; empty if nothing is known yet."""
        if not self.done:
            return ""
        minutes, seconds = divmod(round((time.monotonic() - self.begin) * (self.all / self.done - 1.0)), 60)
        return f", {minutes}:{seconds:02} left"

    def _start(self, tests: Iterable[str]) -> None:
        self.all = sum(map(self._weight, tests))
        self.begin = self.begin or time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._start(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._start(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[_function(report.nodeid)] += report.duration
        if report.when == "teardown":
            self.done += self._weight(report.nodeid)
            self.finished[_function(report.nodeid)] += 1

    def pytest_sessionfinish(self) -> None:
        if self.cache is not None:
            self.cache.set(CACHE, self.known | {name: self.seconds[name] / count for name, count in self.finished.items()})


def _function(test: str) -> str:
    return test.partition("[")[0]
