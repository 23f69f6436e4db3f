"""Reservation of a testbed that several users share: a lease that is kept on the TG node."""

from lossratio.testbed.reservation.lease import (
    TOKEN_VARIABLE,
    Claim,
    Lease,
    clear,
    holder_of,
    make_claim,
)
