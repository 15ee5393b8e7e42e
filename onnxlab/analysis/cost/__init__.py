"""The cost of nodes and groups, against what the machine can do.

Files:
    cost      The cost of a run: operations and bytes of every node and group, against the limits of the machine.
    counting  Operations and bytes of a node, from facts and the operators' traits; bodies and called functions
              included.
    roofline  The roofline of this machine: operations and bytes per second, measured once and kept in a file.
"""
