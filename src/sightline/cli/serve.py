"""`sightline serve`: show runs in the browser."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sightline.cli.options import add_store
from sightline.cli.runs import add_answer_task, answer_task
from sightline.errors import UserError
from sightline.text import flush_lines, print_line, print_note, print_url

EXAMPLE = """examples:
  sightline serve                                   the runs of ./sightline.db, at http://127.0.0.1:8765
  sightline serve --store quickstart/sightline.db
  sightline serve results/a results/b --data data/codis   results folders, with their images
  sightline serve results --data data/codis         all results folders in a folder
  sightline serve samples.jsonl --task iibench:none --data data/iibench   answers of another tool
  sightline serve logs/a.eval --task codis --data data/codis    a log of inspect_ai
  sightline serve --data data/codis                 a data folder or groups file before anything is run
  sightline serve --host 0.0.0.0 --tls-certificate cert.pem --tls-key key.pem
  sightline serve --url https://annotate.example.org   behind a reverse proxy with TLS

Open the URL that the command prints: it holds a token, without which nothing is shown.
From another computer, use an SSH tunnel: ssh -L 8765:127.0.0.1:8765 HOST
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="results folders, folders that hold some, or with --task files of answers, to show instead of"
        " the store",
    )
    add_answer_task(parser)
    add(
        "--data",
        action="append",
        default=[],
        metavar="PATH",
        help="data folder or groups file to show; the images of runs are looked for there first, which"
        " finds folders that moved; may repeat",
    )
    add("--port", type=int, default=8765, metavar="N", help="port; 0 chooses a free one (default: 8765)")
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; 0.0.0.0 lets other computers connect (default: 127.0.0.1)",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name of this server, as behind a proxy; may repeat",
    )
    add(
        "--url",
        metavar="URL",
        help="URL of this server behind a reverse proxy; the links of annotators begin with it",
    )
    add(
        "--tls-certificate",
        type=Path,
        metavar="FILE",
        help="certificate in PEM format, to encrypt the connection (https)",
    )
    add(
        "--tls-key",
        type=Path,
        metavar="FILE",
        help="its private key, if the certificate's file does not hold it",
    )
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if not 0 <= options.port <= 65535:
        raise UserError("--port is no port", found=options.port, expected="0 to 65535")
    try:
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401

        from sightline.viewer.access import AccessControl, Gate
        from sightline.viewer.app import create_app
        from sightline.viewer.projects import Projects
    except ImportError as error:
        if (error.name or "").startswith("sightline"):
            raise
        raise UserError(f"the viewer needs {error.name}", expected="pip install 'sightline[web]'") from None
    from sightline.viewer.opened import opened_store
    from sightline.viewer.server import (
        Listening,
        access_of,
        base_url,
        bind,
        check_certificate,
        missing_images_note,
        read_url,
        run_server,
        url_of,
        warning_of,
    )

    listening = Listening(
        host=options.host,
        port=options.port,
        names=options.allow_host,
        certificate=options.tls_certificate,
        key=options.tls_key,
        url=read_url(options.url) if options.url else "",
    )
    check_certificate(listening)
    data = [Path(path) for path in options.data]
    for path in data:
        if not path.exists():
            raise UserError(
                "--data: there is no such folder or file",
                file=path,
                expected="the data folder of the runs, a groups file, or no --data",
            )
    paths = [Path(path) for path in options.paths]
    with opened_store(options.store, paths, data, answer_task(options)) as store:
        bound = bind(listening)
        access = access_of(listening, bound.getsockname()[1])
        if warning := warning_of(listening):
            print_note(warning)
        if data and (note := missing_images_note(store, data)):
            print_note(note)
        served = ", ".join(options.paths) or store.name
        print_url(served, url_of(listening, access))
        projects = Projects(store, time.time, data, base_url(listening, access))
        if listening.url and not store.database.is_read_only:
            projects.annotations.keep_server_url(projects.base)
        if projects.rows():
            print_line(f"links of annotators begin with {projects.base}/annotate/")
        print_line("Ctrl-C ends the server.")
        flush_lines()
        gate = Gate(projects, access.port, encrypted=access.encrypted)
        app = create_app(store, data, projects, is_lasting=not paths)
        run_server(AccessControl(app, access, gate), bound, listening)
    print_line("the server ended")
    return 0
