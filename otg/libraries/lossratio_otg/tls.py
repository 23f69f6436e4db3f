"""TLS of our servers: a certificate of the user, or a self-signed one that is made now."""

import datetime
import socket
import ssl
import tempfile
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lossratio.errors import TopologyError
from lossratio.input_file import shown_name, way_to_read

_LIFE = datetime.timedelta(days=365)
_CLOCKS_DIFFER = datetime.timedelta(days=1)


def given_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
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


def made_context(address: str) -> ssl.SSLContext:
    """The TLS of a server on an address, with a self-signed certificate for this machine that is made now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lossratio")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName(socket.gethostname())]
    try:
        names.append(x509.IPAddress(ip_address(address)))
    except ValueError:
        names.append(x509.DNSName(address))

    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(issuer_name=name, subject_name=name)
    builder = builder.public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCKS_DIFFER).not_valid_after(now + _LIFE)
    certificate = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

    # The ssl module only reads files. Only the owner can read this file, and it is deleted at once.
    with tempfile.NamedTemporaryFile() as file:
        file.write(private + certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        return given_context(Path(file.name), None)
