"""Options that builders with human reviewers share: --write, --human and --out, with their checks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.cli.options import ArgumentGroup


def add_review_lists(group: ArgumentGroup, *, write: str, human: str, file: str = "LIST.csv") -> None:
    """Add --write and --human.

    Args:
        group: The parser or group that receives them.
        write: Help of --write.
        human: Help of --human.
        file: The name of such a file in help texts.
    """
    group.add_argument("--write", metavar=file, help=write)
    group.add_argument("--human", action="append", default=[], metavar=file, help=f"{human}; may repeat")


def refuse_no_review(options: argparse.Namespace, file: str = "LIST.csv") -> None:
    """Refuse a call that neither writes a list nor reads one, or has an --out without marks to use.

    Args:
        options: The parsed command line.
        file: The name of such a file in messages.

    Raises:
        UserError: The options do not fit together.
    """
    if not options.write and not options.human:
        raise UserError("neither --write nor --human is given", expected=f"--write {file}, or --human {file}")
    if options.out and not options.human:
        raise UserError("--out needs filled-in lists", expected=f"--human {file} with it")


def checked_lists(
    options: argparse.Namespace, inputs: Sequence[Path], *, out_is_file: bool = False
) -> list[Path]:
    """Check that --write and --out can be written and replace no input.

    Args:
        options: The parsed command line.
        inputs: The files and folders that the command reads besides the lists.
        out_is_file: Whether --out is a file.

    Returns:
        The lists of --human.

    Raises:
        UserError: A file exists already, an output would replace an input, or --out cannot be written.
    """
    from sightline.builders.built_folder import refuse_out_inside_inputs
    from sightline.formats.files import refuse_overwriting, refuse_unwritable

    lists = [Path(file) for file in options.human]
    read = [*inputs, *lists]
    if options.write:
        refuse_overwriting(Path(options.write), options.force, "--write", read=read)
    if options.out and out_is_file:
        refuse_overwriting(Path(options.out), options.force, read=read)
    elif options.out:
        refuse_out_inside_inputs(Path(options.out), read)
        refuse_unwritable(Path(options.out))
    return lists
