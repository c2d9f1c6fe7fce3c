"""`xpgrad.utils`: tools for differentiation, with the names of `torch.utils`. It has one module, `checkpoint`."""

from xpgrad._basics.faces import public_names
from xpgrad.utils import checkpoint

__all__ = ["checkpoint"]


def __dir__() -> list[str]:
    return public_names(__name__)
