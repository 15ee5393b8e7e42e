"""Rules: patterns of nodes with what takes their place.

Files:
    activations     Rules of activations: what is written out becomes the operator, where the model's opset or
                    com.microsoft has it.
    attention       Rules of attention that is written out: products, a scale, a mask, a Softmax.
    built_in_rules  The standard set of rules, by level and by name.
    decompositions  Rules that undo what others do: operators written out with older ones. They are applied only where
                    they are named.
    layout          Rules of layout: Transposes move through what works element by element, until they meet another
                    one.
    linear          Rules of layers that are linear: what follows a convolution or product and is linear too goes into
                    its weights.
    no_ops          Removal of nodes whose output equals their input.
    normalization   Rules of normalizations that are written out, and of what comes before them.
    pairs           Nodes that undo or repeat what the node before them did.
    quantization    Rules of QuantizeLinear and DequantizeLinear: pairs that undo each other, and what only moves
                    numbers between.
    redundant       Rules of nodes that repeat or prepare what the next one can do itself.
    replacement     The replacement of a match: nodes and constants are made, checked, and put there.
    rule            Rules: patterns, named conditions, and replacements; and applying one.
    rule_check      Check of a rule that a user wrote: operators, attributes and names by which the rule could never
                    apply.
    user_rules      Rules of users: written in a line, in a decorator, or in a file that is named.
"""
