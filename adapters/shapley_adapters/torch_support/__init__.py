"""Torch modules, captum's methods and tensors as functions of arrays."""
