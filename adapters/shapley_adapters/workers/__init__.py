"""Workers of joblib: their number, what they receive, and what they send back."""
