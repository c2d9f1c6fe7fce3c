"""What an operation is: one row; and where operations are found by name."""
