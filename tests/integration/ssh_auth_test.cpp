// Login methods: keys, agent, certificates, passwords; and the errors if none works.

#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <remote/log.hpp>
#include <sys/stat.h>

#include "base/strings.hpp"
#include "config/trust.hpp"
#include "support/password_server.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using namespace std::chrono_literals;
using test::PasswordRules;
using test::PasswordServer;
using test::TestClient;
using test::TestSshd;
using testing::HasSubstr;
using testing::Not;

class SshAuth : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SSH_AUTH_SOCK");
    ::setenv("HOME", client.folder().c_str(), 1);  // hides the user's own keys
  }
  std::unique_ptr<ssh::Connector> connector(ssh::AskSecret ask = {}) {
    ssh::ConnectorOptions options = client.options();
    options.ask = std::move(ask);
    return ssh::make_connector(client.config(), options);
  }
  // Answers each question with `answer`, and records the questions.
  ssh::AskSecret answering(const std::string& answer) {
    return [this, answer](const std::string& prompt) -> std::optional<std::string> {
      EXPECT_EQ(++asking_now, 1) << "two questions at once";
      std::this_thread::sleep_for(20ms);  // so that a second question would overlap with it
      questions.push_back(prompt);
      --asking_now;
      return answer;
    };
  }
  static std::string log_in(ssh::Connector& connector, const config::Server& server) {
    try {
      connector.connect(server, Cancel());
      return "";
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
  }
  // Logs in to all servers at once; returns the errors.
  static std::vector<std::string> log_in_to_all(ssh::Connector& connector,
                                                const std::vector<config::Server>& servers) {
    std::vector<std::string> errors(servers.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < servers.size(); ++i) {
        threads.emplace_back([&, i] { errors[i] = log_in(connector, servers[i]); });
      }
    }
    std::erase(errors, "");
    return errors;
  }
  static void run(std::vector<std::string> argv) {
    SubprocessSpec spec;
    spec.argv = std::move(argv);
    const ExecResult result = run_subprocess(std::move(spec));
    ASSERT_TRUE(result.status.success()) << result.err;
  }
  // An agent that holds these keys.
  std::unique_ptr<Subprocess> agent(const std::vector<std::filesystem::path>& keys) {
    SubprocessSpec spec;
    const std::string socket = client.folder() / "agent";
    spec.argv = {"ssh-agent", "-D", "-a", socket};
    spec.pipe_stdout = true;
    auto process = std::make_unique<Subprocess>(spec);
    ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
    // Its socket exists a moment before the agent listens, so wait for an answer (2: no agent).
    EXPECT_TRUE(test::eventually([] {
      SubprocessSpec list;
      list.argv = {"ssh-add", "-l"};
      return run_subprocess(std::move(list)).status != ExitStatus::exited(2);
    }));
    for (const auto& key : keys) {
      run({"ssh-add", "-q", key.string()});
    }
    return process;
  }
  void TearDown() override {
    ::unsetenv("SSH_AUTH_SOCK");
    ::setenv("HOME", home.c_str(), 1);
  }

  std::string home = home_folder();
  TestClient client;
  std::vector<std::string> questions;
  std::atomic<int> asking_now{0};
};

TEST_F(SshAuth, KeysOfEveryType) {
  for (const std::string type : {"rsa", "ecdsa", "ed25519"}) {
    const auto key = client.folder() / ("key_" + type);
    test::make_key(key, type);
    TestSshd sshd(read_file(key.string() + ".pub"));
    EXPECT_EQ(log_in(*connector(), sshd.server(key)), "") << type;
  }
}

TEST_F(SshAuth, ADefaultKeyIsFound) {
  std::filesystem::create_directory(client.folder() / ".ssh");
  test::make_key(client.folder() / ".ssh" / "id_rsa", "rsa");
  TestSshd sshd(read_file(client.folder() / ".ssh" / "id_rsa.pub"));
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  EXPECT_EQ(log_in(*connector(), server), "");
}

