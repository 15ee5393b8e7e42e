"""Formats of files and what several of them share.

Files:
    format  The protocol of a format: telling its files, reading and writing them, and reporting what they cannot
            hold.
    text    Foundations of text formats: telling them by their beginning, decoding, and finding what a text does not
            carry.
"""
