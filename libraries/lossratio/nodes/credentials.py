"""Who logs in on nodes: the user's own name, and secrets."""

import getpass
import os
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Credentials:
    """Secrets for a log-in; neither shows in ``repr``."""

    password: str | None = field(default=None, repr=False)
    """Password of the user on the node."""
    passphrase: str | None = field(default=None, repr=False)
    """Passphrase of the private key."""

    def completed(self, node_name: str) -> "Credentials":
        """Takes missing secrets from LOSSRATIO_PASSWORD_<NODE> (or LOSSRATIO_PASSWORD) and LOSSRATIO_PASSPHRASE.

        <NODE> is the node's name in capitals, with ``_`` for everything that is neither letter nor digit.
        """
        own = "LOSSRATIO_PASSWORD_" + re.sub(r"[^A-Z0-9]", "_", node_name.upper())
        return Credentials(
            password=self.password
            or os.environ.get(own)
            or os.environ.get("LOSSRATIO_PASSWORD")
            or None,
            passphrase=self.passphrase or os.environ.get("LOSSRATIO_PASSPHRASE") or None,
        )


NO_CREDENTIALS = Credentials()
"""No secrets but those in the environment."""


def own_name() -> str | None:
    """The name of the user who runs this process; None: the user has none here, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None
