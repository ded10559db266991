"""Odd Gaussian-process regression."""
