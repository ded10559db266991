"""The arguments of classes that train a network, the same in both hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..arguments import checked_choice, checked_count, checked_flag
from ..constructors import write_constructor
from ..errors import InvalidArgumentError
from .training_presets import described, with_preset

if TYPE_CHECKING:
    from torch import nn

    from ..pipeline.settings import Settings

Network: TypeAlias = "str | nn.Module"
"""The name of a network, or a module of the user."""


@write_constructor
class TrainingArguments:
    """The arguments of surrogates and of networks that explain."""

    network: Network = "mlp"
    network_options: Mapping[str, Any] | None = None
    epochs: int = 100
    rows_per_step: int = 64
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    folder: str | Path | None = None
    trainer_options: Mapping[str, Any] | None = None


@write_constructor
class AmortizedArguments(TrainingArguments):
    """The arguments of networks that explain.

    A class says by `_choices` which targets its network may be trained towards, the default first.
    """

    _choices: ClassVar[tuple[str, ...]] = ()
    _presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    preset: str | None = None
    labels: str | None = None
    evaluations: int | None = None
    paired: bool = True
    n_mixed_rows: int = 0
    validation_evaluations: int | None = None
    efficient: bool = True
    surrogate: Any = False  # becomes a Surrogate or None: see `surrogate_for`

    @classmethod
    def _completed_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the caller, completed by those of the preset."""
        return with_preset(cls._presets, options)

    def __repr__(self) -> str:
        return described(self, self._presets)

    def _check_amortized(self) -> None:
        """Refuse arguments that cannot be used; fill in the default targets."""
        is_open = self.labels is None
        self.labels = checked_choice("labels", self.labels or self._choices[0], self._choices)
        self._loadable = self._choices if is_open else (self.labels,)
        checked_flag("paired", self.paired)
        self.n_mixed_rows = checked_count("n_mixed_rows", self.n_mixed_rows, minimum=0)
        checked_flag("efficient", self.efficient)


def check_refinement(efficient: bool, **refinements: object) -> None:
    """Refuse arguments that refine a network's attributions if these are not made efficient.

    Raises
    ------
    InvalidArgumentError
        If one is given without `efficient`.
    """
    for name, value in refinements.items():
        if value and not efficient:
            raise InvalidArgumentError(
                f"{name} needs efficient=True: attributions are improved by evaluations of the "
                f"model, but efficient=False asks for none. Leave out {name}, or set "
                "efficient=True."
            )


def refinement(settings: Settings) -> Settings | None:
    """Return how to refine a network's attributions; None without a budget or a tolerance."""
    is_refined = settings.budget is not None or settings.tolerance is not None
    return settings if is_refined else None
