"""A stand-in for `vllm serve MODEL ...` and `python -m sglang.launch_server --model-path MODEL ...`.

What it does beside answering is said by flags of its own. It writes what it is and what it was asked to the
file named by STAND_IN, a JSON line each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def parse() -> argparse.Namespace:
    words = sys.argv[1:]
    if words[:1] == ["-c"]:
        # The lines that start SGLang with its key.
        words = words[2:]
    for first in (["serve"], ["--model-path"]):
        if words[: len(first)] == first:
            words = words[len(first) :]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--api-key", default=os.environ.get("VLLM_API_KEY"))
    parser.add_argument("--load", type=float, default=0.2, help="seconds before it listens")
    parser.add_argument("--fails", action="store_true", help="ends while it loads")
    parser.add_argument("--never", action="store_true", help="listens, and is never healthy")
    parser.add_argument("--answers", type=int, default=10**9, help="is killed after so many answers")
    parser.add_argument("--seconds", type=float, default=0.0, help="takes so long for an answer")
    parser.add_argument("--deaf", action="store_true", help="ignores SIGTERM")
    parser.add_argument("--workers", type=int, default=0, help="has so many processes of its own, deaf ones")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--tensor-parallel-size", type=int)
    return parser.parse_args(words)


def tell(**what: Any) -> None:
    if "STAND_IN" in os.environ:
        with open(os.environ["STAND_IN"], "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: argparse.Namespace
    answered = 0

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(503 if self.options.never else 200, b"")
        elif self.path == "/v1/models":
            self.reply(200, json.dumps({"data": [{"id": self.options.served_model_name}]}).encode())
        else:
            self.reply(404, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.options.api_key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.reply(401, b"")
            return
        if self.path != "/v1/chat/completions" or body["model"] != self.options.served_model_name:
            self.reply(404, b"")
            return
        time.sleep(self.options.seconds)
        tell(asked=body["messages"], authorization=self.headers.get("Authorization"))
        message = {"role": "assistant", "content": "(B)"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply(200, json.dumps({"model": body["model"], "choices": [choice]}).encode())
        Handler.answered += 1
        if Handler.answered == self.options.answers:
            print("out of memory", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    options = Handler.options = parse()
    if options.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    workers = [subprocess.Popen([sys.executable, "-c", deaf]).pid for _ in range(options.workers)]
    tell(pids=[os.getpid(), *workers], arguments=sys.argv[1:], key=os.environ.get("VLLM_API_KEY"))
    print("\x1b[32mINFO\x1b[0m loading weights:  10%\rloading weights: 100%", flush=True)
    time.sleep(options.load)
    if options.fails:
        sys.exit("ValueError: no such weights")
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
