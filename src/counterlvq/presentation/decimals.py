"""Numbers as decimals: what is typed is what is meant."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from counterlvq.tables.feature import Feature
from counterlvq.types import Kind

__all__ = ["EXACT", "decimal_of", "nearest", "padding_of", "rounded", "text_of"]

# Wide enough that nothing here is rounded but on purpose.
EXACT = Context(prec=2500, Emax=10**6, Emin=-(10**6))


def decimal_of(value: float) -> Decimal:
    """Shortest decimal that reads back as the value, without zeros at its end."""
    if not value:
        return Decimal(0)  # never -0
    exact = Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))
    return exact.normalize(EXACT)


def rounded(number: Decimal, last: int, *, up: bool) -> Decimal:
    """Round to a multiple of ``10**last``, upwards or downwards."""
    if int(number.as_tuple().exponent) >= last:
        return number
    step = Decimal((0, (1,), last))
    return number.quantize(step, ROUND_CEILING if up else ROUND_FLOOR, EXACT).normalize(EXACT)


def nearest(number: Decimal, last: int) -> Decimal:
    """Round to the nearest multiple of ``10**last``."""
    if int(number.as_tuple().exponent) >= last:
        return number
    return number.quantize(Decimal((0, (1,), last)), ROUND_HALF_EVEN, EXACT).normalize(EXACT)


def padding_of(feature: Feature | None, number: Decimal) -> int | None:
    """Return the declared decimals, if the number has no more than these."""
    if feature is None or feature.kind is not Kind.REAL or feature.decimals is None:
        return None
    if not feature.zeros:
        return None
    return feature.decimals if -int(number.as_tuple().exponent) <= feature.decimals else None


def text_of(number: Decimal, padding: int | None) -> str:
    """Write a number; thousands are set off by commas, powers of ten stand for many zeros.

    One with more decimals than `padding` keeps them: an input may lie off its grid.
    """
    if padding is not None and -int(number.as_tuple().exponent) <= padding:
        return f"{number:,.{padding}f}"
    plain = f"{number:,f}" if number else "0"
    if not number or -4 <= number.adjusted() < 9:
        return plain
    short = f"{number:e}"
    return short if number.adjusted() < 0 or len(short) < len(plain) else plain
