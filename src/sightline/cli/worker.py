"""`sightline worker`: answer for a local model by the chat completions protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.options import pairs
from sightline.errors import UserError, did_you_mean
from sightline.text import print_line

EXAMPLE = """examples:
  sightline worker --model hf/llava-hf/llava-1.5-7b-hf --processes 8   a process for each GPU
  sightline worker --model hf/llava-hf/llava-1.5-7b-hf --host 0.0.0.0 --port 8000   for other computers
  sightline worker --model mini --port 8000   the embedded model, for this computer

  how to ask the last one; in sightline.toml:
  [hosts."127.0.0.1:8000"]
  key = "WORKER_KEY"
  in the shell:
  export WORKER_KEY=$(cat ~/.cache/sightline/worker-8000.key)
  sightline run codis --model http://127.0.0.1:8000/v1#mini --data data/codis

Each call needs the key: that in SIGHTLINE_WORKER_KEY, or that in --key-file, which is made if there is none.
`sightline run --on slurm` starts workers by itself (docs/cluster.md).
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "--model",
        required=True,
        metavar="SPEC",
        help="mini, hf/ORG/NAME, hf/FOLDER, or a name of sightline.toml",
    )
    add(
        "--model-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of the model: dtype, device, batch, ...; may repeat",
    )
    add("--config", metavar="FILE", help="configuration file (default: ./sightline.toml)")
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; 0.0.0.0 lets other computers connect (default: 127.0.0.1)",
    )
    add("--port", type=int, default=0, metavar="N", help="port (default: 0, a free one)")
    add(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes that share the requests, each with a GPU of its own (default: 1)",
    )
    add(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="file with the key, for its owner only"
        " (default: worker-PORT.key in the cache folder; worker.key without --port)",
    )
    add("--log-requests", action="store_true", help="print the key of each request that is answered")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    import asyncio

    from sightline.config import cache_folder, load_config
    from sightline.models.registry import ModelOptions, resolve, resolve_name
    from sightline.replicas.fleet import ReplicaPool, Target
    from sightline.replicas.worker import Serving, serve
    from sightline.replicas.worker_client import Processes, worker_key

    if not 0 <= options.port <= 65535:
        raise UserError("--port is no port", found=options.port, expected="0 to 65535")
    if options.processes < 1:
        raise UserError(
            "--processes is no number of processes", found=options.processes, expected="1 or more"
        )
    config = load_config(options.config)
    args = ModelOptions(config, pairs(options.model_arg, "--model-arg"))
    spec, named = resolve_name(options.model, args)
    if spec != "mini" and not spec.startswith("hf/"):
        raise UserError(
            f"--model {options.model} is no model that Sightline runs itself"
            f"{did_you_mean(options.model, ['mini', *config.models])}",
            expected="mini, hf/ORG/NAME or hf/FOLDER",
        )
    (model,) = resolve(options.model, args)
    file = options.key_file or cache_folder() / (
        f"worker-{options.port}.key" if options.port else "worker.key"
    )
    key, is_in_file = worker_key(file)
    if options.processes > 1:
        target = Target(model=model, spec=spec, args=named.args, weights=model.identity)
        model = ReplicaPool(model, Processes(target, options.processes))
    serving = Serving(
        host=options.host,
        port=options.port,
        key=key,
        key_file=file if is_in_file else None,
        logs_requests=options.log_requests,
    )
    asyncio.run(serve(model, serving))
    print_line("the worker ended")
    return 0
