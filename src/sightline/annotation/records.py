"""What a writer of records gets: the state of the project, its annotators, and the folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sightline.annotation.decisions import Decision, decide, settlers
from sightline.annotation.state import State
from sightline.annotation.types import Annotator, Item, ItemImage
from sightline.errors import UserError
from sightline.formats.files import file_digest


class RecordsRequest(Struct, frozen=True):
    """A project whose records are written to a folder."""

    state: State
    annotators: Sequence[Annotator]
    out: Path

    def decision(self, item: Item) -> Decision:
        state = self.state
        return decide(state.project, item, state.of_item(item.number), settlers(self.annotators))

    def copy(self, image: ItemImage, name: str) -> None:
        """Copy an image of the project's data folder; raises UserError if it has changed or is gone."""
        source, target = Path(self.state.project.data) / image.path, self.out / name
        try:
            unchanged = file_digest(source) == image.digest
        except OSError:
            unchanged = False
        if not unchanged:
            raise UserError(
                "is not the image that the annotators saw", file=source, expected="the image as it was"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
