"""Language models that answer prompts: their passes, and scores of their answers."""
