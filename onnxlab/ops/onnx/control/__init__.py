"""Control flow and sequences.

Files:
    control      Control flow: If, Loop, Scan, SequenceMap. Bodies run through the RunContext, captures and all.
    loop_trips   Trip counts of Loops: by the count alone, or by a counter that the condition is about.
    mapped_body  Bodies of Scan that carry nothing from one iteration to the next: all iterations at once, along an
                 axis in front.
    sequence     Sequences and optionals. A sequence is a Python list of arrays, an optional its value or None.
"""
