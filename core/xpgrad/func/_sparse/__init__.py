"""Sparse derivatives: dependence traced through a captured program, colourings, products with a few seeds, and matrices made of them."""
