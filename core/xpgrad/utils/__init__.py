"""`xpgrad.utils`: tools for differentiation, with the names of `torch.utils`. So far that is `checkpoint`."""

from xpgrad.utils import checkpoint

__all__ = ["checkpoint"]
