"""Rules for batches that do not follow from rows, by chapter of the standard; each is registered by its name (`rulebook.RULES`)."""

from xpgrad._transforms.batch.rules import creation, elementwise, indexing, linear_algebra, manipulation, reduction, searching, writing

__all__ = ["creation", "elementwise", "indexing", "linear_algebra", "manipulation", "reduction", "searching", "writing"]
