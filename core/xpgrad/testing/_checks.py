"""The checks of one function on one device: one method per check, which stores what later checks need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from xpgrad._basics.device import Device
from xpgrad._basics.differences import Slope
from xpgrad._tape.requests import grad
from xpgrad.autograd.graph import allow_mutation_on_saved_tensors
from xpgrad.errors import CapabilityError
from xpgrad.func import jvp, vmap
from xpgrad.rules.conversion import asarray
from xpgrad.testing._host import (
    agree,
    close,
    direction,
    epsilon,
    is_close_to,
    mirrored,
    np,
    on_host,
    shown_apart,
    shown_number,
    to_precision_of,
    to_tensor,
)
from xpgrad.testing._options import Options
from xpgrad.testing._problem import Outputs, Problem, host_loss, outputs_of, project, tensor_loss
from xpgrad.testing._recorded import Recorded
from xpgrad.testing._reference import Reference
from xpgrad.testing._results import CHECKS, CONSTANT, FAILED, LACKS, NOT_RUN, PASSED, WRITES, Row
from xpgrad.testing._words import Fails, IsConstant, error_text, kind_of, kink_near, length, same, single_near, tensor_dot, units, which

#: The checks that depend on directions.
_DIRECTED = ("gradient", "forward", "second", "vmap")


class OneDevice:
    """One function on one device: `rows` runs the checks.

    Parameters
    ----------
    name : str
        The name of the function.
    problem : Problem
    label : str
        The name of the device in rows.
    device : Device
    reference : Reference, optional
        None if there is none; `missing` then gives the reason.
    default : Device
        The device on which expected second derivatives are computed.
    options : Options
    """

    def __init__(
        self, name: str, problem: Problem, label: str, device: Device, reference: Reference | None, missing: str, default: Device,
        options: Options,
    ) -> None:  # fmt: skip
        self.label = label
        self.name, self.problem, self.device, self.reference, self.options = name, problem, device, reference, options
        self.missing, self.default = missing, default
        self.points = [to_precision_of(p, device) for p in problem.points]
        self.eps = epsilon([*self.points, *([*reference.points, *reference.values] if reference is not None else [])])
        self.found: list[Row] = []
        self.wrote = False
        self.gradients: list[Any] = [None] * len(self.points)
        self.moving: list[int] = []
        self.plain: Outputs | None = None
        self.symmetric = problem.symmetric

    # -- rows -----------------------------------------------------------------------------------------------------------------------

    def _row(self, check: str, argument: int | None, outcome: str, reason: str = "") -> None:
        """Store the outcome of a check, unless the check is switched off."""
        if check in self.options.checks:
            self.found.append(Row(self.name, argument, self.label, check, outcome, reason))

    def _check(self, check: str, run: Callable[..., str | None], argument: int | None = None) -> bool:
        """Run a check and record its row: an exception is a failure, a returned text a remark. Return whether it passed."""
        if check not in self.options.checks:
            if check == "graph":  # other checks need the gradients that it stores
                with contextlib.suppress(Exception):
                    run(argument)
            return True
        self.wrote = False
        try:
            remark = run() if argument is None else run(argument)
        except Fails as exc:
            self._row(check, argument, FAILED, f"{exc}{self._symmetry_hint(check, run, argument)}")
            return False
        except IsConstant as exc:
            self._row(check, argument, CONSTANT, str(exc))
            return True
        except CapabilityError as exc:
            self._row(check, argument, LACKS, error_text(exc))
            return False
        except Exception as exc:  # noqa: BLE001 (whatever a library raises is the outcome)
            self._row(check, argument, FAILED, f"{error_text(exc)}{self._symmetry_hint(check, run, argument)}")
            return False
        self._row(check, argument, WRITES if self.wrote else PASSED, remark or "")
        return True

    def _symmetry_hint(self, check: str, run: Callable[..., str | None], argument: int | None) -> str:
        """Return a remark if a check that failed passes along symmetric directions of symmetric arguments; empty otherwise."""
        declared, possible = self.symmetric, self.problem.symmetric_points()
        if check not in _DIRECTED or possible <= declared:
            return ""
        self.symmetric = declared | possible
        try:
            run() if argument is None else run(argument)
        except IsConstant:
            pass
        except Exception:  # noqa: BLE001 (then symmetry is not what it lacks)
            return ""
        finally:
            self.symmetric = declared
        numbers = sorted({self.problem.owners[self.problem.moving[j]] for j in possible})
        text = str(numbers[0]) if len(numbers) == 1 else str(tuple(numbers))
        return f"; along symmetric directions it passes: if the function takes symmetric matrices only, pass `symmetric={text}`"

    def _direct(self, array: Any, draw: Any, place: int) -> Any:
        """Draw a direction of the point at a place, which is symmetric if the point is declared to be."""
        drawn = direction(array, draw)
        return mirrored(drawn) if place in self.symmetric else drawn

    def _key(self, *numbers: int) -> tuple[int, ...]:
        """Return the key of a difference in the reference's cache, which depends on the symmetry of the directions."""
        return (*numbers, *((-2, *sorted(self.symmetric)) if self.symmetric else ()))

    def _skip(self, checks: tuple[str, ...], argument: int | None, after: str) -> None:
        """Store the outcome "not run" for checks that depend on the check `after`."""
        for check in checks:
            self._row(check, argument, NOT_RUN, f"the check `{after}` did not pass")

    def attempt(self, run: Callable[[], Any]) -> Any:
        """Call `run`; if it raises and writes are allowed, call it again inside `allow_mutation_on_saved_tensors`."""
        try:
            return run()
        except Exception:
            if not self.options.mutation:
                raise
        with allow_mutation_on_saved_tensors():
            result = run()
        self.wrote = True
        return result

    # -- all of them -----------------------------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Run all checks, and return their rows; a check that depends on a failed one is not run, and its row says so."""
        later = tuple(CHECKS)[1:]
        if not self._check("runs", self._runs):
            self._skip(later, None, "runs")
            return self.found
        self._check("unchanged", self._check_unchanged)
        self._check("values", self._values)
        recorded = self._recordings()
        if not self._check("repeatable", lambda: self._repeatable(recorded)):
            self._skip(("graph", "gradient", "forward", "second", "vmap"), None, "repeatable")
            return self.found
        reached = [n for n in self.problem.argnums if self._check("graph", lambda n: self._graph(recorded[n], n), n)]
        self.moving = sorted(j for n in reached for j in self.problem.of_argument(n))
        for number in self.problem.argnums:
            if number not in reached:
                self._skip(("gradient", "forward", "second"), number, "graph")
                continue
            right = self._check("gradient", self._gradient, number)
            self._check("forward", self._forward, number)
            if right:
                self._check("second", self._second_order, number)
            else:
                self._skip(("second",), number, "gradient")
        self._check("vmap", self._check_batched)
        return self.found

    def leaves(self, requiring: Iterable[int] = ()) -> list[Any]:
        """Return new Tensors at the points; those at the places `requiring` require grad."""
        found = [to_tensor(p, self.device) for p in self.points]
        for j in requiring:
            found[j].requires_grad_()
        return found

    def _recordings(self) -> dict[int, Recorded]:
        """Return a recorded run for each argument: the same run for all, or one per argument if the common run raises."""
        numbers = self.problem.argnums
        together = Recorded(self, range(len(self.points)))
        if together.error is None or len(numbers) == 1:
            return dict.fromkeys(numbers, together)
        return {n: Recorded(self, self.problem.of_argument(n)) for n in numbers}

    def _runs(self) -> None:
        """Check that the function runs and returns Tensors on the device; store its outputs."""
        self.given = self.leaves()
        constants: list[Any] = []

        def place(leaf: Any) -> Any:
            constants.append((leaf, to_tensor(leaf, self.device)))
            return constants[-1][1]

        result = self.attempt(lambda: self.problem.call(self.given, place))
        self.constants = constants
        self.plain = outputs_of(result)
        if not self.plain.parts:
            raise Fails(f"it returns {kind_of(result)}: no Tensor is to be seen in it; return the Tensors, in a tuple if several")
        if strays := [str(x.device) for x in self.plain.tensors if x.device != self.device]:
            raise Fails(f"its result is on {strays[0]}, its arguments on {self.device}")

    def _check_unchanged(self) -> None:
        """Check that the function did not write to its arguments."""
        for k, (before, after) in enumerate([*zip(self.points, self.given), *self.constants]):
            if not np.array_equal(on_host(after), to_precision_of(before, self.device), equal_nan=after.dtype.differentiable):
                owner = self.problem.owners[self.problem.moving[k]] if k < len(self.points) else None
                whose = "an argument that is not differentiated" if owner is None else f"argument {owner}"
                raise Fails(f"{whose} has other values after the call: the function writes into it; copy it first")

    def _values(self) -> str | None:
        """Check that the outputs equal those of the reference."""
        assert self.plain is not None
        if self.reference is None:
            raise Fails(f"there is nothing to compare with: {self.missing}")
        if self.reference.device == self.device and self.device != self.default:
            return "runs on this backend only: compared with nothing"
        rtol, atol = self.options.tolerance(self.eps, "values")
        self._compare(self.plain.host(), self.reference.values, rtol, atol, "reference")
        return None

    @staticmethod
    def _compare(found: list[Any], expected: list[Any], rtol: float, atol: float, what: str) -> None:
        """Raise `Fails` if arrays differ from expected ones in number, shape or value."""
        if len(found) != len(expected):
            raise Fails(f"it returns {len(found)} arrays, the {what} {len(expected)}")
        for k, (a, b) in enumerate(zip(found, expected)):
            part = f"output {k}: " if len(found) > 1 else ""
            if a.shape != b.shape:
                raise Fails(f"{part}its shape is {a.shape}, that of the {what} {b.shape}")
            if not agree(a, b, rtol, atol):
                worst = np.unravel_index(int(np.argmax(~is_close_to(a, b, rtol, atol))), a.shape)
                place = f"[{', '.join(str(int(w)) for w in worst)}]"
                raise Fails(f"{part}element {place} is {a[worst]}, that of the {what} {b[worst]} (rtol={rtol:.1e}, atol={atol:.1e})")

    def _repeatable(self, recorded: dict[int, Recorded]) -> None:
        """Check that further runs give the same outputs, also if arguments require grad."""
        assert self.plain is not None
        first = self.plain.host()
        again = outputs_of(self.attempt(lambda: self.problem.call_on(self.device, self.leaves()))).host()
        if not same(first, again):
            raise Fails("two runs with the same arguments give other values; seed the random numbers that it draws, for the check")
        for one in recorded.values():
            if one.outputs is not None and not same(first, one.outputs.host()):
                raise Fails("its values change where the arguments require grad")

    # -- reverse mode ----------------------------------------------------------------------------------------------------------------

    def _slope(self, number: int, k: int, directions: list[Any]) -> Slope:
        """Return the derivative of the reference along the k-th direction of an argument."""
        assert self.reference is not None
        return self.reference.first(self._key(number, k), self.problem.of_argument(number), directions)

    def _estimate_error(self, number: int, k: int, directions: list[Any]) -> float:
        """Estimate the error of the difference for result `k` and argument `number`, as `Reference.estimate_error` does."""
        assert self.reference is not None
        return self.reference.estimate_error(self._key(number, k), self.problem.of_argument(number), directions)

    def _graph(self, recorded: Recorded, number: int) -> str | None:
        """Check that gradients reach an argument whose change moves the outputs; store the gradients."""
        recorded.reraise()
        self.wrote = recorded.wrote
        assert recorded.outputs is not None
        for j in self.problem.of_argument(number):
            self.gradients[j] = recorded.gradients[j]
        places = self.problem.of_argument(number)
        for j in places:
            if self.gradients[j] is not None and recorded.devices[j] != self.device:
                raise Fails(f"the gradient is on {recorded.devices[j]}")
        for part, kind in recorded.outputs.untracked_types.items():
            if self.reference is None or self.reference.moves(part, places, self._draw_directions(number)[0]):
                raise Fails(f"it returns a {kind}, not a Tensor: what was recorded is lost there")
        if any(self.gradients[j] is not None for j in places):
            return None
        if self.reference is None:
            return "no gradient arrives, and there are no differences to compare with"
        for k, directions in enumerate(self._directions(number)):
            slope, noise, *_ = self._slope(number, k, directions)
            if not np.isfinite(slope):
                raise Fails("no gradient arrives, and differences are not finite: give arguments around which the function is")
            error = self._estimate_error(number, k, directions)
            if not abs(slope) <= noise + error:
                raise Fails(
                    f"the argument moves the output (by {shown_number(slope)} along a direction), but no gradient reaches it: the way from "
                    f"it leaves the graph, without an error{kink_near(slope, error, self.reference.has_kink(places, directions))}"
                )
        raise IsConstant("the derivative is 0 here, and there is no way from the argument in the graph")

    def _draw_directions(self, number: int) -> list[list[Any]]:
        """Draw random directions of an argument without zeros, the same ones on each device."""
        assert self.reference is not None
        draw = np.random.default_rng([self.options.seed, number])
        arrays = {j: self.reference.points[j] for j in self.problem.of_argument(number)}
        return [[self._direct(a, draw, j) for j, a in arrays.items()] for _ in range(self.options.directions)]

    def _directions(self, number: int) -> list[list[Any]]:
        """Return the directions to check: one per element if these are few, else random ones."""
        drawn = self._draw_directions(number)
        arrays = drawn[0]
        count = sum(a.size * (2 if a.dtype.kind == "c" else 1) for a in arrays)
        if count > self.options.full:
            return drawn
        symmetric = [j in self.symmetric for j in self.problem.of_argument(number)]
        return [unit for one in drawn[:1] for unit in units(one, symmetric)]

    def _gradient(self, number: int) -> None:
        """Check the gradients of an argument against differences."""
        if self.reference is None:
            raise Fails(f"there are no differences to compare with: {self.missing}")
        places = self.problem.of_argument(number)
        found = [self.gradients[j] for j in places]
        if any(g is not None and not np.isfinite(g).all() for g in found):
            raise Fails("the gradient is not finite")
        rtol, atol = self.options.tolerance(self.eps, "gradient")
        for k, directions in enumerate(self._directions(number)):
            expected, noise, *_ = self._slope(number, k, directions)
            if not np.isfinite(expected):
                raise Fails("differences are not finite: give arguments around which the function is")
            value = project(found, directions)
            allowed = atol * length(directions) + noise
            if close(value, expected, rtol, allowed):
                continue
            error = self._estimate_error(number, k, directions)
            if not close(value, expected, rtol, allowed + error):
                one, two = shown_apart(value, expected)
                raise Fails(
                    f"the derivative along {which(directions)} is {one}, by differences {two} "
                    f"(step {self.reference.step:.1e} of each element, rtol={rtol:.1e})"
                    f"{kink_near(expected, error, self.reference.has_kink(places, directions))}"
                )
        if all(g is None or not g.any() for g in found):
            raise IsConstant("the gradient is 0, and so are the differences")

    # -- the others ------------------------------------------------------------------------------------------------------------------

    def _draw_direction(self, number: int, draw_of: int) -> list[Any]:
        """Draw one direction of an argument, in the dtypes of the points on the device."""
        draw = np.random.default_rng([self.options.seed, number, draw_of])
        return [self._direct(self.points[j], draw, j) for j in self.problem.of_argument(number)]

    def _forward(self, number: int) -> None:
        """Check forward mode: the derivative along a random direction equals that of the gradients."""
        assert self.plain is not None
        if not self.plain.numbers:
            raise IsConstant("it returns no floating numbers")
        places = self.problem.of_argument(number)
        directions = self._draw_direction(number, 1)

        numbers = self.plain.numbers

        def run() -> float:
            leaves = self.leaves()

            def outputs(*moving: Any) -> tuple[Any, ...]:
                whole = list(leaves)
                for j, x in zip(places, moving):
                    whole[j] = x
                return tuple(outputs_of(self.problem.call_on(self.device, whole)).differentiable)

            tangents = tuple(asarray(v, device=self.device) for v in directions)
            loss = tensor_loss(jvp(outputs, tuple(leaves[j] for j in places), tangents)[1], numbers)
            return 0.0 if loss is None else float(on_host(loss))

        value = self.attempt(run)
        expected = project([self.gradients[j] for j in places], directions)
        rtol, atol = self.options.tolerance(self.eps, "forward")
        size = sum(
            float(np.sum(np.abs(self.gradients[j]) * np.abs(v))) for j, v in zip(places, directions) if self.gradients[j] is not None
        )
        allowed = atol + rtol * size
        if not close(value, expected, rtol, allowed) and self.reference is not None:
            # Where terms cancel, a derivative is as inexact as the outputs: the direction is as long as the arguments.
            outputs = host_loss(self.plain.host())[1]
            allowed += 20 * (self.eps * outputs if np.isfinite(outputs) else 0.0) + 20 * self.reference.rounding(places, directions)
        if not close(value, expected, rtol, allowed):
            one, two = shown_apart(value, expected)
            raise Fails(f"forward mode gives {one} along a direction, reverse mode {two} (rtol={rtol:.1e}){single_near(value, expected)}")

    def _second_order(self, number: int) -> None:
        """Check second derivatives of an argument against differences of gradients."""
        if self.reference is None:
            raise Fails(f"there are no differences to compare with: {self.missing}")
        draw = np.random.default_rng([self.options.seed, 7])
        along = [self._direct(p, draw, j) for j, p in enumerate(self.reference.points)]
        places = self.problem.of_argument(number)
        directions = self._draw_directions(number)[0]

        def run() -> list[Any]:
            leaves = self.leaves(self.moving)
            chosen = [leaves[j] for j in self.moving]
            loss = outputs_of(self.problem.call_on(self.device, leaves)).loss()
            first = grad(loss, chosen, create_graph=True, allow_unused=True) if loss is not None and loss.requires_grad else ()
            total = None
            for g, v in zip(first, [along[j] for j in self.moving]):
                if g is not None and g.requires_grad:
                    term = tensor_dot(g, asarray(v, dtype=g.dtype, device=self.device))
                    total = term if total is None else total + term
            if total is None or not total.requires_grad:
                return [None] * len(leaves)
            found: list[Any] = [None] * len(leaves)
            for j, g in zip(self.moving, grad(total, chosen, allow_unused=True)):
                found[j] = None if g is None else on_host(g)
            return found

        found = self.attempt(run)
        if any(found[j] is not None and not np.isfinite(found[j]).all() for j in places):
            raise Fails("the second derivative is not finite")
        where = self.default if self.reference.device is None else self.reference.device
        with allow_mutation_on_saved_tensors() if self.wrote else contextlib.nullcontext():
            about = {j: along[j] for j in self.moving}
            expected, noise, *_ = self.reference.second(self._key(number, *self.moving), places, directions, about, where)
            value = project([found[j] for j in places], directions)
            rtol, atol = self.options.tolerance(self.eps, "second")
            allowed = atol * length(directions) + noise
            if close(value, expected, rtol, allowed):
                return
            error, has_kink = self.reference.second_error(expected, places, directions, about, where)
        if not close(value, expected, rtol, allowed + error):
            one, two = shown_apart(value, expected)
            remark = kink_near(expected, error, has_kink)
            raise Fails(f"along {which(directions)} it is {one}, by differences of the gradient {two} (rtol={rtol:.1e}){remark}")

    def _check_batched(self) -> str | None:
        """Check that `xpgrad.func.vmap` gives the results of a loop over two nearby points."""
        draw = np.random.default_rng([self.options.seed, 11])
        nearby = [(p + 1e-3 * self._direct(p, draw, j)).astype(p.dtype) for j, p in enumerate(self.points)]
        pairs = [np.stack([a, b]) for a, b in zip(self.points, nearby)]

        def outputs(*moving: Any) -> tuple[Any, ...]:
            return tuple(outputs_of(self.problem.call_on(self.device, moving)).tensors)

        loop = [outputs(*(to_tensor(p[k], self.device) for p in pairs)) for k in range(2)]
        if not loop[0]:
            return "it returns no Tensors"
        batch = self.attempt(lambda: vmap(outputs)(*(to_tensor(p, self.device) for p in pairs)))
        rtol, atol = self.options.tolerance(self.eps, "vmap")
        for k, alone in enumerate(loop):
            self._compare([on_host(x)[k] for x in batch], [on_host(x) for x in alone], rtol, atol, f"loop at element {k} of the batch")
        return None
