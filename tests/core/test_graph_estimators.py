"""L-Shapley, C-Shapley, its regression and the Myerson value against their definitions."""

from contextlib import nullcontext
from functools import partial
from itertools import cycle, product
from time import process_time

import networkx as nx
import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters import PlayerGraph
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
    SingularSystemError,
)
from shapley_adapters.estimators.graph.myerson import draw_components
from shapley_adapters.estimators.linear_algebra import fit_sparse
from shapley_adapters.estimators.protocol import GraphView
from shapley_adapters.pipeline import designs
from tests.helpers import graph_oracles as oracle
from tests.helpers.brute_force import game_of_rows, game_shapley_values
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    additive_game,
    asked_for_estimate,
    random_game,
    request_of,
    with_null_players,
)
from tests.helpers.tolerances import EXACT

# Some graphs here have no edges, which users are warned of; see "what is left out".
pytestmark = pytest.mark.filterwarnings("ignore:graph joins no two players")


def graph_from_networkx(graph):
    return PlayerGraph.from_edges(len(graph), list(graph.edges))


def random_graphs(n_graphs=12, n_nodes=7):
    """Return graphs of all densities, connected ones and others."""
    graphs = [
        nx.gnp_random_graph(n_nodes, p, seed=seed)
        for seed, p in enumerate(np.linspace(0.1, 0.7, n_graphs))
    ]
    special = [nx.path_graph(n_nodes), nx.cycle_graph(n_nodes), nx.star_graph(n_nodes - 1)]
    special += [nx.complete_graph(n_nodes), nx.empty_graph(n_nodes)]
    assert {nx.is_connected(graph) for graph in graphs} == {True, False}
    return graphs[::2] + special


GRAPHS = random_graphs()
each_graph = pytest.mark.parametrize("graph", GRAPHS, ids=range(len(GRAPHS)))


def each_graph_with(names, *options):
    """Parametrise by all graphs, with one of the combinations of the options each, in turn."""
    turns = cycle(product(*options))
    cases = [(graph, *next(turns)) for graph in GRAPHS]
    ids = [f"{n}-" + "-".join(map(str, own)) for n, (_, *own) in enumerate(cases)]
    return pytest.mark.parametrize(("graph", *names), cases, ids=ids)


CONTEXTS = ("removed", "kept")


def run(game, estimator, graph, budget=None, **settings):
    graph = graph_from_networkx(graph) if isinstance(graph, nx.Graph) else graph
    settings.setdefault("seed", 0)
    return core.estimate(game, estimator, core.Settings(budget=budget, graph=graph, **settings))


def values(*args, **settings):
    return run(*args, **settings).values


def by_rows(game, function):
    return np.array([function(game.value_of(row)) for row in range(game.n_rows)])


def of_all_rows(game, function):
    """Return the same by one loop over the graph; the function takes values of several rows."""
    return np.moveaxis(function(game_of_rows(game)), 0, 1)


# --- against the definitions ---


@each_graph_with(("context",), CONTEXTS)
def test_l_shapley_is_its_definition(graph, context):
    game = random_game(7, n_rows=2, n_outputs=2)
    for order in (0, 1, 2):
        found = run(game, core.LShapley(order, context), graph)
        wanted = of_all_rows(game, lambda v, k=order: oracle.l_shapley(graph, v, k, context))
        np.testing.assert_allclose(found.values, wanted, **EXACT)
        assert (found.standard_errors == 0).all()
        assert (found.orders == order).all()


@each_graph_with(
    ("context", "marginals", "weighting"), CONTEXTS, ("removal", "components"), ("myerson", "paper")
)
def test_c_shapley_is_its_definition(graph, context, marginals, weighting):
    game = random_game(7, n_rows=2, n_outputs=2)
    for order in (0, 1, 2):
        found = run(game, core.CShapley(order, weighting, context, marginals), graph)
        wanted = of_all_rows(
            game, lambda v, k=order: oracle.c_shapley(graph, v, k, weighting, context, marginals)
        )
        np.testing.assert_allclose(found.values, wanted, **EXACT)


