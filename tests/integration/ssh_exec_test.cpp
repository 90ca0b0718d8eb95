// Commands over a real connection: streams, exit statuses, limits, broken links.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "servers/facts.hpp"
#include "servers/run_command.hpp"
#include "ssh/connector.hpp"
#include "ssh/path.hpp"
#include "ssh/session.hpp"
#include "support/lossy_socket.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using test::TestClient;
using test::TestSshd;

class SshExec : public testing::Test {
 protected:
  std::unique_ptr<ssh::Connection> connect(TestSshd& sshd) {
    return client.connector()->connect(sshd.server(client.key()), Cancel());
  }
  static ExecResult run(ssh::Connection& connection, const std::string& command,
                        const std::string& input = {}) {
    ssh::ExecRequest request;
    request.command = command;
    request.input = input;
    request.timeout = 30s;
    return connection.exec(request);
  }
  TestClient client;
};

TEST_F(SshExec, KeepsStreamsInputAndStatusApart) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const auto result = run(*connection, "cat; echo oops >&2; exit 3", "hello\n");
  EXPECT_EQ(result.out, "hello\n");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_EQ(result.status, ExitStatus::exited(3));
  EXPECT_EQ(connection->peer_address(), "127.0.0.1");
}

TEST_F(SshExec, TellsSignals) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const bool told = !test::over_openssh();  // its masters do not report signals
  EXPECT_EQ(run(*connection, "kill -KILL $$").status,
            told ? ExitStatus::signalled(SIGKILL) : ExitStatus::exited(255));
  EXPECT_EQ(run(*connection, "kill -TERM $$").status,
            told ? ExitStatus::signalled(SIGTERM) : ExitStatus::exited(255));
  EXPECT_EQ(run(*connection, "true").status, ExitStatus::exited(0));
}

TEST_F(SshExec, RunsManyCommandsOneAfterAnother) {
  TestSshd sshd(client.public_key(), {"MaxSessions 1"});
  const auto connection = connect(sshd);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(run(*connection, "sh -s", "echo " + std::to_string(i)).out, std::to_string(i) + "\n");
  }
}

TEST_F(SshExec, ACommandThatWasExpectedIsUnderWayWhenItIsOpened) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const auto begun = client.folder() / "begun";
  const std::string command = "echo x >>" + begun.string() + "; echo hello; exec cat";
  connection->expect(command);
  EXPECT_EQ(run(*connection, "echo 1").out, "1\n");
  ASSERT_TRUE(test::eventually([&] {
    connection->pump(10ms);
    return std::filesystem::exists(begun);
  }));
  EXPECT_TRUE(connection->idle());
  EXPECT_EQ(run(*connection, command, "input\n").out, "hello\ninput\n");
  EXPECT_EQ(read_file(begun), "x\n") << "it was begun twice";
  EXPECT_EQ(run(*connection, "echo 2").out, "2\n");
}

TEST_F(SshExec, WhatWasExpectedAndDoesNotComeIsInNobodysWay) {
  for (const char* sessions : {"MaxSessions 1", "MaxSessions 2", "MaxSessions 10"}) {
    TestSshd sshd(client.public_key(), {sessions});
    const auto connection = connect(sshd);
    connection->expect("cat");
    connection->expect({});
    EXPECT_EQ(run(*connection, "echo 1").out, "1\n") << sessions;
    EXPECT_EQ(run(*connection, "echo 2").out, "2\n") << sessions;
    EXPECT_EQ(run(*connection, "echo 3").out, "3\n") << sessions;
    EXPECT_TRUE(connection->idle()) << sessions;
  }
}

TEST_F(SshExec, WhatWasExpectedGivesItsPlaceToWhatComes) {
  TestSshd sshd(client.public_key(), {"MaxSessions 2"});
  const auto connection = connect(sshd);
  const auto nothing = [](ssh::Stream, std::string_view) {};
  connection->expect("cat >/dev/null");
  const auto one = connection->open("cat", nothing);
  EXPECT_EQ(run(*connection, "echo 2").out, "2\n");
  EXPECT_FALSE(one->finished());
}

