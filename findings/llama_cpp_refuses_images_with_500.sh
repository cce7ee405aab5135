#!/usr/bin/env bash
# Guess: llama.cpp's server answers a request with an image, for a model without an image encoder, with a status
# from 400 to 499, as OpenAI, vLLM and SGLang do: the request is at fault.
# What happens: the status is 500 and the type "server_error", which says that the same request may succeed later.
# What it changes: clients that repeat server errors send each of these requests several times, images included, and
# report an outage. Do not repeat a 500 whose message says that image input is not supported.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet xllamacpp==2026.10.11549 gguf==0.19.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import base64
import json
import socket
import urllib.error
import urllib.request
import zlib
from importlib.metadata import version

import gguf
import numpy as np
import xllamacpp

print("llama.cpp of xllamacpp", version("xllamacpp"))
WIDTH, LAYERS, INNER = 64, 2, 128
tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
made = gguf.GGUFWriter("tiny.gguf", "llama")
made.add_context_length(2048)
made.add_embedding_length(WIDTH)
made.add_block_count(LAYERS)
made.add_feed_forward_length(INNER)
made.add_head_count(4)
made.add_head_count_kv(4)
made.add_layer_norm_rms_eps(1e-5)
made.add_rope_dimension_count(16)
made.add_vocab_size(len(tokens))
made.add_file_type(0)
made.add_tokenizer_model("llama")
made.add_token_list(tokens)
made.add_token_scores([0.0] * len(tokens))
made.add_token_types([2, 3, 3, *([6] * 256)])
made.add_bos_token_id(1)
made.add_eos_token_id(2)
made.add_unk_token_id(0)
made.add_chat_template("{% for one in messages %}{{ one['content'] }}{% endfor %}")
chance = np.random.default_rng(0)
shapes = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH)}
for layer in range(LAYERS):
    shapes |= {f"blk.{layer}.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    shapes |= {f"blk.{layer}.ffn_{name}": (INNER, WIDTH) for name in ("gate", "up")}
    shapes[f"blk.{layer}.ffn_down"] = (WIDTH, INNER)
for name, shape in shapes.items():
    made.add_tensor(f"{name}.weight", (chance.standard_normal(shape) * 0.2).astype(np.float32))
norms = ["output_norm", *(f"blk.{layer}.{name}_norm" for layer in range(LAYERS) for name in ("attn", "ffn"))]
for name in norms:
    made.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
made.write_header_to_file()
made.write_kv_data_to_file()
made.write_tensors_to_file()
made.close()

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
parameters = xllamacpp.CommonParams()
parameters.model.path = "tiny.gguf"
parameters.n_ctx, parameters.port = 2048, port
server = xllamacpp.Server(parameters)


def ask(content: object) -> tuple[int, dict]:
    body = json.dumps({"messages": [{"role": "user", "content": content}], "max_tokens": 4}).encode()
    request = urllib.request.Request(
        f"{server.listening_address}/v1/chat/completions", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


pixels = zlib.compress(b"".join(b"\0" + b"\xff\0\0" * 8 for _ in range(8)))
header = (8).to_bytes(4) + (8).to_bytes(4) + bytes([8, 2, 0, 0, 0])
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
url = "data:image/png;base64," + base64.b64encode(png).decode()
text, _ = ask("hi")
status, body = ask([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "hi"}])
print("text:", text, "- image:", status, body["error"]["type"], "-", body["error"]["message"])
assert text == 200, "the server does not answer texts"
assert status == 500 and body["error"]["type"] == "server_error", "the behaviour has changed"
assert "image input is not supported" in body["error"]["message"], "the behaviour has changed"
PYTHON
