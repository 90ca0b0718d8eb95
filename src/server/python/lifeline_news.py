"""Tells who is named by `notify:` of configs.yaml how a launch has ended: once. The hub's lifeline does so (lifeline.py); `remote notify --test`
runs this file.

The file `notify` of the launch's first job has the URL or the command, which are secrets, and what is known of the launch: a key and words a
line, percent-encoded. `notify.mark` is there while it is tried, so that a process that dies in between is not followed by one that tells it a
second time; `notify.result` says what came of it: "sent", or why not. It names no URL.
"""
import os
import sys
import time

RETRY_SECONDS = 3600
FIRST_PAUSE, LONGEST_PAUSE = 5, 600
ANSWER_SECONDS = 30  # of a URL
COMMAND_SECONDS = 60
MOST_LINES, MOST_BYTES = 10, 2000


def read_request(text):
    from lifeline_orders import unquote

    request = {}
    for line in text.splitlines():
        key, *words = line.split()
        request[key] = " ".join(unquote(word) for word in words)
    return request


def last_lines(folder, names):
    """The end of the first of these files that has something, as text."""
    from lifeline_job import end_of_output

    for name in names:
        try:
            data = end_of_output(os.path.join(folder, name), MOST_BYTES)
        except OSError:
            continue
        text = "".join(c if c.isprintable() or c == "\n" else "?" for c in data.decode(errors="replace").replace("\r", "\n").replace("\t", " "))
        lines = [line for line in text.split("\n") if line.strip()][-MOST_LINES:]
        if lines:
            return "\n".join(lines)
    return ""


def message(request, state, why, lines):
    """What is told, as a dictionary: docs/notify.md."""
    what = request.get("name") or "launch " + request.get("key", "")
    return {
        "launch": request.get("key", ""),
        "name": request.get("name", ""),
        "project": request.get("project", ""),
        "state": state,
        "text": "%s %s%s" % (what, state, ": " + why if why else ""),
        "command": request.get("command", ""),
        "servers": request.get("servers", "").split(),
        "ranks": int(request.get("ranks", "0")),
        "began": int(request.get("began", "0")),
        "ended": int(time.time()),
        "lines": lines.split("\n") if lines else [],
    }


def post_parts(request, news):
    """The body and the headers of the POST."""
    import json

    lines = "\n".join(news["lines"])
    if request.get("shape") == "ntfy":
        well = news["state"] in ("succeeded", "test")
        title = "".join(c if " " <= c <= "~" else "?" for c in "%s: %s" % (news["project"], news["text"]))
        headers = {"Title": title, "Tags": "white_check_mark" if well else "x", "Priority": "default" if well else "high"}
        return (lines or news["command"] or news["text"]).encode(), headers
    if request.get("shape") == "slack":
        from html import escape

        text = "*%s*: %s" % (escape(news["project"], False), escape(news["text"], False))
        news = {"text": text + ("\n```\n%s\n```" % escape(lines, False).replace("```", "'''") if lines else "")}
    return json.dumps(news).encode(), {"Content-Type": "application/json"}


def post(request, news):
    """(whether it arrived, or None where that is not known; what came back). No text has the URL."""
    import http.client
    import urllib.error
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):  # it would be asked twice, and as GET
        def redirect_request(self, *_):
            return None

    body, headers = post_parts(request, news)
    headers["User-Agent"] = "remote"
    try:
        question = urllib.request.Request(request["url"], body, headers, method="POST")
        with urllib.request.build_opener(NoRedirect).open(question, timeout=ANSWER_SECONDS) as answer:
            return True, "HTTP %d %s" % (answer.status, answer.read(500).decode(errors="replace"))
    except urllib.error.HTTPError as error:
        return False, "HTTP %d" % error.code
    except urllib.error.URLError as error:  # there was no connection
        reason = error.reason
        why = reason if isinstance(reason, str) else getattr(reason, "strerror", None)
        return False, "no connection: %s" % (why or type(reason).__name__)
    except http.client.InvalidURL:
        return False, "the URL is not valid"
    except (OSError, http.client.HTTPException) as error:
        return None, "no answer (%s); it may have arrived" % type(error).__name__


def run(request, news):
    """The same for the command, a line for sh, which gets the JSON on stdin. It is in no argument."""
    import json
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as script:
        script.write(request["notify_command"].encode() + b"\n")
        script.seek(0)
        try:
            done = subprocess.run(
                ["sh", "/dev/fd/%d" % script.fileno()],
                input=json.dumps(news).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS,
                pass_fds=[script.fileno()],
                cwd=os.path.expanduser(request.get("folder", "~")),
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return None, "the command took longer than %d s" % COMMAND_SECONDS
    said = done.stdout[-500:].decode(errors="replace").strip()
    return done.returncode == 0, "exit %d%s" % (done.returncode, ": " + said if said else "")


def tell(request, news):
    try:
        return post(request, news) if request.get("url") else run(request, news)
    except Exception as error:  # its text may have the URL
        return False, type(error).__name__


def one_line(text):
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:500]


def finish(folder, result, kind):
    from lifeline_job import put

    try:
        put(folder, "notify.%sresult" % kind, one_line(result) + "\n")
        if not kind:
            os.unlink(os.path.join(folder, "notify"))  # nobody needs the secret any more
    except OSError:
        pass


def deliver(folder, state, why, lines, first_pause=FIRST_PAUSE, seconds=RETRY_SECONDS, kind=""):
    """Tells it, and tries again for an hour; by at most one process, as each launch has one lifeline a server. `kind`: before the end of the launch;
    names the mark and the result."""
    try:
        with open(os.path.join(folder, "notify"), "rb") as file:
            request = read_request(file.read().decode())
    except (OSError, ValueError):
        return
    mark = os.path.join(folder, "notify.%smark" % kind)
    if kind:  # the last time is over
        for name in (mark, os.path.join(folder, "notify.%sresult" % kind)):
            if os.path.exists(name):
                os.unlink(name)
    news = message(request, state, why, lines)
    until = time.monotonic() + seconds
    pause = first_pause
    while not os.path.exists(os.path.join(folder, "notify.%sresult" % kind)):
        try:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return finish(folder, "not known whether it arrived: its process died meanwhile", kind)
        except OSError:
            return  # the job was removed
        sent, answer = tell(request, news)
        if sent is not False:
            return finish(folder, "sent" if sent else answer, kind)
        left = until - time.monotonic()
        if left <= 0:
            return finish(folder, "not sent, tried for %d s: %s" % (seconds, answer), kind)
        try:
            os.unlink(mark)
        except OSError:
            return
        time.sleep(min(pause, left))
        pause = min(pause * 2, LONGEST_PAUSE)


def main():
    """`remote notify --test`: the request is on stdin, and the answer is a line for src/servers/notify.cpp."""
    request = read_request(sys.stdin.read())
    sent, answer = tell(request, message(request, "test", "", "this is a test"))
    print("@remote1 notify %s %s" % ("sent" if sent else "failed", one_line(answer)))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
    main()
