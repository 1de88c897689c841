"""The token that opens a service. It comes by the environment, and no message, `repr` or log has it."""

import base64
import binascii
import hmac
import os
import re

NAME = "DITHER_TOKEN"  # of the variable of the environment
LEAST = 16  # characters
_FIT = re.compile(rf"[!-~]{{{LEAST},1000}}")


class Token:
    """What a request must bring: `Authorization: Bearer ...`, or from a browser the password of `Basic`."""

    def __init__(self, text: str) -> None:
        """Raises ValueError, without the text, for one that no header can hold, or that is short."""
        if not _FIT.fullmatch(text):
            raise ValueError(
                f"{NAME} must have {LEAST} to 1000 characters, ASCII and without spaces, got {len(text)} characters: "
                f"make one by python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        self._bytes = text.encode("ascii")

    def __repr__(self) -> str:
        return "Token(***)"

    def __reduce__(self) -> str:
        raise TypeError(f"a token is not copied into files: each process reads {NAME}")

    def opens(self, authorization: str | None, *, browser: bool) -> bool:
        """Whether the header `Authorization` has the token. browser : as the password of `Basic` too, by any name."""
        scheme, _, rest = (authorization or "").partition(" ")
        sent = rest.strip().encode("latin-1", "replace")
        if browser and scheme.lower() == "basic":
            try:
                sent = base64.b64decode(sent, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(sent, self._bytes)


def of_environment() -> Token | None:
    """The token of this process; None: there is none, and the service is for this machine alone."""
    text = os.environ.get(NAME)
    return None if text is None else Token(text)


def fits(host: str) -> None:
    """Raise ValueError for an address that others reach, where there is no token."""
    if host not in ("127.0.0.1", "::1", "localhost") and of_environment() is None:
        raise ValueError(f"--host {host} is reached by others, which needs a token: set {NAME}, or leave it out")
