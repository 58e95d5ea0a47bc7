"""`counterlvq serve`: answers over HTTP. Only `app` and `run` need the extra `serve`."""
