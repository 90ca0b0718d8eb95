// `rsync --fan-out peers` between real sshd processes: each gets the project from the other with ssh(1) and
// rsync, using a forwarded key or a key in its home folder.

#include "servers/peers.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "sandbox/node.hpp"
#include "ssh/connector.hpp"
#include "support/paths.hpp"
#include "support/prepare_world.hpp"
#include "support/test_sandbox.hpp"
#include "support/waiting.hpp"
#include "support/wrapped_connection.hpp"

namespace remote::servers {
namespace {

class PeersTest : public SandboxTest {
 protected:
  explicit PeersTest(sandbox::SandboxOptions options = {})
      : SandboxTest(2, std::move(options)), peers_(config_) {
    ::unsetenv("SSH_AUTH_SOCK");
    options_.pipe_program = test::remote_binary;
    connect_all();
    write(here("train.py"), "print(1)\n");
  }

  void connect_all() {
    connections_.clear();
    real_.clear();
    for (std::size_t i = 0; i < config_.servers.size(); ++i) {
      real_.push_back(connect(i));
      connections_.emplace_back(*real_.back());
    }
  }

  struct Sent {
    std::string from;
    std::string why;
    std::vector<std::string> by_peer;
    std::vector<std::string> from_here;
  };
  // Handles one server completely, as `remote rsync` does.
  Sent send(std::size_t index) {
    const config::Server& server = config_.servers[index];
    Peers::Part part(peers_, connections_[index], server);
    part.take(
        options_, [](const std::string&) {}, Cancel());
    options_.checksum = part.unverified;
    const SyncReport report = sync_to(connections_[index], config_, server, options_, Cancel());
    part.pass_on(report.newer);
    return {part.from, part.why, part.files.changed, report.changed};
  }
  // Leaves no key that could be forwarded.
  void forward_nothing() {
    for (test::WrappedConnection& connection : connections_) {
      connection.told().key_files.clear();
      connection.told().agent.clear();
    }
  }