TEST_F(SshAuth, AnEncryptedKeyIsAskedForOnceForAllServers) {
  const auto key = client.folder() / "locked";
  test::make_key(key, "ed25519", "open sesame");
  TestSshd sshd(read_file(key.string() + ".pub"), {"MaxStartups 100"});
  const auto ask = connector(answering("open sesame"));
  EXPECT_THAT(log_in_to_all(*ask, std::vector<config::Server>(6, sshd.server(key))), testing::IsEmpty());
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_THAT(questions[0], HasSubstr(key.string()));
}

TEST_F(SshAuth, AWrongPassphraseIsSaidAndNotAskedForAgain) {
  const auto key = client.folder() / "locked";
  test::make_key(key, "ed25519", "open sesame");
  TestSshd sshd(read_file(key.string() + ".pub"));
  const auto ask = connector(answering("wrong"));
  EXPECT_THAT(log_in(*ask, sshd.server(key)), HasSubstr("wrong passphrase"));
  EXPECT_EQ(questions.size(), 3U);
  EXPECT_THAT(log_in(*ask, sshd.server(key)), HasSubstr("wrong passphrase"));
  EXPECT_EQ(questions.size(), 3U);
}

TEST_F(SshAuth, WithoutATerminalAnEncryptedKeyIsNamed) {
  const auto key = client.folder() / "locked";
  test::make_key(key, "ed25519", "open sesame");
  TestSshd sshd(read_file(key.string() + ".pub"));
  const std::string text = log_in(*connector(), sshd.server(key));
  EXPECT_THAT(text, HasSubstr(key.string() + ": it is encrypted"));
  EXPECT_THAT(text, HasSubstr("ssh-add " + key.string()));
}

TEST_F(SshAuth, AMissingKeyIsNamedWithItsLine) {
  TestSshd sshd(client.public_key());
  config::Server server = sshd.server(client.folder() / "nowhere");
  server.key_lines = {{"private_key", 17}};
  const std::string text = log_in(*connector(), server);
  EXPECT_THAT(text, HasSubstr("nowhere: no such file"));
  EXPECT_THAT(text, HasSubstr("configs.yaml:17"));
}

TEST_F(SshAuth, AFileThatIsNoKeyIsSaid) {
  TestSshd sshd(client.public_key());
  write_file_atomic(client.folder() / "rubbish", "hello\n");
  EXPECT_THAT(log_in(*connector(), sshd.server(client.folder() / "rubbish")), HasSubstr("not a private key"));
}

TEST_F(SshAuth, ARefusedKeySaysWhatTheServerAllows) {
  TestSshd sshd("");
  const std::string text = log_in(*connector(), sshd.server(client.key()));
  EXPECT_THAT(text, HasSubstr("allows publickey"));
  EXPECT_THAT(text, HasSubstr("tried key " + client.key().string() + " (refused)"));
  EXPECT_THAT(text, HasSubstr("ssh-copy-id"));
}

TEST_F(SshAuth, AServerThatNeedsNoMethodLetsUsIn) {
  PasswordServer door({.password = "", .prompts = {}, .echo = {}, .answers = {}, .open = true});
  config::Server server = door.server("one");
  EXPECT_EQ(log_in(*connector(), server), "") << "without a key";
  server.private_key = client.key();
  EXPECT_EQ(log_in(*connector(), server), "") << "with a key that it refuses";
  const auto process = agent({client.key()});
  server.private_key.reset();
  EXPECT_EQ(log_in(*connector(answering("pw")), server), "") << "with an agent";
  EXPECT_TRUE(questions.empty());
}

TEST_F(SshAuth, WhatTheServerSaysIsInTheError) {
  const auto banner = client.folder() / "banner";
  write_file_atomic(banner, "The system is starting;\nlog in again in a moment.\n");
  TestSshd sshd("", {"Banner " + banner.string()});
  EXPECT_THAT(log_in(*connector(), sshd.server(client.key())),
              HasSubstr("and says: The system is starting; log in again in a moment."));
}

