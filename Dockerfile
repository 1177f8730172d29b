# metasearch on a CPU, with the HTTP server.
#
#   docker build -t metasearch .
#   docker run --rm -v "$PWD:/work" metasearch index help-pages -o help.index
#   docker run --rm -v "$PWD:/work" -p 8000:8000 metasearch serve help.index --host 0.0.0.0 --token-file token
FROM python:3.12-slim

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY metasearch metasearch
COPY tasks tasks
# CPU builds of torch, without CUDA libraries of several GB.
RUN pip install --no-cache-dir uv && uv pip install --system --no-cache --torch-backend cpu ".[serve,search]"

RUN useradd --create-home --uid 1000 metasearch
USER metasearch
# Unpacked in the image, and not again by every container.
RUN python -c "import metasearch as ms; from metasearch.config.run import DEFAULT_ENCODER; ms.load_encoder(DEFAULT_ENCODER)"
WORKDIR /work
ENTRYPOINT ["metasearch"]
CMD ["--help"]
