"""Law: programs in the style of PyTorch's tutorial pages on autograd run as they stand, the import changed, and give what PyTorch does;
what does not run says in one sentence what to write instead.

We wrote the programs. Each is a text that calls its library `torch` and leaves its results in `results`.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

import xpgrad as xp

torch = pytest.importorskip("torch")

PROGRAMS = {
    "a gentle introduction": """
a = torch.tensor([2.0, 3.0], requires_grad=True)
b = torch.tensor([6.0, 4.0], requires_grad=True)
q = 3 * a**3 - b**2
q.backward(gradient=torch.tensor([1.0, 1.0]))
x = torch.ones(5, 5).float()
y = torch.ones((5, 5)).float().requires_grad_()
results += [a.grad, b.grad, (x + y).requires_grad, (x + x).requires_grad]
""",
    "a training step": """
x = torch.linspace(-1.0, 1.0, 30).reshape(30, 1).float()
y = (x.sin() * 2 + 0.1).detach()
w, v = torch.full((1, 8), 0.3).float().requires_grad_(), torch.linspace(-0.5, 0.5, 8).reshape(8, 1).float().requires_grad_()
losses = []
for step in range(20):
    out = (x @ w).relu() @ v + (x @ w).sigmoid().mean(dim=1, keepdim=True)
    loss = ((out - y) ** 2).mean()
    for p in (w, v):
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in (w, v):
            p -= 0.1 * p.grad
    losses.append(loss.item())
results += [torch.tensor(losses), w, v, x.shape[1], out.var(unbiased=False), out.norm(), out.log_softmax(0)]
""",
    "leaves": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
z = y.detach()
y.retain_grad()
(y * y).sum().backward()
results += [x.is_leaf, y.is_leaf, z.is_leaf, x.grad, y.grad, z.requires_grad, y.grad_fn.name(), y.retains_grad]
""",
    "hooks on saved values": """
packed = []
def pack(t):
    packed.append(tuple(t.shape))
    return t.detach() * 1.0
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    y = x.pow(2) * x.exp()
y.sum().backward()
with torch.autograd.graph.save_on_cpu():
    z = (x * x).sum()
z.backward()
results += [len(packed) > 0, x.grad]
""",
    "double backward": """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3
    @staticmethod
    def backward(ctx, grad_out):
        x, = ctx.saved_tensors
        return Square.apply(x) * grad_out
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x**2
    @staticmethod
    def backward(ctx, grad_out):
        x, = ctx.saved_tensors
        return 6 * x * grad_out
x = torch.tensor([1.5, -0.5]).double().requires_grad_()
g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
h, = torch.autograd.grad(g.sum(), x)
results += [g, h, torch.autograd.gradcheck(Cube.apply, x), torch.autograd.gradgradcheck(Cube.apply, x)]
""",
    "forward mode": """
fwAD = torch.autograd.forward_ad
x, t = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])
with fwAD.dual_level():
    dual = fwAD.make_dual(x, t)
    out = fwAD.unpack_dual(dual.sin() * dual)
results += [out.primal, out.tangent, fwAD.unpack_dual(dual).tangent is None]
""",
    "Jacobians, Hessians and products": """
x, v = torch.tensor([0.3, -0.7, 1.1]), torch.tensor([1.0, 2.0, 3.0])
w = torch.linspace(-1.0, 1.0, 6).reshape(2, 3).float()
f = lambda x: (w @ x).tanh()
g = lambda x: f(x).sum() * x.prod()
func = torch.func
results += [
    func.jacrev(f)(x), func.jacfwd(f)(x), func.hessian(g)(x), func.vjp(f, x)[1](torch.ones(2))[0], func.jvp(f, (x,), (v,))[1],
    func.vmap(func.grad(g))(torch.stack([x, v])), torch.autograd.functional.hvp(g, x, v)[1], torch.autograd.functional.vhp(g, x, v)[1],
    torch.autograd.functional.jacobian(f, x), func.jvp(func.grad(g), (x,), (v,))[1],
]
""",
    "gradients on the way": """
seen = []
def keep(name):
    return lambda grad: seen.append((name, float(grad.norm())))
x = torch.linspace(0.1, 1.0, 12).reshape(3, 4).float()
layers = [torch.full((4, 4), 0.1 * (k + 1)).float().requires_grad_() for k in range(3)]
for k, layer in enumerate(layers):
    x = (x @ layer).tanh()
    x.register_hook(keep(k))
x.sum().backward()
results += [torch.tensor([n for _, n in seen]), [k for k, _ in seen] == [2, 1, 0], layers[0].grad]
""",
    "the optimiser in the backward": """
w = torch.tensor([1.0, 2.0], requires_grad=True)
def step(p):
    with torch.no_grad():
        p -= 0.1 * p.grad
    p.grad = None
handle = w.register_post_accumulate_grad_hook(step)
for _ in range(3):
    (w * w).sum().backward()
handle.remove()
results += [w, w.grad is None]
""",
    "checkpoints": """
import functools
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts
x = torch.tensor([0.2, 0.4], requires_grad=True)
f = lambda x: (x.exp() * x).sin()
y = checkpoint(f, x, use_reentrant=False).sum()
y.backward()
keep = lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_SAVE
z = checkpoint(f, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, keep)).sum()
z.backward()
u = checkpoint_sequential([f, f], 2, x, use_reentrant=False).sum()
u.backward()
results += [y, z, u, x.grad]
""",
    "per-sample gradients and ensembles": """
func = torch.func
params = {"w": torch.tensor([[0.3, -0.2], [0.1, 0.7]]), "b": torch.tensor([0.5, -0.5])}
def loss(params, x, y):
    return ((x @ params["w"] + params["b"] - y) ** 2).sum()
x, y = torch.linspace(0.0, 1.0, 8).reshape(4, 2).float(), torch.ones((4, 2)).float()
per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
several = {k: torch.stack([v, 2 * v]) for k, v in params.items()}
together = func.vmap(loss, in_dims=(0, None, None))(several, x, y)
results += [per_sample["w"], per_sample["b"], together]
""",
    "anomalies": """
x = torch.tensor([-1.0], requires_grad=True)
try:
    with torch.autograd.detect_anomaly():
        x.sqrt().sum().backward()
    results.append("nothing")
except RuntimeError as exc:
    results.append("SqrtBackward0" in str(exc) and "nan" in str(exc))
""",
}  # fmt: skip


