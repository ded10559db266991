"""
Texts through shap, coloured and with error bars
================================================

**For whom:** you have a model of texts that is not a network, such as TF-IDF and a logistic
regression, and want to see which words decide.

shap's Text masker splits texts into tokens. Our explainers take it as it is, and shap's plots
draw the result.
"""

# %%
# A model of texts
# ----------------
# 800 short opinions on films, written for these tutorials (:download:`opinions.csv
# <opinions.csv>`). The model weighs words, and pairs of words that are close together, so that it
# can learn that "not … bad" is good.

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from IPython.display import HTML
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import shap_ext  # adds our algorithms to shap.Explainer

opinions = pd.read_csv("opinions.csv")
opinions = opinions[~opinions["text"].str.contains("but")]  # its rule is too hard for this model
train, test = train_test_split(opinions, random_state=0)


def words_and_pairs(text):
    words = re.findall(r"\w+", text)
    near = [f"{a} … {b}" for i, a in enumerate(words) for b in words[i + 1 : i + 6]]
    return words + near


model = make_pipeline(TfidfVectorizer(analyzer=words_and_pairs), LogisticRegression(C=30))
model.fit(train["text"], train["is_good"])
print(f"Accuracy on {len(test)} other opinions: {model.score(test['text'], test['is_good']):.2f}")

# %%
# Explain a few texts
# -------------------
# The masker splits at everything that is not a letter. An absent word becomes three dots, which
# the model does not count. Texts may differ in length. We explain the log-odds of a good opinion.

texts = [
    "the film was not boring",
    "hardly a funny cast and the story was never moving",
    "i did not find the music boring and the cast was never very silly",
]
masker = shap.maskers.Text(r"\W+")
explainer = shap.Explainer(model.decision_function, masker, algorithm="oddgp", seed=0)
explanation = explainer(texts, error_bounds=True)
print(explainer.last_estimate)

# %%
# shap colours the words: red words make the opinion good, blue words make it bad. (The first line
# is needed with NumPy 2, which writes numbers in a way that the plot of shap 0.51 does not
# expect.)

with np.printoptions(legacy="1.25"):
    coloured = shap.plots.text(explanation, display=False)
HTML(coloured)

# %%
# Beside shap's own explainers, at equal evaluations
# --------------------------------------------------
# By default, shap explains texts with Partition, which computes Owen values of a tree of phrases;
# shap's Permutation estimates Shapley values, as ours. The last text has 14 words, so that its
# Shapley values can be computed exactly from all 16,384 coalitions. The others get 200.

last, budget = texts[2:], 200
explanations = {
    "shap: Partition": shap.Explainer(model.decision_function, masker, algorithm="partition"),
    "shap: Permutation": shap.Explainer(
        model.decision_function, masker, algorithm="permutation", seed=0
    ),
    "oddgp, with 95 % intervals": explainer,
}
exact = shap.Explainer(model.decision_function, masker, algorithm="enumeration")(
    last, max_evals=2**14, silent=True
)

figure, panels = plt.subplots(3, 1, figsize=(6.4, 10), sharex=True)
for panel, (name, of_name) in zip(panels, explanations.items(), strict=True):
    options = {"error_bounds": True} if of_name is explainer else {"silent": True}
    (found,) = of_name(last, max_evals=budget, **options)
    words = [f"{place}  {word.strip()}" for place, word in enumerate(found.data, start=1)]
    bars = None
    if of_name is explainer:
        bars = [found.values - found.lower_bounds, found.upper_bounds - found.values]
    colours = np.where(found.values > 0, "#ff0051", "#008bfb")
    panel.barh(words, found.values, xerr=bars, capsize=2, color=colours)
    panel.plot(exact.values[0], words, "k.", label="exact Shapley value")
    panel.axvline(0, color="0.5", linewidth=0.8)
    error = np.abs(found.values - exact.values[0]).mean()
    panel.set_title(f"{name}: mean distance to the exact values {error:.3f}")
    panel.invert_yaxis()
panels[0].legend(loc="lower right")
panels[2].set_xlabel("attribution to the log-odds of a good opinion")
figure.tight_layout()
plt.show()

# %%
# Partition's values differ because they are other values: words share what their phrase adds.
# Only ours come with intervals.
#
# The same numbers in shap's bar plot of one text:

shap.plots.bar(explanation[1], max_display=12)

# %%
# Which words matter over many texts?
# -----------------------------------
# We explain 60 opinions of the test data and average the attributions of each word.

many = explainer(test["text"].iloc[:60].tolist(), max_evals=200)
pairs = [
    (str(word).strip(), value)
    for text in many
    for word, value in zip(text.data, text.values, strict=True)
]
table = pd.DataFrame(pairs, columns=["word", "attribution"])
of_word = table.groupby("word")["attribution"].agg(["mean", "std", "count"])
of_word = of_word[of_word["count"] >= 5].sort_values("mean")
ends = pd.concat([of_word.head(7), of_word.tail(7)])

figure, axes = plt.subplots(figsize=(7, 4.5))
axes.barh(ends.index, ends["mean"], xerr=ends["std"], capsize=2, color="0.6")
axes.axvline(0, color="0.3")
axes.set(xlabel="mean attribution, ± one standard deviation over texts", title="60 opinions")
figure.tight_layout()
plt.show()

# %%
# The spread over texts is large: a good word after "not" is a bad one.
#
# What to read next
# -----------------
# - :doc:`/coming_from_shap`: all maskers of shap.
# - :doc:`text_through_captum`: the same texts with a network, through captum.
# - :doc:`words_as_neighbours`: texts of hundreds of words.
