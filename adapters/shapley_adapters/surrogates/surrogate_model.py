"""Surrogates of models, that both hosts translate to and from. Torch is imported when fitting.

The value function of SimSHAP and FastSHAP: absent features are marginalised by their conditional
distribution given the present ones, of which a network learns the model's mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..arguments import checked_count, checked_seed
from ..array_types import FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game

if TYPE_CHECKING:
    from .surrogate_training import SurrogateTraining, SurrogateValidation, TrainedSurrogate

SurrogateT = TypeVar("SurrogateT", bound="SurrogateModel")


class SurrogateModel:
    """Base of the surrogates of both hosts, which tell it rows, games and players.

    Attributes
    ----------
    trained : TrainedSurrogate or None
        The network, once it is fitted.
    """

    trained: TrainedSurrogate | None

    def __init__(
        self,
        model: Any,
        *,
        network: Any = "mlp",
        network_options: Mapping[str, Any] | None = None,
        loss: str = "auto",
        coalitions: int = 16,
        epochs: int = 100,
        rows_per_step: int = 64,
        learning_rate: float | None = None,
        validation_share: float = 0.1,
        patience: int | None = None,
        absent: int = 0,
        seed: int | None = None,
        folder: str | Path | None = None,
        trainer_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.network = network
        self.network_options = network_options
        self.loss = loss
        self.coalitions = coalitions
        self.epochs = epochs
        self.rows_per_step = rows_per_step
        self.learning_rate = learning_rate
        self.validation_share = validation_share
        self.patience = patience
        self.absent = checked_count("absent", absent, minimum=0)
        self.seed = checked_seed(seed)
        self.folder = folder
        self.trainer_options = trainer_options
        self.trained = None
        self._training()  # refuses options that cannot be used

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model out of copies and pickles: what has been fitted does not need it."""
        return {**vars(self), "model": None}

    def of(self: SurrogateT, model: Any) -> SurrogateT:
        """Return this, with a model where a copy or a file has left it without."""
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
        """How many rows the model was run on: once each training row."""
        return self._fitted().evaluations

    def save(self, path: str | Path) -> None:
        """Write the surrogate to a file: weights as safetensors, the rest as JSON, and no code."""
        self._fitted().save(path)

    @classmethod
    def load(
        cls: type[SurrogateT], path: str | Path, model: Any = None, network: Any = None
    ) -> SurrogateT:
        """Read what `save` wrote; nothing of it is run.

        Parameters
        ----------
        path : path
            The file.
        model : optional
            The model that it should be a surrogate of: another one is refused.
        network : Module, optional
            Where the network was a module of your own, one of that class.
        """
        from .. import amortized  # noqa: F401 which says what to install
        from .surrogate_training import TrainedSurrogate

        trained = TrainedSurrogate.load(path, network)
        made = cls(model, network=network or trained.about["network"])
        made.trained = trained
        made.absent = int(trained.network.absent)
        if model is not None:
            made._check_model()
        return made

    def _checked_model(self) -> Any:
        if self.model is None:
            raise InvalidArgumentError(
                "The surrogate was copied, or read from a file, without its model. Pass "
                "Surrogate.load(path, model=…), or make a new one to fit."
            )
        return self.model

    def _train(
        self,
        seen: npt.NDArray[Any],
        game: Game,
        players: IntArray,
        host: Mapping[str, Any],
        progress_delay: float | None,
    ) -> None:
        """Fit to the games' values of all players, given what the network sees of their rows.

        `progress_delay` is in seconds; there are no progress bars where it is None.
        """
        from ..amortized.progress import Progress
        from .surrogate_training import TrainedSurrogate

        progress = Progress("Surrogate", progress_delay)

        if np.isnan(seen).any():
            raise InvalidArgumentError(
                "The rows hold NaN, which a surrogate takes for absent. Fill missing values in, "
                "and mark them in columns of their own."
            )
        with progress.bar("outputs", game.n_rows, "rows") as bar:
            outputs = full_values(game, bar.update)
        self.trained = TrainedSurrogate.fit(
            seen,
            outputs,
            players,
            self._training(),
            self.network,
            self.network_options,
            self.absent,
            host,
            progress,
        )

    def _told(self, seen: npt.NDArray[Any]) -> ValueArray:
        """Return the outputs for masked rows, (n, K)."""
        fitted = self._fitted()
        if fitted.network.is_of_tokens:
            return fitted.outputs(seen, seen != self.absent)
        return fitted.outputs(seen, ~np.isnan(seen))

    def _absent_row(self, dtype: Any) -> npt.NDArray[Any]:
        """Return a row of which nothing is present, as the network sees it, (1, …)."""
        fitted = self._fitted()
        shape = (1, *fitted.about["input_shape"])
        if fitted.network.is_of_tokens:
            return np.full(shape, self.absent, dtype=np.int64)
        return np.full(shape, np.nan, dtype=dtype)

    def _check_model(self) -> None:
        """Refuse a model other than the one that the surrogate was fitted to."""
        fingerprint = self._fitted().fingerprint
        fingerprint.check(full_values(self._game_of(fingerprint.inputs))[:, None])

    def _game_of(self, probes: Any) -> Game:
        """Return the game of the model for rows as the network sees them, a tensor."""
        raise NotImplementedError

    def _fitted(self) -> TrainedSurrogate:
        if self.trained is None:
            raise InvalidArgumentError(
                "The surrogate has not been fitted. Call fit with rows, or load a file."
            )
        return self.trained

    def _training(self) -> SurrogateTraining:
        from .surrogate_training import SurrogateTraining

        return SurrogateTraining(
            epochs=checked_count("epochs", self.epochs),
            batch_size=checked_count("rows_per_step", self.rows_per_step),
            learning_rate=self.learning_rate,
            validation_share=self.validation_share,
            patience=self.patience,
            seed=self.seed,
            folder=self.folder,
            trainer_options=self.trainer_options or {},
            loss=self.loss,
            coalitions=self.coalitions,
        )


def full_values(game: Game, on_progress: Callable[[int], object] = lambda _: None) -> FloatArray:
    """Return the values of all players together, (R, K); tells how many were computed."""
    everyone = np.ones((1, 1, game.n_players), dtype=bool)
    request = Request(np.arange(game.n_rows), CoalitionTable(everyone, np.array([1])))
    (values,) = Evaluator(game, on_progress=on_progress)([request])
    return values[:, 0]


def surrogate_for(given: Any, kind: type[SurrogateT], owner: Any, model: Any) -> SurrogateT | None:
    """Return the surrogate that a user's `surrogate=` asks for, if any.

    For True, one with the options of `owner`, the explainer; its checkpoints lie in a folder of
    their own.
    """
    if given is False or given is None:
        return None
    if isinstance(given, kind):
        return given
    if given is not True:
        raise InvalidArgumentTypeError(
            f"surrogate must be True, False or a {kind.__name__}; got {type(given).__name__}."
        )
    if owner.network == "tokens":
        raise InvalidArgumentError(
            "surrogate=True with network='tokens' leaves open how many tokens there are. Pass "
            "surrogate=Surrogate(model, network='tokens', network_options={'n_tokens': …})."
        )
    return kind(
        model,
        network=owner.network if isinstance(owner.network, str) else "mlp",
        epochs=owner.epochs,
        rows_per_step=owner.rows_per_step,
        learning_rate=owner.learning_rate,
        validation_share=owner.validation_share,
        patience=owner.patience,
        seed=owner.seed,
        folder=None if owner.folder is None else Path(owner.folder) / "surrogate",
        trainer_options=owner.trainer_options,
    )
