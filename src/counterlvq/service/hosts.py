"""Names by which a machine calls itself."""

from __future__ import annotations

from ipaddress import ip_address

__all__ = ["LOOPBACK", "is_loopback"]

# As requests write them.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("LOCALHOST"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name, which may be anybody's
        return False