TEST_F(SshExec, AnExpectedCommandThatEndedIsRunAnew) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const std::string pids = (client.folder() / "pids").string();
  const std::string command = "echo $$ >>" + pids + "; exit 7";
  connection->expect(command);
  run(*connection, "until [ -s " + pids + " ] && ! kill -0 $(cat " + pids + "); do sleep 0.02; done");
  EXPECT_EQ(run(*connection, command).status, ExitStatus::exited(7));
  EXPECT_EQ(split(read_file(pids), '\n').size(), 3U);  // the last line ends with a newline, too
}

TEST_F(SshExec, AParkedCommandIsResumedByTheNextOneThatOpensIt) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  if (!connection->parks()) {
    GTEST_SKIP() << "connections over OpenSSH do not park channels";
  }
  const std::string begun = (client.folder() / "begun").string();
  const std::string command = "echo x >>" + begun + "; exec cat";
  for (const std::string line : {"one\n", "two\n", "three\n"}) {
    std::string out;
    const auto channel = connection->open(command, [&](ssh::Stream, std::string_view data) { out += data; });
    EXPECT_EQ(channel->is_resumed(), line != "one\n");
    channel->write(line);
    ASSERT_TRUE(test::eventually([&] {
      connection->pump(10ms);
      return out == line;
    })) << out;
    ASSERT_TRUE(channel->park());
    EXPECT_EQ(run(*connection, "echo other").out, "other\n") << "the parked one is left alone";
  }
  EXPECT_TRUE(connection->idle());
  EXPECT_EQ(read_file(begun), "x\n");
}

TEST_F(SshExec, AParkedCommandGivesItsPlaceToAnotherOne) {
  TestSshd sshd(client.public_key(), {"MaxSessions 1"});
  const auto connection = connect(sshd);
  if (!connection->parks()) {
    GTEST_SKIP() << "connections over OpenSSH do not park channels";
  }
  for (int i = 0; i < 3; ++i) {
    std::string out;
    auto channel = connection->open("exec cat", [&](ssh::Stream, std::string_view data) { out += data; });
    EXPECT_FALSE(channel->is_resumed());
    channel->write("line\n");
    ASSERT_TRUE(test::eventually([&] {
      connection->pump(10ms);
      return out == "line\n";
    }));
    ASSERT_TRUE(channel->park());
    channel.reset();
    EXPECT_EQ(run(*connection, "echo 1").out, "1\n");
  }
}

TEST_F(SshExec, OnlyARunningCommandWithoutPendingBytesIsParked) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  if (!connection->parks()) {
    GTEST_SKIP() << "connections over OpenSSH do not park channels";
  }
  std::string out;
  const auto sink = [&](ssh::Stream, std::string_view data) { out += data; };
  const auto ended = connection->open("echo ended", sink);
  ASSERT_TRUE(test::eventually([&] {
    connection->pump(10ms);
    return ended->finished();
  }));
  EXPECT_FALSE(ended->park());
  const auto closed = connection->open("exec cat", sink);
  closed->close_input();
  EXPECT_FALSE(closed->park());
  // A command that ended while it was parked is not resumed.
  const auto dies = connection->open("echo $$; read -r _", sink);
  ASSERT_TRUE(test::eventually([&] {
    connection->pump(10ms);
    return out.ends_with("\n") && out != "ended\n";
  }));
  ASSERT_TRUE(dies->park());
  const std::string pid = std::string(trim(out.substr(out.find('\n') + 1)));
  run(*connection, "kill " + pid + "; while kill -0 " + pid + "; do sleep 0.02; done");
  run(*connection, "true");
  EXPECT_FALSE(connection->open("echo $$; read -r _", sink)->is_resumed());
}

TEST_F(SshExec, CarriesTenMegabytesEachWay) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  std::string data(std::size_t{10} << 20U, '\0');
  unsigned state = 1;
  for (char& c : data) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  const auto result = run(*connection, "cat", data);
  EXPECT_TRUE(result.out == data) << result.out.size();
  EXPECT_TRUE(result.status.success());
}

