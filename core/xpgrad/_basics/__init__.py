"""Dtypes, devices, shapes, keys and scalars: what needs nothing else of the package."""
