#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/pairs.hpp"
#include "support/paths.hpp"

// pairs.sh on the shells there are, on a server without python3: what sh can tell is told. And what pairs.py
// makes of what it does not understand; tests/e2e has the rest of it.

namespace remote::servers {
namespace {

class PairsScript : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(split(GetParam(), ' ').front())) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
  }
};

// As on old distributions: it cannot run pairs.py, and does not know the options that it is called with.
TEST_P(PairsScript, AnOldPythonIsNone) {
  const TempFolder folder("remote-old-python-");
  const std::filesystem::path old = folder.path() / "python3";
  write_file_atomic(old, "#!/bin/sh\necho Python 2.7.18 >&2\n", 0755);
  const PairsRequest request{.own = 0, .token = "abc", .addresses = {"127.0.0.1"}, .python = "python3"};
  SubprocessSpec spec;
  spec.argv = split(GetParam(), ' ');
  spec.argv.insert(spec.argv.end(), {"-c", "PATH=$old:$PATH; . \"$remote_program/main.sh\""});
  spec.set_env = {{"remote_program", test::source_folder + std::string("/src/server")},
                  {"old", folder.path().string()}};
  const ExecResult result = run_subprocess(spec, pairs_script(request).open_input());
  EXPECT_FALSE(read_answer<PairsAnswer>(result.out, PairsAnswer(request)).has_python);
}

TEST_P(PairsScript, WithoutPythonItTellsNamesAndWays) {
  const PairsRequest request{.own = 0,
                             .token = "abc",
                             .addresses = {"127.0.0.1", "nobody.invalid", "localhost"},
                             .python = "no-such-python"};
  SubprocessSpec spec;
  spec.argv = split(GetParam(), ' ');
  spec.argv.insert(spec.argv.end(), {"-c", ". \"$remote_program/main.sh\""});
  spec.set_env = {{"remote_program", test::source_folder + std::string("/src/server")}};
  const ExecResult result = run_subprocess(spec, pairs_script(request).open_input());
  EXPECT_EQ(result.err, "");
  const auto answer = read_answer<PairsAnswer>(result.out, PairsAnswer(request));
  EXPECT_FALSE(answer.has_python);
  EXPECT_FALSE(answer.listening);
  EXPECT_THAT(answer.pairs[0].addresses, ::testing::ElementsAre("127.0.0.1"));
  EXPECT_THAT(answer.pairs[1].addresses, ::testing::IsEmpty());
  EXPECT_THAT(answer.pairs[2].addresses, ::testing::Not(::testing::IsEmpty()));
  if (find_program("ip")) {
    EXPECT_EQ(answer.pairs[0].interface, "lo");
    EXPECT_EQ(answer.pairs[0].source, "127.0.0.1");
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, PairsScript, ::testing::Values("dash", "bash", "busybox ash"),
                         [](const auto& shell) { return split(shell.param, ' ').back(); });

// pairs.py with these lines behind it, which make it do something.
ExecResult run_program(const std::string& lines, const std::string& input) {
  std::string program;
  for (const char* part : {"pairs.py", "pairs_loop.py", "pairs_ways.py", "pairs_bandwidth.py"}) {
    program += read_file(std::filesystem::path(test::source_folder) / "src/server/python" / part);
  }
  SubprocessSpec spec;
  spec.argv = {"python3", "-S", "-I", "-c", program + lines, "0", "abc", "127.0.0.1", "20000"};
  return run_subprocess(spec, input);
}

TEST(PairsProgram, AnOrderThatIsNotUnderstoodEndsItAtOnceAndIsNamed) {
  for (const char* order : {"peer 1 token x 2 name -", "peer 1", "colour red", "", "send 1 127.0.0.1 0 x 1",
                            "send 7 127.0.0.1 0 1 1"}) {
    const ExecResult result = run_program("Server().run()\n", std::string(order) + "\n");
    PairsAnswer answer(PairsRequest{.token = "abc", .addresses = {"127.0.0.1", "127.0.0.2"}});
    AnswerReader reader = reader_into(answer);
    reader.add(result.out);
    EXPECT_TRUE(answer.listening) << result.err;
    try {
      reader.finish();
      FAIL() << order;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "the server refused: an order is not understood: " + std::string(order));
    }
  }
}

TEST(PairsProgram, AnErrorOfTheKernelIsTold) {
  const ExecResult result = run_program(
      "def fail(self):\n    raise OSError(24, 'Too many open files')\nServer.listen = fail\nServer().run()\n",
      "");
  EXPECT_EQ(result.out, "@remote1 error OSError: [Errno 24] Too many open files\n");
}

// The other server, here a thread, says this after all was sent.
TEST(PairsProgram, AnotherServersNonsenseIsAnErrorOfThatMeasurementAlone) {
  const auto sent = [](const std::string& answer) {
    return run_program(fmt::format(R"(
import threading
listening = socket.create_server(("127.0.0.1", 0))
def nonsense():
    sock = listening.accept()[0]
    sock.sendall(b"remote1 abc 127.0.0.1\n")
    while sock.recv(1 << 20):
        pass
    sock.sendall({})
    sock.close()
threading.Thread(target=nonsense, daemon=True).start()
server = Server()
port = listening.getsockname()[1]
server.peers.append(Peer(1, "abc", (port, port), "name", "-", []))
server.order(["send", "1", "127.0.0.1", "0", "0", "0"])
while not server.loop.idle():
    server.loop.turn(1)
)",
                                   answer),
                       "");
  };
  for (const char* answer : {R"(b"a lot\n")", R"(b"5\n")", R"(b"0 0\n")", R"(b"nan 1\n")", R"(b"-1 1\n")"}) {
    const ExecResult result = sent(answer);
    EXPECT_EQ(result.out, "@remote1 pairs sent 1 error the other side answers something else\n")
        << answer << result.err;
  }
  EXPECT_EQ(sent(R"(b"123456789012345678 1\n")").out,
            "@remote1 pairs sent 1 error the other side says that it got more than was sent\n");
  EXPECT_EQ(sent(R"(b"0 1\n")").out, "@remote1 pairs sent 1 0 0 own\n");
}

// The kernel ends the connection while it is made use of.
TEST(PairsProgram, AnErrorWithinAMeasurementIsThatMeasurementsResult) {
  const ExecResult result = run_program(R"(
def no_socket(*_):
    raise OSError(24, "Too many open files")
server = Server()
server.peers.append(Peer(1, "abc", (1, 1), "name", "-", []))
socket.socket = no_socket
server.order(["send", "1", "127.0.0.1", "0", "0", "1"])
while not server.loop.idle():
    server.loop.turn(1)
)",
                                        "");
  EXPECT_EQ(result.out, "@remote1 pairs sent 1 error Too many open files\n") << result.err;
}

}  // namespace
}  // namespace remote::servers
