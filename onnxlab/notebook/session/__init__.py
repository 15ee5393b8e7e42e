"""The kernel's side of a view: sessions, runs, edits, and what views of one model share.

Files:
    counterparts     Models that a view can be compared with: earlier states, others of the kernel, files beside it,
                     files of the page.
    editor           The edits of one view: each checked against the version that the view showed, done, and put into
                     Python.
    file_offers      Files that were chosen in the browser: what each is, opened as a model, or its weights put into
                     the model.
    hub              The shared part of a model's views: its scene, its inspector, and one follower of its commits.
    model_questions  Questions of a page that need nothing but the model.
    pair_session     The kernel's side of a view of two models: a session for each, and what they know of each other.
    saver            Saving from a view: what is about to change in the file, told before it is replaced, and a copy
                     beside it.
    session          The kernel's side of one view: answers its requests, sends it numbered events, lets go when it is
                     closed.
    view_runs        Runs that a view asked for: each on a thread of its own, with a stop flag and throttled progress.
"""

from onnxlab.notebook.session.session import Session

__all__ = ["Session"]
