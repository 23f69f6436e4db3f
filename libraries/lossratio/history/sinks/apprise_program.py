"""A program that sends one alert through the library apprise, without importing lossratio, so that it starts at once.

Apprise's log may contain secret parts of an address, so only the status of an HTTP answer is shown from the log.
"""

import json
import re
import sys
from http import HTTPStatus
from typing import Any

import apprise

_STATUS = re.compile(r"error=(\d{3})\b")
_STATUSES = {status.value: status.phrase for status in HTTPStatus}


def service_at(address: str) -> Any:
    """Apprise's object for an address, which follows no redirect; None: apprise does not understand the address."""
    asset = apprise.AppriseAsset(app_id="lossratio", app_desc="lossratio", http_redirects=False)
    return apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)


def _send(address: str, subject: str, text: str, timeout: float) -> str | None:
    """Sends an alert; returns the reason if it could not be sent, without secrets."""
    service = service_at(address)
    service.socket_connect_timeout = timeout
    service.socket_read_timeout = timeout
    with apprise.LogCapture(level=apprise.logging.WARNING) as log:
        if service.notify(title=subject, body=text):
            return None
        statuses = _STATUS.findall(log.getvalue())

    status = int(statuses[-1]) if statuses else 0
    if status in _STATUSES:
        return f"{service.service_name} answered with {status} {_STATUSES[status]}"
    return f"{service.service_name} did not answer or did not accept it"


if __name__ == "__main__":
    problem = _send(**json.load(sys.stdin))
    if problem is not None:
        print(problem)
        sys.exit(1)
