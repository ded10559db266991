"""
A model behind HTTP: error against money
========================================

**For whom:** each answer of your model takes time, costs money, and fails now and then.

We put a model behind HTTP on this machine. It answers after 150 ms, takes at most 50 calls a
second, and 2 % of its calls fail. We ask what an explanation will cost, pay for it, and see how
the error falls with the money.
"""

# %%
# A server with limits
# --------------------
# The model is a random forest on twelve measurements of tumours. The server is the standard
# library's. Error 429 says that there were too many calls in the last second, and 503 that a call
# failed.

import json
import tempfile
import threading
import time
import urllib.request
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import shap_ext

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :12]
forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X[:400], y[:400])
patients, background = X[400:403], X[:400].mean(axis=0, keepdims=True)

MOST_CALLS, SECONDS, FAILING = 50, 0.15, 0.02
starts, lock, chance = deque(), threading.Lock(), np.random.default_rng(0)


def status_of_call(server):
    with lock:
        server.quota -= 1
        if server.quota < 0:
            return 402  # payment required
        now = time.monotonic()
        while starts and now - starts[0] > 1:
            starts.popleft()
        starts.append(now)
        fails = chance.random() < FAILING
        return 429 if len(starts) > MOST_CALLS else 503 if fails else 200


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = status_of_call(self.server)
        time.sleep(SECONDS)
        answer = b""
        if status == 200:
            answer = json.dumps(forest.predict_proba(rows)[:, 1].tolist()).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Print nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    quota = 10**6


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

# %%
# The client
# ----------
# `ask` is what you have: a function that sends rows and returns an output for each. `RemoteModel`
# makes of it a model that waits for nobody, keeps within the limit, repeats what failed, counts the
# money, and pays for nothing twice.


def ask(rows):
    body = json.dumps(np.asarray(rows).tolist()).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=10) as reply:
        return np.array(json.loads(reply.read()))


folder = tempfile.TemporaryDirectory()


def explainer_of(algorithm, memory):
    model = shap_ext.RemoteModel(
        ask,
        concurrency=16,
        rows_per_call=8,
        rate=0.9 * MOST_CALLS,
        retries=6,
        cost=0.002,  # of a row
        memory=Path(folder.name) / memory,
        name="forest, version 1",
    )
    return shap.Explainer(model, background, algorithm=algorithm, seed=0)


# %%
# Ask before you pay
# ------------------
# `budget_of` says how many rows a call asks the model for at most. It does not make the call.

explainer = explainer_of("oddgp", "first.db")
for budget in (50, 400):
    rows = explainer.budget_of(patients, max_evals=budget).model_rows.sum()
    print(f"{budget} evaluations: at most {rows} rows, which cost {0.002 * rows:.2f}")

# %%
# Pay, and pay only once
# ----------------------

started = time.perf_counter()
explanation = explainer(patients, max_evals=50)
print(f"{time.perf_counter() - started:.1f} s: {explainer.last_estimate.usage}")

explanation = explainer(patients, max_evals=50)
print("again:", explainer.last_estimate.usage)

# %%
# What is a smaller error worth?
# ------------------------------
# Twelve features have 4,096 coalitions. Here the forest itself is at hand, so that the exact values
# cost nothing, and we can compare. Each larger budget pays for what is new alone, and gives the
# numbers of the larger call.

exact = shap.Explainer(
    lambda rows: forest.predict_proba(rows)[:, 1], background, algorithm="enumeration"
)(patients).values


def error_of(values):
    return np.abs(values - exact).sum() / np.abs(exact).sum()


started = time.perf_counter()
figure, axes = plt.subplots(figsize=(7, 4))
for algorithm in ("oddgp", "leastsquares"):
    explainer = explainer_of(algorithm, f"{algorithm}.db")
    paid, money, errors = 0.0, [], []
    for budget in (30, 50, 100, 200, 400):
        values = explainer(patients, max_evals=budget, silent=True).values
        paid += explainer.last_estimate.usage.money
        money.append(paid)
        errors.append(error_of(values))
        print(f"{algorithm:12} {budget:3} evaluations: paid {paid:.2f}, error {errors[-1]:.3f}")
    axes.plot(money, errors, "o-", label=algorithm)
axes.set(xscale="log", yscale="log", xlabel="money paid so far", ylabel="relative error")
axes.set_title("error against money, three rows of twelve features")
axes.legend()
figure.tight_layout()
plt.show()
print(f"{time.perf_counter() - started:.0f} s in all")

# %%
# Every failed call was repeated, and no result depends on it: the same numbers come from the forest
# itself.

local = shap.Explainer(
    lambda rows: forest.predict_proba(rows)[:, 1], background, algorithm="leastsquares", seed=0
)(patients, max_evals=400)
print("the same bits:", np.array_equal(local.values, values))

# %%
# When the quota ends
# -------------------
# An error for good ends the call. The memory has what was answered, so that a repeated call pays
# for the rest only.

server.quota = 20
explainer.model.retries = 0
try:
    explainer(X[403:409], max_evals=50, batch_size=100)
except RuntimeError as error:
    print(str(error).partition(" What was")[0])

server.quota, explainer.model.retries = 10**6, 6
explainer(X[403:409], max_evals=50, batch_size=100)
print("then:", explainer.last_estimate.usage)

server.shutdown()
server.server_close()
folder.cleanup()

# %%
# What to read next
# -----------------
# - :doc:`/remote_models`: every option, and what happens on which fault.
# - :doc:`/budgets_and_error_bars`: how many evaluations are enough.
# - :doc:`workers_and_clusters`: models that need processors instead of patience.
