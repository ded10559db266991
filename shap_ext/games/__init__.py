"""Rows and their maskers as cooperative games."""
