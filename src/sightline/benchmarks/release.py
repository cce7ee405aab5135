"""The declaration of a public data set: repository, pinned revision, digests, licence, published counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct


class ReleasedRecords(Struct, frozen=True):
    """A released file of records: a split of the data set.

    `path` is its path in the repository, `name` its name in a data folder. `samples` and `images` (distinct
    by content) are the paper's counts.
    """

    split: str
    path: str
    name: str
    sha256: str
    samples: int
    images: int

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold the file, each with its SHA-256."""
        return {self.name: self.sha256}


class UserRecords(Struct, frozen=True):
    """A file of records in the released format that is not part of the release: a split of the user's own."""

    split: str
    name: str


class ReleasedFile(Struct, frozen=True):
    """A released file without records.

    `path` is its path in the repository, `name` its name in a data folder. `forms` maps other names of the
    same content to their SHA-256.
    """

    path: str
    name: str
    sha256: str
    forms: Mapping[str, str] = {}

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold the file, each with its SHA-256."""
        return {self.name: self.sha256, **self.forms}


class Release(Struct, frozen=True):
    """A public data set at a pinned revision.

    `name` is the folder that `data pull` makes. `images` is the repository's folder of images. Where the
    repository holds no images, `image_urls` is the column of the records with the URL of each image, and
    `image_path` maps a URL to the image's path in a data folder. `user_records` are splits that a data
    folder may hold although nobody released them.
    """

    name: str
    repository: str
    revision: str
    paper: str
    licence: str
    records: tuple[ReleasedRecords, ...] = ()
    images: str = ""
    image_urls: str = ""
    image_path: Callable[[str], str] | None = None
    files: tuple[ReleasedFile, ...] = ()
    user_records: tuple[UserRecords, ...] = ()

    @property
    def contents(self) -> tuple[ReleasedRecords | ReleasedFile, ...]:
        """The files to take from the repository, without its images."""
        return (*self.records, *self.files)

    @property
    def splits(self) -> tuple[ReleasedRecords | UserRecords, ...]:
        """The records that a data folder may hold, one file a split."""
        return (*self.records, *self.user_records)

    @property
    def url(self) -> str:
        """The URL of the repository's archive at the pinned revision."""
        return f"https://codeload.github.com/{self.repository}/tar.gz/{self.revision}"
