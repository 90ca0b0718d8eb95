// How the server's program comes to a server, is kept there, and reads requests.

#include "server/program.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "servers/action.hpp"
#include "ssh/program_channel.hpp"
#include "support/local_connection.hpp"
#include "support/program_as.hpp"
#include "support/waiting.hpp"
#include "support/wrapped_connection.hpp"

namespace remote::ssh {
namespace {

namespace fs = std::filesystem;

class Program : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  Program() : servers(GetParam()), inner(servers.connect("a")), connection(*inner) {}

  // What a request prints that runs this text.
  std::string run(const std::string& text) {
    ExecRequest request;
    request.input = servers::Script().append(text).input();
    request.timeout = std::chrono::seconds(60);
    const std::uint64_t before = connection.sent();
    const ExecResult result = connection.exec(request);
    EXPECT_EQ(result.err, "");
    sent = connection.sent() - before;
    return result.out;
  }
  bool was_sent() const { return sent > server::program_installation().size(); }
  fs::path cache() { return servers.home("a") / ".cache/remote"; }
  fs::path version() { return cache() / server::program_digest(); }

  test::LocalServers servers;
  std::unique_ptr<Connection> inner;
  test::WrappedConnection connection;
  std::uint64_t sent = 0;
};

TEST_P(Program, IsSentOnceAndKept) {
  EXPECT_EQ(run("echo \"$remote_program\""), version().string() + "\n");
  EXPECT_TRUE(was_sent());
  EXPECT_EQ(run("echo \"$remote_program\""), version().string() + "\n");
  EXPECT_FALSE(was_sent());
  EXPECT_LT(sent, 100U);
  EXPECT_EQ(servers.commands(), 2);  // over the same channel
  for (const fs::path& folder : {cache(), version()}) {
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1);
}

TEST_P(Program, AChannelThatWasOpenedBeforeItCameNeedsItNoMore) {
  const Cancel cancel;
  Pump pump(connection, cancel);
  std::string said;
  Flow early(pump, server::program_command(), [&](Stream, std::string_view data) { said += data; });
  pump.wait(std::chrono::milliseconds(0));
  run("true");
  EXPECT_TRUE(was_sent());
  early.send(servers::Script().append("echo here").input());
  while (!early.over() && said.find(server::program_needed) == std::string::npos) {
    pump.wait(std::chrono::seconds(60));
  }
  ASSERT_EQ(test::without_needed(said), "here\n");
  EXPECT_TRUE(early.ended().success());
}

// By a slow link or to slow storage it takes minutes: pieces and files are acknowledged, and no limit of the
// request counts meanwhile.
TEST_P(Program, ThePiecesOfItAreSignsOfLife) {
  servers.add_program("dd", "sleep 0.3; PATH=${PATH#*:}; dd \"$@\"");
  servers.add_program("tar",
                      "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.4; done; PATH=${PATH#*:}; tar \"$@\"");
  ExecRequest request;
  request.input = servers::Script().append("echo here").input();
  request.timeout = std::chrono::seconds(4);
  request.silence = std::chrono::seconds(3);
  EXPECT_EQ(connection.exec(request).out, "here\n");
  const std::size_t pieces = server::program_installation().size() / 8192;
  EXPECT_GT(pieces * 3, 40U) << "it does not take longer than the limit";
}

TEST_P(Program, WhatIsNotAsItWasIsSentAgain) {
  const auto expect_new = [&](const char* what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(run("echo \"$remote_program\""), version().string() + "\n");
    EXPECT_TRUE(was_sent());
    EXPECT_EQ(run("echo here"), "here\n");
    EXPECT_FALSE(was_sent());
    EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1);
  };
  expect_new("nothing there");
  write_file_atomic(version() / "lib/lib.sh", "");
  expect_new("a damaged file");
  fs::remove(version() / "actions/kill.sh");
  expect_new("a file less");
  fs::permissions(version(), fs::perms::group_all, fs::perm_options::add);
  expect_new("a version that others could have written");
  fs::permissions(cache(), fs::perms::others_write, fs::perm_options::add);
  expect_new("a folder that others could have written");
  fs::rename(version(), servers.home("a") / "elsewhere");
  fs::create_symlink(servers.home("a") / "elsewhere", version());
  expect_new("a link");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(version().c_str(), 65534, 65534), 0);
    expect_new("another user's folder");
  }
}

