"""Arguments of explainers: models, rows, background rows, maskers."""
