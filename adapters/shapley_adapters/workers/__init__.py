"""Workers of joblib: their number, the objects sent to them, and their warnings."""
