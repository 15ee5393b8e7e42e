"""Tensors rearranged, indexed, resized and made; images and strings.

Files:
    generator        Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike.
    generator_rules  Shape rules of operators that make tensors from sizes: ConstantOfShape, Range, EyeLike, random
                     numbers and others.
    indexing         Operators that pick or place elements by index: Gather, Scatter, Slice, TopK, OneHot, NonZero,
                     Unique and others.
    indexing_rules   Shape rules of operators that pick elements: Gather, Slice, TopK, NonZero, OneHot, Unique and
                     others.
    reshape_rules    Shape rules of operators that keep all elements in order: Reshape, Flatten, Squeeze, Unsqueeze.
    resize           Resize and Upsample: every axis by itself, as a weighted sum of a few input elements for each
                     output element.
    resize_rules     Shape rules of Resize, Upsample and GridSample.
    shape            Operators that rearrange: Reshape, Transpose, Squeeze, Concat, Split, Expand, Tile, Pad,
                     DepthToSpace and others.
    shape_rules      Shape rules of operators that give shapes or rearrange: Shape, Reshape, Transpose, Squeeze,
                     Concat and others.
    string           Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. Elements
                     are Python str.
    vision           Vision: GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression, DeformConv, Col2Im,
                     ImageDecoder.
"""