  Peers peers_;
  std::vector<std::unique_ptr<ssh::Connection>> real_;
  std::vector<test::WrappedConnection> connections_;
  SyncOptions options_;
};

TEST_F(PeersTest, TheProjectGoesOnFromTheFirstWithTheForwardedKeyAndLeavesNoneThere) {
  const TempFolder outside;
  write(outside.path() / "data", std::string(1 << 23U, 'x'));
  fs::create_symlink(outside.path() / "data", here("link"));
  fs::create_symlink("nowhere", here("dangling"));
  write(here(".remote/exclude.txt"), "*.tmp\n");
  for (const char* name : {"with space/it's", "$HOME `x`", "ünï", "star*[a]?", "-dash", "a.tmp", "#hash",
                           ";semi", ".jobs/job", "line\nbreak", "back\\slash", "@remote1 fail x"}) {
    write(here(name), name);
  }
  fs::create_directories(here("empty"));
  EXPECT_EQ(send(0).from, "");
  const Sent second = send(1);
  EXPECT_EQ(second.why, "");
  EXPECT_EQ(second.from, "node-1");
  EXPECT_THAT(second.by_peer,
              UnorderedElementsAre("train.py", "link", "with space/it's", "$HOME `x`", "ünï", "star*[a]?",
                                   "-dash", "#hash", ";semi", "@remote1 fail x"));
  EXPECT_THAT(second.from_here, UnorderedElementsAre("line\\#012break", "back\\slash"));
  EXPECT_LT(connections_[1].sent(), std::uint64_t{1'000'000}) << "the laptop sent the contents itself";
  SubprocessSpec compare;
  compare.argv = {"diff", "-r", "--exclude=.remote-scripts", there("", 0).string(), there("", 1).string()};
  EXPECT_EQ(run_subprocess(compare).out, "");
  EXPECT_FALSE(fs::is_symlink(there("link", 1)));
  EXPECT_FALSE(fs::exists(there(".jobs", 1)));
  EXPECT_TRUE(fs::is_empty(there(".remote-scripts", 1))) << "known_hosts stayed behind";
  EXPECT_FALSE(fs::exists(sandbox_.home(1) / ".ssh/known_hosts"));
}

TEST_F(PeersTest, LinksWithoutAnEndAndKeysDoNotTravelFromServerToServer) {
  fs::create_directories(here("sub"));
  fs::create_symlink("..", here("sub/up"));
  fs::create_symlink("..", here("sub/up2"));
  write(here("key"), "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
  options_.leave = {"sub/up", "sub/up2", "key"};
  send(0);
  EXPECT_EQ(send(1).from, "node-1");
  EXPECT_TRUE(fs::exists(there("train.py", 1)));
  EXPECT_FALSE(fs::exists(there("key", 1)));
  EXPECT_FALSE(fs::exists(there("sub/up", 1)));
}

TEST_F(PeersTest, AKeyInTheHomeFolderWillDo) {
  forward_nothing();
  sandbox::make_key(sandbox_.home(1) / "key", "project", Cancel());
  fs::rename(sandbox_.home(1) / "key", sandbox_.home(1) / ".ssh/id_ed25519");
  std::ofstream(sandbox_.home(0) / ".ssh/authorized_keys", std::ios::app)
      << read_file(sandbox_.home(1) / "key.pub");
  std::ofstream(sandbox_.home(0) / ".bashrc") << "cd /\n";  // in case that is the login shell
  send(0);
  const Sent second = send(1);
  EXPECT_EQ(second.from, "node-1") << second.why;
  EXPECT_THAT(second.from_here, IsEmpty());
}

// Our own agent cannot use keys with a passphrase; the user's agent may hold them.
TEST_F(PeersTest, TheUsersAgentIsForwardedWhereNoKeyFileWillDo) {
  ssh::KeyAgent agent;
  ASSERT_TRUE(agent.add(sandbox_.sandbox().private_key(), Cancel()));
  forward_nothing();
  connections_[0].told().agent = agent.socket();
  send(0);
  const Sent second = send(1);
  EXPECT_EQ(second.from, "node-1") << second.why;
}

TEST_F(PeersTest, WithoutAKeyItSaysSoAndSendsFromHere) {
  forward_nothing();
  send(0);
  const Sent second = send(1);
  EXPECT_EQ(second.from, "");
  EXPECT_THAT(second.why, HasSubstr("it cannot fetch the project from node-1 (127.0.0.1): "));
  EXPECT_THAT(second.why, HasSubstr("Permission denied"));
  EXPECT_THAT(second.from_here, ElementsAre("train.py"));
}

TEST_F(PeersTest, AnAddressThatCannotBeReachedIsNamed) {
  config_.servers[0].internal_address = "127.0.0.99";  // sshd listens on 127.0.0.1
  send(0);
  const Sent second = send(1);
  EXPECT_THAT(second.why, HasSubstr("node-1 (127.0.0.99): "));
  EXPECT_THAT(second.why, HasSubstr("onnection refused"));
  EXPECT_EQ(read_file(there("train.py", 1)), "print(1)\n");
}

TEST_F(PeersTest, AServerWithAnotherHostKeyIsNotBelieved) {
  connections_[0].told().host_key = connections_[1].login().host_key;
  send(0);
  const Sent second = send(1);
  EXPECT_THAT(second.why, HasSubstr("Host key verification failed"));
  EXPECT_EQ(second.from, "");
  EXPECT_THAT(second.from_here, ElementsAre("train.py"));
}

TEST_F(PeersTest, WhatIsNewerOnTheFirstIsNotPassedOn) {
  send(0);
  fs::last_write_time(here("train.py"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  write(there("train.py", 0), "changed by a job\n");
  Peers again(config_);
  write(here("other.py"), "x = 1\n");
  Peers::Part first(again, connections_[0], config_.servers[0]);
  first.take(
      options_, [](const std::string&) {}, Cancel());
  const SyncReport report = sync_to(connections_[0], config_, config_.servers[0], options_, Cancel());
  EXPECT_THAT(report.newer, ElementsAre("train.py"));
  first.pass_on(report.newer);
  Peers::Part second(again, connections_[1], config_.servers[1]);
  second.take(
      options_, [](const std::string&) {}, Cancel());
  EXPECT_THAT(second.files.changed, ElementsAre("other.py"));
  sync_to(connections_[1], config_, config_.servers[1], options_, Cancel());
  EXPECT_EQ(read_file(there("train.py", 1)), "print(1)\n");
}

TEST_F(PeersTest, WhatDiffersByContentAloneComesFromHere) {
  send(0);
  // Same size and time: rsync does not see the difference, but the digest does.
  const auto time = fs::last_write_time(there("train.py", 0));
  write(there("train.py", 0), "print(2)\n");
  fs::last_write_time(there("train.py", 0), time);
  const Sent second = send(1);
  EXPECT_THAT(second.by_peer, ElementsAre("train.py"));
  EXPECT_THAT(second.from_here, ElementsAre("train.py"));
  EXPECT_EQ(read_file(there("train.py", 1)), "print(1)\n");
}

TEST_F(PeersTest, AnInterruptedTransferLeavesNoneOfItsFilesAndGoesOnTheNextTime) {
  write(here("data"), std::string(std::size_t{10} << 20U, 'x'));
  send(0);
  {
    Cancel cancel;
    options_.bytes_per_second = 3000 * 1024;
    options_.on_progress = [&](const TransferProgress& progress) {
      if (progress.bytes > 0) {
        cancel.cancel();
      }
    };
    Peers::Part part(peers_, connections_[1], config_.servers[1]);
    EXPECT_THROW(part.take(
                     options_, [](const std::string&) {}, cancel),
                 Interrupted);
  }
  EXPECT_FALSE(fs::exists(there("data", 1))) << "it was not in the middle";
  real_[1].reset();  // as when the program exits
  EXPECT_TRUE(test::eventually([&] { return fs::is_empty(there(".remote-scripts", 1)); }));
  options_.bytes_per_second = 0;
  options_.on_progress = {};
  connect_all();
  EXPECT_EQ(send(1).from, "node-1");
  EXPECT_EQ(fs::file_size(there("data", 1)), std::size_t{10} << 20U);
}

// Servers whose rsync reports files that were not requested, with the mark it was given.
struct ProgramFolder {
  TempFolder bin_;
};
class HostilePeers : ProgramFolder, public PeersTest {
 protected:
  HostilePeers() : PeersTest(options_with(bin_.path())) {}
  static sandbox::SandboxOptions options_with(const fs::path& bin) {
    write(bin / "rsync",
          "#!/bin/sh\nfor word; do\n  case $word in --out-format=*)\n    mark=${word#*=}\n"
          "    for name in ../secret /etc/passwd other; do\n"
          "      printf '%s>f+++++++++ 5 %s\\n' \"${mark%\\%i*}\" \"$name\"\n    done ;;\n  esac\n"
          "done\nexec /usr/bin/rsync \"$@\"\n");
    fs::permissions(bin / "rsync", fs::perms::owner_all);
    sandbox::SandboxOptions options;
    options.environment["PATH"] = bin.string() + ":/usr/bin:/bin";
    return options;
  }
};

TEST_F(HostilePeers, NoServerLearnsTheDigestOfAFileThatItWasNotToHave) {
  write(here("other"), "2");
  options_.leave = {"other"};
  send(0);
  const Sent second = send(1);
  EXPECT_EQ(second.from, "node-1") << second.why;
  EXPECT_THAT(second.by_peer, ElementsAre("train.py"));
}

TEST(FanOutPeers, FourServersGetTheSameAsWithoutIt) {
  ::unsetenv("SSH_AUTH_SOCK");
  test::TestSandbox sandbox(4);
  sandbox.write_config();
  write(sandbox.project() / "src/model.py", "x = 1\n");
  write(sandbox.project() / "data", std::string(1 << 20U, 'x'));
  SubprocessSpec spec;
  spec.argv = {
      test::remote_binary, "--project", sandbox.project().string(), "rsync", "--fan-out", "peers", "--json",
      "--verify"};
  spec.set_env = {{"HOME", sandbox.home(0).string()}};
  const ExecResult result = run_subprocess(spec);
  EXPECT_TRUE(result.status.success()) << result.err;
  std::size_t by_peers = 0;
  for (std::size_t at = 0; (at = result.out.find("\"from\": \"node-", at)) != std::string::npos; ++at) {
    ++by_peers;
  }
  EXPECT_EQ(by_peers, 3U) << result.out << result.err;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read_file(sandbox.home(i) / "my_project/src/model.py"), "x = 1\n");
    EXPECT_EQ(fs::file_size(sandbox.home(i) / "my_project/data"), 1U << 20U);
  }
}

}  // namespace
}  // namespace remote::servers
