"""Findings of an audit, and the table of their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from xpgrad._audit.places import Place

#: From the least to the worst.
SEVERITIES = ("note", "warning", "error")


_NONE: Mapping[str, Any] = MappingProxyType({})


class Kind(NamedTuple):
    """A kind of finding: its group, its title and the advice to give.

    Attributes
    ----------
    group : str
        ``"paths"``, ``"kinks"``, ``"nonfinite"``, ``"accuracy"``, ``"ranges"``, ``"cost"`` or ``"input"``.
    title : str
    cure : str
    """

    group: str
    title: str
    cure: str


class Finding(NamedTuple):
    """A finding of an audit.

    Attributes
    ----------
    kind : str
        A name of `KINDS`.
    severity : {"note", "warning", "error"}
        "error": a gradient is missing, wrong or NaN. "warning": a gradient is doubtful, or nothing depends on an input. "note": for
        information.
    message : str
        What happened, with the values concerned.
    place : Place or None
        The user's line.
    places : tuple of Place
        The stack of the user's code, the innermost line first.
    inputs : tuple of str
        The inputs whose gradients are concerned.
    details : dict
        Numbers and texts for JSON.
    """

    kind: str
    severity: str
    message: str
    place: Place | None = None
    places: tuple[Place, ...] = ()
    inputs: tuple[str, ...] = ()
    details: Mapping[str, Any] = _NONE

    @property
    def title(self) -> str:
        """The title of its kind."""
        return KINDS[self.kind].title

    @property
    def cure(self) -> str:
        """Advice on what to do."""
        return KINDS[self.kind].cure

    @property
    def group(self) -> str:
        """The check that found it."""
        return KINDS[self.kind].group


_PATH = "the result depends on the input through a value that left the graph"
KINDS: dict[str, Kind] = {
    "detached": Kind(
        "paths", f"{_PATH} by `detach`", "leave `detach()` or `.data` away, or keep it if the derivative is meant to stop here"
    ),
    "no-grad": Kind("paths", f"{_PATH} under `no_grad`", "move the line out of the `no_grad` or `inference_mode` block"),
    "left-as-number": Kind("paths", f"{_PATH} as a Python number", "compute with the Tensor itself: 0-d Tensors take part in arithmetic"),
    "left-as-array": Kind("paths", f"{_PATH} as an array", "compute with xpgrad's functions, or wrap the computation in a `custom_rule`"),
    "unchecked": Kind(
        "paths",
        "a value left the graph, and the result is not finite, so that nothing tells whether it carries a derivative",
        "make the result finite, and audit again",
    ),
    "inner-gradient": Kind("paths", f"{_PATH} as a gradient without history", "pass `create_graph=True`, or use `xpgrad.func.grad`"),
    "captured": Kind(
        "paths", "values of the input come in as a constant", "use the function's own argument, not a copy that was made of it"
    ),
    "compared": Kind(
        "paths",
        "the result depends on the input through a comparison only",
        "a comparison is a step: use a smooth function, or a custom rule",
    ),
    "rounded": Kind(
        "paths",
        "the result depends on the input through a rounding only",
        "a rounding is a step: leave it away, or give it the derivative of the identity",
    ),
    "cast": Kind("paths", "the result depends on the input through a cast to integers or bools only", "keep a floating dtype"),
    "index": Kind(
        "paths",
        "the result depends on the input through indices only",
        "indices have no derivative: take the values there, or a softmax-weighted sum",
    ),
    "branch": Kind("paths", "the result depends on the input through an `if` only", "a branch is a step: use a smooth function"),
    "written": Kind("paths", f"{_PATH} by a write into a constant", "write into a clone that is part of the graph, outside of `no_grad`"),
    "printed": Kind("paths", f"{_PATH} as text", "compute with the Tensor itself"),
    "unused": Kind("paths", "the result does not depend on an input", "leave the argument away, or look for what should have used it"),
    "flat": Kind(
        "paths",
        "a gradient is exactly zero, although larger steps change the result",
        "the function is saturated here: another start, or a function without flat parts",
    ),
    "overwritten": Kind("paths", "a value that the backward needs was overwritten", "write into a `clone()`, or after the backward"),
    "kink": Kind(
        "kinks",
        "an argument exactly at a point without a derivative",
        "the gradient there is one of several; move the point, or use a smooth function",
    ),
    "tie": Kind("kinks", "equal values compete for one gradient", "the gradient is shared; break the tie, or use a smooth maximum"),
    "nan-forward": Kind("nonfinite", "an operation made a nan", "look at what it was given"),
    "inf-forward": Kind("nonfinite", "an operation made an infinity", "look at what it was given"),
    "nan-backward": Kind("nonfinite", "a derivative made a nan", "keep the operand away from the point where the derivative is infinite"),
    "inf-backward": Kind("nonfinite", "a derivative is infinite", "keep the operand away from the point where the derivative is infinite"),
    "where-nan": Kind(
        "nonfinite", "`where` hides a nan forward, but not backward", "select the operand first: `where(ok, f(where(ok, x, 1)), 0)`"
    ),
    "wrong-gradient": Kind("accuracy", "the gradient is not that of central differences", "look at the rule named below"),
    "inexact": Kind(
        "accuracy",
        "the gradient is that of central differences in its first digits only",
        "an iteration inside of the function may stop early: ask it for more digits",
    ),
    "vjp-and-jvp": Kind("accuracy", "reverse mode and forward mode disagree", "one of the two formulas of a custom rule is wrong"),
    "cancellation": Kind(
        "accuracy",
        "single precision loses the digits of the gradient, or of the result",
        "compute in float64, or rewrite the difference of nearly equal numbers",
    ),
    "not-compared": Kind(
        "accuracy", "the gradient could not be compared with differences", "the function is too rough, or not finite, near its arguments"
    ),
    "vanishing": Kind("ranges", "gradients vanish on their way back", "normalise between the layers, or use residual paths"),
    "exploding": Kind("ranges", "gradients explode on their way back", "normalise between the layers, clip, or use smaller weights"),
    "saved-twice": Kind("cost", "equal values are kept twice", "compute them once"),
    "recomputed": Kind("cost", "an operation runs again on the same operands", "keep its result"),
    "memory": Kind(
        "cost", "most of what is kept for the backward comes from here", "`xpgrad.utils.checkpoint.checkpoint` computes it again instead"
    ),
    "raised": Kind("input", "the function raised", "see the error"),
    "no-tensor": Kind("input", "the function returns nothing that can be differentiated", "return a floating or complex Tensor"),
    "integer-result": Kind("input", "a result has a dtype without derivatives", "cast it to a floating dtype before the last operations"),
    "random": Kind("input", "the function draws random numbers", "pass them as an argument, or seed them inside of the function"),
    "not-deterministic": Kind("input", "two runs give different results", "find what the function remembers from one call to the next"),
    "changed-argument": Kind("input", "the function writes into its argument", "write into a `clone()`"),
    "backward-raised": Kind("input", "the backward raised", "see the error"),
}