@each_graph
def test_myerson_is_the_shapley_value_of_the_restricted_game(graph):
    game = random_game(7, n_rows=2, n_outputs=2)
    found = run(game, core.Myerson(), graph)
    wanted = of_all_rows(game, partial(oracle.myerson, graph))
    np.testing.assert_allclose(found.values, wanted, **EXACT)
    for component in nx.connected_components(graph):
        whole = [game.value_of(row)(component) - game.value_of(row)(()) for row in range(2)]
        own = found.values[:, sorted(component)].sum(axis=1)
        np.testing.assert_allclose(own, whole, **EXACT)


@each_graph_with(("kernel", "efficient", "context"), ("shapley", "equal"), (True, False), CONTEXTS)
def test_regression_on_connected_sets(graph, kernel, efficient, context):
    game = random_game(7, n_rows=2, n_outputs=2)
    for order in (1, 3):
        estimator = core.ConnectedRegression(order, "connected", kernel, efficient, context)
        found = values(game, estimator, graph)
        sets = oracle.connected_sets(graph, order)
        wanted = by_rows(
            game, lambda v, s=sets: oracle.regression(s, v, 7, kernel, efficient, context)
        )
        np.testing.assert_allclose(found, wanted, **EXACT)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (1, 3, 3)])
@pytest.mark.parametrize("kernel", ["shapley", "equal"])
def test_regression_on_squares(shape, kernel):
    n_players = int(np.prod(shape))
    game = random_game(n_players, n_rows=2)
    graph = PlayerGraph.grid(shape)
    rows, columns = shape[-2:]
    for order in (1, 2, 3):
        squares = {
            frozenset(
                (top + i) * columns + left + j
                for i in range(min(side, rows))
                for j in range(min(side, columns))
            )
            for side in range(1, order + 1)
            for top in range(rows - min(side, rows) + 1)
            for left in range(columns - min(side, columns) + 1)
        }
        found = values(game, core.ConnectedRegression(order, kernel=kernel), graph)
        wanted = by_rows(
            game, lambda v, s=squares: oracle.regression(list(s), v, n_players, kernel)
        )
        np.testing.assert_allclose(found, wanted, **EXACT)


@pytest.mark.parametrize("method", [core.CShapley, core.LShapley])
@pytest.mark.parametrize("order", [0, 1, "auto"])
def test_no_distances_between_all_players_are_needed(method, order, monkeypatch):
    """Of M players there are M² of them, too many for the pixels of an image."""

    def refuse(self):
        raise MemoryError(f"{self.n_players}²")

    monkeypatch.setattr(PlayerGraph, "distances", refuse)
    weights = np.arange(11.0)
    found = values(additive_game(weights), method(order), nx.path_graph(11))
    np.testing.assert_allclose(found, weights[None, :, None], **EXACT)


# --- null players ---

NULLS = [1, 4]


def with_nulls(n_players=7, n_rows=2):
    """Return the same games twice: with null players set aside, and with the host unaware."""
    active = np.ones((n_rows, n_players), dtype=bool)
    active[:, NULLS] = False
    game = with_null_players(random_game(n_players, n_rows=n_rows), active)
    return game, TableGame(game.values)


@each_graph_with(
    ("estimator",),
    (
        core.LShapley(1),
        core.LShapley(2, "kept"),
        core.CShapley(1),
        core.CShapley(2, "paper", "kept"),
        core.CShapley(2, marginals="components"),
        core.Myerson(),
    ),
)
def test_null_players_that_are_set_aside_stay_in_the_graph(graph, estimator):
    """Paths lead through them; only the evaluations that they cannot change are saved."""
    aside, unaware = with_nulls()
    found, wanted = run(aside, estimator, graph), run(unaware, estimator, graph)
    np.testing.assert_allclose(found.values, wanted.values, **EXACT)
    assert (found.evaluations <= wanted.evaluations).all()
    if graph.number_of_edges():
        assert (found.evaluations < wanted.evaluations).all()


