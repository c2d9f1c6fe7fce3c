"""`xpgrad.utils`: what surrounds differentiation, with the names of `torch.utils`. So far that is `checkpoint`."""

from xpgrad.utils import checkpoint

__all__ = ["checkpoint"]
