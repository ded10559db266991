"""The criteria from their definitions: loops over features and coalitions, one number at a time.

Shares no code with the package.
"""

from itertools import combinations, pairwise
from math import inf, log


def entropy(values):
    total = sum(abs(v) for v in values)
    if total == 0:
        return 0.0
    return -sum(abs(v) / total * log(abs(v) / total) for v in values if v != 0)


def correlation(xs, ys):
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    spread_x = sum((x - mean_x) ** 2 for x in xs)
    spread_y = sum((y - mean_y) ** 2 for y in ys)
    return covariance / (spread_x * spread_y) ** 0.5


def subset_faithfulness(values, value, size):
    """Return μ_F over all subsets of a size; `value` is a function of a set of players."""
    players = range(len(values))
    everyone = frozenset(players)
    sums, losses = [], []
    for subset in combinations(players, size):
        sums.append(sum(values[i] for i in subset))
        losses.append(value(everyone).item() - value(everyone - set(subset)).item())
    return correlation(sums, losses)


def descending(values, key=lambda v: v):
    return sorted(range(len(values)), key=lambda i: (-key(values[i]), i))


def ranking_accuracy(values, exact):
    hits = total = 0.0
    places = zip(descending(values), descending(exact), strict=True)
    for place, (ours, theirs) in enumerate(places, start=1):
        total += 1 / place
        hits += (1 / place) * (ours == theirs)
    return hits / total


def monotonicity(values, value):
    members, gains = set(), []
    for player in descending(values):
        before = value(frozenset(members)).item()
        members.add(player)
        gains.append(value(frozenset(members)).item() - before)
    kept = [earlier >= later for earlier, later in pairwise(gains)]
    return sum(kept) / len(kept)


def insertion(values, value):
    order = descending(values)
    return [value(frozenset(order[:n])).item() for n in range(len(order) + 1)]


def deletion(values, value):
    order = descending(values)
    return [value(frozenset(order[n:])).item() for n in range(len(order) + 1)]


def trapezoids(points):
    return sum((a + b) / 2 for a, b in pairwise(points)) / (len(points) - 1)


def sensitivities(own, others):
    """Return the largest and the mean Euclidean distance to the explanations `others`."""
    away = [sum((a - b) ** 2 for a, b in zip(own, other, strict=True)) ** 0.5 for other in others]
    return max(away, default=-inf), sum(away) / len(away)