def test_only_players_that_matter_are_enumerated():
    """Three of forty neighbours; of all, draws would be needed."""
    game = FunctionGame(lambda z: z[:, :3].all(axis=1), 40, active=np.arange(40)[None] < 3)
    found = run(game, core.LShapley(1), nx.complete_graph(40), budget=100)
    np.testing.assert_allclose(found.values[0, :3, 0], 1 / 3, **EXACT)
    assert (found.standard_errors == 0).all()


@each_graph
def test_regression_gives_null_players_nothing(graph):
    """It solves for the others, from the sets' parts among them."""
    aside, unaware = with_nulls(n_rows=1)
    rest = [j for j in range(7) if j not in NULLS]
    value = unaware.value_of(0)
    sets = [c for c in oracle.connected_sets(graph, 3) if c - {*NULLS}]
    found = values(aside, core.ConnectedRegression(3, "connected", "equal"), graph)[0]
    assert (found[NULLS] == 0).all()
    design = np.array([[float(j in members) for j in rest] for members in sets])
    targets = np.array([value(members) - value(()) for members in sets])
    wanted = np.linalg.lstsq(design, targets, rcond=None)[0]
    np.testing.assert_allclose(found[rest], wanted, **EXACT)


def test_rows_with_different_players_and_graphs_do_not_matter_to_each_other():
    rng = np.random.default_rng(3)
    active = rng.random((6, 7)) < 0.7
    active[5] = False
    game = with_null_players(random_game(7, n_rows=6), active)
    graphs = [graph_from_networkx(GRAPHS[5 + row % 3]) for row in range(6)]
    regression = core.ConnectedRegression(2, "connected")
    for estimator in (core.LShapley(1), core.CShapley(), regression, core.Myerson()):
        together = run(game, estimator, graphs)
        for row in range(6):
            one = TableGame(game.values[[row]], active=active[[row]])
            alone = run(one, estimator, graphs[row])
            np.testing.assert_array_equal(together.values[row], alone.values[0])
            assert together.evaluations[row] == alone.evaluations[0]
    assert (together.values[5] == 0).all()
    assert together.evaluations[5] == 2


# --- budgets ---


def line_game(n_players):
    rng = np.random.default_rng(0)
    weights, pairs = rng.normal(size=(2, n_players))
    return FunctionGame(lambda z: z @ weights + (z[:, 1:] & z[:, :-1]) @ pairs[1:], n_players)


def test_no_coalition_is_evaluated_twice():
    game = random_game(7, n_rows=2)
    for graph in GRAPHS:
        for estimator in (
            core.LShapley(2),
            core.CShapley(2),
            core.Myerson(),
            core.ConnectedRegression(3),
        ):
            game.asked.clear()
            found = run(game, estimator, graph)
            asked = asked_for_estimate(game, found)
            assert len(asked) == len(set(asked)) == found.evaluations.sum()


def test_auto_takes_the_largest_order_that_fits():
    d = 30
    game, line = line_game(d), PlayerGraph.line(d)
    for make in (core.LShapley, core.CShapley, core.ConnectedRegression):
        costs = {k: int(run(game, make(k), line).evaluations[0]) for k in range(1, 5)}
        for order in (1, 2, 3):
            for budget in (costs[order], costs[order + 1] - 1):
                is_blind = make is core.ConnectedRegression and order == 1  # single players only
                with pytest.warns(ShapleyExtWarning) if is_blind else nullcontext():
                    found = run(game, make(), line, budget=budget)
                assert (found.orders, found.evaluations) == (order, costs[order])
                np.testing.assert_array_equal(found.values, run(game, make(order), line).values)
        by_default = run(game, make(), line)
        assert by_default.evaluations <= core.default_budget(d)
        assert (
            by_default.evaluations == run(game, make(int(by_default.orders[0])), line).evaluations
        )
    small = random_game(5)
    found = run(small, core.LShapley(), PlayerGraph.line(5), budget=32)
    np.testing.assert_allclose(found.values, game_shapley_values(small), **EXACT)


