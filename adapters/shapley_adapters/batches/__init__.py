"""Functions from a batch of a table to a batch of attributions, for engines that own the data."""
