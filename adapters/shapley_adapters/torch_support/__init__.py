"""Wrappers of torch modules, captum's methods and tensors for arrays."""
