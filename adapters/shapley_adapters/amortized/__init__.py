"""Networks that explain in one pass, trained on games. Needs torch, lightning and safetensors."""
