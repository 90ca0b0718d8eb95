"""Sends one POST request for a notification (src/agent/notify). stdin has {"url", "headers", "body"} as JSON. The URL is secret,
so no output contains it.

Prints `sent`, `failed` or `unknown` (it may have been delivered), and the response.
"""
import http.client
import json
import sys
import urllib.error
import urllib.request

ANSWER_SECONDS = 30


class NoRedirect(urllib.request.HTTPRedirectHandler):  # otherwise a second request would be sent, as GET
    def redirect_request(self, *_):
        return None


def post(url, headers, body):
    try:
        request = urllib.request.Request(url, body.encode(), headers, method="POST")
        with urllib.request.build_opener(NoRedirect).open(request, timeout=ANSWER_SECONDS) as answer:
            return "sent HTTP %d %s" % (answer.status, answer.read(500).decode(errors="replace"))
    except urllib.error.HTTPError as error:
        return "failed HTTP %d" % error.code
    except urllib.error.URLError as error:  # the connection failed
        reason = error.reason
        why = reason if isinstance(reason, str) else getattr(reason, "strerror", None)
        return "failed no connection: %s" % (why or type(reason).__name__)
    except http.client.InvalidURL:
        return "failed the URL is not valid"
    except (OSError, http.client.HTTPException) as error:
        return "unknown no answer (%s); it may have arrived" % type(error).__name__
    except Exception as error:  # its text may contain the URL
        return "failed " + type(error).__name__


if __name__ == "__main__":
    sys.stdout.buffer.write(post(**json.load(sys.stdin)).encode(errors="replace"))
