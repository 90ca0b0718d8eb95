"""The POST of a notification. Run by Post (tests/integration/server_python_test.cpp)."""
import http.server
import json
import os
import subprocess
import sys
import threading
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python/post.py")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers with what `answers` has next, and with 200 then."""

    got = []
    answers = []

    def do_POST(self):
        self.got.append((self.command, self.headers, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        code = self.answers.pop(0) if self.answers else 200
        if code == "silence":
            return self.connection.close()
        self.send_response(code)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write("thänks\n".encode() + b"x" * 1000)

    do_GET = do_POST

    def log_message(self, *_):
        pass


class PostTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        Receiver.got, Receiver.answers = [], []
        self.url = "http://127.0.0.1:%d/secret-topic" % self.server.server_port

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def post(self, url=None, **environment):
        with open(PROGRAM) as file:
            argv = [sys.executable, "-B", "-S", "-I", "-c", file.read()]
        text = json.dumps({"url": url or self.url, "headers": {"User-Agent": "remote", "Title": "a: b"}, "body": "ü\ntwo"})
        environment = {**os.environ, "LC_ALL": "C", **environment}
        return subprocess.run(argv, input=text.encode(), stdout=subprocess.PIPE, timeout=60, env=environment, check=True).stdout.decode()

    def test_it_arrives(self):
        self.assertEqual(self.post(), "sent HTTP 200 thänks\n" + "x" * 492)
        method, headers, body = Receiver.got[0]
        self.assertEqual((method, headers["Title"], headers["User-Agent"], body), ("POST", "a: b", "remote", "ü\ntwo"))

    def test_a_refusal_and_a_redirection_are_failures(self):
        Receiver.answers = [503, 404, 302]
        self.assertEqual([self.post() for _ in range(3)], ["failed HTTP 503", "failed HTTP 404", "failed HTTP 302"])
        self.assertEqual(len(Receiver.got), 3)

    def test_what_may_have_arrived_is_unknown(self):
        Receiver.answers = ["silence"]
        self.assertEqual(self.post(), "unknown no answer (RemoteDisconnected); it may have arrived")
        self.assertEqual(len(Receiver.got), 1)

    def test_no_answer_has_the_url(self):
        self.assertEqual(self.post("http://127.0.0.1:1/secret"), "failed no connection: Connection refused")
        for url in ("http://secret host/", "http://[secret/", "nothing:secret", "http://127.0.0.1:port-secret/", "http://ü.secret/ü"):
            answer = self.post(url)
            self.assertTrue(answer.startswith("failed "), answer)
            self.assertNotIn("secret", answer)

    def test_a_proxy_is_used(self):
        proxy = self.url.rsplit("/", 1)[0]
        self.assertRegex(self.post("http://nowhere.invalid/x", http_proxy=proxy, no_proxy=""), "^sent HTTP 200")


if __name__ == "__main__":
    unittest.main()
