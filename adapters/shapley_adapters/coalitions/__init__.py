"""Tables of coalitions, and distributions of their sizes."""
