"""The ways to send alerts: a webhook, an e-mail, or a command, which may be any program."""

from lossratio.history.sinks.command import Command
from lossratio.history.sinks.mail import Email
from lossratio.history.sinks.sink import Message, NotSentError, Sink
from lossratio.history.sinks.webhook import Webhook
