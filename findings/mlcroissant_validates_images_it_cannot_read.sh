#!/usr/bin/env bash
# Guess: a Croissant 1.1 description that `mlcroissant validate` passes without an error or a warning can be read:
# here a column with several images a row, declared by `isArray` as version 1.1 does.
# What happens: reading the first record fails with "Type ... is not accepted for an image". Arrays of texts
# are read, and so are arrays of images that carry the property `repeated` of version 1.0.
# What it changes: data of several images a question (pairs, sequences, before and after) do not load from a valid
# description. Read a record of your description, do not only validate it; write `repeated` for images.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet mlcroissant==1.1.1 pillow pyarrow
cd "$folder"
env/bin/python - <<'PYTHON'
import hashlib
import io
import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import mlcroissant
import pandas
from absl import logging
from PIL import Image

logging.set_verbosity(logging.ERROR)  # it warns of terms that the context leaves out
print("mlcroissant", version("mlcroissant"))


def png(colour: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(stream, "PNG")
    return stream.getvalue()


pandas.DataFrame([{"images": [png("red"), png("blue")], "texts": ["one", "two"]}]).to_parquet("data.parquet")
terms = "citeAs column extract field fileObject isArray arrayShape recordSet repeated source".split()
context = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{term: f"cr:{term}" for term in terms},
}


def records(column: str, kind: str, shape: dict[str, object]) -> list[object] | str:
    """The first record of one field, or the innermost error."""
    source = {"fileObject": {"@id": "data"}, "extract": {"column": column}}
    field = {"@type": "cr:Field", "@id": f"r/{column}", "name": column, "dataType": kind, "source": source}
    file = {
        "@type": "cr:FileObject",
        "@id": "data",
        "name": "data",
        "contentUrl": "data.parquet",
        "encodingFormat": "application/x-parquet",
        "sha256": hashlib.sha256(Path("data.parquet").read_bytes()).hexdigest(),
    }
    described = {
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": "data",
        "description": "Several images a row.",
        "license": "https://spdx.org/licenses/MIT",
        "url": "https://example.org",
        "datePublished": "2026-01-01",
        "version": "1.0.0",
        "citeAs": "none",
        "distribution": [file],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "r", "name": "r", "field": [{**field, **shape}]}],
    }
    Path("croissant.json").write_text(json.dumps(described))
    validate = ["env/bin/mlcroissant", "validate", "--jsonld", "croissant.json"]
    subprocess.run(validate, check=True, capture_output=True)
    data = mlcroissant.Dataset(jsonld="croissant.json")
    assert not data.metadata.issues.errors
    assert not data.metadata.issues.warnings
    try:
        return list(data.records("r"))[0][f"r/{column}"]
    except Exception as error:
        while error.__cause__ or error.__context__:
            error = error.__cause__ or error.__context__
        return f"{type(error).__name__}: {error}"


array = {"isArray": True, "arrayShape": "-1"}
texts = records("texts", "sc:Text", array)
images = records("images", "sc:ImageObject", array)
repeated = records("images", "sc:ImageObject", {"repeated": True})
print("texts, isArray:", texts)
print("images, isArray:", images)
print("images, repeated:", repeated)
assert texts == [b"one", b"two"], "the behaviour has changed"
assert "is not accepted for an image" in images, "the behaviour has changed"
colours = [image.getpixel((0, 0)) for image in repeated]
assert colours == [(255, 0, 0), (0, 0, 255)], "the behaviour has changed"
PYTHON
