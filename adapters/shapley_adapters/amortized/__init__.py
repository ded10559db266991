"""Networks that predict Shapley values, trained on games. Needs torch and safetensors."""

from ..errors import required_packages

with required_packages("Networks that explain need torch and safetensors", extra="amortized"):
    import safetensors
    import torch

    del safetensors, torch
