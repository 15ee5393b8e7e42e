"""The crash journal of a model: its records, the files that hold them, and recovery from them.

Files:
    change_codec   Changes as bytes and back, for the journal: what they refer to is said by place, not by id.
    journal        The crash journal: every committed edit of a model from a file, written down before followers are
                   told.
    journal_steps  Header and steps of a journal, each checked, since a right checksum says nothing of the content.
    recovery       Recovery: finding the abandoned journals of a file and making their edits again.
"""
