"""Attribution methods that are made of other methods."""
