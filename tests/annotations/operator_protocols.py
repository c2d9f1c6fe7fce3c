"""Protocols of optype, by which functions say which operators and conversions their arguments need; Tensors have these."""

from typing import Any, Protocol, TypeVar

import numpy as np
import optype as op
from optype.dlpack import CanDLPackCompat, CanDLPackDevice

import xpgrad as xp
from xpgrad import Tensor


class Number(op.CanAddSame, op.CanSubSame, op.CanMulSame, op.CanNegSelf, op.CanAbsSelf, Protocol):
    """What a formula needs of its arguments."""


N = TypeVar("N", bound=Number)


def formula(x: N, c: N) -> N:
    return abs(x) * x * c - x + (-c)


def scale(x: op.CanMul[float, Tensor]) -> Tensor:
    return x * 2.0


def scale_from_left(x: op.CanRMul[float, Tensor]) -> Tensor:
    return 2.0 * x


def product(x: op.CanMatmul[Tensor, Tensor], y: Tensor) -> Tensor:
    return x @ y


def increase(x: op.CanIAddSelf[float]) -> None:
    x += 1.0


def first(x: op.CanGetitem[int, Tensor]) -> Tensor:
    return x[0]


def write(x: op.CanSetitem[int, float]) -> None:
    x[0] = 7.0


def convert(x: op.CanFloat) -> float:
    return float(x)


def count(x: op.CanLen) -> int:
    return len(x)


class Exchanged(CanDLPackCompat, CanDLPackDevice[Any, Any], Protocol):
    """What `from_dlpack` needs."""


def exchange(x: Exchanged) -> Any:
    return np.from_dlpack(x)


x = xp.tensor([1.0, 2.0], requires_grad=True)
y: Tensor = formula(x, xp.tensor([3.0, 4.0]))
assert y.tolist() == [-1.0, 10.0]
assert scale(x).tolist() == scale_from_left(x).tolist() == [2.0, 4.0]
assert convert(product(x.detach(), xp.ones(2))) == 3.0
assert first(x).tolist() == 1.0
z = xp.zeros(2)
write(z)
increase(z)
assert exchange(z).tolist() == [8.0, 1.0]
assert count(z) == 2
for protocol in (op.CanAddSelf, op.CanRMul, op.CanMatmul, op.CanIAdd, op.CanFloat, op.CanInt, op.CanBool, op.CanIndex, op.CanLen):
    assert isinstance(x, protocol)
xp.sum(y).backward()
assert x.grad is not None
assert x.grad.tolist() == [5.0, 15.0]
