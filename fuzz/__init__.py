"""Adversarial questions by the thousand, judged by arithmetic that shares no code with the package.

``python -m fuzz truth --cases 2000 --seed 1 --jobs 2`` draws questions, asks the package, and
fails if a claim is contradicted. ``model-files``, ``exports``, ``tables`` and ``constraints`` feed
the readers of the package what strangers might write. Every file here that judges works in rational
numbers or asks the model's own `predict`; the package is only ever the accused.
"""
