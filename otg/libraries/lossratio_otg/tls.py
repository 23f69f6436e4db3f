"""TLS of the server, with a certificate of the user."""

import ssl
from pathlib import Path

from lossratio.errors import TopologyError
from lossratio.input_file import shown_name, way_to_read


def server_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """The TLS of a server with a certificate and its key; if the key is None, both are in one file.

    Raises:
        TopologyError: If certificate and key cannot be read, do not belong together, or are encrypted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    place = certificate if key is None else key

    def refuse_password() -> str:
        raise TopologyError(f"{place} is encrypted. Give a key without a password.")

    try:
        context.load_cert_chain(certificate, key, password=refuse_password)
    except ssl.SSLError as error:
        raise TopologyError(
            f"{certificate} is not a certificate (PEM) with its key from {place}. Name the files of both."
        ) from error
    except OSError as error:
        way = way_to_read(certificate, error)
        files = " or ".join(dict.fromkeys(map(shown_name, (certificate, place))))
        raise TopologyError(f"Cannot read {files}: {error.strerror}.{way}") from error
    return context