TEST_F(SshAuth, WhatTheServerSaysIsInTheErrorAlsoIfItWaits) {
  test::PasswordRules rules;
  rules.banner = "To log in, open https://login.example/a/1\n";
  const test::PasswordServer waiting(rules);
  config::Config config = client.config();
  config.connect_timeout_s = 2;
  config::Server server = waiting.server("waiting");
  server.private_key = client.key();
  EXPECT_THAT(log_in(*ssh::make_connector(config, client.options()), server),
              HasSubstr("has not answered within 2 s, and says: To log in, open https://login.example/a/1"));
}

// Like a machine that is booting: PAM rejects all users except root, with a message.
TEST_F(SshAuth, WhatTheServerSaysIsInTheErrorAlsoIfItCloses) {
  test::PasswordRules rules;
  rules.real = true;
  rules.password = "pw";
  rules.banner = "The system is starting; log in again in a moment.\n";
  rules.closes = true;
  const test::PasswordServer starting(rules);
  const auto matches = AllOf(HasSubstr("and says: The system is starting; log in again in a moment."),
                             HasSubstr("run the command again"));
  config::Server server = starting.server("starting");
  EXPECT_THAT(log_in(*connector(answering("pw")), server), matches) << "with a password";
  server.private_key = client.key();
  EXPECT_THAT(log_in(*connector(), server), matches) << "with a key";
}

TEST_F(SshAuth, WhatTheServerSaysIsInTheErrorAlsoAfterTooManyKeys) {
  std::vector<std::filesystem::path> keys;
  for (int i = 0; i < 8; ++i) {  // sshd's MaxAuthTries is six
    keys.push_back(client.folder() / fmt::format("wrong{}", i));
    test::make_key(keys.back());
  }
  const auto process = agent(keys);
  const auto banner = client.folder() / "banner";
  write_file_atomic(banner, "Use the key of the course.\n");
  TestSshd sshd("", {"Banner " + banner.string()});
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  EXPECT_THAT(log_in(*connector(), server), AllOf(HasSubstr("after these attempts: the agent's keys"),
                                                  HasSubstr(", and says: Use the key of the course.")));
}

TEST_F(SshAuth, ALoginWaitsForAPageThatIsShown) {
  test::PasswordRules rules;
  rules.banner = "To log in,\r\nopen https://login.example/a/1\r\n";
  rules.opened = std::make_shared<std::atomic<bool>>(false);
  const test::PasswordServer waiting(rules);
  config::Config config = client.config();
  config.connect_timeout_s = 3;  // the login may take longer once the page is shown
  std::vector<std::string> heard;
  std::thread person;
  ssh::ConnectorOptions options = client.options();
  options.on_login_problem = [&](const Error& error) {
    heard.push_back(error.message());
    person = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // the timeout is under test
      *rules.opened = true;
    });
  };
  EXPECT_EQ(log_in(*ssh::make_connector(config, options), waiting.server("waiting")), "");
  if (person.joinable()) {
    person.join();
  }
  EXPECT_THAT(heard, testing::ElementsAre(AllOf(HasSubstr("the login waits"),
                                                HasSubstr("To log in, open https://login.example/a/1"))));
}

TEST_F(SshAuth, TheAgentsKeysAreUsed) {
  const auto process = agent({client.key()});
  TestSshd sshd(client.public_key());
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  EXPECT_EQ(log_in(*connector(), server), "");
  // IdentityAgent none disables it.
  write_file_atomic(client.ssh_config(), "IdentityAgent none\n");
  EXPECT_THAT(log_in(*connector(), server), HasSubstr("nothing to try"));
  // With another socket.
  ::unsetenv("SSH_AUTH_SOCK");
  write_file_atomic(client.ssh_config(), "IdentityAgent ~/agent\n");
  EXPECT_EQ(log_in(*connector(), server), "");
}