def run(text: str, library: str) -> list[Any]:
    scope: dict[str, Any] = {"results": []}
    code = f"import {library} as torch\n" + text.replace("from torch.", f"from {library}.")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exec(code, scope)  # noqa: S102 (our own text)
    found: list[Any] = scope["results"]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    ours, theirs = run(PROGRAMS[name], "xpgrad"), run(PROGRAMS[name], "torch")
    assert len(ours) == len(theirs)
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if isinstance(b, torch.Tensor):
            assert tuple(a.shape) == tuple(b.shape), k
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=1e-6, err_msg=str(k))
        else:
            assert a == b, k


A = np.asarray([1.0, 2.0])
#: Expressions that people try, and their values.
WORKS: dict[str, tuple[str, Any]] = {
    "a dtype of NumPy's": ("xp.zeros(2, dtype=A.dtype).dtype.name", "float64"),
    "any dtype of NumPy's": (
        "[xp.asarray(A).to(d).dtype.name for d in (np.dtype('int64'), np.complex128, 'bool')]", ["int64", "complex128", "bool"],
    ),
    "method, PyTorch's way": ("xp.asarray(A).var(dim=0).item()", 0.5),
    "method, the standard's way": ("xp.asarray(A).var().item()", 0.25),
    "the largest, with its place": ("[v.item() for v in xp.asarray(A).max(dim=0)]", [2.0, 1]),
    "the largest, the standard's way": ("xp.asarray(A).max(0).item()", 2.0),
    "an array beside a Tensor": ("(xp.asarray(A) * A).tolist()", [1.0, 4.0]),
    "an array before a Tensor": ("(A * xp.asarray(A)).tolist()", [1.0, 4.0]),
    "a gradient of an array": ("xp.func.grad(lambda x: xp.sum(x * x))(A).tolist()", [2.0, 4.0]),
    "a gradient of a number": ("xp.func.grad(lambda x: x * x)(3.0).item()", 6.0),
    "a batch of an array": ("xp.func.vmap(lambda x: x * 2)(A).tolist()", [2.0, 4.0]),
    "NumPy's functions": ("[np.sin(xp.asarray(0.0)).item(), np.mean(xp.asarray(A)).item()]", [0.0, 1.5]),
    "a function of a number": ("xp.sin(0.0).item()", 0.0),
    "special functions": ("xp.scipy.special.expit(xp.asarray(0.0)).item()", 0.5),
    "axes by position": (
        "[xp.sum(xp.asarray([A, A]), 0).tolist(), xp.stack([xp.asarray(A)] * 2, 0).shape, xp.diff(xp.asarray(A), 2).shape]",
        [[2.0, 4.0], (2, 2), (0,)],
    ),
    "methods of PyTorch's": (
        "[getattr(xp.asarray(A), n)().tolist() for n in ('ravel', 'relu', 'norm', 'sigmoid', 'argsort')][:2]", [[1.0, 2.0]] * 2,
    ),
    "Tensors in a list": ("xp.tensor([xp.asarray(1.0), xp.asarray(2.0)]).tolist()", [1.0, 2.0]),
    "an attribute that is not there": ("[hasattr(xp.asarray(A), 'T'), getattr(xp.asarray(A), 'imag', None)]", [False, None]),
    "members and specifications": ("[len(inspect.getmembers(xp.asarray(A))) > 50, create_autospec(xp.Tensor) is not None]", [True, True]),
    "names of an extension": ("[n for n in dir(xp.linalg) if n.startswith('_') and not n.startswith('__')]", []),
    "what a dual shows": ("xp.func.jvp(show, (xp.asarray(1.0),), (xp.asarray(2.0),)) and 'tangent' in shown[-1]", True),
    "what an element of a batch shows": ("xp.func.vmap(show)(xp.asarray(A)) is not None and 'batch' in shown[-1]", True),
    "shape as arguments": ("[xp.ones(2, 3).shape, xp.zeros(2, 1, 0).shape, xp.empty(3).shape]", [(2, 3), (2, 1, 0), (3,)]),
    "the host": ("str(xp.zeros(1, device='cpu').device)", "numpy"),
}  # fmt: skip
#: Code that people try and that does not run, the error, and what its message says to write instead.
ADVICE: dict[str, tuple[str, type[Exception], str]] = {
    "array": ("xp.array([1.0])", AttributeError, "asarray"), "concatenate": ("xp.concatenate([])", AttributeError, "concat"),
    "cat": ("xp.cat([])", AttributeError, "concat"), "dot": ("xp.dot(1, 2)", AttributeError, "vecdot|@"),
    "norm": ("xp.norm(1)", AttributeError, "linalg"), "relu": ("xp.relu(1)", AttributeError, "maximum|relu"),
    "a dtype by position": ("xp.ones(2, 'float32')", TypeError, "`dtype` and `device` by name"),
    "a truth of many": ("bool(xp.asarray(A) > 1)", (ValueError, RuntimeError), "any|all"),
    "a list as an operand": ("xp.asarray(A) * [1, 2]", TypeError, "asarray"),
    "a format of many": ("f'{xp.asarray(A):.3f}'", TypeError, "item|one element|tolist"),
    "a format that is none": ("f'{xp.asarray(1.0):zzz}'", ValueError, "zzz|format"),
    "a device that nobody makes": ("xp.zeros(1, device='nonsense')", LookupError, "numpy"),
    "values of a dual": (
        "xp.func.jvp(lambda x: xp.asarray(np.asarray(x)), (xp.asarray(A),), (xp.asarray(A),))", RuntimeError, "tangent|detach",
    ),
    "an array inside of a transform": (
        "xp.func.grad(lambda x: xp.asarray(x.array.sum()))(xp.asarray(A))", RuntimeError, "transform|detach",
    ),
    "an overwritten saved value": ("overwritten()", RuntimeError, "allow_mutation_on_saved_tensors"),
}  # fmt: skip


def overwritten() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = xp.sum(y * y)
    y *= 2
    z.backward()


SHOWN: list[str] = []


def show(x: Any) -> Any:
    SHOWN.append(repr(x))
    return x


SCOPE: dict[str, Any] = {
    "xp": xp, "np": np, "A": A, "inspect": inspect, "create_autospec": create_autospec, "shown": SHOWN, "show": show,
    "overwritten": overwritten,
}  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
def test_what_people_try(name: str) -> None:
    text, expected = WORKS[name]
    assert eval(text, SCOPE) == expected


@pytest.mark.parametrize("name", ADVICE)
def test_what_does_not_run_says_what_to_write(name: str) -> None:
    text, error, says = ADVICE[name]
    with pytest.raises(error, match=says):
        eval(text, SCOPE)
