"""Group J, writes through views: views and bases rewrite one another's history, on both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xpgrad as xp

MATRIX = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_a_write_into_a_view_rewrites_its_base(lib: Any) -> None:
    """MUT-14: exact for what was written and for what was not."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    view = y[1:]
    old = view.grad_fn
    view.mul_(3.0)
    assert view.grad_fn is not old
    (y * y).sum().backward()
    lib.equal(x.grad, [[2.0, 4.0], [54.0, 72.0], [90.0, 108.0]])


def test_a_write_into_the_base_rewrites_its_views(lib: Any) -> None:
    """MUT-15, MUT-16: also those of views, and siblings that overlap."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    first, second, nested = y[:2], y[1:], y.T[0]
    y.mul_(2.0)
    (first.sum() + (second * second).sum() + nested.sum()).backward()
    lib.equal(x.grad, [[4.0, 2.0], [28.0, 34.0], [42.0, 48.0]])
    x.grad = None
    y = x * 1.0
    first, second = y[:2], y[1:]
    first.mul_(3.0)
    second.sum().backward()
    lib.equal(x.grad, [[0.0, 0.0], [3.0, 3.0], [1.0, 1.0]])


def test_versions_are_shared(lib: Any) -> None:
    """MUT-02."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    view, alias = y[0], y.detach()
    view.add_(1.0)
    assert y._version == view._version == alias._version == 1
    assert y.clone()._version == 0


def test_a_written_value_brings_its_history(lib: Any) -> None:
    """MUT-13: a plain base, and its views, require grad once such a value is written."""
    base, value = lib.const(MATRIX), lib.tensor([10.0, 20.0])
    view = base[1]
    view.copy_(value)
    assert base.requires_grad
    assert view.requires_grad
    assert not base.is_leaf
    (base * base).sum().backward()
    lib.equal(value.grad, [20.0, 40.0])


def test_saved_values_are_protected_through_views(lib: Any) -> None:
    """MUT-07."""
    for write_base in (True, False):
        x = lib.tensor(MATRIX)
        y = x * 1.0
        view = y[0]
        product = (view * view) if write_base else (y * y)
        (y if write_base else view).add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


