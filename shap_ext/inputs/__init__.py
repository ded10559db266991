"""What users pass to explainers: models, rows, background rows, maskers."""
