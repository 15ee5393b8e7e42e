"""Control flow and sequences.

Files:
    control         Control flow: If, Loop, Scan, SequenceMap. Bodies run through the RunContext, captures and all.
    control_rules   Shape rules of operators with bodies: If joins its branches, Loop and Scan look for what no
                    iteration changes.
    loop_trips      How often a Loop runs: by its trip count alone, or by a counter that its condition is about.
    sequence        Sequences and optionals. A sequence is a Python list of arrays, an optional its value or None.
    sequence_rules  Shape rules of sequences and optionals.
"""
