"""The Open Traffic Generator (OTG): its models, and their headers as our frames have them."""

from lossratio.traffic.otg.headers import HEADERS, MOST_LISTED, is_given
from lossratio.traffic.otg.models import ModelError, checked, load_snappi
from lossratio.traffic.otg.packets import write_packet
