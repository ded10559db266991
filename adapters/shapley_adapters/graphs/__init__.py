"""Graphs of players: reading, drawing, connected sets."""
