"""Image features: images that several requests of a batch share are encoded once, if the architecture allows
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sightline.models.local.encode import Encoded
from sightline.models.local.input_tensors import images_of
from sightline.models.local.load import Loaded


class Features(NamedTuple):
    """The encoded images of a request.

    Attributes:
        images: A tensor (vectors, width) for each image.
    """

    images: list[Any]
    stacked: bool


def share_images(loaded: Loaded, batch: Sequence[Encoded], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Encode each distinct image of a batch once."""
    distinct = {encoded.image_keys: encoded for encoded in batch}
    if len(distinct) == len(batch) or "pixel_values" not in inputs:
        return dict(inputs)
    features = encoded_images(loaded, list(distinct.values()))
    if features is None:
        return dict(inputs)
    by_images = dict(zip(distinct, features, strict=True))
    return with_encoded(inputs, [by_images[encoded.image_keys] for encoded in batch])


def encoded_images(loaded: Loaded, requests: Sequence[Encoded]) -> list[Features] | None:
    """Encode the images of requests.

    An architecture allows it if its images become vectors that do not depend on the text, and its forward
    pass accepts them in place of the images.

    Returns:
        The features of each request; None if the architecture does not allow it.
    """
    if not takes_encoded(loaded.model):
        return None
    encoded = _encode(loaded, requests)
    features = getattr(encoded, "pooler_output", None)
    # Some architectures also use features of other layers; these are not supported here.
    if features is None or getattr(encoded, "deepstack_features", None) is not None:
        return None
    parts = _parts(features, requests)
    if parts is None:
        return None
    stacked = not isinstance(features, list | tuple)
    return [Features([features[position] for position in positions], stacked) for positions in parts]


def with_encoded(inputs: Mapping[str, Any], features: Sequence[Features]) -> dict[str, Any]:
    """Replace images by encoded images."""
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    each: Any = [vectors for request_features in features for vectors in request_features.images]
    each = torch.stack(each) if features[0].stacked else each
    others = {name: tensor for name, tensor in inputs.items() if not name.startswith("pixel_")}
    return {**others, "mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=each)}}


def takes_encoded(model: Any) -> bool:
    """Check whether a model accepts encoded images in place of images, in `generate` too."""
    from transformers import GenerationMixin

    own_generate = type(model).generate is not GenerationMixin.generate
    return (
        not own_generate
        and "mm_encoder_outputs" in inspect.signature(model.forward).parameters
        and hasattr(model.base_model, "get_image_features")
    )


def _encode(loaded: Loaded, requests: Sequence[Encoded]) -> Any:
    import torch

    encode = loaded.model.base_model.get_image_features
    parameters = inspect.signature(encode).parameters
    image_inputs = [images_of(request.inputs, request.tokens) for request in requests]
    inputs = {
        name: torch.cat([tensors[name] for tensors in image_inputs])
        for name in image_inputs[0]
        if name in parameters
    }
    return encode(**to_device(inputs, loaded), return_dict=True)


def _parts(features: Any, requests: Sequence[Encoded]) -> list[range] | None:
    """Which features belong to each request: one for an image, or the same number for each request."""
    images = [len(request.prompt.images) for request in requests]
    if len(features) != sum(images):
        if len(features) % len(requests):
            return None
        images = [len(features) // len(requests)] * len(requests)
    ends = [sum(images[: position + 1]) for position in range(len(images))]
    return [range(end - count, end) for count, end in zip(images, ends, strict=True)]


def to_device(inputs: Mapping[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Move inputs to the model's device, images in its number type."""
    return {
        name: tensor.to(loaded.device, loaded.model.dtype if tensor.is_floating_point() else None)
        for name, tensor in inputs.items()
    }
