"""The crash journal of a model: its records, the files that hold them, and recovery from them.

Files:
    change_codec   Changes as bytes and back, for the journal: what they refer to is said by place, not by id.
    journal        The crash journal: every committed edit of a model that came from a file, written down before
                   anybody hears of it.
    journal_file   Journals on disk: where they lie, how they are framed and locked.
    journal_steps  What a journal says: its header and its steps, each checked, since a right checksum says nothing of
                   the content.
    recovery       Finding the journals of a file that nobody writes any more, and making their edits again.
"""
