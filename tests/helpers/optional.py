"""torch and what needs it, where they are installed; elsewhere stand-ins.

The shap side works without torch, and is tested without it, too. A test that calls anything of a
stand-in is skipped.
"""

import importlib
import importlib.util

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None


class _Missing:
    """A module, function, class or type that is not there."""

    def __init__(self, *_):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing()

    def __instancecheck__(self, _):
        return False

    def __call__(self, *_args, **_kwargs):
        pytest.skip("torch is not installed", allow_module_level=True)


def module(name):
    """Return a module that needs torch, or a stand-in."""
    return importlib.import_module(name) if HAS_TORCH else _Missing()


torch, nn, captum_ext = module("torch"), module("torch.nn"), module("captum_ext")


def name_of(kind):
    """Return the name of a class for a test's id; stand-ins for missing classes have none."""
    return getattr(kind, "__name__", "not installed")
