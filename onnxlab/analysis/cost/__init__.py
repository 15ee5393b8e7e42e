"""The cost of nodes and groups, against what the machine can do.

Files:
    cost      What a run costs: operations and bytes of every node and group, against what the machine can do.
    counting  Operations and bytes of a node, from facts and the operators' traits; bodies and called functions
              included.
    roofline  The roofline of this machine: operations and bytes per second, measured once and kept in a file.
"""
