"""A clock that a model moves on, in place of the real one."""

from shapley_adapters.games import evaluation, value_memory
from shapley_adapters.pipeline import costs, estimate, one_round


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in (evaluation, value_memory, costs, estimate, one_round):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)

    def model(self, function, seconds, seconds_of_call=0.0):
        """Return a model that takes `seconds` for each row of its input and as many for a call."""

        def timed(x, *args):
            self.now += seconds_of_call + seconds * len(x)
            return function(x, *args)

        return timed
