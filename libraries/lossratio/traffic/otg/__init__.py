"""The Open Traffic Generator (OTG): our tester behind its REST interface, and the headers of its models."""

from lossratio.traffic.otg.models import checked, load_snappi
from lossratio.traffic.otg.packets import write_packet
from lossratio.traffic.otg.runs import KINDS
from lossratio.traffic.otg.server import OtgServer
from lossratio.traffic.otg.tester import Tester
