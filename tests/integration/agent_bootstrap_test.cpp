// Tests how the agent is started on a server, and how it is installed if it is missing.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "server/unpack_agent.hpp"
#include "support/agent_server.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

constexpr int foreign_user = 65534;

std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

ExecResult run_program(std::vector<std::string> argv) {
  SubprocessSpec spec;
  spec.argv = std::move(argv);
  return run_subprocess(std::move(spec));
}

// Files that running, interrupted or failed installations have in the world-writable folders.
std::set<fs::path> find_leftovers() {
  std::set<fs::path> found;
  for (const char* folder : {"/dev/shm", "/var/tmp", "/tmp"}) {
    for (const std::string& name : list_folder(folder)) {
      if (name.starts_with(".remote-agent.")) {
        found.insert(fs::path(folder) / name);
      }
    }
  }
  return found;
}

class AgentBootstrap : public ::testing::TestWithParam<ServerShell> {
 protected:
  AgentBootstrap() : server(GetParam()) {}

  // Skips the test if it may not mount.
  void mount(const std::string& commands) {
    if (run_program({"unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"}).status.success()) {
      server.set_mounts(commands);
      return;
    }
    GTEST_SKIP() << "may not mount anything";
  }
  // The number of bytes sent to a server with this shell: busybox's xz is not used.
  std::size_t packed() const { return uses_xz() ? server.agent.xz.size() : server.agent.size; }
  bool uses_xz() const { return GetParam() != ServerShell::busybox; }
  std::string place(const AgentStart& start) const {
    return start.place.substr(0, start.place.find("/.remote-agent."));
  }

  AgentServer server;
  const std::set<fs::path> leftovers_ = find_leftovers();
  // The same tests run in parallel with other shells; their files go away on their own.
  void TearDown() override {
    for (const fs::path& path : find_leftovers()) {
      EXPECT_TRUE(leftovers_.contains(path) || eventually([&] { return !fs::exists(path); })) << path;
    }
  }
};

TEST_P(AgentBootstrap, IsInstalledOnceAndKept) {
  for (const bool is_first : {true, false}) {
    const AgentStart start = server.start();
    EXPECT_TRUE(start.runs());
    EXPECT_EQ(start.needed, is_first);
    EXPECT_EQ(start.place, server.program().string());
    EXPECT_EQ(start.err, "");
    EXPECT_THAT(start.open_files, AnyOf(ElementsAre("0", "1", "2"), ElementsAre("0", "1", "2", "3", "4")))
        << "3 and 4: a pipe that it makes when it has started";
    // One line for each piece that has arrived
    EXPECT_EQ(start.empty_lines > packed() / 8192, is_first) << start.empty_lines;
    EXPECT_EQ(start.has_xz, is_first && uses_xz());
  }
  for (const fs::path& path : {server.cache(), server.version(), server.program()}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path;
  }
  EXPECT_THAT(list_folder(server.cache()), ElementsAre(std::string(server.agent.digest)));
  EXPECT_THAT(list_folder(server.version()), ElementsAre("remote-agent"));
}

TEST_P(AgentBootstrap, TheAccountsEnvironmentChangesNothingAndStaysAsItIs) {
  server.environment.insert({{"TIME_STYLE", "full-iso"},
                             {"TMOUT", "1"},
                             {"POSIXLY_CORRECT", "1"},
                             {"XZ_DEFAULTS", "--memlimit-decompress=100KiB"},
                             {"XZ_OPT", "--format=raw"},
                             {"CDPATH", "/usr"},
                             {"BASH_FUNC_ls%%", "() { echo mine; }"},
                             {"BASH_FUNC_cd%%", "() { echo elsewhere; }"},
                             {"BASH_FUNC_dd%%", "() { false; }"},
                             {"SHELLOPTS", "errexit:noclobber:nounset"},
                             {"BASHOPTS", "failglob:nullglob"}});
  for (const bool is_first : {true, false}) {
    const AgentStart start = server.start();
    EXPECT_TRUE(start.runs()) << start.err;
    EXPECT_EQ(start.needed, is_first);
    EXPECT_EQ(start.has_xz, is_first && uses_xz());
    EXPECT_EQ(start.place, server.program().string());
    for (const auto& [name, value] : server.environment) {
      const auto has_name = [&](const std::string& text) { return text.starts_with(name + "="); };
      const auto found = std::ranges::find_if(start.environment, has_name);
      const bool is_of_bash = name.starts_with("BASH") || name == "SHELLOPTS" || name == "POSIXLY_CORRECT";
      if (is_of_bash && GetParam() == ServerShell::bash) {
        EXPECT_NE(found, start.environment.end()) << name;
      } else if (!is_of_bash) {
        EXPECT_TRUE(found != start.environment.end() && *found == name + "=" + value) << name;
      }
    }
  }
}

