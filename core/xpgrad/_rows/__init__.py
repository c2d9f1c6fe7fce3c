"""Operations: each is one row, and is found by its name."""
