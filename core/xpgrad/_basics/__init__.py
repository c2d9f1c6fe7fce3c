"""Dtypes, devices, shapes, keys and scalars; these modules import nothing else of the package but the errors."""
