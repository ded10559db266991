"""Reports of explanations as HTML pages, and the records of calls that they show."""
