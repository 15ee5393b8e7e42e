"""Tensors rearranged, indexed, resized and made; images and strings.

Files:
    generator        Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike.
    generator_rules  Shape rules of operators that make tensors from sizes: ConstantOfShape, Range, EyeLike, random
                     numbers, ….
    indexing         Operators that pick or place elements by index: Gather, Scatter, Slice, TopK, OneHot, NonZero,
                     Unique, ….
    indexing_rules   Shape rules of operators that pick elements: Gather, Slice, TopK, NonZero, OneHot, Unique, ….
    reshape_rules    Shape rules of operators that keep all elements in order: Reshape, Flatten, Squeeze, Unsqueeze.
    resize           Resize and Upsample: every axis by itself, as a weighted sum of a few input elements for each
                     output element.
    resize_rules     Shape rules of Resize, Upsample and GridSample.
    shape            Operators that rearrange: Reshape, Transpose, Squeeze, Concat, Split, Expand, Tile, Pad,
                     DepthToSpace, ….
    shape_rules      Shape rules of operators that ask for shapes or rearrange: Shape, Reshape, Transpose, Squeeze,
                     Concat, Split, ….
    string           Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. Elements
                     are Python str.
    vision           Vision: GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression, DeformConv, Col2Im,
                     ImageDecoder.
"""
