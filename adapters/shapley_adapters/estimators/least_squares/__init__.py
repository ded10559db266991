"""Least squares: distinct coalitions, independent draws, and the choice between them."""
