"""labml_remote's Python API on top of ``remote``: scripts that were written for it run unchanged.

Where labml_remote had gaps, this does what ``remote`` does: values of variables are taken literally, a job that has
ended is known to have ended, and a killed job is proved to be gone.
"""
