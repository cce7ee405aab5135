#!/usr/bin/env bash
# Guess: after `mlflow.start_run()`, `mlflow.log_metric` logs to that run from everywhere in the process, as
# asyncio.to_thread carries a context along.
# What happens: the active run belongs to the thread that started it. In another thread `log_metric` finds
# none, makes a new run with a name of its own and logs there; nothing is raised or printed. The new run stays
# "RUNNING", and the run of the evaluation ends "FINISHED" without the value.
# What it changes: an asynchronous evaluation that counts or logs in a thread leaves runs without metrics and
# metrics without a run's parameters. Log through MlflowClient with the run's id, or pass run_id=.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet mlflow-skinny==3.17.2
# This release opens a folder as its store only with the second variable.
MLFLOW_TRACKING_URI="file://$folder/runs" MLFLOW_ALLOW_FILE_STORE=true "$folder/env/bin/python" - <<'PYTHON'
import asyncio
from importlib.metadata import version

import mlflow

print("mlflow-skinny", version("mlflow-skinny"))
mlflow.set_experiment("evaluation")


async def evaluate() -> str:
    with mlflow.start_run(run_name="mine") as run:
        mlflow.log_metric("in_the_first_thread", 1.0)
        await asyncio.to_thread(mlflow.log_metric, "accuracy", 0.5)
    return run.info.run_id


mine = asyncio.run(evaluate())
client = mlflow.MlflowClient()
experiment = client.get_experiment_by_name("evaluation").experiment_id
found = {
    "mine" if run.info.run_id == mine else "another": (run.info.status, dict(run.data.metrics))
    for run in client.search_runs([experiment])
}
for name, content in found.items():
    print(name, content)
assert found == {
    "mine": ("FINISHED", {"in_the_first_thread": 1.0}),
    "another": ("RUNNING", {"accuracy": 0.5}),
}, "the behaviour has changed"
PYTHON