def test_views_of_leaves_are_refused(lib: Any) -> None:
    """MUT-11."""
    x = lib.tensor(MATRIX)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x[0].add_(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x[0] = 1.0


def test_outputs_of_multi_view_functions_are_refused(lib: Any) -> None:
    """MUT-17."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    first, second = (lib.ns.unbind(y) if lib.torch else lib.ns.unstack(y))[:2]
    with pytest.raises(RuntimeError, match=r"is a view and is being modified inplace\. This view is the output of a function that returns"):
        first.add_(1.0)
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified inplace"):
        second * 1.0


def test_views_made_without_recording_are_refused(lib: Any) -> None:
    """MUT-18: written to, or used after their base was written to."""
    y = lib.tensor(MATRIX) * 1.0
    with lib.ns.no_grad():
        view = y[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode enabled"):
        view.mul_(lib.tensor(2.0))
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base or another view of its base has been modified"):
        view.grad_fn


def test_a_retained_gradient_moves_and_a_hook_stays(lib: Any) -> None:
    """HOK-13, HOK-14, through a view."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    seen = []
    y.register_hook(lambda g: seen.append(lib.value(g).copy()))
    y.retain_grad()
    y[0].mul_(3.0)
    (y * lib.const(MATRIX)).sum().backward()
    lib.equal(y.grad, MATRIX)
    assert [s.tolist() for s in seen] == [[[3.0, 6.0], [3.0, 4.0], [5.0, 6.0]]]


def test_second_derivatives_through_writes(lib: Any) -> None:
    """MUT-26."""
    x = lib.tensor(MATRIX)
    y = x * x
    y.T[0].mul_(x[:, 1])
    (first,) = lib.grad((y * y).sum(), x, create_graph=True)
    (second,) = lib.grad(first.sum(), x)
    # y = [[a^2 b, b^2], ...] for each row (a, b)
    expected = [[12 * a * a * b * b + 8 * a**3 * b, 8 * a**3 * b + 2 * a**4 + 12 * b * b] for a, b in MATRIX]
    lib.equal(second, expected)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_writes_into_parts_of_complex_tensors(lib: Any, part: str) -> None:
    """MUT-14, CPX-06."""
    z = lib.tensor([1.0 + 2.0j, 3.0 - 1.0j], dtype="complex128")
    w = z * 1.0
    getattr(w, part).mul_(lib.const([2.0, 3.0]))
    (w.real * w.real + w.imag * w.imag).sum().backward()
    real, imaginary = (8.0, 54.0), (4.0, -2.0)
    if part == "imag":
        real, imaginary = (2.0, 6.0), (16.0, -18.0)
    lib.equal(z.grad, [complex(a, b) for a, b in zip(real, imaginary)])


IN_PLACE = {
    "neg_": (), "abs_": (), "exp_": (), "log_": (), "sqrt_": (), "square_": (), "reciprocal_": (), "sin_": (), "cos_": (), "tanh_": (),
    "floor_": (), "ceil_": (), "round_": (), "clamp_": (1.5, 4.5), "zero_": (), "fill_": (2.0,), "pow_": (3,), "div_": (2.0,),
}  # fmt: skip


@pytest.mark.parametrize("target", ["whole", "view"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_methods(name: str, target: str) -> None:
    """MUT-12, MUT-14: each in-place method, on a Tensor and through a view, as PyTorch's."""
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    found = []
    for tensor in (torch.tensor, xp.tensor):
        x = tensor(np.asarray(MATRIX), requires_grad=True)
        y = x * tensor(np.asarray([[1.1, 0.7], [0.9, 1.2], [0.8, 1.3]]))
        part = y if target == "whole" else y[1:]
        assert getattr(part, name)(*IN_PLACE[name]) is part
        (y * y).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy(), y._version, part.requires_grad))
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_masked_fill_and_index_add_in_place(lib: Any) -> None:
    """MUT-12, MUT-22, BWD-42."""
    x, value, source = lib.tensor(MATRIX), lib.tensor(7.0), lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = x * 1.0
    y.masked_fill_(x > 4.5, value)
    index = lib.ns.tensor([0, 0, 2])
    y.index_add_(0, index, source)
    lib.equal(y, [[5.0, 8.0], [3.0, 4.0], [12.0, 13.0]])
    (y * y).sum().backward()
    lib.equal(x.grad, [[10.0, 16.0], [6.0, 8.0], [0.0, 0.0]])
    lib.equal(value.grad, 50.0)
    lib.equal(source.grad, [[10.0, 16.0], [10.0, 16.0], [24.0, 26.0]])


def test_saved_tensors_that_were_detached_in_place(lib: Any) -> None:
    """ACC-29, ACC-30."""
    x = lib.tensor([1.0, 2.0])
    y = x * 2.0
    squared, shifted = y * y, y + 1.0
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    shifted.sum().backward(retain_graph=True)
    lib.equal(x.grad, [2.0, 2.0])
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        squared.sum().backward()
    grown = lib.ns.exp(lib.tensor([1.0, 2.0]))
    total = grown.sum()
    grown.detach_()
    total.backward()
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 1.0)[0].detach_()


