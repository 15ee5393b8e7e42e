"""Values of two models, of two providers, or of a model and a recording, compared pair by pair.

Files:
    collecting  Values of a side that may fail on the way: what can be made all the same, and where it fails.
    comparing   Comparing the values of two sides: run both, pair what they make, measure each pair against its noise.
    comparison  The values of two sides, pair by pair in the order in which they are made.
    error       The error of one array against another: how far apart, how alike, and where first.
    local       Local errors: every node of a model fed with reference values, in one run.
    sides       The two sides of a comparison: models that are run, and recorded values.
"""
