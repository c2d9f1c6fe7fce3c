"""The table of operations: each is declared by one row and looked up by its name."""
