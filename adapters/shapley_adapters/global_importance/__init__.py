"""Importance of features over a data set, with standard errors."""
