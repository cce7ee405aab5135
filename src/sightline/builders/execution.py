"""How the work of a builder is done: in this process, in several, or on a cluster; results are the same."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from sightline.builders.process_pool import map_in_processes

if TYPE_CHECKING:
    from sightline.builders.ray_tasks import RayTasks
    from sightline.types import ImageFile

ResultT = TypeVar("ResultT")


class Execution(Struct, frozen=True, kw_only=True):
    """Where work is done, and whether progress is shown; neither ever changes a result.

    Attributes:
        ray: The cluster that does the work; None for this machine.
    """

    processes: int = 1
    ray: RayTasks | None = None
    show_progress: bool = False

    def map_images(
        self, function: Callable[[ImageFile], ResultT], images: Sequence[ImageFile]
    ) -> Generator[ResultT]:
        """Apply a function to images."""
        if self.ray is None:
            return map_in_processes(function, images, self.processes)
        from sightline.builders.ray_tasks import IMAGE_FILES, map_on_ray

        return map_on_ray(function, images, self.ray, IMAGE_FILES)