TEST_F(SshExec, ServesSeveralChannelsSideBySide) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  std::string first;
  std::string second;
  const auto one = connection->open("cat", [&](ssh::Stream, std::string_view data) { first += data; });
  const auto two = connection->open("read x; echo \"got $x\"",
                                    [&](ssh::Stream, std::string_view data) { second += data; });
  one->write("slow");
  two->write("fast\n");
  while (!two->finished()) {
    connection->pump(1s);
  }
  EXPECT_EQ(second, "got fast\n");
  EXPECT_FALSE(one->finished());
  one->close_input();
  while (!one->finished()) {
    connection->pump(1s);
  }
  EXPECT_EQ(first, "slow");
  EXPECT_EQ(one->status(), ExitStatus::exited(0));
}

TEST_F(SshExec, SaysWhenTheServerAllowsNoFurtherChannel) {
  TestSshd sshd(client.public_key(), {"MaxSessions 2"});
  const auto connection = connect(sshd);
  const auto nothing = [](ssh::Stream, std::string_view) {};
  const auto one = connection->open("cat", nothing);
  auto two = connection->open("cat", nothing);
  EXPECT_THROW(connection->open("cat", nothing), ssh::TooManyChannels);
  two.reset();  // frees its channel
  EXPECT_NO_THROW(connection->open("cat", nothing));
  EXPECT_FALSE(one->finished());
}

TEST_F(SshExec, APlainErrorWhereNoCommandIsAllowedAtAll) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "there is no connection then";
  }
  TestSshd sshd(client.public_key(), {"MaxSessions 0"});
  const auto connection = connect(sshd);
  try {
    connection->open("true", {});
    FAIL() << "the server must refuse";
  } catch (const ssh::TooManyChannels&) {
    FAIL() << "another connection would not help";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("MaxSessions"), std::string::npos);
  }
}

TEST_F(SshExec, AKilledServerIsUnreachable) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  std::string heard;
  const auto channel =
      connection->open("echo ready; exec cat", [&](ssh::Stream, std::string_view data) { heard += data; });
  while (heard.empty()) {
    connection->pump(1s);
  }
  sshd.signal_sessions(SIGKILL);
  EXPECT_THROW(test::pump_until_broken(*connection), ssh::Unreachable);
  EXPECT_FALSE(channel->status().has_value());
  EXPECT_THROW(connection->open("true", {}), ssh::Unreachable);
}

TEST_F(SshExec, ALinkThatHasEndedIsNotCalledARefusal) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  sshd.kill_sessions();
  try {
    connection->open("true", {});
    FAIL() << "there is nobody";
  } catch (const ssh::Unreachable& error) {
    EXPECT_EQ(error.message().find("Success"), std::string::npos) << error.message();
    EXPECT_EQ(error.hint().find("MaxSessions"), std::string::npos) << error.hint();
  }
}

// As ~/.bashrc may start one.
TEST_F(SshExec, AProcessInTheBackgroundThatHoldsTheOutputDoesNotHoldTheCommand) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  for (const bool knows_its_end : {false, true}) {
    std::string heard;
    ssh::ExecRequest request;
    request.command = "sh -s";
    request.input = "sleep 300 & echo $! done; exit 3";
    request.sink = [&](ssh::Stream, std::string_view data) { heard += data; };
    request.timeout = 20s;
    if (knows_its_end) {
      request.complete = [&] { return heard.find("done") != std::string::npos; };
    }
    EXPECT_EQ(connection->exec(request).status, ExitStatus::exited(3));
    const std::vector<std::string> words = split_words(heard);
    ASSERT_EQ(words.size(), 2U) << heard;
    EXPECT_TRUE(connection->idle()) << "the connection is of use for others";
    ::kill(parse_number<pid_t>(words[0]).value(), SIGKILL);
  }
}

// Its later output is still passed on, as with ssh(1).
TEST_F(SshExec, WhatComesAfterTheCommandsEndIsPassedOn) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  ssh::ExecRequest request;
  request.command = "sh -s";
  request.input = "(for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i; done) & echo 0";
  EXPECT_EQ(connection->exec(request).out, "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
}

