"""Tests of the functions and their gradients, in one file per chapter of the standard, and of the rules that users declare."""
