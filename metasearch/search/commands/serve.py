"""`metasearch serve`: a web server with a page to search an index, and an HTTP interface."""

import json
import os
import sys
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import reject_unused_options
from metasearch.config.extras import import_extra
from metasearch.errors import Interrupted
from metasearch.search.server.settings import ServerSettings
from metasearch.search.settings import without_password


@_options.command("serve")
@click.argument("index", type=click.Path())
@_options.settings(ServerSettings)
@_options.options_group(_options.moved_encoder, _options.device, _options.query_precision, _options.trust)
@_options.as_json("address and model")
def command(
    index: str, encoder: str | None, device: Any, precision: Any, trust_remote_code: bool, as_json: bool, **asked: Any
) -> None:
    """Serve INDEX, made by `metasearch index`, until Ctrl-C or SIGTERM; requests in progress are finished.

    The page is at the address that is printed. Programs use POST /search and POST /v1/embeddings, which clients of
    OpenAI's interface know. Without --host only this machine can connect; for others give a token, too.

    \b
    Examples:
      metasearch serve help.index
      metasearch serve help.index --port 0 --json
      metasearch serve help.index --host 0.0.0.0 --allow-host search.example.org --token-file token
      curl localhost:8000/search -H 'content-type: application/json' -d '{"query": "Where is the key?"}'
    """
    build_app = import_extra("metasearch.search.server.app", "serve", "metasearch serve").build_app
    from metasearch.search.server.security import Hosts, is_loopback, read_token
    from metasearch.search.server.server import Server, bind, format_address

    settings = _options.validate(ServerSettings, asked, "serve")
    if settings.rerank.model is None:
        reject_unused_options("rerank_top", why="nothing is reranked; add --rerank MODEL")
    allowed = Hosts.parse(settings.host, settings.hosts)
    token = read_token(settings.token_file) if settings.token_file else None
    with bind(settings.host, settings.port) as bound:
        address = format_address(bound)
        if token is None and not is_loopback(settings.host):
            click.echo(f"metasearch: {address}: everyone who can reach it can search: no --token-file", err=True)
        click.echo(f"loading {without_password(index)}", err=True)

        from metasearch.search.indexes import open_searcher
        from metasearch.search.server.service import Service

        searcher = open_searcher(
            index, device, encoder, trust_remote_code, settings.rerank.model, precision, settings.site
        )
        service = Service(searcher, settings.limits, settings.name, settings.rerank.top)
        service.warm_up()

        def announce() -> None:
            facts = {"address": address, "model": service.name, "passages": service.passages}
            click.echo(json.dumps(facts, ensure_ascii=False) if as_json else address)

        exit_code = 0
        try:
            Server(build_app(service, allowed, token), service.limits, announce).run_on(bound)
        except Interrupted as error:
            if not service.busy:
                raise
            click.echo(f"metasearch: error: {error}", err=True)
            exit_code = error.exit_code
        if exit_code or service.busy:
            # Python's own end would wait for the thread that still works.
            sys.stdout.flush()
            os._exit(exit_code)
