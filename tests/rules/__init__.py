"""The functions and their gradients, in one file per chapter of the standard, and the rules that users declare."""
