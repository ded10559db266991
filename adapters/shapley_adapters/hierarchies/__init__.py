"""Hierarchies of players: those of users, and those made from shapes and texts."""
