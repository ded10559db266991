"""Global importance by enumeration, sharing no code with the package."""

import numpy as np

from tests.helpers.brute_force import masked_model_values, shapley_values


def attributions(model, rows, background):
    """Return the Shapley values, (R, M), of a model with one output."""
    return np.array(
        [
            shapley_values(len(row), masked_model_values(model, row, background)).reshape(len(row))
            for row in rows
        ]
    )


def sage_values(model, rows, labels, background, loss):
    """Return the Shapley values, (M,), of the expected reduction of the loss.

    One game for all rows: the value of a coalition is the mean over the rows of the loss of the
    averaged prediction, with a minus sign (Covert, Lundberg and Lee, 2020, Eq. 3).
    """
    games = [masked_model_values(model, row, background) for row in rows]

    def value(coalition):
        losses = [loss(game(coalition), label) for game, label in zip(games, labels, strict=True)]
        return -np.mean(losses)

    return shapley_values(rows.shape[1], value)
