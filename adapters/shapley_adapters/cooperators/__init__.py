"""Scores of the interactions between players, by which cooperators are selected."""