@pytest.mark.parametrize(
    ("estimator", "budget", "message"),
    [
        (core.CShapley(2), 40, r"budget=40 is too small: .* order=2 needs 122 evaluations"),
        (core.CShapley(2, "paper"), 100, r"budget=100 is too small: .* order=2 needs 250 eval"),
        (core.LShapley(), 31, r"budget=31 is too small: .* order=0 needs 32 evaluations"),
        (core.CShapley(), 31, "order=0 needs 32 evaluations"),
        (core.ConnectedRegression(), 31, "order=1 needs 32 evaluations"),
        (core.ConnectedRegression(3), 80, "order=3 needs 89 evaluations .* order='auto'"),
        (core.LShapley(2), 90, "order=2 needs 122 evaluations.*lower the order"),
        (core.Myerson(), 40, "the method needs up to 62 evaluations .* 1 random order"),
        (core.LShapley(29), 30, "order=29 needs about 122 evaluations"),
        (core.CShapley(29, "paper"), 100_000, "order=29 needs more than 100000 evaluations"),
        (core.CShapley(29, "paper"), None, "budget has to be given: .* needs more than 65536"),
    ],
    ids=repr,
)
def test_budgets_that_are_too_small(estimator, budget, message):
    game = FunctionGame(lambda z: pytest.fail("nothing is evaluated"), 30)
    graph = (
        PlayerGraph.grid((5, 6))
        if estimator == core.CShapley(29, "paper")
        else PlayerGraph.line(30)
    )
    with pytest.raises(BudgetError, match=message):
        run(game, estimator, graph, budget=budget, name="the method")


# --- draws ---


def check_draws(estimator, graph, budget, wanted, game, n_seeds=120):
    """Check means over seeds, |z| < 4.5 for each of 9 to 12 players, and the errors told."""
    made = [run(game, estimator, graph, budget=budget, seed=seed) for seed in range(n_seeds)]
    assert all(one.evaluations <= budget for one in made)
    found = np.array([one.values[0, :, 0] for one in made])
    errors = np.array([one.standard_errors[0, :, 0] for one in made])
    spread = found.std(axis=0, ddof=1)
    drawn = spread > 1e-12
    z = (found.mean(axis=0) - wanted)[drawn] / (spread[drawn] / np.sqrt(n_seeds))
    assert np.abs(z).max() < 4.5
    np.testing.assert_allclose(found[:, ~drawn], np.tile(wanted[~drawn], (n_seeds, 1)), **EXACT)
    assert (errors[:, ~drawn] < 1e-12).all()
    told = np.sqrt((errors[:, drawn] ** 2).mean(axis=0))
    np.testing.assert_allclose(told, spread[drawn], rtol=0.3)
    return drawn


def test_all_neighbourhoods_drawn():
    graph = nx.complete_graph(9)
    game = random_game(9)
    wanted = game_shapley_values(game)[0, :, 0]
    drawn = check_draws(core.LShapley(1), graph, 200, wanted, game)
    assert drawn.all()


@pytest.mark.parametrize(
    ("order", "context", "marginals"),
    [
        (1, "removed", None),
        (1, "kept", None),
        (1, "removed", "removal"),
        (1, "kept", "components"),
        (2, "kept", "removal"),
        (2, "removed", "components"),
    ],
)
@pytest.mark.slow
def test_drawn_neighbourhoods_are_unbiased(order, context, marginals):
    """A star of nine nodes with some edges between its leaves, and a tail of two."""
    graph, game = nx.star_graph(8), random_game(11)
    graph.add_edges_from([(1, 2), (3, 4), (8, 9), (9, 10)])
    if marginals is None:
        estimator: core.LShapley | core.CShapley = core.LShapley(order, context)
        wanted = oracle.l_shapley(graph, game.value_of(0), order, context)[:, 0]
    else:
        options = {"context": context, "marginals": marginals}
        estimator = core.CShapley(order, **options)
        wanted = oracle.c_shapley(graph, game.value_of(0), order, **options)[:, 0]
    drawn = check_draws(estimator, graph, 150, wanted, game)
    assert drawn[0]
    assert marginals or not drawn[1:8].any()  # small neighbourhoods are enumerated
    exact = run(game, estimator, graph)
    assert exact.evaluations > 150
    np.testing.assert_allclose(exact.values[0, :, 0], wanted, **EXACT)


