#include "sandbox/sandbox.hpp"

#include <csignal>
#include <cstdlib>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "sandbox/processes.hpp"
#include "support/processes.hpp"
#include "support/test_sandbox.hpp"
#include "support/waiting.hpp"

namespace remote::sandbox {
namespace {

namespace fs = std::filesystem;
using test::eventually;
using test::TestSandbox;
using ::testing::HasSubstr;

// A program unrelated to the sandbox.
Subprocess start_stranger() {
  SubprocessSpec spec;
  spec.argv = {"sleep", "300"};
  return Subprocess(spec);
}

UniqueFd listen_on(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

TEST(Sandbox, ScriptOnStdinRunsInTheHomeOfTheServer) {
  TestSandbox box(2);
  const std::string script =
      "pwd\nprintf '%s|' \"$HOME\" \"$PATH\" \"$REMOTE_SANDBOX_NODE\" \"a  'b\" \nexit 7\n";
  for (std::size_t i = 0; i < 2; ++i) {
    const ExecResult result = box.ssh(i, "sh -s", script);
    const std::string home = box.home(i).string();
    EXPECT_EQ(result.status, ExitStatus::exited(7)) << result.err;
    EXPECT_THAT(result.out, ::testing::StartsWith(home + "\n" + home + "|"));
    EXPECT_THAT(result.out, HasSubstr("/usr/bin"));
    EXPECT_THAT(result.out, ::testing::EndsWith("|" + box.servers()[i].name + "|a  'b|"));
    EXPECT_EQ(result.err, "");
  }
}

TEST(Sandbox, ServersHaveSeparateHomesAndTheirOwnHostKeys) {
  TestSandbox box(2);
  ASSERT_TRUE(box.ssh(0, "cat > 'a \"file\"'", "one").status.success());
  EXPECT_EQ(read_file(box.home(0) / "a \"file\""), "one");
  EXPECT_FALSE(fs::exists(box.home(1) / "a \"file\""));
  const auto lines = split(trim(read_file(box.sandbox().known_hosts())), '\n');
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(split_words(lines[0]).back(), split_words(lines[1]).back());
}

TEST(Sandbox, RsyncAndSftpWorkThroughIt) {
  TestSandbox box(1);
  const TempFolder source;
  write_file_atomic(source.path() / "x y.txt", "data");
  std::vector<std::string> ssh = box.ssh_command(0);
  ssh.pop_back();  // rsync adds the host itself
  SubprocessSpec rsync;
  // rsync splits -e at spaces and supports quotes but no backslashes, so double quotes must be enough for
  // these arguments.
  std::string shell;
  for (const std::string& word : ssh) {
    shell += word.find('"') != std::string::npos ? " '" + word + "'" : " \"" + word + "\"";
  }
  rsync.argv = {"rsync", "-a", "-e", shell.substr(1), source.path().string() + "/", "127.0.0.1:to here/"};
  const ExecResult sent = run_subprocess(rsync);
  EXPECT_TRUE(sent.status.success()) << sent.err;
  EXPECT_EQ(read_file(box.home(0) / "to here/x y.txt"), "data");

  SubprocessSpec sftp;
  sftp.argv = {"sftp", "-q", "-b", "-", "-P", std::to_string(box.servers()[0].port)};
  sftp.argv.insert(sftp.argv.end(), ssh.begin() + 1, ssh.end() - 2);
  sftp.argv.push_back("127.0.0.1");
  const ExecResult listed =
      run_subprocess(sftp, "get \"to here/x y.txt\" \"" + source.path().string() + "/back\"\n");
  EXPECT_TRUE(listed.status.success()) << listed.err;
  EXPECT_EQ(read_file(source.path() / "back"), "data");
}

TEST(Sandbox, SecondUpReusesWhatRunsAndStartsWhatIsMissing) {
  TestSandbox box(2);
  const auto before = box.servers();
  auto after = box.sandbox().up({.nodes = 3});
  ASSERT_EQ(after.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(before[i].started);
    EXPECT_FALSE(after[i].started);
    EXPECT_EQ(after[i].pid, before[i].pid);
    EXPECT_EQ(after[i].port, before[i].port);
  }
  EXPECT_TRUE(after[2].started);
  EXPECT_EQ(box.sandbox().up().size(), 3U) << "without a number it means those that are there";
}

TEST(Sandbox, DeadServerComesBackOnItsPort) {
  TestSandbox box(2);
  const SandboxServer dead = box.servers()[1];
  ASSERT_EQ(::kill(dead.pid, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return !test::lives(dead.pid); }));
  EXPECT_EQ(box.sandbox().status()[1].pid, 0);
  const SandboxServer again = box.sandbox().up()[1];
  EXPECT_TRUE(again.started);
  EXPECT_FALSE(again.port_changed);
  EXPECT_EQ(again.port, dead.port);
  EXPECT_NE(again.pid, dead.pid);
  EXPECT_TRUE(box.ssh(1, "true").status.success()) << "host key and port are as before";
}

TEST(Sandbox, ANewOneComesUpWhereTheConfigurationLooksForIt) {
  TestSandbox box(2);
  const std::map<std::string, int> ports = {{"node-1", box.servers()[0].port},
                                            {"node-2", box.servers()[1].port}};
  box.sandbox().purge();
  const auto again = box.sandbox().up({.ports = ports});
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].port, ports.at("node-1"));
  EXPECT_EQ(again[1].port, ports.at("node-2"));
  EXPECT_EQ(box.sandbox().up({.ports = {{"node-2", 1}, {"mine", 2}}})[1].port, ports.at("node-2"));
}

