"""Reservation of a testbed among everybody who shares it: a lease that is kept on the TG node."""

from lossratio.reservation.claim import TOKEN_VARIABLE, Claim, make_claim
from lossratio.reservation.holder import Holder
from lossratio.reservation.lease import Lease, ReservationLostError, TestbedReservedError

__all__ = [
    "TOKEN_VARIABLE",
    "Claim",
    "Holder",
    "Lease",
    "ReservationLostError",
    "TestbedReservedError",
    "make_claim",
]