@pytest.mark.parametrize("estimator", [core.LShapley(1), core.CShapley(1)], ids=repr)
def test_null_players_get_nothing_from_draws(estimator):
    aside, unaware = with_nulls(n_rows=1)
    graph = nx.complete_graph(7)
    found = run(aside, estimator, graph, budget=25)
    assert found.standard_errors.max() > 1e-3
    np.testing.assert_allclose(found.values[0, NULLS], 0, **EXACT)
    wanted = game_shapley_values(unaware)[0]
    assert np.abs(found.values[0] - wanted).max() < 4.5 * found.standard_errors.max()


# --- hubs: neighbourhoods that cannot be enumerated ---


def star_game(n_leaves=199, n_rows=1):
    return FunctionGame(lambda z: z[..., 0] * z[..., 1:].sum(-1), n_leaves + 1, n_rows=n_rows)


@pytest.mark.parametrize("make", [core.LShapley, core.CShapley])
@pytest.mark.parametrize(
    "graph",
    [
        nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 12), ordering="sorted"),
        nx.barabasi_albert_graph(120, 3, seed=0),
        nx.gnp_random_graph(120, 0.06, seed=0),
    ],
    ids=["grid", "hubs", "random"],
)
def test_auto_does_not_come_down_to_order_0(make, graph):
    """Products of neighbours are worth one half to each, which order 1 gives on any graph."""
    edges = np.array(graph.edges)
    game = FunctionGame(lambda z: z[:, edges].all(axis=2).sum(axis=1), len(graph))
    found = run(game, make(), graph, budget=14 * 120)
    assert found.orders == 1
    assert found.evaluations <= 14 * 120
    assert (found.degrees_of_freedom > 0).all()
    np.testing.assert_allclose(
        found.values[0, :, 0], graph_from_networkx(graph).degrees / 2, **EXACT
    )


@pytest.mark.parametrize("method", [core.LShapley, core.CShapley])
def test_small_neighbourhoods_that_cost_too_much_are_refused(method):
    """Those of the leaves are enumerated, as a draw of each would cost no less."""
    game = FunctionGame(lambda z: pytest.fail("nothing is evaluated"), 200)
    with pytest.raises(BudgetError, match="order=1 needs more than 40[01] evaluations"):
        run(game, method(1), nx.star_graph(199), budget=300)


# --- what is left out ---


@pytest.mark.parametrize(
    ("estimator", "budget", "words"),
    [
        (core.LShapley(), 300, "order 0, because order 1 needs about 802"),
        (core.CShapley(), 300, "order 0, because order 1 needs about 802"),
        (core.CShapley(weighting="paper"), 10_000, "order 1 needs more than 10000.*'myerson' ab"),
        (core.ConnectedRegression(), 300, "order 1, because order 2 needs up to 401"),
    ],
    ids=repr,
)
def test_neighbours_that_the_budget_does_not_pay_for_are_warned_of(estimator, budget, words):
    game, graph = star_game(n_rows=2), nx.star_graph(199)
    for _ in range(2):  # a design that was kept is warned of, too
        with pytest.warns(ShapleyExtWarning, match=f"2 of 2 rows.*{words}.*Raise evals"):
            found = run(game, estimator, graph, budget=budget, budget_name="evals")
    assert (found.values == 0).all()
    if estimator != core.CShapley(weighting="paper"):
        needed = 402 if isinstance(estimator, core.ConnectedRegression) else 802
        run(game, estimator, graph, budget=needed)  # which does not warn


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "estimator",
    [
        core.LShapley(),
        core.LShapley(2),
        core.CShapley(),
        core.ConnectedRegression(),
        core.Myerson(),
    ],
    ids=repr,
)
def test_graphs_that_join_nobody_are_warned_of(estimator):
    game = random_game(5, n_rows=3)
    graphs = [PlayerGraph.from_edges(5, []), PlayerGraph.line(5), PlayerGraph.from_edges(5, [])]
    with pytest.warns(ShapleyExtWarning, match=r"no two players in 2 of 3 rows: L-S.*Check graph="):
        run(game, estimator, graphs, name="L-S")
    run(random_game(1), estimator, PlayerGraph.line(1))  # one player has nobody to be joined to
    run(game, core.LShapley(0), PlayerGraph.line(5))  # as was asked for


