"""Messages between kernel and page, how they are sent, and files that arrive from the page.

Files:
    messages  Every message between the kernel and the page, declared once: the twin of
              widgets/src/kernel/protocol.ts.
    outbox    Sends replies and numbered events, one at a time, and not more than a front end takes.
    uploads   Files that were chosen in the browser: they arrive as bytes, piece by piece, and never become paths.
"""
