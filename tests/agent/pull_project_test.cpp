#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/kept_replies.hpp"
#include "agent/peers/peers.hpp"
#include "agent/waiting.hpp"

// A server gets the project from another one: the commands it runs for that, and the comparison afterwards.

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class PullProject : public ::testing::Test {
 protected:
  PullProject() {
    fs::create_directories(fake.home() / "my proj");
    request.project = "~/my proj";
    request.work = "~/my proj/.remote-scripts/peer.1";
    request.host = "10.0.0.2";
    request.port = 2222;
    request.user = "it's ada";
    request.host_key = "ssh-ed25519 AAAA";
    request.path = "my proj/";
    request.arguments = {"-ltp", "--out-format=@1 %i %l %n"};
    for (const char* name : {"ssh", "rsync"}) {
      put_program(name, "exit 0");
    }
  }
  void put_program(const std::string& name, const std::string& text) const {
    fake.put_program(fake.programs() / name, text);
  }
  struct Pulled {
    std::string out;
    int code = -1;
    std::string errors;
  };
  Pulled pull() {
    test::KeptReplies<wire::PullProjectReply> replies;
    answer_pull_project(fake.host, request, std::string("a b\0c\n\0", 7), replies);
    Pulled pulled;
    for (const wire::PullProjectReply& part : replies.parts()) {
      pulled.out += part.out;
      pulled.errors += part.errors;
      pulled.code = part.code.value_or(pulled.code);
    }
    EXPECT_TRUE(replies.parts().back().code) << "the last part has the end";
    EXPECT_FALSE(fs::exists(work()));
    return pulled;
  }
  std::string explain_failure() {
    try {
      pull();
    } catch (const std::runtime_error& error) {
      EXPECT_FALSE(fs::exists(work()));
      return error.what();
    }
    return "";
  }
  fs::path work() const { return fake.home() / "my proj/.remote-scripts/peer.1"; }

  test::FakeHost fake;
  wire::PullProjectRequest request;
};

TEST_F(PullProject, RunsRsyncInItsFolder) {
  put_program(
      "rsync",
      "printf '%s\\n' \"$@\"; cat known_hosts; tr '\\000' '|' <list; pwd; ls -ld .; echo \"$SSH_AUTH_SOCK\"\n"
      "echo trouble >&2; exit 23");
  fake.host.environment["SSH_AUTH_SOCK"] = "/run/agent";
  fake.put(fake.home() / ".ssh/id_rsa", "");
  const Pulled pulled = pull();
  EXPECT_EQ(pulled.code, 23);
  EXPECT_EQ(pulled.errors, "trouble\n");
  const fs::path project = fake.home() / "my proj";
  EXPECT_THAT(pulled.out, HasSubstr("-ltp\n--out-format=@1 %i %l %n\n-0\n--files-from=list\n-e\n'ssh' "));
  EXPECT_THAT(pulled.out, HasSubstr("'-o' 'UserKnownHostsFile=known_hosts'"));
  EXPECT_THAT(pulled.out, HasSubstr("'-i' '" + (fake.home() / ".ssh/id_rsa").string() +
                                    "' '-p' '2222' '-l' 'it''s ada' '--'\n--rsync-path=cd; rsync\n--\n"
                                    "10.0.0.2:my proj/\n" +
                                    project.string() + "/\nremote-peer ssh-ed25519 AAAA\na b|c\n|" +
                                    work().string() + "\ndrwx------"));
  EXPECT_THAT(pulled.out, Not(HasSubstr("id_ed25519")));
  EXPECT_THAT(pulled.out, HasSubstr("\n/run/agent\n"));
  request.host = "fd00::2";
  EXPECT_THAT(pull().out, HasSubstr("\n[fd00::2]:my proj/\n"));
}

TEST_F(PullProject, UsesAndRemovesTheForwardedSocket) {
  const fs::path socket = fake.folder() / "socket";
  fake.put(socket, "");
  request.agent_socket = socket;
  put_program("rsync", "[ -e \"$SSH_AUTH_SOCK\" ] && echo \"$SSH_AUTH_SOCK\"");
  EXPECT_EQ(pull().out, socket.string() + "\n");
  EXPECT_FALSE(fs::exists(socket));
}

