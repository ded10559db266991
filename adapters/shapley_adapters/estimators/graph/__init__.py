"""Estimators that need a graph of the players."""
