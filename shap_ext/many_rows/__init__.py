"""Streams of rows, batches of tables, and importance over a data set, by an explainer."""
