"""Forward functions that return futures: results, calls in flight, context and errors.

Few features, so that the default budget pays for all coalitions and every method must be exact.
"""

from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Event, Lock
from time import sleep

import pytest
import torch
from torch import nn
from torch.futures import Future

import captum_ext
from shapley_adapters.errors import FutureError
from tests.captum_host.networks import examples
from tests.helpers.tolerances import Tolerances

# What reads the arguments is one function of all classes.
pytestmark = pytest.mark.filterwarnings("error")

EXACT: Tolerances = {"rtol": 0, "atol": 1e-9}  # float64, values up to 1e3
CLASSES = [captum_ext.RandomOrder, captum_ext.OddGP, captum_ext.Shear]
every_class = pytest.mark.parametrize("method", CLASSES, ids=lambda method: method.__name__)


class Ramps(nn.Module):
    """Two outputs that are sums of ramps of the features' sum, so that all features interact."""

    def forward(self, x, scale=1.0):
        total = scale * x.double().sum(dim=1)
        first = torch.relu(total - 12) + 3 * torch.relu(total + 1)
        return torch.stack([first, torch.relu(total - 30) - total], dim=1)


VARIABLE = ContextVar("VARIABLE", default="")
NET = Ramps()
TWO = torch.tensor([[2.0, 9.0, 4.0], [8.0, 20.0, 11.0]], dtype=torch.float64)


def with_future(forward_func):
    """Return a function whose result is a Future that is complete."""

    def forward(*args):
        future = Future()
        future.set_result(forward_func(*args))
        return future

    return forward


class Server:
    """A forward function whose futures are completed by other threads, once it is open."""

    def __init__(self, delay=0.0):
        self.pool, self.lock, self.is_open = ThreadPoolExecutor(16), Lock(), Event()
        self.delay, self.running, self.most = delay, 0, 0

    def __call__(self, x):
        future = Future()
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.pool.submit(self.answer, future, x)
        return future

    def answer(self, future, x):
        self.is_open.wait()
        sleep(self.delay)
        with self.lock:
            self.running -= 1
        future.set_result(torch.tanh(x).prod(dim=1))


@every_class
def test_several_calls_are_in_flight(method):
    server, x = Server(delay=0.01), examples(1, 5)
    future = method(server, seed=0).attribute_future(x, perturbations_per_eval=1)
    assert not future.done()  # the call returns although nothing is answered yet
    server.is_open.set()
    wanted = method(lambda z: torch.tanh(z).prod(dim=1), seed=0).attribute(x)
    torch.testing.assert_close(future.wait(), wanted, **EXACT)
    # 32 calls of one row, up to 8 of which wait at the same time
    assert 2 < server.most <= 8
    server.pool.shutdown()


@every_class
def test_a_plain_forward_function_may_reuse_its_memory(method):
    memory = torch.empty(64, dtype=torch.float64)

    def forward(x):
        out = memory[: len(x)]
        out.copy_(NET(x)[:, 0])
        return out

    future = method(forward, seed=0).attribute_future(TWO, perturbations_per_eval=1)
    wanted = method(NET, seed=0).attribute(TWO, target=0)
    torch.testing.assert_close(future.wait(), wanted, **EXACT)


def test_last_estimate_is_set_when_the_future_completes():
    method = captum_ext.OddGP(with_future(NET), seed=0)
    future = method.attribute_future(TWO, target=0, tolerance=0.5, return_standard_error=True)
    made, errors = future.wait()
    assert made.shape == errors.shape == TWO.shape
    assert method.last_estimate.evaluations.tolist() == [8, 8]


def test_the_forward_function_runs_in_the_context_of_the_caller():
    seen = []

    def forward(x):
        seen.append((torch.is_autocast_enabled("cpu"), VARIABLE.get()))
        return NET(x)

    token = VARIABLE.set("of the caller")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            captum_ext.Exact(with_future(forward)).attribute_future(TWO, target=0).wait()
    finally:
        VARIABLE.reset(token)
    assert set(seen) == {(True, "of the caller")}


def test_what_ends_a_thread_reaches_the_caller():
    def forward(_x):
        raise SystemExit

    with pytest.raises(FutureError, match="SystemExit"):
        captum_ext.Exact(forward).attribute_future(TWO).wait()
