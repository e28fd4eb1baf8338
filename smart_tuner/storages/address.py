"""Addresses of databases that a study may be kept in."""

from __future__ import annotations

from urllib.parse import urlsplit

SCHEMES = ("postgresql", "postgres")
DRIVER = "postgresql+psycopg"
"""How SQLAlchemy names the database with the driver that is used."""


def check_url(url: str) -> str:
    """Refuse what is no address of a PostgreSQL database, or holds a password.

    Returns:
        The address as it was given.

    Raises:
        ValueError: Says what to do instead.
    """
    parts = urlsplit(url)
    if parts.scheme not in (*SCHEMES, DRIVER):
        msg = (
            f"{url!r} is no PostgreSQL address such as postgresql://user@host/database; on one "
            "machine the study folder needs none"
        )
        raise ValueError(msg)
    if parts.password:
        msg = "leave the password out of the address: put it into ~/.pgpass or PGPASSWORD"
        raise ValueError(msg)
    return url
