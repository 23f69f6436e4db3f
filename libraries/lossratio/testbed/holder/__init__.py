"""The process that everything in a local testbed hangs on. Only the standard library is used here, for a fast start.

The processes of a testbed, each the parent of the next::

    holder     outside; watches the run that it belongs to; its death ends all
      init     process 1 of a PID namespace, so the kernel ends every process of the testbed with it; accepts SSH
        node   one per node, asleep; keeps the node's network, mount and IPC namespaces
        sshd   one per SSH connection, outside the nodes; its commands enter the node with nsenter

An ordinary user needs two user namespaces, one inside the other. The outer one keeps the user's own id, because sshd
must not believe to be root there: it would try to become other users. In the inner one, which owns the nodes, the
user is root.
"""