TEST(Sandbox, TakenPortGetsANewOne) {
  TestSandbox box(1);
  const int former = box.servers()[0].port;
  box.sandbox().down();
  const UniqueFd stranger = listen_on(former);
  const SandboxServer server = box.sandbox().up()[0];
  EXPECT_TRUE(server.port_changed);
  EXPECT_NE(server.port, former);
  EXPECT_THAT(read_file(box.sandbox().known_hosts()),
              HasSubstr("[127.0.0.1]:" + std::to_string(server.port)));
}

TEST(Sandbox, StalePidNeverKillsAStranger) {
  TestSandbox box(2);
  const fs::path file = box.sandbox().folder() / "node-1/sshd.pid";
  box.sandbox().down();
  const Subprocess stranger = start_stranger();
  write_file_atomic(file, std::to_string(stranger.pid()) + "\n");
  EXPECT_EQ(box.sandbox().status()[0].pid, 0);
  EXPECT_EQ(box.sandbox().down(), 0);
  EXPECT_TRUE(test::lives(stranger.pid()));

  write_file_atomic(file, std::to_string(stranger.pid()) + "\n");
  EXPECT_NE(box.sandbox().up()[0].pid, stranger.pid());
  EXPECT_EQ(box.sandbox().down(), 2);
  EXPECT_TRUE(test::lives(stranger.pid()));
}

