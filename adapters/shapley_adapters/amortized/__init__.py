"""Networks that predict Shapley values, trained on games. Needs torch, lightning, safetensors."""

try:
    import lightning
    import safetensors
    import torch
except ImportError as error:
    raise ImportError(
        "Networks that explain need torch, lightning and safetensors, of which "
        f"{error.name} is not installed: pip install 'shapley-ext[amortized]'."
    ) from error

del lightning, safetensors, torch
