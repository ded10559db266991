"""Games, their evaluation, and functions of their values."""
