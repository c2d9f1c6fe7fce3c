"""The rules: one module per chapter of the Array API standard. Importing this package declares them all."""