TEST_F(SshAuth, AnEncryptedKeyInTheAgentIsNotAskedFor) {
  const auto key = client.folder() / "locked";
  test::make_key(key);
  const auto process = agent({key});
  run({"ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", key.string()});
  TestSshd sshd(read_file(key.string() + ".pub"));
  const auto ask = connector(answering("secret"));
  EXPECT_EQ(log_in(*ask, sshd.server(key)), "");
  EXPECT_TRUE(questions.empty());
}

TEST_F(SshAuth, AfterALockedKeyTheAgentsOthersAreTried) {
  const auto locked = client.folder() / "locked";
  test::make_key(locked, "ed25519", "secret");
  const auto process = agent({client.key()});
  TestSshd sshd(client.public_key());
  EXPECT_EQ(log_in(*connector(), sshd.server(locked)), "");
}

TEST_F(SshAuth, TheRightKeyOfManyInTheAgentIsFound) {
  std::vector<std::filesystem::path> keys;
  for (int i = 0; i < 8; ++i) {
    keys.push_back(client.folder() / fmt::format("many{}", i));
    test::make_key(keys.back());
  }
  const auto process = agent(keys);
  // The last of eight keys, although sshd's MaxAuthTries is six.
  run({"ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", keys.back().string()});
  TestSshd sshd(read_file(keys.back().string() + ".pub"));
  const auto ask = connector(answering("wrong"));
  EXPECT_EQ(log_in(*ask, sshd.server(keys.back())), "");
  EXPECT_TRUE(questions.empty());
  // Also if only its public half is named, in configs.yaml and in ~/.ssh/config.
  const auto moved = client.folder() / "elsewhere";
  std::filesystem::rename(keys.back(), moved);
  EXPECT_EQ(log_in(*ask, sshd.server(keys.back())), "");
  EXPECT_EQ(log_in(*ask, sshd.server(keys.back().string() + ".pub")), "");
  config::Server by_config = sshd.server(client.key());
  by_config.private_key.reset();
  write_file_atomic(client.ssh_config(), fmt::format("IdentityFile {}.pub\n", keys.back().string()));
  EXPECT_EQ(log_in(*ask, by_config), "");
  std::filesystem::remove(client.ssh_config());
  std::filesystem::rename(moved, keys.back());
  EXPECT_TRUE(questions.empty());
  // Offering all of them is too many, and the error says so.
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  EXPECT_THAT(log_in(*connector(), server),
              testing::AllOf(HasSubstr("private_key"), HasSubstr("after these attempts: the agent's keys")))
      << sshd.log();
  // With IdentitiesOnly, only the configured keys are offered.
  write_file_atomic(client.ssh_config(),
                    fmt::format("IdentitiesOnly yes\nIdentityFile {}\n", keys.back().string()));
  EXPECT_EQ(log_in(*connector(), server), "");
}

TEST_F(SshAuth, ACertificateLogsIn) {
  const auto ca = client.folder() / "ca";
  test::make_key(ca);
  run({"ssh-keygen", "-q", "-s", ca.string(), "-I", "id", "-n", test::own_user(),
       client.key().string() + ".pub"});
  TestSshd sshd("", {"TrustedUserCAKeys " + ca.string() + ".pub"});
  EXPECT_EQ(log_in(*connector(), sshd.server(client.key())), "");
}

TEST_F(SshAuth, AConfiguredPassword) {
  PasswordServer door({.password = "pass word", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door.server("one");
  server.password = "pass word";
  const auto link = connector();
  const auto connection = link->connect(server, Cancel());
  EXPECT_EQ(connection->exec({.command = "true"}).out, "welcome ann\n");
  EXPECT_EQ(door.attempts(), 1);
  server.password = "wrong";
  server.key_lines = {{"password", 9}};
  const std::string text = log_in(*link, server);
  EXPECT_THAT(text, HasSubstr("configs.yaml:9"));
  EXPECT_THAT(text, Not(HasSubstr("wrong")));  // the secret itself is not shown
}

TEST_F(SshAuth, APasswordFromTheEnvironment) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door.server("one");
  server.password_env = "REMOTE_TEST_PASSWORD";
  ::unsetenv("REMOTE_TEST_PASSWORD");
  EXPECT_THAT(log_in(*connector(), server), HasSubstr("REMOTE_TEST_PASSWORD is not set"));
  ::setenv("REMOTE_TEST_PASSWORD", "pw", 1);
  EXPECT_EQ(log_in(*connector(), server), "");
}

TEST_F(SshAuth, APasswordCommandRunsOnceForAllServers) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door.server("one");
  server.password_command = "echo ran >> ran; sleep 0.1; echo pw; echo more";
  const auto link = connector();
  EXPECT_THAT(log_in_to_all(*link, std::vector<config::Server>(5, server)), testing::IsEmpty());
  EXPECT_EQ(read_file(client.folder() / "ran"), "ran\n");
  server.password_command = "echo no vault >&2; exit 4";
  EXPECT_THAT(log_in(*link, server), HasSubstr("no vault"));
}

