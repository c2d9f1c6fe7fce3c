"""Law: messages, reprs and tracebacks say what is wrong and what to do. Also tests of small functions with PyTorch's names."""

from __future__ import annotations

import importlib
import re
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import forward_ad, grad, grad_mode
from xpgrad.func import jvp, vmap

CORE = Path(xp.__file__).parent
X = xp.ones(3)


def overwritten() -> None:
    x = xp.ones(3, requires_grad=True)
    y = xp.exp(x)
    y *= 2
    y.sum().backward()


#: A statement that fails, the type of the error, and what its message must contain.
SAYS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a truth value": (lambda: bool(X > 0), ValueError, r"shape \(3,\)\) is ambiguous; use `xpgrad.any\(x\)` or `xpgrad.all\(x\)`"),
    "that of nothing": (lambda: bool(xp.ones(0)), ValueError, r"no elements .* ambiguous"),
    "a list on the right": (lambda: X * [1, 2, 3], TypeError, r"`multiply` needs a Tensor, but got .*list.*`xpgrad.asarray\(x\)`"),
    "a list on the left": (lambda: [1, 2, 3] - X, TypeError, r"`subtract` needs a Tensor, but got .*list"),
    "a tuple": (lambda: X + (1, 2, 3), TypeError, r"`add` needs a Tensor, but got .*tuple"),
    "a str": (lambda: X < "a", TypeError, r"`less` needs a Tensor, but got .*str"),
    "a saved value overwritten": (overwritten, RuntimeError, r"allow_mutation_on_saved_tensors\(\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_a_message_says_what_to_do(name: str) -> None:
    call, kind, text = SAYS[name]
    with pytest.raises(kind, match=text):
        call()


def test_what_lists_mean_elsewhere_stays() -> None:
    assert [0, 1] * xp.asarray(2) == [0, 1, 0, 1]
    assert "ab" * xp.asarray(2) == "abab"
    assert (X == [1, 1, 1]) is False
    assert (X != "a") is True


class Other:
    """A class with its own operators, which must be asked."""

    def __radd__(self, other: Any) -> str:
        return "asked"


def test_the_operators_of_others_are_asked() -> None:
    assert X + Other() == "asked"


# -- reprs ----------------------------------------------------------------------------------------------------------------


def test_the_repr_of_a_dual_shows_its_tangent() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
        assert repr(x) == "tensor([1., 2.], tangent=tensor([3., 4.]))"
        assert repr(x * 2) == "tensor([2., 4.], tangent=tensor([6., 8.]))"
        assert repr(xp.ones(2)) == "tensor([1., 1.])"
    assert repr(x) == "tensor([1., 2.])"
    seen = []
    jvp(lambda x: seen.append(repr(x)) or x, (xp.ones(1),), (xp.zeros(1),))
    assert seen == ["tensor([1.], tangent=tensor([0.]))"]


def test_the_repr_of_an_element_of_a_batch_shows_the_batch() -> None:
    seen: list[str] = []

    def look(x: Any) -> Any:
        seen.append(" ".join(repr(x).split()))
        return x

    vmap(look)(xp.ones((2, 3)))
    vmap(vmap(look))(xp.ones((2, 1)))
    vmap(lambda x: jvp(look, (x,), (x * 2,)))(xp.ones((2, 1)))
    vmap(lambda x: look(xp.ones(1)) * x)(xp.ones((2, 1)))
    assert seen == [
        "tensor([[1., 1., 1.], [1., 1., 1.]], shape=(3,), batch=(2,))",
        "tensor([[1.], [1.]], shape=(), batch=(2, 1))",
        "tensor([[1.], [1.]], shape=(1,), batch=(2,), tangent=tensor([[2.], [2.]], shape=(1,), batch=(2,)))",
        "tensor([1.])",
    ]


# -- tracebacks -----------------------------------------------------------------------------------------------------------


def test_a_traceback_names_the_line_of_the_rule() -> None:
    def shown(call: Callable[[], Any]) -> list[tuple[str, str, int, str]]:
        try:
            call()
        except Exception as exc:  # noqa: BLE001 (whatever the library raises)
            text = "".join(traceback.format_exception(exc))
            return re.findall(r'File "<xpgrad ([^,>]+), rule: ([\w/.]+):(\d+)>", line \d+, in .*\n(.*)', text)
        return []

    x = xp.tensor(0.0, requires_grad=True)
    xp.log(xp.ones(1))
    y = xp.sqrt(x)
    with np.errstate(all="raise"):
        found = {
            "add": shown(lambda: xp.ones((2, 3)) + xp.ones(4)), "log": shown(lambda: xp.log(xp.zeros(1))),
            "sqrt": shown(lambda: grad(y, x)),
        }  # fmt: skip
    for name, lines in found.items():
        assert lines, name
        for _, file, number, line in lines:
            text = (CORE / file).read_text(encoding="utf-8").splitlines()[int(number) - 1 :]
            assert text[0].startswith("@")
            assert line.endswith(f"  # {text[0].strip()}")  # after the generated line
            assert next(line for line in text if line.startswith("def ")).startswith(f"def {name}(")


# -- functions with PyTorch's names ------------------------------------------------------------------------------------------


def test_is_inference() -> None:
    with xp.inference_mode():
        x = xp.ones(2)
    assert xp.is_inference(x)
    assert xp.is_inference(x[0])
    assert not xp.is_inference(xp.ones(2))
    with pytest.raises(TypeError, match="`is_inference` needs a Tensor"):
        xp.is_inference(3)


def test_the_setting_of_threads_agrees_with_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")

    def trail(enabled: Callable[[], bool], switch: Any) -> list[bool]:
        seen = [enabled()]
        with switch(False):
            seen.append(enabled())
            with switch(True):
                seen.append(enabled())
            seen.append(enabled())
        seen.append(enabled())
        switch(False)
        seen.append(enabled())
        switch(True)
        thread = threading.Thread(target=lambda: seen.append(enabled()))
        thread.start()
        thread.join()
        return seen

    ours = trail(xp.autograd.is_multithreading_enabled, grad_mode.set_multithreading_enabled)
    assert ours == trail(torch.autograd.is_multithreading_enabled, torch.autograd.set_multithreading_enabled)

    @grad_mode.set_multithreading_enabled(False)
    def inside() -> bool:
        return grad_mode.is_multithreading_enabled()

    assert (grad_mode.is_multithreading_enabled(), inside(), grad_mode.is_multithreading_enabled()) == (True, False, True)


@pytest.mark.filterwarnings("ignore:.*deprecat:FutureWarning")
def test_the_jacobians_of_gradcheck_agree_with_pytorch(xpgrad_device: str) -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)

    def results(lib: Any, module: Any, **options: Any) -> list[Any]:
        x, y = (lib.asarray(v.copy(), **options) for v in (a, b))
        x.requires_grad_(), y.requires_grad_()

        def f(inputs: Any) -> Any:
            return (inputs[0] * inputs[1] ** 2).sum(1)

        jacobians, *rest = module.get_analytical_jacobian((x, y, 3.0), f((x, y)))
        found = [
            *module.get_numerical_jacobian(f, (x, y)), *module.get_numerical_jacobian(f, (x, y), target=y, eps=1e-4),
            *module.get_numerical_jacobian(lambda _: f((x, y)), (), target=(y,)), *jacobians,
        ]  # fmt: skip
        unused = module.get_analytical_jacobian((x, y), (x * 2).sum(1))[0][1]
        for wrong in (lambda: module.get_numerical_jacobian(f, (x, y), grad_out=2.0),
                      lambda: module.get_analytical_jacobian((x, y), f((x, y)), grad_out=2.0),
                      lambda: module.get_analytical_jacobian((x, y), f((x, y)) * 1j)):  # fmt: skip
            with pytest.raises(ValueError, match="Expected"):
                wrong()
        assert rest == [True, True, True]
        np.testing.assert_array_equal(x.detach().numpy(), a)  # the input that was varied has its old values
        return [t.detach().numpy() for t in (*found, unused)]

    ours = results(xp, importlib.import_module("xpgrad.autograd.gradcheck"), device=xpgrad_device)
    theirs = results(torch, importlib.import_module("torch.autograd.gradcheck"))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_the_jacobians_are_deprecated_as_in_pytorch() -> None:
    module = importlib.import_module("xpgrad.autograd.gradcheck")
    x = xp.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` is deprecated"):
        module.get_numerical_jacobian(lambda inputs: inputs[0] * 2, (x,))
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` is deprecated"):
        module.get_analytical_jacobian((x,), x * 2)


@pytest.mark.parametrize(("context", "name"), [("no_grad", "no_grad mode"), ("inference_mode", "inference mode")])
def test_a_write_to_an_unrecorded_view_names_the_mode_in_which_it_was_made(context: str, name: str) -> None:
    y = xp.ones(3, requires_grad=True) * 1
    with getattr(xp, context)():
        view = y[:2]
    with pytest.raises(RuntimeError, match=f"created in {name} and is being modified"):
        view.mul_(2.0)
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match=f"created in {name} and its base"):
        view.mul_(2.0)
    with getattr(xp, context)():
        assert view.tolist() == [2.0, 2.0]


def test_result_type_does_not_print_its_arguments() -> None:
    for arguments, what in (((), "no arguments"), ((12345, 0.5), "only numbers")):
        with pytest.raises(ValueError, match=f"at least one Tensor or dtype, but got {what};") as caught:
            xp.result_type(*arguments)
        assert "12345" not in str(caught.value)