TEST_F(SshExec, AFrozenServerIsNoticed) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "of libssh's session";
  }
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  ASSERT_TRUE(run(*connection, "true").status.success());
  auto* session = dynamic_cast<ssh::Session*>(connection.get());
  ASSERT_NE(session, nullptr);
  session->set_keepalive(50ms, 1s);
  const auto start_quiet = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start_quiet < 1500ms) {
    connection->pump(50ms);  // silent, but answering
  }
  const std::vector<pid_t> stopped = sshd.signal_sessions(SIGSTOP);
  try {
    for (int i = 0; i < 4; ++i) {
      connection->pump(5s);  // returns when a delayed answer arrives
    }
    ADD_FAILURE() << "nothing was noticed";
  } catch (const ssh::Unreachable& error) {
    EXPECT_THAT(error.message(),
                testing::EndsWith(": the server acknowledges all packets, but its answer is missing"));
    EXPECT_THAT(error.hint(), testing::HasSubstr("lower the MTU"));
  }
  for (const pid_t pid : stopped) {
    ::kill(pid, SIGCONT);
  }
}

TEST_F(SshExec, ASilenceIsExplained) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "of libssh's session";
  }
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  ASSERT_TRUE(run(*connection, "true").status.success());
  EXPECT_EQ(connection->explain_silence(), "") << "the server answers";
  for (int i = 0; i < 4; ++i) {
    connection->pump(50ms);  // reads the answer
  }
  const std::vector<pid_t> stopped = sshd.signal_sessions(SIGSTOP);
  EXPECT_EQ(connection->explain_silence(), "the server acknowledges all packets, but its answer is missing");
  for (const pid_t pid : stopped) {
    ::kill(pid, SIGCONT);
  }
}

// Like a VPN with a smaller packet size than both ends assume.
TEST_F(SshExec, LargePacketsThatAreLostAreNamed) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "of libssh's session";
  }
  TestSshd sshd(client.public_key());
  // The server's answer has to arrive before it resends the lost packet, because then it waits for that.
  EXPECT_TRUE(test::eventually([&] {
    const auto connection = connect(sshd);
    const int socket = test::find_socket_to(sshd.port());
    test::lose_packets_above(socket, 500);
    const auto channel =
        connection->open("read go; head -c 2000 /dev/zero; read end", [](ssh::Stream, std::string_view) {});
    channel->write("\n");
    return test::eventually([&] {
             connection->pump(1ms);
             return test::count_lost_packets(socket) > 0;
           }) &&
           connection->explain_silence() == "small packets arrive from the server, and larger ones are lost";
  }));
}

// As in a launch: the answers of other servers wait for this one.
TEST_F(SshExec, WhereAnAnswerIsDueAtOnceAFrozenServerIsNoticedSoon) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  ASSERT_TRUE(run(*connection, "true").status.success());
  const std::vector<pid_t> stopped = sshd.signal_sessions(SIGSTOP);
  const ssh::Watchful watch(*connection, true);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(run(*connection, "true"), ssh::Unreachable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 24s) << "otherwise it is 25 s";  // the program's limits
  for (const pid_t pid : stopped) {
    ::kill(pid, SIGCONT);
  }
}

// sshd is alive and answers for the link, but the processes it started hang.
TEST_F(SshExec, AShellThatNeverAnswersIsGivenUp) {
  TestSshd sshd(client.public_key(), {"ForceCommand exec cat >/dev/null"});
  const auto connection = connect(sshd);
  EXPECT_EQ(connection->answer_time(), 10s);
  connection->set_answer_time(300ms);
  try {
    servers::ask_facts(*connection, servers::load_request("~/proj"), Cancel());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout);
    EXPECT_EQ(error.message(), "no answer: its login shell printed nothing for 0 s");
  }
}

// Also if the command requests the agent.
TEST_F(SshExec, AShellThatPrintsWithoutEndIsGivenUp) {
  for (const std::string first : {"", "@remote-agent need x86_64", "@remote-agent x"}) {
    TestSshd sshd(client.public_key(),
                  {"ForceCommand echo '" + first + "'; while echo; do sleep 0.05; done"});
    const auto connection = connect(sshd);
    connection->set_answer_time(100ms);
    try {
      servers::ProcessSpec process;
      process.command = "echo done";
      servers::run_in_foreground(*connection, servers::make_run("~/proj", process), {}, Cancel());
      FAIL() << first;
    } catch (const Error& error) {
      EXPECT_EQ(error.cause(), Cause::timeout) << error.message();
    }
  }
}

