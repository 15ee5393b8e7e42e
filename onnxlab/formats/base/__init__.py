"""Formats of files and what several of them share.

Files:
    format    The protocol of a format: telling its files, reading and writing them, and reporting what they cannot
              hold.
    numerals  Numbers in protobuf text as the program writes them that wrote the file: protobuf's C++ writes 1, its
              Python 1.0.
    text      Foundations of text formats: telling them by their beginning, decoding, and finding what a text does not
              carry.
"""