TEST_P(Program, WithoutAHomeThatTakesFilesItIsSentEachTimeAndLeavesNothing) {
  write_file_atomic(servers.home("a") / ".cache", "");
  for (int i = 0; i < 2; ++i) {
    const std::string place = run("echo \"$remote_program\"; exit 7");
    EXPECT_TRUE(was_sent());
    EXPECT_NE(place.find("/.remote-new."), std::string::npos) << place;
    EXPECT_FALSE(fs::exists(place.substr(0, place.find('\n'))));
  }
}

TEST_P(Program, AnotherUsersFolderIsNotUsed) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  run("true");
  ASSERT_EQ(::chown(cache().c_str(), 65534, 65534), 0);
  EXPECT_NE(run("echo \"$remote_program\"").find("/.remote-new."), std::string::npos);
  EXPECT_TRUE(was_sent());
}

TEST_P(Program, SeveralClientsAtOnce) {
  constexpr std::size_t count = 5;
  std::vector<std::string> outs(count);
  const Cancel cancel;
  Pump pump(*inner, cancel);
  std::vector<std::unique_ptr<Flow>> flows;
  const std::string request = servers::Script().append("echo \"$remote_program\"").input();
  for (std::string& out : outs) {
    flows.push_back(open_program(pump, request, [&out](Stream, std::string_view data) { out += data; }));
  }
  EXPECT_TRUE(test::eventually(
      [&] {
        pump.wait(std::chrono::milliseconds(10));
        return std::ranges::all_of(flows, [](const auto& one) { return one->channel().finished(); });
      },
      60));
  for (const std::string& out : outs) {
    EXPECT_EQ(out, version().string() + "\n");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1);
}

// Cut off at any of these places, on its way to a server with or without the program.
TEST_P(Program, NothingRunsOfWhatIsCutOff) {
  const std::string request = servers::Script().append("touch ~/ran; echo ran").input();
  const std::string all = request + server::program_installation() + request;
  const auto run_cut = [&](const std::string& input) {
    ExecRequest exec;
    exec.command = server::program_command();
    exec.input = input;
    exec.timeout = std::chrono::seconds(60);
    return test::without_needed(connection.exec(exec).out);
  };
  const std::size_t installation = server::program_installation().size();
  for (const std::size_t size :
       {std::size_t{0}, request.size() - 1, request.size() + 3, request.size() + 1000,
        request.size() + 20'000, request.size() + installation - 1, request.size() + installation,
        all.size() - 1}) {
    fs::remove_all(cache());
    EXPECT_EQ(run_cut(all.substr(0, size)).find("ran"), std::string::npos) << size;
    EXPECT_FALSE(fs::exists(servers.home("a") / "ran")) << size;
  }
  run("true");
  for (std::size_t size = 0; size < request.size(); size += 7) {
    EXPECT_EQ(run_cut(request.substr(0, size)), "") << size;
  }
  EXPECT_FALSE(fs::exists(servers.home("a") / "ran"));
  EXPECT_EQ(run_cut(request), "ran\n");
}

TEST_P(Program, ValuesAreDataWhateverTheyAre) {
  for (const std::string& value :
       {std::string("$(touch ~/ran) `touch ~/ran` $HOME"), std::string("a'b\"c\\d\\n"), std::string(".null"),
        std::string("\n.null\n"), std::string(" two\n\nlines\\\n\t"), std::string("+\n+\n\n"),
        std::string("-"), std::string(), std::string("\xff\xc3\xa4\x01"), std::string(70'000, 'x')}) {
    ExecRequest request;
    request.input = servers::Script()
                        .set("value", value)
                        .call("printf", {"%s|%s|", value, ""})
                        .append("printf '%s' \"$value\"")
                        .input();
    EXPECT_EQ(connection.exec(request).out, value + "||" + value);
  }
  EXPECT_FALSE(fs::exists(servers.home("a") / "ran"));
}

TEST_P(Program, OldVersionsGoWhenAnotherComes) {
  run("true");
  for (const char* name : {"old", "young"}) {
    fs::create_directories(cache() / name);
    write_file_atomic(cache() / name / "used", "");
  }
  fs::last_write_time(cache() / "old/used", fs::file_time_type::clock::now() - std::chrono::hours(24 * 40));
  run("true");
  EXPECT_TRUE(fs::exists(cache() / "old"));
  fs::remove(version() / "main.sh");
  run("true");
  EXPECT_FALSE(fs::exists(cache() / "old"));
  EXPECT_TRUE(fs::exists(cache() / "young"));
  EXPECT_TRUE(fs::exists(version()));
}

INSTANTIATE_TEST_SUITE_P(Shells, Program,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::bash,
                                           test::ServerShell::busybox),
                         [](const auto& one) { return to_string(one.param); });

}  // namespace
}  // namespace remote::ssh
