"""Model files: one safetensors file, whose header says in JSON what the numbers mean.

`container` turns bytes into arrays and a document and back, and trusts no byte; `contents` says
which arrays and which document a model is. Nothing in a file is ever run.
"""

from counterlvq.persistence.storage import load, save

__all__ = ["load", "save"]
