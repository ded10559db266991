"""Estimates as tensors."""
