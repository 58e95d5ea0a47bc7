"""Small real data sets for the demo, the examples and the documentation."""

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AmesHouses", "load_ames", "load_ames_mixed"]

PRICE_LIMIT: Final = 160_000  # dollars: where the paper splits cheap from expensive
CHEAPER: Final = "below 160k"
DEARER: Final = "160k or more"
_QUALITY: Final = ["poor", "fair", "typical", "good", "excellent"]
_ORDERED: Final = {
    "kitchen": _QUALITY,
    "exterior": _QUALITY[1:],
    "drive": ["dirt", "partly paved", "paved"],
}


@dataclass(frozen=True, eq=False)
class AmesHouses:
    """Houses sold in Ames, Iowa, from 2006 to 2010: areas, price and price class.

    The arrays are read-only; copy one to change it.

    Attributes
    ----------
    X : ndarray of shape (n, 9)
        Areas in square feet, one column per feature.
    feature_names : tuple of str
        The names of the columns of `X`.
    price : ndarray of shape (n,)
        Sale price in dollars.
    target : ndarray of shape (n,)
        ``"160k or more"`` where the price is at least 160,000 dollars, else ``"below 160k"``.

    Examples
    --------
    >>> from counterlvq.datasets import AmesHouses, load_ames
    >>> houses = load_ames()
    >>> isinstance(houses, AmesHouses)
    True
    >>> float(houses.X[:, houses.feature_names.index("pool_area")].max())
    800.0
    """

    X: NDArray[np.float64]
    feature_names: tuple[str, ...]
    price: NDArray[np.float64]
    target: NDArray[np.str_]


def load_ames() -> AmesHouses:
    """Load the house prices of Ames, Iowa, with the nine features the paper uses.

    The table ships with the package: nothing is downloaded. Its source is described in the
    ``README.md`` beside it.

    Returns
    -------
    AmesHouses
        2930 houses in the order of the source.

    Examples
    --------
    >>> from counterlvq.datasets import load_ames
    >>> houses = load_ames()
    >>> houses.X.shape
    (2930, 9)
    >>> houses.feature_names[:4]
    ('total_basement', 'first_floor', 'second_floor', 'living_area')
    >>> houses.X[0, :4]
    array([1080., 1656.,    0., 1656.])
    >>> houses.price[0], houses.target[0]
    (np.float64(215000.0), np.str_('160k or more'))
    """
    with (files(__name__) / "ames.csv").open(encoding="ascii") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, dtype=np.float64, delimiter=",")
    X, price = table[:, :-1], table[:, -1]
    target = np.where(price >= PRICE_LIMIT, DEARER, CHEAPER)
    for array in (X, price, target):
        array.setflags(write=False)
    return AmesHouses(X=X, feature_names=tuple(names[:-1]), price=price, target=target)


def load_ames_mixed() -> "tuple[pd.DataFrame, NDArray[np.str_]]":
    """Load the same houses with ten mixed columns: whole numbers, levels, a yes or no.

    Needs pandas. Ordered qualities are ordered categories.

    Returns
    -------
    table : DataFrame of 2930 rows
    target : ndarray of shape (2930,)
        As in `load_ames`.

    Examples
    --------
    >>> from counterlvq.datasets import load_ames_mixed
    >>> table, target = load_ames_mixed()
    >>> print(table.loc[0, "living_area"], table.loc[0, "kitchen"], table.loc[0, "central_air"])
    1656 typical True
    """
    import pandas as pd

    with (files(__name__) / "ames_mixed.csv").open(encoding="ascii") as file:
        table = pd.read_csv(file)
    price = table.pop("sale_price").to_numpy()
    for name, levels in _ORDERED.items():
        table[name] = pd.Categorical(table[name], levels, ordered=True)
    table["central_air"] = table["central_air"] == "yes"
    return table, np.where(price >= PRICE_LIMIT, DEARER, CHEAPER)
