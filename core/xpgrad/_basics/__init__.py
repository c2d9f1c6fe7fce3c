"""Dtypes, devices, shapes, keys and scalars. These modules import nothing else from the package except the errors."""
