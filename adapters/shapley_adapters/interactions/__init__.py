"""Interactions of pairs of players: their indices, their arrays, and their ranking."""
