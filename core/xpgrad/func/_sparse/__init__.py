"""Sparse derivatives: dependence traced through a captured program, colourings, products with a few seeds, matrices of them."""