# --- budgets that are spent, and time ---


def test_myerson_draws_spend_the_budget():
    """What is left is less than a pair of orders takes at most."""
    for seed, (n_nodes, density, budget) in enumerate([(12, 0.4, 300), (30, 0.1, 590)]):
        graph = nx.gnp_random_graph(n_nodes, density, seed=1 - seed)
        found = run(
            random_game(12) if n_nodes == 12 else line_game(30),
            core.Myerson(),
            graph,
            budget=budget,
        )
        assert budget - 2 * n_nodes < found.evaluations <= budget
    long = run(line_game(300), core.Myerson(), PlayerGraph.line(300), budget=4800)
    assert long.evaluations > 4500  # pairs of orders of a line share most of their components


def test_orders_that_cost_nothing_come_to_an_end():
    """Eight coalitions are all; 40 // 6 + 1 pairs of orders are offered first, 32 times in all."""
    view = GraphView(PlayerGraph.line(3), np.arange(3))
    assert len(draw_components(view, request_of(3, 40)).positions) == 32 * 7


def test_draws_of_neighbourhoods_spend_the_budget():
    """However many coalitions come twice."""
    graph, game = nx.star_graph(8), random_game(9)
    for estimator in (core.LShapley(1), core.CShapley(1)):
        for budget in (150, 300, 400):
            assert budget - 4 < run(game, estimator, graph, budget=budget).evaluations <= budget


@pytest.mark.parametrize(
    ("estimator", "graph", "budget"),
    [
        (core.Myerson(), PlayerGraph.line(1000), None),
        (core.CShapley(40, "paper"), PlayerGraph.grid((25, 40)), None),
        (
            core.CShapley(4, "paper"),
            graph_from_networkx(nx.barabasi_albert_graph(1000, 3, seed=0)),
            9000,
        ),
        (core.LShapley(30), PlayerGraph.grid((25, 40)), 900),
        (core.ConnectedRegression(30, "connected"), PlayerGraph.grid((25, 40)), 3000),
    ],
    ids=["Myerson", "grid", "hubs", "L-Shapley", "regression"],
)
def test_designs_and_refusals_are_soon_made(estimator, graph, budget):
    """In .1 to .5 s of one core; 3 s tell them from listing all sets, with room to spare."""
    designs._kept.clear()
    game = FunctionGame(lambda z: np.pi * z.sum(axis=1), 1000)  # no labels, which are repeated
    started = process_time()
    if isinstance(estimator, core.Myerson):
        run(game, estimator, graph, budget=budget)
    else:
        with pytest.raises(BudgetError, match="order="):
            run(game, estimator, graph, budget=budget)
    assert process_time() - started < 3


def test_drawn_myerson_values_are_unbiased():
    graph = nx.gnp_random_graph(9, 0.4, seed=2)
    graph.remove_edges_from(list(graph.edges(4)))
    game = random_game(9)
    wanted = oracle.myerson(graph, game.value_of(0))[:, 0]
    exact = run(game, core.Myerson(), graph)
    budget = int(exact.evaluations[0] * 0.6)
    drawn = check_draws(core.Myerson(), graph, budget, wanted, game)
    assert not drawn[4]
    one = run(game, core.Myerson(), graph, budget=budget)
    for component in nx.connected_components(graph):
        whole = game.value_of(0)(component) - game.value_of(0)(())
        np.testing.assert_allclose(one.values[0, sorted(component)].sum(axis=0), whole, **EXACT)


