"""Forward functions and their inputs as cooperative games."""
