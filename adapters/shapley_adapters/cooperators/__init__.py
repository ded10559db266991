"""Scores of how strongly players interact, by which cooperators are chosen."""
