"""`counterlvq serve`: answers over HTTP. Only `app`, `run` and bodies need the extra `serve`."""