TEST_F(SshAuth, TheLogTellsTheMethodsAndNoSecret) {
  test::make_key(client.folder() / "locked", "ed25519", "SECRET3");
  std::string log;
  set_log(LogLevel::debug, [&log](LogLevel, std::string_view server, std::string_view text) {
    log += fmt::format("{}: {}\n", server, text);
  });
  PasswordServer door({.password = "SECRET1", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door.server("configured");
  server.password = "SECRET1";
  EXPECT_EQ(log_in(*connector(), server), "");
  server = door.server("wrong");
  server.password = "SECRET2";
  EXPECT_NE(log_in(*connector(), server), "");
  server = door.server("command");
  server.password_command = "echo SECRET1";
  EXPECT_EQ(log_in(*connector(), server), "");
  EXPECT_EQ(log_in(*connector(answering("SECRET1")), door.server("typed")), "");
  server = door.server("locked");
  server.private_key = client.folder() / "locked";
  EXPECT_NE(log_in(*connector(answering("SECRET3")), server), "");
  set_log(LogLevel::off, nullptr);
  for (const char* line : {"configured: login with password", "wrong: login with password", "started sh -c …",
                           "command: running password_command", "typed: logged in after", "host key"}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
  EXPECT_THAT(log, Not(HasSubstr("SECRET")));
}

TEST_F(SshAuth, ATypedPasswordIsAskedForOnce) {
  PasswordServer first({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  PasswordServer second({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  const auto ask = connector(answering("pw"));
  EXPECT_THAT(log_in_to_all(*ask, {first.server("a"), second.server("b"), first.server("c")}),
              testing::IsEmpty());
  ASSERT_EQ(questions.size(), 1U);
  for (const PasswordServer* server : {&first, &second}) {
    EXPECT_THAT(questions[0], HasSubstr(fmt::format("ann@127.0.0.1:{}", server->port())));
  }
  EXPECT_EQ(log_in(*ask, second.server("d", "bob")), "");  // another user has a different password
  EXPECT_EQ(questions.size(), 2U);
}

TEST_F(SshAuth, AServerWithAnotherPasswordAsksForItsOwn) {
  PasswordServer first({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  PasswordServer second({.password = "other", .prompts = {}, .echo = {}, .answers = {}});
  const std::string port = std::to_string(second.port());
  const auto ask = connector([&](const std::string& prompt) -> std::optional<std::string> {
    questions.push_back(prompt);
    return prompt.find("refused") != std::string::npos && prompt.find(port) != std::string::npos ? "other"
                                                                                                 : "pw";
  });
  EXPECT_THAT(log_in_to_all(*ask, {first.server("a"), second.server("b")}), testing::IsEmpty());
  EXPECT_EQ(questions.size(), 2U);
}

TEST_F(SshAuth, ATypedPasswordGoesOnlyWhereTheQuestionNamedTheServer) {
  PasswordServer first({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  PasswordServer later({.password = "other", .prompts = {}, .echo = {}, .answers = {}});
  PasswordServer asking({.password = "", .prompts = {"Password: "}, .echo = {false}, .answers = {"third"}});
  const auto ask = connector([&](const std::string& prompt) -> std::optional<std::string> {
    questions.push_back(prompt);
    return prompt.find(std::to_string(first.port())) != std::string::npos   ? "pw"
           : prompt.find(std::to_string(later.port())) != std::string::npos ? "other"
                                                                            : "third";
  });
  EXPECT_EQ(log_in(*ask, first.server("a")), "");
  EXPECT_EQ(log_in(*ask, later.server("b")), "");
  EXPECT_EQ(log_in(*ask, asking.server("c")), "");
  EXPECT_EQ(later.attempts(), 1) << "the first server's password was tried there";
  EXPECT_EQ(asking.attempts(), 1) << "the first server's password was tried there";
  EXPECT_EQ(log_in(*ask, first.server("a")), "");  // is not asked again
  EXPECT_EQ(questions.size(), 3U);
}

// Shown in this order: what is wrong with the key and how to fix it, then the question.
TEST_F(SshAuth, WhyNoKeyWillDoIsToldBeforeAPasswordIsAskedFor) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}, .real = true});
  make_folders(door.home() / ".ssh");
  make_folders(client.folder() / "a folder");
  test::make_key(client.folder() / "locked", "ed25519", "open sesame");
  write_file_atomic(client.folder() / "rubbish", "hello\n");
  write_file_atomic(client.folder() / "putty.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n");
  struct Case {
    std::filesystem::path key;
    std::string said;
    std::string hint;
  };
  const std::string folder = client.folder().string();
  for (const Case& one :
       {Case{folder + "/a folder", "directory", "name a file"},
        Case{folder + "/key.pub", "the public half of a key", "without .pub"},
        Case{folder + "/putty.ppk", "a key of PuTTY", "puttygen"},
        Case{folder + "/locked", "it is encrypted", "ssh-add " + folder + "/locked"},
        Case{folder + "/rubbish", "not a private key", ""},
        Case{client.key(), "the server does not accept key " + client.key().string(), ""}}) {
    std::vector<std::string> heard;
    Remedy remedy = Remedy::none;
    ssh::ConnectorOptions options = client.options();
    options.on_login_problem = [&](const Error& error) {
      heard.push_back(error.message() + " | " + error.hint());
      remedy = error.remedy();
    };
    options.ask = [&](const std::string& prompt) -> std::optional<std::string> {
      if (prompt.find("Passphrase") != std::string::npos) {
        return "";
      }
      heard.push_back(prompt);
      return "pw";
    };
    config::Server server = door.server("one");
    server.private_key = one.key;
    server.key_lines = {{"private_key", 17}};
    EXPECT_EQ(log_in(*ssh::make_connector(client.config(), options), server), "");
    ASSERT_EQ(heard.size(), 2U) << one.key;
    EXPECT_THAT(heard[0], testing::AllOf(HasSubstr(one.said), HasSubstr(one.hint)));
    EXPECT_THAT(heard[0], HasSubstr(one.key.string()));
    EXPECT_THAT(heard[1], testing::StartsWith("Password for "));
    EXPECT_EQ(remedy, one.key == client.key() ? Remedy::authorize_key : Remedy::none);
    if (one.key == client.key()) {
      EXPECT_THAT(heard[0], HasSubstr("no key logs in as ann"));
    }
  }
}

TEST_F(SshAuth, AKeyFileOfConfigsYamlThatIsMissingLeadsToNoPasswordPrompt) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door.server("one");
  server.private_key = client.folder() / "nowhere";
  server.key_lines = {{"private_key", 17}};
  const auto ask = connector(answering("pw"));
  EXPECT_THAT(log_in(*ask, server),
              testing::AllOf(HasSubstr("nowhere: no such file"), HasSubstr("configs.yaml:17")));
  EXPECT_TRUE(questions.empty());
  // From ~/.ssh/config, as with ssh: lines for all hosts may name keys of other machines.
  server.private_key.reset();
  write_file_atomic(client.ssh_config(), "IdentityFile ~/nowhere\n");
  EXPECT_EQ(log_in(*ask, server), "");
}

TEST_F(SshAuth, AStaleAgentIsNamed) {
  ::setenv("SSH_AUTH_SOCK", (client.folder() / "gone").c_str(), 1);
  TestSshd sshd("");
  config::Server server = sshd.server(client.key());
  server.private_key.reset();
  const std::string text = log_in(*connector(), server);
  EXPECT_THAT(text,
              HasSubstr("no agent answers at " + (client.folder() / "gone").string() + " (SSH_AUTH_SOCK)"));
  EXPECT_THAT(text, HasSubstr("ssh-add"));
}

TEST_F(SshAuth, AnExpiredCertificateIsNamedAndThePlainKeyTried) {
  const auto ca = client.folder() / "ca";
  test::make_key(ca);
  const auto sign = [&](const char* validity) {
    run({"ssh-keygen", "-q", "-s", ca.string(), "-I", "id", "-n", test::own_user(), "-V", validity,
         client.key().string() + ".pub"});
  };
  TestSshd sshd("", {"TrustedUserCAKeys " + ca.string() + ".pub"});
  sign("20200101:20200102");
  EXPECT_THAT(log_in(*connector(), sshd.server(client.key())),
              testing::AllOf(HasSubstr("-cert.pub: it expired on 2020-01-0"), HasSubstr("new certificate")));
  sign("20990101:20990102");
  EXPECT_THAT(log_in(*connector(), sshd.server(client.key())), HasSubstr("it is not valid before 2099-01-0"));
  sign("always:forever");
  EXPECT_EQ(log_in(*connector(), sshd.server(client.key())), "");
  sign("20200101:20200102");
  TestSshd other(client.public_key());
  EXPECT_EQ(log_in(*connector(), other.server(client.key())), "");
}

TEST_F(SshAuth, UserNamesThatLibsshRefuses) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  for (const char* user : {"CORP\\ann", "ann@corp.example", "o'neil"}) {
    config::Server server = door.server("one", user);
    server.password = "pw";
    const auto connection = connector()->connect(server, Cancel());
    EXPECT_EQ(connection->exec({.command = "true"}).out, fmt::format("welcome {}\n", user));
  }
}

// A host key that remote adds to a project's file does not revoke trust; any other change of the file does.
TEST_F(SshAuth, AHostKeyThatIsAddedHereNeedsNoNewTrust) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Config config = client.config();
  config.project = client.folder() / "proj";
  make_folders(config.project / ".remote");
  config.servers = {door.server("one"), door.server("two")};
  for (config::Server& server : config.servers) {
    server.password_command = "echo pw";
    server.known_hosts = config.project / ".remote/known_hosts";
  }
  config::TrustStore(config.project).allow(config::demands_of(config));
  ssh::ConnectorOptions options = client.options();
  options.known_hosts.clear();
  const auto link = ssh::make_connector(config, options);
  EXPECT_EQ(log_in(*link, config.servers[0]), "");
  const std::string text = read_file(*config.servers[0].known_hosts);
  EXPECT_THAT(text, HasSubstr("[127.0.0.1]:"));
  const auto asked = [&] {
    return config::TrustStore(config.project).not_allowed(config::demands_of(config)).size();
  };
  EXPECT_EQ(asked(), 0U);
  write_file_atomic(*config.servers[0].known_hosts, text + text);
  EXPECT_EQ(asked(), 2U);
  write_file_atomic(*config.servers[0].known_hosts, "");
  EXPECT_EQ(asked(), 2U) << "a file without the key would let another machine in";
}

TEST_F(SshAuth, WithoutATerminalAPasswordServerGetsAHint) {
  PasswordServer door({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  const std::string text = log_in(*connector(), door.server("one"));
  EXPECT_THAT(text, HasSubstr("allows password"));
  EXPECT_THAT(text, HasSubstr("password_env"));
}

TEST_F(SshAuth, KeyboardInteractiveTakesThePasswordAndAsksTheRest) {
  PasswordServer door(
      {.password = "", .prompts = {"Password: ", "Code: "}, .echo = {false, true}, .answers = {"pw", "123"}});
  config::Server server = door.server("one");
  server.password = "pw";
  const auto ask = connector(answering("123"));
  EXPECT_EQ(log_in(*ask, server), "");
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_THAT(questions[0], HasSubstr("Code:"));
  EXPECT_THAT(log_in(*connector(), server), HasSubstr("'Code:'"));
}

// Servers with AuthenticationMethods: a key is accepted as a partial success, and then another method is
// required.
class SshSeveralMethods : public SshAuth {
 protected:
  std::unique_ptr<PasswordServer> wanting_key_and(PasswordRules rules) {
    rules.all = true;
    auto door = std::make_unique<PasswordServer>(std::move(rules));
    make_folders(door->home() / ".ssh");
    write_file_atomic(door->home() / ".ssh/authorized_keys", client.public_key());
    return door;
  }
  config::Server with_key(const PasswordServer& door) const {
    config::Server server = door.server("one");
    server.private_key = client.key();
    return server;
  }
};

TEST_F(SshSeveralMethods, TwoKeysOnARealServer) {
  test::make_key(client.folder() / "second");
  TestSshd sshd(client.public_key() + read_file(client.folder() / "second.pub"),
                {"AuthenticationMethods publickey,publickey"});
  write_file_atomic(client.ssh_config(),
                    fmt::format("IdentityFile {}\nIdentityFile {}\n", client.key().string(),
                                (client.folder() / "second").string()));
  config::Server server = sshd.server(client.key());
  EXPECT_THAT(log_in(*connector(), server), HasSubstr("accepted, but the server wants more"));
  server.private_key.reset();
  EXPECT_EQ(log_in(*connector(), server), "");
  EXPECT_THAT(sshd.log(), HasSubstr("Partial publickey"));
}

TEST_F(SshSeveralMethods, AKeyAndThenAConfiguredPassword) {
  const auto door = wanting_key_and({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = with_key(*door);
  server.password = "pw";
  EXPECT_EQ(log_in(*connector(), server), "");
  EXPECT_EQ(door->attempts(), 1);
  server.password = "wrong";
  const std::string text = log_in(*connector(), server);
  EXPECT_THAT(text, HasSubstr("accepted, but the server wants more"));
  EXPECT_THAT(text, HasSubstr("(refused)"));
}

TEST_F(SshSeveralMethods, AKeyAndThenATypedPassword) {
  const auto door = wanting_key_and({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  const auto ask = connector(answering("pw"));
  EXPECT_EQ(log_in(*ask, with_key(*door)), "");
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_THAT(log_in(*connector(), with_key(*door)), HasSubstr("password_env"));
}

TEST_F(SshSeveralMethods, AKeyAndThenACodeIsAskedInTheServersWords) {
  const auto door = wanting_key_and(
      {.password = "", .prompts = {"Verification \x1b[31mcode: "}, .echo = {false}, .answers = {"314159"}});
  const auto ask = connector(answering("314159"));
  config::Server server = with_key(*door);
  EXPECT_EQ(log_in(*ask, server), "");
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_THAT(questions[0], HasSubstr("Verification \\x1b[31mcode: "));
  // A configured password is not used as a code.
  server.password = "pw";
  EXPECT_EQ(log_in(*ask, server), "");
  EXPECT_EQ(door->attempts(), 2);
  EXPECT_EQ(questions.size(), 2U);
}

TEST_F(SshSeveralMethods, AMethodThatTheKeyMustFollow) {
  // Here the password must come first, and then the key: a second round finds it.
  const auto door = wanting_key_and({.password = "pw", .prompts = {}, .echo = {}, .answers = {}});
  config::Server server = door->server("one");
  server.password = "pw";
  make_folders(client.folder() / ".ssh");
  std::filesystem::copy_file(client.key(), client.folder() / ".ssh/id_ed25519");
  EXPECT_EQ(log_in(*connector(), server), "");
}

}  // namespace
}  // namespace remote
