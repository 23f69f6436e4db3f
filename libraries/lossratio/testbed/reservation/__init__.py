"""Reservation of a testbed that several users share: a lease that is kept on the TG node."""

from lossratio.testbed.reservation.claim import TOKEN_VARIABLE, Claim, make_claim
from lossratio.testbed.reservation.lease import Lease, clear, holder_of
