"""Named runs as their users meet them: interrupted, repeated, and not deleted while they run."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest


@pytest.mark.slow
def test_a_named_run_that_is_interrupted_keeps_its_name_until_it_is_repeated(
    mock: Any, start: Any, command: Any, iibench_folder: Any, store_url: str
) -> None:
    store = ["--store", store_url]
    server, data = mock("--latency-ms", 50), iibench_folder(200)
    words = ["run", "iibench:none", "--model", server.model, "--data", data, "--quiet", "--concurrency", 4]
    words += ["--fingerprint", "off", "--name", "base", "--tag", "july", *store]
    running = start(*words)
    while server.stats()["ok"] < 20:
        assert running.poll() is None, running.end()
        time.sleep(0.02)
    # It would end before the other commands on a busy machine.
    running.send_signal(signal.SIGSTOP)
    status, out, _ = command("runs", "list", "--json", *store)
    (run,) = json.loads(out)
    assert (status, run["name"], run["tags"], run["state"]) == (0, "base", ["july"], "in progress")
    status, _, err = command("runs", "delete", "base", "--yes", *store)
    assert (status, "run 1 is in progress" in err) == (2, True), err
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGCONT)
    assert running.end()[0] == 130
    (run,) = json.loads(command("runs", "list", "--json", *store)[1])
    assert (run["name"], run["state"]) == ("base", "not finished")
    status, _, err = command(*words)
    assert status == 0, err
    assert "the name 'base' moved from run 1, the same evaluation, to run 2" in err
    assert server.stats()["resent"] <= 4
    assert command("runs", "delete", "1", "--yes", *store)[0] == 0
    status, out, err = command("report", "base", "--json", *store)
    assert (status, json.loads(out)["probes"]) == (0, 200), err
