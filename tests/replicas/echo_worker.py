"""A worker without weights: it answers with the GPUs that it sees, and ends at a request that says so."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Sequence

from sightline.models.offline import ChanceBaseline
from sightline.replicas.worker import Serving, serve
from sightline.replicas.worker_client import KEY_VARIABLE
from sightline.types import Answer, Failure, Request


class Echo(ChanceBaseline):
    """The model, under the name of the one that it stands for."""

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            if request.key == "end":
                os._exit(3)
            yield index, Answer(os.environ.get("CUDA_VISIBLE_DEVICES", ""), version=str(os.getpid()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    model = Echo(0)
    asyncio.run(serve(model, Serving(host=options.host, port=options.port, key=os.environ[KEY_VARIABLE])))


if __name__ == "__main__":
    main()