@pytest.mark.parametrize(("lengths", "is_listed"), [((20, 2, 2), True), ((20, 20, 20), False)])
def test_connected_sets_of_all_components_together_are_bounded(lengths, is_listed):
    """A line of 20 has 210 of them: 8 times a budget of 40 is enough for one, not for three."""
    lines = nx.disjoint_union_all([nx.path_graph(length) for length in lengths])
    ends = np.array([[degree == 1 for _, degree in lines.degree()]])  # others are on the way
    game = FunctionGame(lambda z: z.sum(axis=1) ** 2, sum(lengths), active=ends)
    estimate = run(game, core.Myerson(), lines, budget=40)
    assert (estimate.standard_errors == 0).all() == is_listed


def test_errors_need_two_draws():
    game = random_game(9)
    complete = PlayerGraph.from_edges(9, np.argwhere(np.ones((9, 9))))
    for estimator, least in ((core.Myerson(), 38), (core.LShapley(1), 74)):
        with pytest.raises(BudgetError, match=f"{least} evaluations.*to estimate standard errors"):
            run(game, estimator, complete, budget=20, with_errors=True)
        found = run(game, estimator, complete, budget=least, with_errors=True)
        assert np.isfinite(found.standard_errors).all()
        single = run(game, estimator, complete, budget=least // 2 + 1)
        assert np.isfinite(single.values).all()


def test_draws_stop_at_a_tolerance():
    game = random_game(9, n_rows=3)
    complete = PlayerGraph.from_edges(9, np.argwhere(np.ones((9, 9))))
    for estimator in (core.Myerson(), core.LShapley(1)):
        found = run(game, estimator, complete, budget=500, tolerance=core.Tolerance(0.35))
        assert (found.evaluations < 500).all()
        assert found.standard_errors.max() <= 0.35
    exact = run(game, core.CShapley(1), PlayerGraph.line(9), tolerance=core.Tolerance(0.1))
    np.testing.assert_array_equal(exact.values, values(game, core.CShapley(1), PlayerGraph.line(9)))


# --- designs ---


@pytest.fixture
def made(monkeypatch):
    """Return a list that grows with each design; none is kept from before."""
    designs._kept.clear()
    found = []
    for kind in (core.CShapley, core.ConnectedRegression, core.LShapley, core.Myerson):

        def design(self, request, original=kind.design):
            found.append(self)
            return original(self, request)

        monkeypatch.setattr(kind, "design", design)
    yield found
    designs._kept.clear()


@pytest.mark.parametrize(
    "estimator",
    [
        core.CShapley(1),
        core.CShapley(1, marginals="components"),
        core.ConnectedRegression(3),
        core.LShapley(1),
        core.Myerson(),
    ],
    ids=repr,
)
def test_designs_are_kept_for_calls_to_come(estimator, made):
    """And for rows of equal graphs, which need not be identical."""
    games = [random_game(7, n_rows=3, seed=seed) for seed in (0, 1)]
    rings = [PlayerGraph.ring(7) for _ in range(3)]
    first = [values(game, estimator, rings, seed=n) for n, game in enumerate(games)]
    assert len(made) == 1
    for game, found in zip(games, first, strict=True):
        designs._kept.clear()
        np.testing.assert_array_equal(values(game, estimator, PlayerGraph.ring(7)), found)


def test_a_kept_design_is_for_the_same_question_only(made):
    """Another graph, option, budget or set of players that matter."""
    weights = np.arange(1.0, 8.0)
    without_one, without_another = weights * (weights != 2), weights * (weights != 4)
    ring, order = PlayerGraph.ring(7), core.CShapley("auto")
    questions = [
        (weights, order, ring, 30),
        (weights, order, PlayerGraph.line(7), 30),
        (weights, order, ring, 60),
        (weights, core.CShapley("auto", marginals="components"), ring, 30),
        (without_one, order, ring, 30),
        (without_another, order, ring, 30),
    ]
    for _ in range(2):
        for own, estimator, graph, budget in questions:
            game = additive_game(own, active=own[None] != 0)
            found = values(game, estimator, graph, budget=budget)
            np.testing.assert_allclose(found[0, :, 0], own, **EXACT)
    assert len(made) == len(questions)


def test_designs_that_are_drawn_are_kept_for_their_seed(made):
    game = random_game(9)
    complete = PlayerGraph.from_edges(9, np.argwhere(np.ones((9, 9))))
    for estimator in (core.Myerson(), core.LShapley(1), core.CShapley(1)):
        made.clear()
        draws = [
            values(game, estimator, complete, budget=120, seed=seed, batch_size=batch_size)
            for seed, batch_size in ((0, None), (1, None), (0, 7), (1, 7))
        ]
        assert len(made) == 2
        assert np.abs(draws[0] - draws[1]).max() > 1e-3
        np.testing.assert_array_equal(draws[:2], draws[2:])


def test_what_is_kept_is_bounded(made, monkeypatch):
    """By the number of designs, and by their bytes: of single players and the end points here."""
    graphs, size = [PlayerGraph.from_edges(7, [(0, n)]) for n in range(1, 6)], 7 * (7 + 2)
    game = additive_game(np.arange(7.0))
    for most_designs, most_bytes, n_left in [(2, 10**6, 2), (10, 3 * size, 3), (10, size - 1, 0)]:
        monkeypatch.setattr(designs, "_MOST_DESIGNS", most_designs)
        monkeypatch.setattr(designs, "_MOST_BYTES", most_bytes)
        designs._kept.clear()
        made.clear()
        for graph in [*graphs, *reversed(graphs[5 - n_left :])]:  # the last ones are there
            values(game, core.ConnectedRegression(1), graph)
        assert len(made) == 5
        values(game, core.ConnectedRegression(1), graphs[0])
        assert len(made) == 6


# --- wrong calls ---


def test_graphs_that_do_not_fit():
    game = random_game(5, n_rows=2)
    with pytest.raises(InvalidArgumentError, match="graph is missing"):
        core.estimate(game, core.LShapley(1), core.Settings(seed=0, budget=32))
    with pytest.raises(InvalidArgumentError, match="graph has 4 nodes, but there are 5 players"):
        run(game, core.LShapley(1), PlayerGraph.line(4))
    with pytest.raises(InvalidArgumentError, match="3 graphs, but there are 2 rows"):
        run(game, core.LShapley(1), [PlayerGraph.line(5)] * 3)
    with pytest.raises(InvalidArgumentError, match="shapes='squares' needs a grid"):
        run(game, core.ConnectedRegression(2, "squares"), PlayerGraph.ring(5))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: core.LShapley("largest"), "order"),
        (lambda: core.LShapley(-1), "order"),
        (lambda: core.CShapley(1.5), "order"),  # type: ignore[arg-type] # wrong on purpose
        (lambda: core.ConnectedRegression(0), "order must be at least 1"),
        (lambda: core.CShapley(1, "Myerson"), "weighting"),
        (lambda: core.LShapley(1, "present"), "context"),
        (lambda: core.CShapley(1, marginals="plain"), "marginals"),
        (lambda: core.ConnectedRegression(1, "boxes"), "shapes"),
        (lambda: core.ConnectedRegression(1, kernel="flat"), "kernel"),
        (lambda: core.ConnectedRegression(1, efficient="no"), "efficient"),  # type: ignore[arg-type] # wrong on purpose
    ],
)
def test_options_that_cannot_be(make, name):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=name):
        make()


def test_equations_that_do_not_determine_the_players_are_refused():
    import scipy.sparse

    pairs = scipy.sparse.csr_matrix([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
    with pytest.raises(SingularSystemError, match="4 equations determine 3 of .* 4"):
        fit_sparse(pairs, np.ones(4))
    unused = scipy.sparse.csr_matrix([[1.0, 0], [2, 0]])
    with pytest.raises(SingularSystemError, match="2 equations determine 1"):
        fit_sparse(unused, np.ones(2))
