"""Networks that predict Shapley values, trained on games. Needs torch, lightning, safetensors."""

from ..errors import required_packages

with required_packages(
    "Networks that explain need torch, lightning and safetensors", extra="amortized"
):
    import lightning
    import safetensors
    import torch

    del lightning, safetensors, torch