// Like a start file with newgrp, which asks for a password.
TEST_F(SshExec, AStartFileThatReadsTheRequestIsNamed) {
  TestSshd sshd(client.public_key(), {"ForceCommand echo Password: >&2; dd bs=65536 count=1 of=/dev/null "
                                      "2>/dev/null; echo; echo '@remote-agent here'; exec cat >/dev/null"});
  const auto connection = connect(sshd);
  connection->set_answer_time(1s);
  int slow = 0;
  try {
    servers::ProcessSpec process;
    process.command = "echo done";
    servers::run_in_foreground(*connection, servers::make_run("~/proj", process), {}, Cancel(), {},
                               [&] { ++slow; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.cause(), Cause::timeout) << error.message();
    EXPECT_THAT(error.message(), testing::HasSubstr("the shell printed: Password:"));
  }
  EXPECT_EQ(slow, 1);
}

TEST_F(SshExec, ALoginThatTakesLongMayTakeAsLongAsItSaysSomething) {
  TestSshd sshd(client.public_key(),
                {"ForceCommand for i in 1 2 3 4 5 6 7 8; do echo $i >&2; sleep 0.5; done; "
                 "exec sh -c \"$SSH_ORIGINAL_COMMAND\""});
  const auto connection = connect(sshd);
  connection->set_answer_time(2s);
  EXPECT_NO_THROW(servers::ask_facts(*connection, servers::load_request("~/proj"), Cancel()));
}

TEST_F(SshExec, WhoAllowsMoreTimeToConnectAllowsItToTheShell) {
  TestSshd sshd(client.public_key());
  config::Config config = client.config();
  config.connect_timeout_s = 33;
  const auto connector = ssh::make_connector(config, client.options());
  EXPECT_EQ(connector->connect(sshd.server(client.key()), Cancel())->answer_time(), 33s);
}

// libssh notices the end during a write, and closes the socket that poll(2) would report.
TEST_F(SshExec, ALinkThatEndsWhileWritingIsNoticedAtOnce) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "of libssh's session";
  }
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  auto* session = dynamic_cast<ssh::Session*>(connection.get());
  ASSERT_NE(session, nullptr);
  session->set_keepalive(1h, 1h);
  const auto channel = connection->open("cat >/dev/null", {});
  sshd.kill_sessions();
  const std::string block(4096, 'x');
  for (int i = 0; i < 5; ++i) {
    channel->write(block);
  }
  EXPECT_THROW(
      {
        for (int i = 0; i < 3; ++i) {
          connection->pump(10s);
        }
      },
      ssh::Unreachable);
}

