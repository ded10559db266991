"""One module for each family of estimators: pure functions of designs and values."""
