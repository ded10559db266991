"""Settings of tqdm by which bars state the remaining time from the mean speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# tqdm's default smoothing weighs the last steps most: after a pause, in which an estimator solves
# its equations, it stated 17 times the remaining time, and between pauses half of it. With the
# default of miniters, one large step hides the small ones after it.
BY_MEAN_SPEED: Mapping[str, Any] = {"smoothing": 0.0, "miniters": 1}
