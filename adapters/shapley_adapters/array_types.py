"""Names for the roles that arrays play, with their shapes.

One letter stands for each dimension: R rows explained, C coalitions, M players, K outputs, P pairs
of a row and a coalition.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]
FloatArray: TypeAlias = npt.NDArray[np.float64]

CoalitionArray: TypeAlias = BoolArray
"""(..., M): True where the player is present."""

WordArray: TypeAlias = npt.NDArray[np.unsignedinteger]
"""(..., W): coalitions packed into the bits of W words."""

ValueArray: TypeAlias = FloatArray
"""(..., K): the game's value, one number for each output."""

AttributionArray: TypeAlias = FloatArray
"""(R, M, K): the attribution of each player, or its standard error."""

ScoreArray: TypeAlias = FloatArray
"""(R, M, M): how strongly two players interact, symmetric, zero on the diagonal."""

DistanceArray: TypeAlias = npt.NDArray[np.object_]
"""(R,) of (M, M): edges between the players of each row on its graph; rows share equal matrices."""
