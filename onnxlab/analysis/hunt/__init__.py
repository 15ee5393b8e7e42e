"""Values that went wrong in a run: NaN, infinities, what half precision cannot hold, dead channels, saturation.

Files:
    hunting  Look for values that went wrong: the first NaN or infinity, numbers beyond float16, dead channels,
             saturation.
"""
