"""The surrogate models of both hosts. Torch is imported when fitting.

A surrogate is the value function of SimSHAP and FastSHAP: a network that learns the mean of the
model's output, given the present features, over the conditional distribution of the absent ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..array_types import IntArray, ValueArray
from ..constructors import write_constructor
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..games.game import Game
from ..training_options import Schedule, SurrogateOptions

if TYPE_CHECKING:
    from .surrogate_training import SurrogateValidation, TrainedSurrogate

SurrogateT = TypeVar("SurrogateT", bound="SurrogateModel")


@write_constructor
class SurrogateModel(SurrogateOptions):
    """Base of the surrogates of both hosts, which provide the rows, games and players.

    Attributes
    ----------
    trained : TrainedSurrogate or None
        The network; None before `fit`.
    """

    model: Any = field(kw_only=False)
    trained: TrainedSurrogate | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.model is None:
            raise InvalidArgumentTypeError(
                "model must be the model to learn from; got None. Pass the model; a file is read "
                "by Surrogate.load(path)."
            )
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model out of copies and pickles: a fitted surrogate does not need it."""
        return {**vars(self), "model": None}

    def with_model(self: SurrogateT, model: Any) -> SurrogateT:
        """Return this surrogate; if it has no model, as after copying or loading, set `model`."""
        if self.model is None:
            self.model = model
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether there is a network."""
        return self.trained is not None

    @property
    def validation(self) -> SurrogateValidation:
        """The errors on held-out rows."""
        return self._fitted().validation

    @property
    def evaluations(self) -> int:
        """How many rows the model was evaluated on: each training row once."""
        return self._fitted().evaluations

    def save(self, path: str | Path) -> None:
        """Write the surrogate to a file: weights as safetensors, other data as JSON, no code."""
        self._fitted().save(path)

    @classmethod
    def load(
        cls: type[SurrogateT], path: str | Path, model: Any = None, network: Any = None
    ) -> SurrogateT:
        """Read a file that `save` wrote; no code in it is run.

        Parameters
        ----------
        path : path
            The file.
        model : optional
            The model that the surrogate was fitted to; another model is refused.
        network : Module, optional
            A module of the same class, if the network was a module of your own.
        """
        from .. import amortized  # noqa: F401 its error names the package to install
        from .surrogate_training import TrainedSurrogate

        trained = TrainedSurrogate.load(path, network)
        surrogate = cls(
            trained if model is None else model, network=network or trained.about.network
        )
        surrogate.model = model
        surrogate.trained = trained
        if model is not None:
            surrogate._check_model()
        return surrogate

    def _checked_model(self) -> Any:
        if self.model is None:
            raise InvalidArgumentError(
                "The surrogate was copied, or read from a file, without its model. Pass the model "
                "by Surrogate.load(path, model=…), or fit a new surrogate."
            )
        return self.model

    def _train(
        self,
        network_inputs: npt.NDArray[Any],
        game: Game,
        players: IntArray,
        host: Mapping[str, Any],
        progress_delay: float | None,
    ) -> None:
        """Fit the network to the games' values of all players, with its inputs for their rows.

        `progress_delay` is in seconds; None for no progress bars.
        """
        from ..amortized.fitting import Progress
        from ..amortized.ledger import Ledger
        from .surrogate_training import TrainedSurrogate

        progress = Progress("Surrogate", progress_delay)

        if np.isnan(network_inputs).any():
            raise InvalidArgumentError(
                "The rows hold NaN, which stands for absent features in a surrogate. Fill in "
                "missing values, and mark them in additional columns."
            )
        with progress.bar("outputs", game.n_rows, "rows") as bar:
            every_player = np.ones((1, game.n_players), dtype=bool)
            ledger = Ledger(self.folder)
            outputs = ledger.values(game, every_player, network_inputs, bar.update)[:, 0]
        fit = TrainedSurrogate.fit
        self.trained = fit(network_inputs, outputs, players, self, host, progress)

    def _predict(self, network_inputs: npt.NDArray[Any]) -> ValueArray:
        """Return the outputs for masked rows, (n, K)."""
        return self._fitted().outputs(network_inputs, ~np.isnan(network_inputs))

    def _absent_row(self) -> npt.NDArray[np.float32]:
        """Return the network's input for a row with all features absent, (1, …)."""
        return np.full((1, *self._fitted().about.input_shape), np.nan, dtype=np.float32)

    def _check_model(self) -> None:
        """Refuse a model other than the one that the surrogate was fitted to."""
        from ..amortized.ledger import Ledger

        fingerprint = self._fitted().fingerprint
        game = self._game_of(fingerprint.inputs)
        every_player = np.ones((1, game.n_players), dtype=bool)
        fingerprint.check(Ledger().values(game, every_player))

    def _game_of(self, probes: Any) -> Game:
        """Return the game of the model for rows, given as the tensor of the network's inputs."""
        raise NotImplementedError

    def _fitted(self) -> TrainedSurrogate:
        if self.trained is None:
            raise InvalidArgumentError(
                "The surrogate has not been fitted. Call fit with rows, or load a file."
            )
        return self.trained


def surrogate_for(
    surrogate: Any, kind: type[SurrogateT], owner: Any, model: Any
) -> SurrogateT | None:
    """Return the surrogate of the argument `surrogate=`; None for False and None.

    True stands for a new surrogate with the options of `owner`, the explainer.
    """
    if surrogate is False or surrogate is None:
        return None
    if isinstance(surrogate, kind):
        return surrogate
    if surrogate is not True:
        raise InvalidArgumentTypeError(
            f"surrogate must be True, False or a {kind.__name__}; got {type(surrogate).__name__}."
        )
    shared = {name: getattr(owner, name) for name in Schedule.__dataclass_fields__}
    return kind(model, network="unet" if owner.student == "unet" else "mlp", **shared)
