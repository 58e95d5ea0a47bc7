"""
The price of a house
====================

The paper's house-price story, as ``counterlvq demo`` tells it, without any extra.

What would have to change for a house in Ames, Iowa, to sell for more? The code is in
``counterlvq.cli.story``.
"""

from counterlvq.cli.story import tell

for part in tell():
    print(part)

# sphinx_gallery_thumbnail_path = 'pictures/changes.png'
