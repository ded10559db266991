"""What all tests share."""

import gc
import os
import sys

# Before NumPy and torch read them: workers that run side by side have one core each.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# shap compiles for seconds in each process, to run for milliseconds.
os.environ.setdefault("NUMBA_OPT", "0")

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.optional import HAS_TORCH
from tests.helpers.thin_products import one_of_each, thinned

settings.register_profile("slow machines", deadline=None, suppress_health_check=[*HealthCheck])
settings.load_profile("slow machines")

NEEDS_TORCH = [
    "captum_host/*",
    "parity/test_captum_parity.py",
    "parity/test_derivative_table.py",
    "parity/test_quantus.py",
    "parity/test_value_functions.py",
    "shap_host/test_derivatives.py",
]
collect_ignore_glob = [] if HAS_TORCH else NEEDS_TORCH


def pytest_report_header():
    """Say what is left out where the shap side is tested without torch."""
    return [] if HAS_TORCH else [f"torch is not installed; left out: {', '.join(NEEDS_TORCH)}"]


def pytest_addoption(parser):
    """Let runs with other versions of Python and of the hosts take fewer parameters."""
    parser.addoption("--one-of-each", action="store_true", help=one_of_each.__doc__)


@pytest.hookimpl(trylast=True)  # after the choice by markers
def pytest_collection_modifyitems(config, items):
    """Leave out what others cover of products of parameters."""
    left = thinned(items)
    if config.getoption("one_of_each"):
        left = one_of_each(left)
    kept = set(left)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = left


def pytest_collection_finish():
    """Spare the garbage collector what lives as long as the tests: modules and test items."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Draw each test's figures on new ones."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def batches_are_not_timed(request):
    """Let batch sizes grow by a clock that stands still: other programs must not change a test.

    Models round differently in batches of other sizes. Tests that need the time are marked `timed`.
    """
    # A patch of its own: what tests patch themselves must be undone as if this were not here.
    with pytest.MonkeyPatch.context() as patch:
        if "timed" not in request.keywords:
            patch.setattr("shapley_adapters.games.evaluation.perf_counter", lambda: 0.0)
        yield
