"""The rules that no row tells, one file per chapter, as the rows are: each is registered by its name (`rulebook.RULES`)."""

from xpgrad._transforms.batch.rules import creation, elementwise, indexing, linear_algebra, manipulation, reduction, searching, writing

__all__ = ["creation", "elementwise", "indexing", "linear_algebra", "manipulation", "reduction", "searching", "writing"]
