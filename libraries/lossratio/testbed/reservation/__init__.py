"""Reservation of a testbed that several users share: a lease that a connection to the TG node holds."""

from lossratio.testbed.reservation.lease import (
    TOKEN_VARIABLE,
    Claim,
    Lease,
    clear,
    holder_of,
    make_claim,
)
