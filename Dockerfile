# Images of the wheel in dist/ (python -m build). This file has not been built by the tests.
#   docker build --target cpu -t sightline .
#   docker build --target cuda -t sightline:cuda .    then: docker run --gpus all ...
FROM python:3.12-slim AS cpu
COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir "$(ls /tmp/sightline-*.whl)[build,plot,web]"
WORKDIR /work
ENTRYPOINT ["sightline"]

# PyPI's torch for Linux brings CUDA's libraries; the driver is the host's.
FROM cpu AS cuda
RUN pip install --no-cache-dir "$(ls /tmp/sightline-*.whl)[adapter]"
