#!/usr/bin/env python3
"""A small server for tests: KServe v2 with generate, and OpenAI's completions, over a model in JAX (NumPy where there is none).

usage: v2_server.py PORT [LOG]. One thread runs the model: a prompt is one call of `prefill`, and up to four requests share a call of
`decode`. Each call is a line of LOG. The model is a stack of products; a token is a number, and its text is that number.
"""

import itertools
import json
import os
import queue
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

WIDTH, LAYERS, MOST = 256, 2, 4
try:
    if os.environ.get("V2_SERVER_MODEL") == "numpy":
        raise ImportError
    import jax

    def jitted(function):
        return jax.jit(function)

    on_device = jax.device_put
except ImportError:

    def jitted(function):
        return function

    on_device = list


class Model:
    """One worker thread: prompts first, then a token for every request that still wants some."""

    def __init__(self, log):
        random = np.random.default_rng(0)
        self.weights = on_device([random.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 16 for _ in range(LAYERS)])

        def prefill(weights, x):
            for w in weights:
                x = x @ w
            return x.argmax(-1)

        def decode(weights, x):
            for w in weights:
                x = x @ w
            return x.argmax(-1)

        self.programs = {"prefill": jitted(prefill), "decode": jitted(decode)}
        self.log = open(log, "w") if log else None  # noqa: SIM115
        self.sums = {name: {"count": 0, "ns": 0} for name in ("success", "queue", "compute_input", "compute_infer", "compute_output")}
        self.batches, self.executions, self.number = {}, 0, 0
        self.waiting = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def ask(self, prompt, tokens):
        answer = queue.Queue()
        self.waiting.put({"left": tokens, "answer": answer, "arrived": time.time_ns(), "rows": len(prompt.split()), "new": True})
        return answer

    def work(self):
        running = []
        while True:
            if not running:
                running.append(self.waiting.get())
            while len(running) < MOST and not self.waiting.empty():
                running.append(self.waiting.get())
            new = next((r for r in running if r["new"]), None)
            batch = [new] if new else running
            self.call("prefill" if new else "decode", batch, new["rows"] if new else MOST)
            for request in batch:
                request["new"], request["arrived"] = False, time.time_ns()
                request["left"] -= 1
                request["answer"].put("7 ")
                if not request["left"]:
                    request["answer"].put(None)
                    running.remove(request)

    def call(self, name, batch, rows):
        start = time.time_ns()
        np.asarray(self.programs[name](self.weights, np.ones((rows, WIDTH), np.float32)))
        end = time.time_ns()
        self.executions += 1
        self.number += 1
        self.batches[len(batch)] = self.batches.get(len(batch), 0) + 1
        for what, ns in (("success", end - start), ("compute_infer", end - start), ("queue", start - batch[0]["arrived"])):
            self.sums[what]["count"] += len(batch)
            self.sums[what]["ns"] += ns * len(batch)
        if self.log:
            arrived = [request["arrived"] for request in batch]
            line = {"call": self.number, "program": name, "rows": len(batch), "arrived_ns": arrived}
            line |= {"started_ns": start, "finished_ns": end, "clock": "realtime"}
            self.log.write(json.dumps(line) + "\0\n")
            self.log.flush()

    def stats(self):
        sizes = [{"batch_size": size, "compute_infer": {"count": n, "ns": 0}} for size, n in self.batches.items()]
        return {"name": "small", "execution_count": self.executions, "inference_stats": self.sums, "batch_stats": sizes}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        inputs = [{"name": "max_tokens", "datatype": "INT32", "shape": [1]}, {"name": "x", "datatype": "FP32", "shape": [-1, -1, 2]}]
        found = {
            "/v2/models/small": {"name": "small", "inputs": inputs},
            "/v2/models/small/ready": {},
            "/v1/models": {"data": []},
            "/v2/models/small/stats": {"model_stats": [MODEL.stats()]},
        }
        self.reply(200 if self.path in found else 404, json.dumps(found.get(self.path, {"error": "no such path"})).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v2/models/small/generate_stream":
            # max_tokens is an input of this model, so that it stands in the body itself
            tokens = body["max_tokens"]
            events = ({"text_output": text} for text in iter(MODEL.ask(body["text_input"], tokens).get, None))
        elif self.path == "/v2/models/small/infer":
            (tokens, x) = body["inputs"]
            assert (tokens["shape"], x["shape"], len(x["data"])) == ([1], [1, 4, 2], 8)
            next(iter(MODEL.ask("one", 1).get, None))
            self.reply(200, b'{"outputs": []}')
            return
        elif self.path == "/v1/completions":
            tokens = body["max_tokens"]
            pieces = iter(MODEL.ask(body["prompt"], tokens).get, None)
            usage = {"choices": [], "usage": {"completion_tokens": tokens}}
            events = itertools.chain(({"choices": [{"text": text}]} for text in pieces), [usage])
        else:
            self.reply(404, b'{"error": "no such model"}')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def reply(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


MODEL = Model(sys.argv[2] if len(sys.argv) > 2 else None)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
