"""From a game and an estimator to attributions: budgets, rounds, results."""
