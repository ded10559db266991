"""Kinds of input and model that users of shap hand over."""

import lightgbm
import numpy as np
import pandas as pd
import scipy.sparse
import shap
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

from tests.parity.cases import Case, Kind, show_with
from tests.shap_host.games import curved

N_ROWS = 3


def numbers(n_rows, n_columns, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def case(model, masker, x, *, games, n_players, plot, **options):
    """Return the case of an explainer built and called as users do."""

    def run(row, budget, seed):
        explainer = row.explainer(model, masker, seed=seed, **row.options, **options)
        explanation = explainer(x, max_evals=budget, silent=True)
        values = np.stack([np.asarray(v, dtype=float) for v in explanation.values])
        return explanation, values.reshape(len(values), n_players, -1)

    return Case(run, games, n_players, show_with(plot))


def tabular_games(function, rows, background, players=None):
    """Return the games of rows against background rows, filled in column by column."""
    players = [[column] for column in range(np.shape(rows)[1])] if players is None else players

    def game(row):
        def value(coalition):
            masked = [list(b) for b in background]
            for filled in masked:
                for player in coalition:
                    for column in players[player]:
                        filled[column] = row[column]
            return np.mean(np.asarray(function(masked), dtype=float), axis=0)

        return value

    return [game(row) for row in rows]


def first_output(explanation):
    return explanation[..., 0] if explanation.values.ndim == 3 else explanation


def waterfall(explanation):
    shap.plots.waterfall(first_output(explanation)[0], show=False)


def bar(explanation):
    shap.plots.bar(first_output(explanation), show=False)


def beeswarm(explanation):
    shap.plots.beeswarm(first_output(explanation), show=False)


def heatmap(explanation):
    shap.plots.heatmap(first_output(explanation), show=False)


def violin(explanation):
    shap.plots.violin(first_output(explanation), show=False)


def scatter(explanation):
    shap.plots.scatter(first_output(explanation)[:, 1], show=False)


def force(explanation):
    shap.plots.force(first_output(explanation)[0], matplotlib=True, show=False)


def decision(explanation):
    sv = first_output(explanation)
    shap.plots.decision(float(sv.base_values[0]), sv.values, sv.data, show=False)


# --- tables ---


def array_and_function():
    x, background = numbers(N_ROWS, 7), numbers(1, 7, seed=1)
    games = tabular_games(lambda m: curved(np.array(m)), x, background)
    return case(curved, background, x, games=games, n_players=7, plot=waterfall)


def several_backgrounds_and_two_outputs():
    def model(x):
        return np.stack([curved(x), x[:, 0] * x[:, 1] * x[:, 2]], axis=1)

    x, background = numbers(N_ROWS, 7), numbers(6, 7, seed=1)
    games = tabular_games(lambda m: model(np.array(m)), x, background)
    return case(model, background, x, games=games, n_players=7, plot=beeswarm)


def frame_and_boosted_trees():
    columns = list("abcdefg")
    data = pd.DataFrame(numbers(120, 7, seed=2), columns=columns)
    target = curved(data.to_numpy()) > 0
    trees = lightgbm.LGBMClassifier(
        n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1, random_state=0
    ).fit(data, target)

    def model(frame):
        return trees.predict(frame, raw_score=True)

    x, background = data.iloc[:N_ROWS], data.iloc[50:53]
    games = tabular_games(
        lambda m: model(pd.DataFrame(m, columns=columns)), x.to_numpy(), background.to_numpy()
    )
    return case(model, background, x, games=games, n_players=7, plot=scatter)


def mixed_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(numbers(90, 4), columns=list("abcd"))
    frame["city"] = rng.choice(["Rome", "Oslo", "Lima"], 90)
    frame["size"] = pd.Categorical(rng.choice(["S", "M", "L"], 90), ["S", "M", "L"], ordered=True)
    frame["member"] = rng.random(90) < 0.5
    return frame


def frame_games(model, x, background):
    """Return games whose masked frames have the types of the rows' columns."""

    def game(row):
        def value(coalition):
            masked = background.copy().reset_index(drop=True)
            for player in coalition:
                column = x.columns[player]
                masked[column] = pd.Series(
                    [x[column].iloc[row]] * len(masked), dtype=x[column].dtype
                )
            return np.mean(np.asarray(model(masked), dtype=float), axis=0)

        return value

    return [game(row) for row in range(len(x))]


def mixed_frame_and_pipeline():
    data = mixed_frame()
    target = (data["a"] * (data["city"] == "Oslo") + data["member"] + 0.1 * data["b"]) > 0.5
    encoder = ColumnTransformer(
        [("names", OneHotEncoder(), ["city", "size"])], remainder="passthrough"
    )
    pipeline = make_pipeline(encoder, SVC()).fit(data, target)  # no sum of its columns
    x, background = data.iloc[:N_ROWS], data.iloc[20:23]
    games = frame_games(pipeline.decision_function, x, background)
    return case(pipeline, background, x, games=games, n_players=7, plot=bar)


def categories_and_boosted_trees():
    data = mixed_frame()
    data["city"] = data["city"].astype("category")
    data["size"] = data["size"].cat.as_unordered()
    target = data["a"] * (data["city"] == "Oslo") - data["b"] * (data["size"] == "L")
    trees = lightgbm.LGBMRegressor(
        n_estimators=30, num_leaves=8, min_child_samples=3, verbose=-1, n_jobs=1, random_state=0
    ).fit(data, target)
    x, background = data.iloc[:N_ROWS], data.iloc[20:22]
    games = frame_games(trees.predict, x, background)
    return case(trees.predict, background, x, games=games, n_players=7, plot=waterfall)


def grouped_columns_and_forest():
    rng = np.random.default_rng(3)
    colours = np.eye(3)[rng.integers(3, size=80)]
    data = pd.DataFrame(
        np.hstack([numbers(80, 5, seed=4), colours]), columns=[*"abcde", "red", "green", "blue"]
    )
    target = (data["a"] * data["red"] > 0).astype(int) + (data["b"] > 0.5)
    forest = RandomForestClassifier(8, random_state=0).fit(data, target)
    x, background = data.iloc[:N_ROWS], data.iloc[[30]]
    games = tabular_games(
        lambda m: forest.predict_proba(pd.DataFrame(m, columns=data.columns)),
        x.to_numpy(),
        background.to_numpy(),
        [[0], [1], [2], [3], [4], [5, 6, 7]],
    )
    groups = {"colour": ["red", "green", "blue"]}
    return case(forest, background, x, games=games, n_players=6, plot=heatmap, groups=groups)


def logit_link_and_network():
    data = numbers(100, 6, seed=5)
    net = MLPClassifier((8,), max_iter=300, random_state=0).fit(data, curved(data) > 0)

    def model(x):
        return net.predict_proba(x)[:, 1]

    x, background = data[:N_ROWS], data[40:44]
    games = tabular_games(lambda m: model(np.array(m)), x, background)
    games = [lambda c, g=g: np.log(g(c) / (1 - g(c))) for g in games]
    link = {"link": shap.links.logit, "linearize_link": False}
    return case(model, background, x, games=games, n_players=6, plot=decision, **link)


def clustered_masker():
    data = numbers(60, 7, seed=6)
    masker = shap.maskers.Partition(data, max_samples=100)
    games = tabular_games(lambda m: curved(np.array(m)), data[:N_ROWS], data)
    return case(curved, masker, data[:N_ROWS], games=games, n_players=7, plot=bar)


def function_as_masker():
    x = numbers(N_ROWS, 7)

    def masker(mask, row):
        return (row * mask + 0.5 * ~mask)[None]

    games = tabular_games(lambda m: curved(np.array(m)), x, [[0.5] * 7])
    return case(curved, masker, x, games=games, n_players=7, plot=force)


# --- what is no table ---


def texts():
    rows = ["this is not so good", "good films are not long", "so long and not so good"]

    def model(texts):
        texts = [str(text) for text in texts]
        n_good = np.array([text.count("good") for text in texts])
        n_not = np.array([text.count("not") for text in texts])
        return np.sin([len(text) for text in texts]) + 3.0 * n_good * (1 - 2 * n_not)

    masker = shap.maskers.Text(r"\W+")
    lengths = [masker.shape(row)[1] for row in rows]
    n_players = max(lengths)

    def game(row, length):
        def value(coalition):  # a player that a text does not have changes nothing
            return model(masker(np.isin(np.arange(length), list(coalition)), row)[0])[0]

        return value

    def run(row, budget, seed):
        explainer = row.explainer(model, masker, seed=seed, **row.options)
        explanation = explainer(rows, max_evals=budget, silent=True)
        values = np.zeros((len(rows), n_players, 1))
        for place, own in enumerate(explanation.values):
            values[place, : lengths[place], 0] = own
        return explanation, values

    def plot(explanation):
        assert "films" in shap.plots.text(explanation, display=False)
        bar(explanation[0])

    games = [game(row, length) for row, length in zip(rows, lengths, strict=True)]
    return Case(run, games, n_players, show_with(plot))


def sparse_table():
    x = scipy.sparse.csr_matrix(np.round(numbers(N_ROWS, 7), 1))
    background = scipy.sparse.csr_matrix(np.eye(2, 7))

    def model(table):
        return curved(table.toarray())

    games = tabular_games(lambda m: curved(np.array(m)), x.toarray(), background.toarray())
    return case(model, background, x, games=games, n_players=7, plot=beeswarm)


def masked_images():
    pictures = 255 * np.random.default_rng(0).random((N_ROWS, 1, 3, 3))
    masker = shap.maskers.Image(np.full((1, 3, 3), 60.0), (1, 3, 3))

    def model(images):
        flat = np.asarray(images, dtype=float).reshape(len(images), -1) / 255
        return np.stack([curved(flat), flat[:, 0] * flat[:, 1] * flat[:, 5]], axis=1)

    games = tabular_games(
        lambda m: model(np.array(m)), pictures.reshape(N_ROWS, 9), np.full((1, 9), 60.0)
    )

    def plot(explanation):
        shap.plots.image(explanation[:1], pictures[:1] / 255, show=False)

    return case(model, masker, pictures, games=games, n_players=9, plot=plot)


def two_inputs():
    first, second = numbers(N_ROWS, 3), numbers(N_ROWS, 4, seed=1)

    def model(first, second):
        return curved(np.hstack([first, second]))

    masker = shap.maskers.Composite(
        shap.maskers.Independent(np.zeros((1, 3))), shap.maskers.Independent(np.ones((1, 4)))
    )
    background = [[0.0] * 3 + [1.0] * 4]
    games = tabular_games(lambda m: curved(np.array(m)), np.hstack([first, second]), background)

    def run(row, budget, seed):
        explainer = row.explainer(model, masker, seed=seed, **row.options)
        made = explainer(first, second, max_evals=budget, silent=True)
        values = np.hstack([part.values for part in made])
        return made, values.reshape(N_ROWS, 7, 1)

    return Case(run, games, 7, show_with(lambda made: [waterfall(part) for part in made]))


KINDS = [
    Kind("shap", "ragged texts", "function", texts),
    Kind("shap", "sparse table", "function", sparse_table),
    Kind("shap", "images, Image masker", "function, two outputs", masked_images),
    Kind("shap", "two inputs, Composite masker", "function", two_inputs),
    Kind("shap", "array", "function", array_and_function),
    Kind("shap", "array, 6 background rows", "two outputs", several_backgrounds_and_two_outputs),
    Kind("shap", "frame", "LightGBM", frame_and_boosted_trees),
    Kind("shap", "frame of strings and categories", "pipeline", mixed_frame_and_pipeline),
    Kind("shap", "frame of categories", "LightGBM", categories_and_boosted_trees),
    Kind("shap", "grouped columns", "forest, three classes", grouped_columns_and_forest),
    Kind("shap", "array, logit link", "scikit-learn network", logit_link_and_network),
    Kind("shap", "Partition masker", "function", clustered_masker),
    Kind("shap", "function as masker", "function", function_as_masker),
]