TEST_F(PullProject, AProbeOnlyLogsIn) {
  request.only_probe = true;
  request.host = "fd00::2";
  put_program("rsync", "echo no");
  put_program("ssh", "echo \"$*\"; exit 255");
  const Pulled pulled = pull();
  EXPECT_THAT(pulled.out, HasSubstr("-o BatchMode=yes "));
  EXPECT_THAT(pulled.out, ::testing::EndsWith(" -p 2222 -l it's ada -- fd00::2 true\n"));
  EXPECT_EQ(pulled.code, 255);
}

TEST_F(PullProject, SaysWhatIsMissing) {
  fake.host.environment["PATH"] = fake.programs().string();
  fs::remove(fake.programs() / "rsync");
  EXPECT_EQ(explain_failure(), "it has no rsync");
  fs::remove(fake.programs() / "ssh");
  EXPECT_EQ(explain_failure(), "it has no ssh");
  fs::remove(fake.home() / "my proj/.remote-scripts");
  fake.put(fake.home() / "my proj/.remote-scripts", "a file");
  EXPECT_EQ(explain_failure(), "cannot make " + work().string());
}

TEST_F(PullProject, RsyncMayCleanUpWhenTheClientIsGone) {
  const fs::path began = fake.folder() / "began";
  const fs::path cleaned = fake.folder() / "cleaned";
  put_program("rsync", "trap 'sleep 0.3; : >\"" + cleaned.string() + "\"; exit 20' TERM\n: >\"" +
                           began.string() + "\"\nwhile :; do sleep 0.05; done");
  fake.host.cancelled = std::make_shared<std::atomic<bool>>(false);
  std::thread client([&] {
    EXPECT_TRUE(test::eventually([&] { return fs::exists(began); }));
    *fake.host.cancelled = true;
  });
  EXPECT_EQ(pull().code, 124);
  client.join();
  EXPECT_TRUE(fs::exists(cleaned));
}

class CompareWithDigests : public ::testing::Test {
 protected:
  // SHA-256 of "abc".
  static constexpr const char* abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

  int compare(const std::string& names, const std::string& digest = abc) const {
    std::string list;
    for (const char name : names) {
      list += digest + " " + std::string(1, name) + '\0';
    }
    return compare_list(list);
  }
  int compare_list(const std::string& list) const {
    const test::KeptReplies<wire::CompareFilesReply> stream;
    return compare_with_digests(fake.host, {"~/p"}, list, stream).removed;
  }
  fs::path file(const std::string& name) const { return fake.home() / "p" / name; }

  test::FakeHost fake;
};

TEST_F(CompareWithDigests, RemovesFilesThatDiffer) {
  fake.put(file("a"), "abc");
  fake.put(file("b"), "abd");
  fake.put(file("c"), std::string(200'000, 'x'));
  EXPECT_EQ(compare("abcd"), 3) << "d is missing";
  EXPECT_TRUE(fs::exists(file("a")));
  EXPECT_FALSE(fs::exists(file("b")) || fs::exists(file("c")));
  fake.put(file("c"), std::string(200'000, 'x'));
  EXPECT_EQ(compare("c", "91e3faafd322bcdf160f3f0ce886acb092b9b9e2a1e8526b40f21a8898a8700b"), 0);
  EXPECT_EQ(compare("a", std::string(64, '0')), 1) << "the file was removed here";
  EXPECT_FALSE(fs::exists(file("a")));
}

TEST_F(CompareWithDigests, FollowsNoLink) {
  fake.put(fake.folder() / "mine", "abc");
  fs::create_directories(file(""));
  fs::create_symlink(fake.folder() / "mine", file("a"));
  EXPECT_EQ(compare("a"), 1);
  EXPECT_FALSE(fs::is_symlink(file("a")));
  EXPECT_EQ(read_file(fake.folder() / "mine"), "abc");
}

TEST_F(CompareWithDigests, NamesMayHaveOddCharacters) {
  fake.put(file("a b\n'*"), "abc");
  fake.put(file("sub/ x"), "abd");
  EXPECT_EQ(compare_list(std::string(abc) + " a b\n'*" + '\0' + abc + " sub/ x" + '\0'), 1);
  EXPECT_TRUE(fs::exists(file("a b\n'*")));
  EXPECT_FALSE(fs::exists(file("sub/ x")));
  EXPECT_EQ(compare_list(""), 0);
  EXPECT_EQ(compare_list(std::string("short\0", 6) + abc + " \0"), 0);
  EXPECT_TRUE(fs::exists(file("")));
}

}  // namespace
}  // namespace remote::agent
