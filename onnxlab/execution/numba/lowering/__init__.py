"""Nodes to records: products, convolutions, attention, recurrent layers, bound to shapes.

Files:
    attention         Attention as one record: queries by rows, keys and values packed, a mask wherever it lies.
    binder            Binding a region to the shapes of a call: its nodes are lowered one by one to the records of a
                      plan.
    gather            Elements by index as records: Gather along an axis, and weighted sums along an axis.
    integer_products  Products and convolutions of integers as records: pairs of int16, and how their sums are scaled
                      and written.
    matrix_products   Products and convolutions as records: packing, tables of offsets, blocks, and what is done to
                      results on the way.
    recurrent_layers  Recurrent layers as records: one product of all inputs, then the steps.
    region_values     Values of a region by name, while it is bound to the shapes of a call, and when those that wait
                      are computed.
    winograd          Convolutions of 3×3 windows by Winograd's F(4×4, 3×3) as records: transform, 36 products,
                      transform back.
"""