TEST(Sandbox, ServersOfAnotherSandboxAreStrangersToo) {
  TestSandbox one(1);
  TestSandbox other(1);
  fs::copy_file(other.sandbox().folder() / "node-1/sshd.pid", one.sandbox().folder() / "node-1/sshd.pid",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(one.sandbox().status()[0].pid, 0);
  one.sandbox().down();
  EXPECT_FALSE(test::lives(one.servers()[0].pid));
  EXPECT_TRUE(other.ssh(0, "true").status.success());
}

TEST(Sandbox, ServerIsFoundWithoutItsPidFile) {
  TestSandbox box(1);
  fs::remove(box.sandbox().folder() / "node-1/sshd.pid");
  box.sandbox().down();
  EXPECT_FALSE(test::lives(box.servers()[0].pid)) << "down finds the sshd by its command line";
}

TEST(Sandbox, DownLeavesNoProcess) {
  TestSandbox box(2);
  const Subprocess stranger = start_stranger();
  // A job that outlives its session, one that ignores TERM, and one that cleared its environment.
  ASSERT_TRUE(box.ssh(0,
                      "setsid sleep 301 >/dev/null 2>&1 </dev/null & echo $! > one; "
                      "setsid sh -c 'trap \"\" TERM; echo $$ > two; while :; do sleep 1; done' "
                      ">/dev/null 2>&1 </dev/null &")
                  .status.success());
  // A session that is open while the sandbox goes down.
  SubprocessSpec spec;
  spec.argv = box.ssh_command(1);
  spec.argv.emplace_back("env -i sh -c 'echo $$ > three; exec sleep 302'");
  spec.pipe_stdout = true;
  spec.pipe_stderr = true;
  Subprocess session(spec);
  struct EndThem {  // in case `down` fails
    std::vector<std::pair<pid_t, std::string>> list;
    ~EndThem() {
      for (const auto& [pid, start] : list) {
        if (const auto process = find_process(pid); process && process->start == start) {
          ::kill(pid, SIGKILL);
        }
      }
    }
  } leftover;
  std::vector<pid_t> pids;
  for (const fs::path& file : {box.home(0) / "one", box.home(0) / "two", box.home(1) / "three"}) {
    ASSERT_TRUE(eventually([&] { return read_file_if_there(file).value_or("").ends_with('\n'); })) << file;
    pids.push_back(parse_number<pid_t>(trim(read_file(file))).value());
    const auto process = find_process(pids.back());
    ASSERT_TRUE(process);
    leftover.list.emplace_back(process->pid, process->start);
  }
  const auto server = find_process(pids[2]);
  ASSERT_TRUE(server);
  pids.push_back(server->parent);

  EXPECT_EQ(box.sandbox().down(), 2);
  for (const pid_t pid : pids) {
    EXPECT_FALSE(test::lives(pid)) << pid;
  }
  for (const SandboxServer& node : box.servers()) {
    EXPECT_FALSE(test::lives(node.pid));
  }
  for (const Process& process : list_processes("REMOTE_SANDBOX=" + box.sandbox().folder().string())) {
    EXPECT_FALSE(process.marked) << process.pid << " " << process.command;
  }
  EXPECT_TRUE(test::lives(stranger.pid()));
  EXPECT_FALSE(session.wait().success());
  EXPECT_TRUE(fs::exists(box.home(0) / "one")) << "homes stay";
  EXPECT_EQ(box.sandbox().down(), 0) << "a second down is harmless";
}

TEST(Sandbox, PurgeRemovesTheFolder) {
  TestSandbox box(1);
  EXPECT_EQ(box.sandbox().purge(), 1);
  EXPECT_FALSE(fs::exists(box.sandbox().folder()));
  EXPECT_TRUE(box.sandbox().status().empty());
}

TEST(Sandbox, OddPathsAndVariablesArriveExactly) {
  const TempFolder temporary;
  const fs::path project = temporary.path() / "it's \"a\" $HOME \\ 100% #ü";
  make_folders(project);
  Sandbox sandbox(project);
  struct Down {
    Sandbox& sandbox;
    ~Down() { sandbox.down(); }
  } down{sandbox};
  const std::string value = "x \"y\" 'z' \\ $A #é";
  SandboxOptions options;
  options.nodes = 1;
  options.environment = {{"ODD", value}};
  const SandboxServer server = sandbox.up(options).at(0);
  SubprocessSpec spec;
  // ssh(1) itself expands % and splits at quotes in its options, so the key needs a plain path.
  const TempFolder key;
  fs::copy_file(sandbox.private_key(), key.path() / "id");
  fs::permissions(key.path() / "id", fs::perms::owner_read | fs::perms::owner_write);
  spec.argv = {"ssh",
               "-F",
               "none",
               "-o",
               "BatchMode=yes",
               "-o",
               "StrictHostKeyChecking=no",
               "-o",
               "UserKnownHostsFile=/dev/null",
               "-o",
               "LogLevel=ERROR",
               "-i",
               (key.path() / "id").string(),
               "-p",
               std::to_string(server.port),
               "127.0.0.1",
               "pwd; printf '%s\\n' \"$ODD\""};
  const ExecResult result = run_subprocess(spec);
  EXPECT_EQ(result.out, server.home.string() + "\n" + value + "\n") << result.err;
  EXPECT_EQ(sandbox.down(), 1);
}

TEST(Sandbox, MissingServerProgramNamesThePackage) {
  const TempFolder project;
  Sandbox sandbox(project.path());
  SandboxOptions options;
  options.sshd = "no-such-sshd";
  try {
    sandbox.up(options);
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("openssh-server"));
  }
  EXPECT_FALSE(fs::exists(sandbox.folder())) << "nothing is left behind";
}

TEST(Sandbox, BrokenServerConfigurationIsToldWithItsReason) {
  const TempFolder project;
  Sandbox sandbox(project.path());
  SandboxOptions options;
  options.nodes = 1;
  options.sshd_config = {"NoSuchKeyword yes"};
  try {
    sandbox.up(options);
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.server(), "node-1");
    EXPECT_THAT(error.reason(), HasSubstr("bad configuration option"));
  }
  EXPECT_EQ(sandbox.down(), 0);
}

}  // namespace
}  // namespace remote::sandbox
