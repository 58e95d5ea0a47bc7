"""
The price of a house
====================

The paper's house-price story, as ``counterlvq demo`` tells it, without any extra.

What would have to change for a house in Ames, Iowa, to sell for more? The code is in
``counterlvq.cli.house_prices``.
"""

from counterlvq.cli.house_prices import tell

for part in tell():
    print(part)

# sphinx_gallery_thumbnail_path = 'pictures/changes.png'
