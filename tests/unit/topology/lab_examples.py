"""A lab of containerlab: a tester and two routers in a circle, with and without addresses."""

ROUND = """\
name: round
topology:
  nodes:
    tester: {kind: linux, image: "alpine:3"}
    r1: {kind: nokia_srlinux}
    r2: {kind: nokia_srlinux}
  links:
    - endpoints: ["tester:eth1", "r1:e1-1"]
    - endpoints: ["r1:ethernet-1/2", "r2:e1-1"]
      mtu: 1500
    - endpoints: ["r2:e1-2", "tester:eth2"]
      ipv4: ["192.0.2.1/30", "192.0.2.2/30"]
"""

LINK = '["tester:eth1", "r1:e1-1"]\n'
ADDRESSED = ROUND.replace(
    LINK, f'{LINK}      ipv4: [192.0.2.6/30, 192.0.2.5/30]\n      ipv6: ["2001:db8::2/64", "2001:db8::1/64"]\n'
)
