"""Models behind a network: many calls at once, tried again, and nothing paid for twice."""
