"""labml_remote's Python API on top of ``remote``: existing labml_remote scripts run unchanged.

In a few places, ``remote`` fills gaps of labml_remote: values of variables are taken literally, a job that has ended is
reported as ended, and a killed job is verified to be gone.
"""