TEST_P(AgentBootstrap, ALoginShellMayBeAnotherOneAndPrint) {
  write_file_atomic(server.home() / ".zshenv", "printf noise");
  write_file_atomic(server.home() / ".tcshrc", "printf noise");
  fs::create_directories(server.home() / ".config/fish");
  write_file_atomic(server.home() / ".config/fish/config.fish", "printf noise\nfunction ls; false; end\n");
  for (const char* shell : {"zsh", "fish", "tcsh", "bash"}) {
    if (!find_program(shell)) {
      continue;
    }
    SCOPED_TRACE(shell);
    fs::remove_all(server.cache());
    server.login_shell = {shell};
    for (const bool is_first : {true, false}) {
      const AgentStart start = server.start();
      EXPECT_TRUE(start.runs()) << start.err;
      EXPECT_EQ(start.needed, is_first);
      EXPECT_EQ(start.place, server.program().string());
    }
  }
}

TEST_P(AgentBootstrap, AProgramThatDidNotArriveWholeIsRefused) {
  server.change = [](std::string& data) { data[data.size() - 1000] ^= 1; };
  EXPECT_EQ(server.start().failure(), server.cache().string() + ": the program did not arrive whole");
  for (const std::size_t missing : {std::size_t{100}, packed() / 2, packed()}) {
    server.change = [&](std::string& data) { data.resize(data.size() - missing); };
    EXPECT_EQ(server.start().failure(), server.cache().string() + ": the program did not arrive whole");
  }
  // Sends no script, half of the script, or no digest
  const std::size_t script = server::agent_installation(server.agent, true).size() - server.agent.xz.size();
  for (const std::size_t length : {std::size_t{0}, script / 2, script - 80}) {
    server.change = [&](std::string& data) { data.resize(length); };
    EXPECT_FALSE(server.start().runs());
  }
  if (fs::exists(server.version())) {
    EXPECT_THAT(list_folder(server.version()), ElementsAre());
  }
  server.change = [](std::string&) {};
  EXPECT_EQ(server.start().place, server.program().string());
}

TEST_P(AgentBootstrap, WhatIsNotAsItWasIsInstalledAgain) {
  const auto expect_new = [&](const char* what) {
    SCOPED_TRACE(what);
    for (const bool is_first : {true, false}) {
      const AgentStart start = server.start();
      EXPECT_TRUE(start.runs()) << start.err;
      EXPECT_EQ(start.needed, is_first);
      EXPECT_EQ(start.place, server.program().string());
    }
    EXPECT_THAT(list_folder(server.cache()), ElementsAre(std::string(server.agent.digest)));
  };
  expect_new("nothing there");
  std::ofstream(server.program()).close();
  expect_new("a file that a crash emptied");
  std::ofstream(server.program()) << std::string(100000, '\0');
  expect_new("a file of zeros");
  fs::resize_file(server.program(), 5000);
  expect_new("a part of the program");
  fs::permissions(server.program(), fs::perms::owner_exec, fs::perm_options::remove);
  expect_new("a program without its x bit");
  fs::permissions(server.version(), fs::perms::group_all, fs::perm_options::add);
  expect_new("a version that others could have written");
  fs::permissions(server.cache(), fs::perms::others_write, fs::perm_options::add);
  expect_new("a folder that others could have written");
  fs::rename(server.version(), server.home() / "elsewhere");
  fs::create_symlink(server.home() / "elsewhere", server.version());
  expect_new("a link");
  fs::rename(server.program(), server.home() / "elsewhere.program");
  fs::create_symlink(server.home() / "elsewhere.program", server.program());
  expect_new("a link in the folder");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(server.version().c_str(), foreign_user, foreign_user), 0);
    expect_new("another user's folder");
    ASSERT_EQ(::chown(server.program().c_str(), foreign_user, foreign_user), 0);
    expect_new("another user's program");
  }
}

