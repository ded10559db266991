"""Values of absent features from their distribution given the present ones."""
