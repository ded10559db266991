"""captum's tools for language models, data loaders and graph networks."""
