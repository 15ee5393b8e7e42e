"""Tensors rearranged, indexed, resized and made; images and strings.

Files:
    generator  Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike.
    indexing   Operators that pick or place elements by index: Gather, Scatter, Slice, TopK, OneHot, NonZero, Unique
               and others.
    ngrams     N-grams as a tree of items: all places of an array go down one item at a time, together.
    pad        Operators that add to borders or cut from them: Pad, CenterCropPad.
    reshape    Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze.
    resize     Resize and Upsample: every axis by itself, as a weighted sum of a few input elements for each output
               element.
    shape      Operators that rearrange: Transpose, Concat, Split, Expand, Tile, DepthToSpace and others.
    string     Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. Elements are
               Python str.
    vision     Vision: GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression, DeformConv, Col2Im,
               ImageDecoder.
"""
