"""The rows of the kernel `tally`.

A row of `ROW` words stands for an array: the address of its object (`id`), count (elements), bins (address of BINS
int64 that are added to, 0 for none), and then what is found: least and greatest number (NaN left out), shift, sum and
sum of squares of the finite elements less the shift, all float64, and the numbers of zeros, NaN and infinities.
"""

ROW = 11
DATA = 2
"""Word of an array's object that is the address of its elements, behind the head of every object."""
BINS = 4096
"""Bins of float32: sign, exponent and the first three bits of the mantissa."""

SCRATCH = 4 * BINS * 4 + 512
"""Bytes of scratch: four histograms of int32, so that equal elements in a row do not wait for each other; and sums."""
