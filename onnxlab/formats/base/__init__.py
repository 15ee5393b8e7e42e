"""What a format is, and what several of them share.

Files:
    format  What a format is: how its files are told, what reads and writes them, and what they cannot hold of a
            model.
    text    What formats of text share: telling them by how they begin, decoding, and finding what a text does not
            carry.
"""
