"""A model behind HTTP on this machine, which is slow, limited, and fails now and then."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


class FaultyServer:
    """Answers POST requests with the outputs of `model`; a context manager.

    Each request waits `latency` seconds. A share `fails` of them is answered by status 503, and one
    that comes while `rate` requests began in the last second by 429.
    """

    def __init__(
        self,
        model: Callable[[Any], Any],
        latency: float = 0.0,
        fails: float = 0.0,
        rate: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self.latency, self.fails, self.rate = model, latency, fails, rate
        self.rng, self.lock = np.random.default_rng(seed), threading.Lock()
        self.starts, self.running, self.most_running = [], 0, 0
        self.answered, self.failed, self.refused = 0, 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                status, answer = outer.handle(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def handle(self, body):
        with self.lock:
            now = time.monotonic()
            self.starts.append(now)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            is_over = self.rate and sum(now - start < 1 for start in self.starts) > self.rate
            fails = self.rng.random() < self.fails
        time.sleep(self.latency)
        with self.lock:
            self.running -= 1
            self.refused += bool(is_over)
            self.failed += bool(fails and not is_over)
            self.answered += not (is_over or fails)
        if is_over or fails:
            return (429 if is_over else 503), b""
        outputs = self.model(np.array(json.loads(body)))
        return 200, json.dumps(np.asarray(outputs).tolist()).encode()

    def ask(self, rows):
        """Be the client: the outputs of rows, (n, D)."""
        body = json.dumps(np.asarray(rows).tolist()).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body), timeout=30) as reply:
            return np.array(json.loads(reply.read()))

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
