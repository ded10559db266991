"""Networks that predict a model's outputs for masked inputs."""
