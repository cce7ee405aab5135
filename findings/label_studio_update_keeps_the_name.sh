#!/usr/bin/env bash
# Guess: in an export of Label Studio, the annotator of an annotation is the user who chose its values.
# What happens: who opens the annotation of somebody else and clicks "Update" replaces its values. The exports JSON,
# JSON_MIN and CSV keep the first user as annotator; the values of the first user are in none of them. Only `updated_by`
# in JSON shows it.
# What it changes: a second annotator who works in the list of tasks overwrites the first one. The export has one
# annotation for two people, in the name of the one whose answer is gone: their agreement is lost, and verdicts count for
# the wrong annotator. Compare `updated_by` with `completed_by`.
# The script sends what the page sends on "Update" (PATCH of the annotation).
set -euo pipefail
folder=$(mktemp -d)
server=""
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet label-studio==1.23.2
cd "$folder"
export LABEL_STUDIO_BASE_DATA_DIR="$folder/data" LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK=false
export COLLECT_ANALYTICS=False SENTRY_DSN= FRONTEND_SENTRY_DSN= LATEST_VERSION_CHECK=False
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir data
env/bin/label-studio start --no-browser --internal-host 127.0.0.1 --port "$port" \
  --username first@example.org --password secret-word-1 >server.log 2>&1 &
server=$!
env/bin/python - "http://127.0.0.1:$port" <<'PYTHON'
import csv
import sys
import time
from importlib.metadata import version

import requests

BASE = sys.argv[1]
CONFIG = """<View><Text name="text" value="$text"/>
<Choices name="verdict" toName="text"><Choice value="right"/><Choice value="wrong"/></Choices></View>"""


def user(path: str, name: str) -> requests.Session:
    session = requests.Session()
    session.headers["Referer"] = BASE
    session.get(f"{BASE}{path}")
    form = {"email": f"{name}@example.org", "password": "secret-word-1", "allow_newsletters": "false"}
    session.post(f"{BASE}{path}", data=form | {"csrfmiddlewaretoken": session.cookies["csrftoken"]})
    session.headers["X-CSRFToken"] = session.cookies["csrftoken"]
    return session


def result(verdict: str) -> dict:
    value = {"choices": [verdict]}
    return {"result": [{"from_name": "verdict", "to_name": "text", "type": "choices", "value": value}]}


for _ in range(240):
    try:
        requests.get(f"{BASE}/health", timeout=5).raise_for_status()
        break
    except requests.RequestException:
        time.sleep(1)
print("label-studio", version("label-studio"))
first, second = user("/user/login/", "first"), user("/user/signup/", "second")
first_id, second_id = (one.get(f"{BASE}/api/current-user/whoami").json()["id"] for one in (first, second))
project = f"{BASE}/api/projects/" + str(
    first.post(f"{BASE}/api/projects", json={"title": "pairs", "label_config": CONFIG}).json()["id"]
)
first.post(f"{project}/import", json=[{"data": {"text": "2 + 2 = 4"}}]).raise_for_status()
task = first.get(f"{project}/tasks/").json()[0]["id"]
made = first.post(f"{BASE}/api/tasks/{task}/annotations/", json=result("right")).json()["id"]
second.patch(f"{BASE}/api/annotations/{made}/", json=result("wrong")).raise_for_status()


def export(kind: str) -> requests.Response:
    return first.get(f"{project}/export?exportType={kind}")


[in_json] = export("JSON").json()[0]["annotations"]
[in_min] = export("JSON_MIN").json()
[in_csv] = csv.DictReader(export("CSV").text.splitlines())
print("JSON", in_json["completed_by"], in_json["result"][0]["value"], "updated by", in_json["updated_by"])
print("JSON_MIN", in_min["annotator"], in_min["verdict"])
print("CSV", in_csv["annotator"], in_csv["verdict"])
changed = "the behaviour has changed"
assert (in_json["completed_by"], in_json["updated_by"]) == (first_id, second_id), changed
assert in_json["result"][0]["value"] == {"choices": ["wrong"]}, changed
assert (in_min["annotator"], in_min["verdict"]) == (first_id, "wrong"), changed
assert (in_csv["annotator"], in_csv["verdict"]) == (str(first_id), "wrong"), changed
PYTHON