TEST_F(SshExec, ALinkThatBreaksWhileWritingRaisesNoSignalUnderTheGuard) {
  if (test::over_openssh()) {
    GTEST_SKIP() << "of libssh's session";
  }
  TestSshd sshd(client.public_key());
  EXPECT_EXIT(
      {
        std::signal(SIGPIPE, SIG_DFL);
        const SigpipeGuard guard;
        const auto connection = connect(sshd);
        const auto channel = connection->open("cat >/dev/null", {});
        sshd.signal_sessions(SIGKILL);
        try {
          for (;;) {
            channel->write(std::string(channel->writable(), 'x'));
            connection->pump(10ms);
          }
        } catch (const ssh::Unreachable&) {
          ::_exit(0);
        }
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(SshExec, APausedChannelHoldsTheCommandBack) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const auto count_file = sshd.folder() / "written";
  std::size_t received = 0;
  // The command prints how many blocks of 64 KB it could write.
  const auto channel = connection->open(
      "i=0; while [ $i -lt 400 ]; do head -c 65536 /dev/zero || exit 1; i=$((i+1)); echo $i > " +
          count_file.string() + "; done",
      [&](ssh::Stream, std::string_view data) { received += data.size(); });
  channel->pause(true);
  const auto blocks = [&] {
    return parse_number<int>(trim(read_file_if_there(count_file).value_or("0"))).value_or(0);
  };
  // It stops when the window is full.
  int last = -1;
  for (int calm = 0; calm < 10;) {
    connection->pump(20ms);
    calm = blocks() == last && last > 0 ? calm + 1 : 0;
    last = blocks();
  }
  EXPECT_LT(last, 200);
  EXPECT_EQ(received, 0U);
  EXPECT_FALSE(channel->finished());
  // Another channel works meanwhile.
  EXPECT_EQ(run(*connection, "echo hi").out, "hi\n");
  channel->pause(false);
  while (!channel->finished()) {
    connection->pump(1s);
  }
  EXPECT_EQ(received, std::size_t{400} * 65536);
  EXPECT_EQ(channel->status(), ExitStatus::exited(0));
}

TEST_F(SshExec, ADroppedChannelEndsTheCommandsInput) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const auto file = sshd.folder() / "ended";
  auto channel = connection->open("cat >/dev/null; echo yes > " + file.string(), {});
  connection->pump(50ms);
  channel.reset();
  EXPECT_TRUE(test::eventually([&] {
    connection->pump(10ms);
    return read_file_if_there(file) == "yes\n";
  }));
}

TEST_F(SshExec, ADroppedConnectionEndsTheCommandsInput) {
  TestSshd sshd(client.public_key());
  auto connection = connect(sshd);
  const auto file = sshd.folder() / "ended";
  auto channel = connection->open("cat >/dev/null; echo yes > " + file.string(), {});
  connection->pump(50ms);
  channel.reset();
  connection.reset();
  EXPECT_TRUE(test::eventually([&] { return read_file_if_there(file) == "yes\n"; }));
}

TEST_F(SshExec, CancelInterruptsACommand) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  const auto file = sshd.folder() / "pid";
  const auto pid = [&] { return parse_number<pid_t>(trim(read_file_if_there(file).value_or(""))); };
  Cancel cancel;
  std::jthread killer([&] {
    EXPECT_TRUE(test::eventually([&] { return pid().has_value(); }));
    cancel.cancel();
  });
  const auto start = std::chrono::steady_clock::now();
  try {
    ssh::ExecRequest request;
    request.command = "echo $$ >'" + file.string() + "'; exec sleep 1000";
    connection->exec(request, cancel);
    FAIL() << "not interrupted";
  } catch (const Interrupted&) {
    SUCCEED();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, test::patience);
  EXPECT_EQ(run(*connection, "echo still here").out, "still here\n");
  ::kill(pid().value(), SIGKILL);  // without a terminal, it outlives its connection
}

TEST_F(SshExec, PumpWakesForOtherDescriptors) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  std::jthread writer([&] {
    std::this_thread::sleep_for(50ms);  // while it waits
    EXPECT_TRUE(write_all(write_end.get(), "x"));
  });
  const auto start = std::chrono::steady_clock::now();
  pollfd also[1]{{read_end.get(), POLLIN, 0}};
  while (also[0].revents == 0 && std::chrono::steady_clock::now() - start < test::patience) {
    connection->pump(test::patience, also);
  }
  EXPECT_NE(also[0].revents & POLLIN, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, test::patience);
}

TEST_F(SshExec, LeavesNoDescriptorBehind) {
  TestSshd sshd(client.public_key());
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto connector = client.connector();
  connector->connect(sshd.server(client.key()), Cancel());
  const auto before = open_files();
  for (int i = 0; i < 5; ++i) {
    const auto connection = connector->connect(sshd.server(client.key()), Cancel());
    EXPECT_EQ(run(*connection, "echo hi").out, "hi\n");
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(SshExec, TheSinkMayDropItsChannelAndOpenAnother) {
  TestSshd sshd(client.public_key());
  const auto connection = connect(sshd);
  std::string heard;
  std::unique_ptr<ssh::Channel> second;
  std::unique_ptr<ssh::Channel> first;
  first = connection->open("echo one; exec cat", [&](ssh::Stream, std::string_view) {
    first.reset();
    second = connection->open("echo two", [&](ssh::Stream, std::string_view data) { heard += data; });
  });
  const auto end = std::chrono::steady_clock::now() + 10s;
  while ((!second || !second->finished()) && std::chrono::steady_clock::now() < end) {
    connection->pump(100ms);
  }
  EXPECT_EQ(heard, "two\n");
}

}  // namespace
}  // namespace remote