def test_saved_tensors_may_be_overwritten_in_the_context(lib: Any) -> None:
    """MUT-23: the old values are used; leaving with the graph, and nesting, are errors."""
    allow = lib.graph.allow_mutation_on_saved_tensors
    x = lib.tensor([0.3, 0.5, 0.7])
    with allow():
        y = x * 1.0
        z = lib.ns.sin(y) * lib.ns.exp(y)
        y.mul_(0.0)
        z.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow():
            pass
        late = (lib.ns.exp(x) * x).sum()
    values = lib.value(x)
    lib.equal(x.grad, np.exp(values) * (np.sin(values) + np.cos(values)))
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        late.backward()
    x.grad = None
    (lib.ns.exp(x) * x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("device", ["numpy", "numpy+readonly", "strict"])
def test_writes_through_views_in_the_context_follow_differences(device: str) -> None:
    """MUT-23: where PyTorch 2.13 is wrong, central differences decide; first and second order."""

    data = np.asarray([0.3, 0.5, 0.7, 1.1])
    x = xp.tensor(data, requires_grad=True, device=device)
    with xp.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1.0
        z = xp.sin(y)
        y[1:].mul_(0.7)
        w = z * y
        y[::2].add_(x[0])
        (first,) = xp.autograd.grad(xp.sum(w) + xp.sum(z * z) + xp.sum(y * y), x, create_graph=True)
        (second,) = xp.autograd.grad(xp.sum(first * first), x)

    def value(v: np.ndarray) -> float:
        y = v * np.asarray([1.0, 0.7, 0.7, 0.7])
        z = np.sin(v)
        last = y + v[0] * np.asarray([1.0, 0.0, 1.0, 0.0])
        return float(np.sum(z * y) + np.sum(z * z) + np.sum(last * last))

    def slope(v: np.ndarray, step: float = 1e-6) -> np.ndarray:
        return np.asarray([(value(v + step * e) - value(v - step * e)) / (2 * step) for e in np.eye(4)])

    np.testing.assert_allclose(first.detach().numpy(), slope(data), rtol=1e-7)
    hessian = np.asarray([(slope(data + 1e-4 * e, 1e-4) - slope(data - 1e-4 * e, 1e-4)) / 2e-4 for e in np.eye(4)])
    np.testing.assert_allclose(second.numpy(), 2 * hessian @ slope(data), rtol=1e-4)


def test_a_stale_view_gets_its_node_at_its_next_use(lib: Any) -> None:
    """MUT-15, HOK-14: until then what is retained belongs to the old node; a write that is not recorded makes views stale, too."""
    x = lib.tensor(MATRIX)
    y = x * 1.0
    view = y[0]
    view.retain_grad()
    before = view * 2.0
    with lib.ns.no_grad():
        y.mul_(3.0)
        assert not (view + 1.0).requires_grad
    assert view.requires_grad
    before.sum().backward(retain_graph=True)  # nobody has used the view since
    lib.equal(view.grad, [2.0, 2.0])
    after = view * view
    assert view.retains_grad
    before.sum().backward(retain_graph=True)
    lib.equal(view.grad, [2.0, 2.0])
    after.sum().backward()
    lib.equal(view.grad, [8.0, 14.0])
    lib.equal(x.grad, [[10.0, 16.0], [0.0, 0.0], [0.0, 0.0]])


def test_hooks_of_a_view_stay_with_the_node_that_a_write_to_its_base_replaced(lib: Any) -> None:
    """HOK-13, recorded or not."""
    for quiet in (False, True):
        y = lib.tensor(MATRIX) * 1.0
        view, seen = y[0], []
        view.register_hook(lambda g, seen=seen: seen.append(lib.value(g).tolist()))
        before = view.sum()
        with lib.ns.no_grad() if quiet else lib.ns.enable_grad():
            y.mul_(3.0)
        after = (view * 2.0).sum()
        after.backward(retain_graph=True)
        assert seen == []
        before.backward()
        assert seen == [[1.0, 1.0]]


def test_a_hook_of_a_view_sees_the_gradient_before_the_write_to_it(ours: Any) -> None:
    """HOK-13. PyTorch 2.13 drops such a hook, and with it the gradient that it returns: listed deviation."""
    x = ours.tensor([1.0, 2.0, 3.0])
    y = x * 1.0
    view = y[1:]
    view.register_hook(lambda g: g * 10.0)
    view.mul_(2.0)
    y.sum().backward()
    ours.equal(x.grad, [1.0, 20.0, 20.0])


def test_views_of_views_that_may_not_follow_may_not_either(lib: Any) -> None:
    """MUT-17."""
    y = lib.tensor(MATRIX) * 1.0
    view = y.unbind(0)[0][1:]
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        view.mul_(2.0)


def test_a_detached_leaf_is_still_watched(lib: Any) -> None:
    """MUT-03, ACC-30: what was saved of it was overwritten."""
    x = lib.tensor([1.0, 2.0])
    y = x * x
    x.detach_()
    x.mul_(5.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    grown = lib.ns.exp(lib.tensor([1.0, 2.0]))
    after = grown * 2.0
    grown.detach_()
    grown.mul_(0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        after.sum().backward()


def test_a_leaf_may_not_move_into_the_graph(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    y = -x
    x.detach_()
    x.mul_(y)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        x.sum().backward()


def test_a_function_that_writes_to_a_view(lib: Any) -> None:
    """FUN-09 through a view: its base and the base's other views get the Function's history."""

    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3.0)
        ctx.mark_dirty(x)
        return x

    x = lib.tensor(MATRIX)
    y = x * 1.0
    sibling = y[:2]
    part = y[1:]
    assert lib.fn(forward, lambda ctx, g: g * 3.0).apply(part) is part
    (y.sum() + (sibling * sibling).sum() + part.sum()).backward()
    lib.equal(x.grad, [[3.0, 5.0], [60.0, 78.0], [6.0, 6.0]])


@pytest.mark.parametrize("device", ["numpy", "numpy+readonly", "frozen", "strict"])
def test_data_shares_the_memory_and_not_the_version(device: str) -> None:
    """MUT-08, also where arrays are immutable."""
    x = xp.tensor(MATRIX, device=device)
    row = x[0]
    data = x.data
    data[0] = 7.0
    assert row.tolist() == x.tolist()[0] == [7.0, 7.0]
    x[0] = 8.0
    row += 1.0
    assert data.tolist()[0] == [9.0, 9.0]
    assert (x._version, row._version, data._version) == (2, 2, 1)
