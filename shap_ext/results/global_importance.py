"""Global importance of features, as shap's bar plot takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapley_adapters.global_importance.result import GlobalImportance

from .explanations import explanation


@dataclass(frozen=True, repr=False)
class ExplainedImportance(GlobalImportance):
    """The importance of each feature over a data set, with standard errors, for shap."""

    def to_explanation(self, output: int | None = None) -> Any:
        """Return an Explanation of shape (M,), as that of `explanation.abs.mean(0)`.

        `shap.plots.bar` draws it. It has standard errors (`error_std`) and 95 % intervals
        (`lower_bounds`, `upper_bounds`).

        Parameters
        ----------
        output : int, optional
            The output; needed if there are several.
        """
        lower, upper = (self.output_part(end, output) for end in self.interval())
        return explanation(
            self.output_part(self.values, output),
            base_values=0.0,
            data=None,
            feature_names=list(self.names),
            lower_bounds=lower,
            upper_bounds=upper,
            error_std=self.output_part(self.standard_errors, output),
        )