TEST_P(AgentBootstrap, AnotherUsersFolderOrALinkIsNotUsed) {
  fs::create_directories(server.home() / "elsewhere");
  fs::create_directories(server.cache().parent_path());
  fs::create_symlink(server.home() / "elsewhere", server.cache());
  EXPECT_THAT(server.start().place, HasSubstr("/.remote-agent."));
  EXPECT_THAT(list_folder(server.home() / "elsewhere"), ElementsAre());
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  fs::remove(server.cache());
  fs::create_directory(server.cache());
  fs::permissions(server.cache(), fs::perms::all);
  ASSERT_EQ(::chown(server.cache().c_str(), foreign_user, foreign_user), 0);
  EXPECT_THAT(server.start().place, HasSubstr("/.remote-agent."));
}

TEST_P(AgentBootstrap, AFallbackFolderIsOneInWhichNobodyElseCouldReplaceIt) {
  write_file_atomic(server.home() / ".cache", "");
  const fs::path run = server.home() / "run";
  const fs::path parent = server.home();
  fs::create_directory(run);
  server.environment["XDG_RUNTIME_DIR"] = run;
  const auto is_used = [&] {
    const AgentStart start = server.start();
    EXPECT_TRUE(start.runs() && start.needed) << start.err;
    EXPECT_THAT(start.place, HasSubstr("/.remote-agent."));
    EXPECT_THAT(list_folder(run), ElementsAre()) << "it removes itself";
    return place(start) == run;
  };
  EXPECT_TRUE(is_used());
  EXPECT_TRUE(is_used()) << "it is sent each time";
  fs::permissions(run, fs::perms::all);
  EXPECT_FALSE(is_used());
  fs::permissions(run, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_TRUE(is_used());
  fs::permissions(run, fs::perms::owner_all);
  fs::permissions(parent, fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(is_used());
  fs::permissions(parent, fs::perms::group_write, fs::perm_options::remove);
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  ASSERT_EQ(::chown(run.c_str(), foreign_user, foreign_user), 0);
  EXPECT_FALSE(is_used()) << "as after su: the variable is another user's";
}

TEST_P(AgentBootstrap, TheOnlyFolderThatIsAllowed) {
  server.folder = "~/my scratch/it's";
  EXPECT_THROW(server.start(), std::logic_error);
  for (const char* folder : {"~/my scratch/remote-agent", "my scratch/remote-agent/"}) {
    server.folder = folder;
    EXPECT_TRUE(server.start().runs());
    EXPECT_FALSE(server.start().needed);
  }
  server.folder = (server.home() / "file/agents").string();
  write_file_atomic(server.home() / "file", "");
  server.remove_tools({"python3"});
  EXPECT_EQ(server.start().failure(),
            server.folder + ": Not a directory; memory: the server has no program python3");
}

// The folder may be anything: /opt, /tmp, /proc.
TEST_P(AgentBootstrap, TheModeOfAFolderThatTheUserChoseStays) {
  const fs::path folder = server.home() / "shared";
  fs::create_directory(folder);
  const fs::perms mode = fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec;
  fs::permissions(folder, mode);
  server.folder = "~/shared";
  server.remove_tools({"python3"});
  EXPECT_EQ(server.start().failure(),
            folder.string() +
                ": is open to other users (chmod 700 closes it); memory: the server "
                "has no program python3");
  EXPECT_EQ(fs::status(folder).permissions(), mode);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::permissions(folder, fs::perms::owner_all);
  EXPECT_TRUE(server.start().runs());
}

TEST_P(AgentBootstrap, AFullReadOnlyOrNoexecHome) {
  const std::string home = server.home();
  const auto expect_fallback = [&](const std::string& options, const std::string& reason) {
    mount("mount -t tmpfs -o " + options + " none " + home);
    if (IsSkipped()) {
      return;
    }
    const AgentStart start = server.start();
    EXPECT_TRUE(start.runs()) << start.err;
    EXPECT_EQ(place(start), "/dev/shm");
    server.remove_tools({"python3"});
    server.folder = "~/.cache/remote";
    EXPECT_EQ(server.start().failure(),
              server.cache().string() + ": " + reason + "; memory: the server has no program python3");
    server.folder = "";
    fs::remove_all(server.root() / "tools");
    server.environment["PATH"] =
        GetParam() == ServerShell::busybox ? (server.root() / "busybox").string() : "/usr/bin:/bin";
  };
  expect_fallback("ro,mode=700", "Read-only file system");
  expect_fallback("size=300k,mode=700", "No space left on device");
  expect_fallback("noexec,mode=700", home + " is mounted noexec");
}

TEST_P(AgentBootstrap, RunsFromMemoryIfNothingElseIsPossible) {
  // The program is in a file until it runs.
  std::string mounts;
  for (const std::string& folder : {std::string("/dev/shm"), std::string("/var/tmp"), std::string("/tmp")}) {
    mounts += "mount --bind " + folder + " " + folder + "; mount -o remount,bind,OPTION " + folder + "\n";
  }
  mount(replace_all(mounts, "OPTION", "noexec"));
  if (IsSkipped()) {
    return;
  }
  AgentStart start = server.start();
  EXPECT_TRUE(start.runs()) << start.err << start.failure();
  EXPECT_EQ(start.place, "/memfd:remote-agent (deleted)");
  EXPECT_FALSE(fs::exists(server.version()) && !list_folder(server.version()).empty());
  server.remove_tools({"python3"});
  EXPECT_EQ(server.start().failure(),
            server.cache().string() +
                ": /tmp is mounted noexec; /dev/shm: /dev/shm is mounted noexec; /var/tmp: /var/tmp is "
                "mounted noexec; /tmp: /tmp is mounted noexec; memory: the server has no program python3");
  // The program goes from the channel directly into memory.
  mount(replace_all(mounts, "OPTION", "ro"));
  fs::create_symlink("/usr/bin/python3", server.root() / "tools/python3");
  server.environment["XZ_OPT"] = "--format=raw";
  for (const bool has_xz : {true, false}) {
    start = server.start();
    EXPECT_TRUE(start.runs()) << start.err << start.failure();
    EXPECT_EQ(start.place, "/memfd:remote-agent (deleted)");
    EXPECT_EQ(start.has_xz, has_xz && uses_xz());
    server.change = [](std::string& data) { data[data.size() - 1000] ^= 1; };
    start = server.start();
    EXPECT_THAT(start.failure(), StartsWith(server.cache().string() +
                                            ": Read-only file system; /dev/shm: Read-only file system; "));
    EXPECT_THAT(start.failure(), EndsWith("; memory: the program did not arrive whole"));
    server.change = [](std::string&) {};
    fs::remove(server.root() / "tools/xz");
  }
}

TEST_P(AgentBootstrap, AnotherArchitecture) {
  // A program for another architecture: the server reads it from the header.
  const fs::path file = server.root() / "program";
  std::string program = server::unpack_agent(server.agent);
  program[18] = 8;  // MIPS
  write_file_atomic(file, program);
  const std::string xz = run_program({"xz", "-c", file.string()}).out;
  const std::string digest = sha256_hex(program);
  server.agent = {.architecture = "mips", .digest = digest, .xz = xz, .size = program.size()};
  const AgentStart start = server.start();
  EXPECT_FALSE(start.runs());
  EXPECT_THAT(start.failure(), HasSubstr(server.cache().string() + ": "));
  EXPECT_THAT(start.failure(), HasSubstr("; memory: "));
  EXPECT_EQ(list_folder(server.root()).size(), GetParam() == ServerShell::busybox ? 4U : 3U)
      << "it was taken for a script";
}

TEST_P(AgentBootstrap, TellsWhichToolIsMissing) {
  server.remove_tools({"sha256sum"});
  EXPECT_EQ(server.start().failure(), "the server has no program sha256sum");
}

TEST_P(AgentBootstrap, IsSentUncompressedToAServerWithoutXz) {
  server.remove_tools({"xz"});
  const auto expect_start = [&](const char* what, bool has_xz) {
    SCOPED_TRACE(what);
    fs::remove_all(server.cache());
    const AgentStart start = server.start();
    EXPECT_TRUE(start.runs()) << start.err << start.failure();
    EXPECT_TRUE(start.needed);
    EXPECT_EQ(start.has_xz, has_xz);
    EXPECT_EQ(start.place, server.program().string());
    EXPECT_GT(start.empty_lines, (has_xz ? server.agent.xz.size() : server.agent.size) / 8192);
  };
  expect_start("no xz", false);
  const fs::path xz = server.root() / "tools/xz";
  fs::create_symlink("/bin/false", xz);
  expect_start("an xz that does not run", false);
  fs::remove(xz);
  fs::create_symlink(find_program("busybox").value(), xz);
  expect_start("the xz of busybox", false);
  fs::remove(xz);
  fs::create_symlink(find_program("xz").value(), xz);
  expect_start("xz", true);
}

TEST_P(AgentBootstrap, SeveralClientsAtOnce) {
  constexpr std::size_t count = 4;
  std::vector<AgentStart> starts(count);
  std::vector<std::thread> threads;
  for (AgentStart& start : starts) {
    threads.emplace_back([this, &start] { start = server.start(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const AgentStart& start : starts) {
    EXPECT_TRUE(start.runs()) << start.err << start.failure();
  }
  EXPECT_THAT(list_folder(server.version()), ElementsAre("remote-agent"));
  EXPECT_FALSE(server.start().needed);
}

TEST_P(AgentBootstrap, StartsIfTheUserCanStartNoProcess) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  // A user that no other test has: zombies count toward the process limit until init reaps them.
  const int user = 500000 + ::getpid() % 10000 * 10 + static_cast<int>(GetParam());
  ASSERT_EQ(::chown(server.home().c_str(), static_cast<uid_t>(user), 0), 0);
  const std::vector<std::string> as_user{"setpriv", "--reuid=" + std::to_string(user),
                                         "--regid=" + std::to_string(user), "--clear-groups"};
  const auto limit = [&](int processes) {
    server.before = {"prlimit", "--nproc=" + std::to_string(processes)};
    server.before.insert(server.before.end(), as_user.begin(), as_user.end());
  };
  limit(1);
  if (GetParam() != ServerShell::bash) {  // bash waits for 15 seconds
    const AgentStart start = server.start();
    EXPECT_EQ(start.failure(), "the process limit of this account is reached") << start.err;
  }
  limit(100);
  EXPECT_TRUE(server.start().needed);
  limit(1);
  const AgentStart start = server.start();
  EXPECT_TRUE(start.runs()) << start.err;
  EXPECT_FALSE(start.needed);
}

INSTANTIATE_TEST_SUITE_P(Shells, AgentBootstrap,
                         ::testing::Values(ServerShell::dash, ServerShell::bash, ServerShell::busybox),
                         [](const auto& shell) { return to_string(shell.param); });

TEST(EmbeddedAgents, RunOnTheirArchitectures) {
  const TempFolder folder;
  for (const server::Agent& agent : server::agents()) {
    const fs::path file = folder.path() / "remote-agent";
    const std::string program = server::unpack_agent(agent);
    EXPECT_EQ(sha256_hex(program), agent.digest);
    EXPECT_EQ(program.size(), agent.size);
    write_file_atomic(file, program, 0700);
    std::vector<std::string> argv{file.string(), "try"};
    if (agent.architecture != AgentServer::own_architecture()) {
      const auto emulator = find_program("qemu-" + std::string(agent.architecture) + "-static");
      if (!emulator) {
        continue;
      }
      argv.insert(argv.begin(), emulator->string());
    }
    EXPECT_EQ(run_program(argv).status.code(), 42) << agent.architecture;
  }
  EXPECT_EQ(server::find_agent("pdp11"), nullptr);
}

TEST(EmbeddedAgents, FoldersThatEveryLoginShellUnderstands) {
  for (const char* folder : {"it's", "$SCRATCH/remote", "a\\b", "`x`", "a!b", "a\nb", "\"x\""}) {
    EXPECT_THROW(server::agent_command(folder), std::logic_error) << folder;
  }
  for (const char* folder : {"", "~", "~/x y", "/scratch/me/remote", "x/y", "/a b/ü"}) {
    const std::string command = server::agent_command(folder);
    EXPECT_EQ(command.find_first_of("\\!\n"), std::string::npos);
    EXPECT_EQ(std::ranges::count(command, '\''), 2);
    EXPECT_LT(command.size(), 2000U);  // a shell may read at most 2 KiB per line
  }
}

}  // namespace
}  // namespace remote::test
