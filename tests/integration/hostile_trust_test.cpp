// A project made by another person: what it can make this machine do before the user has agreed.

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "config/trust.hpp"
#include "sandbox/sandbox.hpp"
#include "ssh/connection.hpp"
#include "support/command_world.hpp"
#include "support/test_sshd.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class HostileProject : public ::testing::Test {
 protected:
  void with_server_key(const std::string& line, const std::string& host = "a") {
    world.configure("name: proj\npython: {manager: system}\nservers:\n  a:\n    hostname: " + host +
                    "\n    " + line + "\n");
  }
  CommandResult hello(const Terminals& terminals = {}) {
    return world.run({"run", "--cmd", "echo hello"}, terminals);
  }
  CommandWorld world;
};

TEST_F(HostileProject, ASettingThatActsHereIsRefusedAndShownUntilItIsAllowed) {
  for (const auto& [line, shown] :
       {std::pair<std::string, std::string>{"password_command: touch /tmp/owned", "touch /tmp/owned"},
        {"password_env: AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY"},
        {"known_hosts: ~/.bashrc", ".bashrc"}}) {
    with_server_key(line);
    const int before = world.servers().commands();
    EXPECT_THAT(hello(), Refused("is not trusted")) << line;
    EXPECT_THAT(hello().err, HasSubstr(shown));
    EXPECT_THAT(hello().err, HasSubstr("configs.yaml:6"));
    EXPECT_EQ(world.servers().commands(), before);
    EXPECT_THAT(world.run({"trust"}), Refused("nothing was allowed"));
    EXPECT_THAT(hello(), Refused("is not trusted"));
    EXPECT_EQ(world.run({"trust", "--yes"}).code, 0);
    EXPECT_THAT(hello(), Ends(0, HasSubstr("hello"), Not(HasSubstr("trust")))) << line;
    EXPECT_EQ(world.run({"trust", "--forget"}).code, 0);
    EXPECT_THAT(hello(), Refused("is not trusted"));
    world.run({"trust", "--yes"});
    with_server_key(line + "2");
    EXPECT_THAT(hello(), Refused("is not trusted")) << "another value is asked about anew";
  }
}

TEST_F(HostileProject, APasswordIsAllowedForOneServerOnly) {
  with_server_key("password_env: PW");
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  EXPECT_EQ(hello().code, 0);
  with_server_key("password_env: PW", "evil.example");
  EXPECT_THAT(hello(), Refused("is not trusted"));
}

TEST_F(HostileProject, AnIpv6AddressWithAPortIsNoOtherAddress) {
  with_server_key("port: 2222\n    password_env: PW", "'2001:db8::1'");
  EXPECT_THAT(hello().err, HasSubstr("[2001:db8::1]:2222"));
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  EXPECT_EQ(hello().code, 0);
  with_server_key("password_env: PW", "'2001:db8::1:2222'");
  EXPECT_THAT(hello(), Refused("is not trusted"));
  EXPECT_THAT(hello().err, HasSubstr("2001:db8::1:2222"));
}

// An update of the project must not redirect an allowed password to another route or to other host keys.
TEST_F(HostileProject, APasswordIsAllowedForOneWayAndForOneSetOfHostKeys) {
  const auto configure = [&](const std::string& server_lines, const std::string& top_lines = "") {
    world.configure("name: proj\npython: {manager: system}\n" + top_lines +
                    "servers:\n  a:\n    hostname: gpu\n    password_command: pass show a\n" + server_lines);
  };
  const fs::path file = world.project() / ".remote/hosts";
  const std::string key =
      " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIS+5HCcW59PRmZ7P8bJzXaxxx/pB1tCHfCsOdGNxVyQ\n";
  const std::string pinned = "    known_hosts: .remote/hosts\n";
  const auto allow = [&] {
    ASSERT_EQ(world.run({"trust", "--forget"}).code, 0);
    ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
    ASSERT_EQ(hello().code, 0);
  };
  configure("");
  allow();
  for (const char* line :
       {"    proxy_jump: evil.example\n", "    proxy_jump: none\n", "    username: eve\n", "    port: 2222\n",
        "    known_hosts: .remote/hosts\n", "    connection: libssh\n"}) {
    configure(line);
    EXPECT_THAT(hello(), Refused("is not trusted")) << line;
    EXPECT_THAT(world.run({"trust"}), Refused("pass show a")) << line;
  }
  configure("", "connection: libssh\n");
  EXPECT_THAT(hello(), Refused("is not trusted"));
  configure("    proxy_jump: ann@bastion\n");
  EXPECT_THAT(hello().err, HasSubstr("gpu through ann@bastion"));
  allow();
  for (const char* line : {"    proxy_jump: eve@bastion\n", "    proxy_jump: ann@bastion:2222\n",
                           "    proxy_jump: evil.example,ann@bastion\n", ""}) {
    configure(line);
    EXPECT_THAT(hello(), Refused("is not trusted")) << line;
  }
  // The contents of the project's file matter, too.
  write_file_atomic(file, "gpu" + key);
  configure(pinned);
  EXPECT_THAT(hello().err, HasSubstr(".remote/hosts"));
  allow();
  write_file_atomic(file, "gpu" + key + "@cert-authority *" + key);
  EXPECT_THAT(hello(), Refused("is not trusted"));
  write_file_atomic(file, "");
  EXPECT_THAT(hello(), Refused("is not trusted"));
  fs::remove(file);
  EXPECT_THAT(hello(), Refused("is not trusted"));
  write_file_atomic(file, "gpu" + key);
  EXPECT_EQ(hello().code, 0);
  configure("", "host_keys: strict\n");
  allow();
  configure("");
  EXPECT_THAT(hello(), Refused("is not trusted"));
}

TEST_F(HostileProject, APersonIsAskedOnce) {
  with_server_key("password_command: pass show a");
  EXPECT_EQ(hello(screen("n\n")).code, 2);
  EXPECT_EQ(world.servers().commands(), 0);
  const CommandResult asked = hello(screen("y\n"));
  EXPECT_EQ(asked.code, 0);
  EXPECT_THAT(asked.err, HasSubstr("pass show a"));
  const CommandResult again = hello(screen());
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, Not(HasSubstr("pass show a")));
}

TEST_F(HostileProject, ControlCharactersInWhatIsShownAreVisible) {
  with_server_key("password_command: \"touch x\\e[2K\\rnothing\"");
  EXPECT_THAT(hello().err, Not(HasSubstr("\033")));
  EXPECT_THAT(hello().err, HasSubstr("touch x"));
}

TEST_F(HostileProject, WhatStaysInTheProjectNeedsNoTrust) {
  with_server_key("known_hosts: .remote/known_hosts");
  EXPECT_EQ(hello().code, 0);
  with_server_key("private_key: ~/.ssh/id_ed25519");
  EXPECT_EQ(hello().code, 0);
}

TEST_F(HostileProject, ALinkInsideDoesNotHideAFileOutside) {
  with_server_key("known_hosts: .remote/known_hosts");
  fs::create_symlink(world.home() / ".bashrc", world.project() / ".remote/known_hosts");
  EXPECT_THAT(hello(), Refused("is not trusted"));
}

TEST_F(HostileProject, AJobsFolderThatIsALinkToElsewhereNeedsTrust) {
  make_folders(world.home() / "precious");
  fs::create_directory_symlink(world.home() / "precious", world.project() / ".remote/jobs");
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "true"}), Refused("is not trusted"));
  EXPECT_TRUE(fs::is_empty(world.home() / "precious"));
}

TEST_F(HostileProject, WhatAsksNoServerAsksForTheJobsFolderToo) {
  make_folders(world.home() / "precious/launches/open");
  write_file_atomic(world.home() / "precious/index", "mine");
  write_file_atomic(world.home() / "precious/launches/index", "mine");
  fs::create_directory_symlink(world.home() / "precious", world.project() / ".remote/jobs");
  for (const char* command : {"job-list", "history", "status"}) {
    EXPECT_THAT(world.run({command}), Refused("is not trusted")) << command;
  }
  EXPECT_EQ(read_file(world.home() / "precious/index"), "mine");
  EXPECT_EQ(read_file(world.home() / "precious/launches/index"), "mine");
}

TEST_F(HostileProject, NothingIsRemovedThroughALinkBelow) {
  const std::string id(32, 'a');
  for (const std::string link : {".remote/jobs/starts", ".remote/jobs/launches", ".remote/jobs/launches/open",
                                 ".remote/sent/.pulls"}) {
    const fs::path victim = world.home() / "victim";
    make_folders(victim / "old thesis");
    write_file_atomic(victim / id, "a hash");
    fs::last_write_time(victim / "old thesis", fs::file_time_type::clock::now() - std::chrono::hours(1000));
    const fs::path at = world.project() / link;
    make_folders(at.parent_path());
    fs::create_directory_symlink(victim, at);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"history"}, {"job-run", "--server", "a", "--cmd", "true"}}) {
      EXPECT_THAT(world.run(command), Refused("remove the link")) << link;
    }
    EXPECT_EQ(read_file(victim / id), "a hash") << link;
    EXPECT_TRUE(fs::exists(victim / "old thesis")) << link;
    fs::remove(at);
  }
}

TEST_F(HostileProject, AFolderThatOthersMayWriteIsRefused) {
  for (const fs::path& path :
       {world.project(), world.project() / ".remote", world.project() / ".remote/configs.yaml"}) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
    EXPECT_THAT(hello(), Refused("others can change this project")) << path;
    EXPECT_THAT(hello().err, HasSubstr("remote trust --folder"));
    EXPECT_THAT(world.run({"job-list"}), Refused("everyone may write to it"));
    EXPECT_THAT(world.run({"trust", "--folder"}), Refused("nothing was allowed"));
    EXPECT_EQ(world.run({"trust", "--folder", "--yes"}).code, 0);
    EXPECT_EQ(hello().code, 0);
    EXPECT_EQ(world.run({"trust", "--forget"}).code, 0);
    fs::permissions(path, before);
    EXPECT_EQ(hello().code, 0);
  }
}

TEST_F(HostileProject, AnotherUsersFolderIsRefusedAndOurOwnUnderSudoIsNot) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  constexpr uid_t nobody = 65534;
  for (const fs::path& path :
       {world.project(), world.project() / ".remote", world.project() / ".remote/configs.yaml"}) {
    ASSERT_EQ(::chown(path.c_str(), nobody, static_cast<gid_t>(-1)), 0);
    EXPECT_THAT(hello(), Refused("it belongs to")) << path;
    {
      const Variable sudo("SUDO_UID", "65534");
      EXPECT_EQ(hello().code, 0);
    }
    ASSERT_EQ(::chown(path.c_str(), 0, static_cast<gid_t>(-1)), 0);
  }
  // Writable by a group of other users.
  ASSERT_EQ(::chown(world.project().c_str(), 0, 12345), 0);
  fs::permissions(world.project(), fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(hello(), Refused("its group may write to it"));
  ASSERT_EQ(::chown(world.project().c_str(), 0, 0), 0);
  EXPECT_EQ(hello().code, 0) << "root's own group";
}

TEST_F(HostileProject, WhatWasAllowedIsForNobodyElseToWrite) {
  const Variable state("XDG_STATE_HOME", (world.home() / "state").c_str());
  with_server_key("password_env: PW");
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  const fs::path file = world.home() / "state/remote/trusted";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(file, fs::perms(0666));
  EXPECT_EQ(hello().code, 1);
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(HostileProject, AFifoIsAnErrorAndNeverAWait) {
  const auto fifo = [&](const char* name) {
    const fs::path path = world.project() / ".remote" / name;
    make_folders(path.parent_path());
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  };
  fifo("jobs/index");
  EXPECT_EQ(world.run({"job-list"}).code, 0);
  EXPECT_EQ(world.job("a", "true").key, 1);
  fs::remove(world.project() / ".remote/jobs/index");
  fifo("sent/a");
  world.run({"rsync", "--server", "a", "--delete"});  // must end
  fs::remove(world.project() / ".remote/sent/a");
  fifo("exclude.txt");
  EXPECT_THAT(world.run({"rsync", "--server", "a"}).err, HasSubstr("it is not a regular file"));
  fs::remove(world.project() / ".remote/exclude.txt");
  fs::remove(world.project() / "requirements.txt");
  ASSERT_EQ(::mkfifo((world.project() / "requirements.txt").c_str(), 0600), 0);
  EXPECT_NE(world.run({"update-packages", "--server", "a"}).code, 0);
}

class HostileLinks : public HostileProject {
 protected:
  HostileLinks() {
    make_folders(world.home() / ".ssh");
    make_folders(outside_ / "data/deep");
    write_file_atomic(world.home() / ".ssh/id_rsa", "PRIVATE");
    write_file_atomic(outside_ / "data/set", "numbers");
    write_file_atomic(world.project() / "train.py", "");
  }
  fs::path sent(const char* name) { return world.there("a") / name; }
  CommandResult sync() { return world.run({"rsync", "--server", "a"}); }
  void link(const fs::path& target, const fs::path& name) {
    fs::create_symlink(target, world.project() / name);
  }
  TempFolder temp_{"remote-outside-"};
  fs::path outside_ = temp_.path();
};

TEST_F(HostileLinks, OneThatLeavesTheProjectIsNamedAndLeftOutUntilItIsAllowed) {
  link(outside_ / "data", "data");
  link("train.py", "same.py");
  const CommandResult before = sync();
  EXPECT_EQ(before.code, 0);
  EXPECT_THAT(before.err, HasSubstr("the link data is not sent: it points out of the project"));
  EXPECT_FALSE(fs::exists(sent("data")));
  EXPECT_TRUE(fs::is_regular_file(sent("same.py"))) << "a link inside goes as what it leads to";
  EXPECT_THAT(world.run({"trust"}).err, HasSubstr((outside_ / "data").string()));
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  EXPECT_THAT(sync().err, Not(HasSubstr("not sent")));
  EXPECT_EQ(read_file(sent("data/set")), "numbers");
  // Another target is asked about again.
  fs::remove(world.project() / "data");
  link(outside_, "data");
  EXPECT_THAT(sync().err, HasSubstr("not sent"));
}

TEST_F(HostileLinks, APersonIsAskedOnce) {
  link(outside_ / "data", "data");
  EXPECT_EQ(world.run({"rsync", "--server", "a"}, screen("y\n")).code, 0);
  EXPECT_EQ(read_file(sent("data/set")), "numbers");
  EXPECT_THAT(sync().err, Not(HasSubstr("not sent")));
}

TEST_F(HostileLinks, KeysAreNeverSent) {
  link(world.home() / ".ssh", "a");
  link(world.home() / ".ssh/id_rsa", "b");
  link(world.home(), "home");
  link(".remote/configs.yaml", "c");
  link("../home/.ssh", "relative");
  EXPECT_EQ(world.run({"trust", "--yes"}).code, 0);
  const CommandResult result = sync();
  EXPECT_EQ(result.code, 0);
  for (const char* name : {"a", "b", "home", "c", "relative"}) {
    EXPECT_FALSE(fs::exists(sent(name))) << name;
    EXPECT_THAT(result.err, HasSubstr(std::string("the link ") + name + " is not sent"));
  }
  EXPECT_TRUE(fs::exists(sent("train.py")));
}

TEST_F(HostileLinks, WhatLiesBehindAnAllowedLinkIsLookedAtToo) {
  link(outside_ / "data", "data");
  ASSERT_EQ(world.run({"trust", "--yes"}).code, 0);
  fs::create_symlink(world.home() / ".ssh", outside_ / "data/deep/keys");
  make_folders(outside_ / "data/.aws");
  write_file_atomic(outside_ / "data/.aws/credentials", "SECRET");
  EXPECT_EQ(sync().code, 0);
  EXPECT_TRUE(fs::exists(sent("data/set")));
  EXPECT_FALSE(fs::exists(sent("data/deep/keys")));
  EXPECT_FALSE(fs::exists(sent("data/.aws")));
}

TEST_F(HostileLinks, APathOverAnotherLinkIsNoWayAround) {
  make_folders(world.project() / "inner");
  link(outside_ / "data", "inner/data");
  link("inner", "alias");
  link("..", "inner/up");
  EXPECT_EQ(sync().code, 0);
  EXPECT_FALSE(fs::exists(sent("inner/data")));
  EXPECT_FALSE(fs::exists(sent("alias/data")));
  EXPECT_FALSE(fs::exists(sent("inner/up")));
}

TEST_F(HostileLinks, OneToAFolderThatItIsInIsNeverFollowed) {
  make_folders(world.project() / "sub");
  write_file_atomic(world.project() / "sub/code.py", "x");
  link("..", "sub/one");
  link(".", "sub/two");
  link("..", "out");  // and a link to a folder above the project, even if allowed
  for (const bool trusted : {false, true}) {
    const CommandResult result = sync();
    EXPECT_EQ(result.code, 0) << result;
    for (const char* name : {"sub/one", "sub/two", "out"}) {
      EXPECT_THAT(result.err, HasSubstr(std::string("the link ") + name + " is not sent"));
      EXPECT_FALSE(fs::exists(sent(name))) << name;
    }
    EXPECT_TRUE(fs::exists(sent("sub/code.py")));
    if (!trusted) {
      world.run({"trust", "--yes"});
    }
  }
}

TEST_F(HostileLinks, AWalkWithoutAnEndIsRefusedUnlessItIsExcluded) {
  // Each folder has two links to the next: 2^30 paths without a cycle.
  for (int i = 0; i < 30; ++i) {
    const std::string folder = "n/" + std::to_string(i);
    make_folders(world.project() / folder);
    link("../" + std::to_string(i + 1), folder + "/a");
    link("../" + std::to_string(i + 1), folder + "/b");
  }
  make_folders(world.project() / "n/30");
  EXPECT_THAT(sync(), Refused("lead to more than 10000 folders"));
  write_file_atomic(world.project() / ".remote/exclude.txt", "/n/\n");
  EXPECT_EQ(sync().code, 0);
}

TEST_F(HostileLinks, WhatIsExcludedIsNotAskedAbout) {
  link(outside_ / "data", "data");
  make_folders(world.project() / "venv/bin");
  link("/bin/sh", "venv/bin/python");
  write_file_atomic(world.project() / ".remote/exclude.txt", "/data\nvenv/\n");
  EXPECT_THAT(sync().err, Not(HasSubstr("not sent")));
  // A pattern that cancels all earlier patterns does not cancel ours.
  write_file_atomic(world.project() / ".remote/exclude.txt", "/data\n!\n*.tmp\n");
  write_file_atomic(world.project() / "x.tmp", "");
  EXPECT_THAT(sync().err, HasSubstr("the link data is not sent"));
  EXPECT_FALSE(fs::exists(sent("data")));
  EXPECT_FALSE(fs::exists(sent(".remote")));
  EXPECT_FALSE(fs::exists(sent("x.tmp")));
}

TEST_F(HostileLinks, PrivateKeysStayHereAndAreNamed) {
  write_file_atomic(world.project() / "mykey", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n");
  write_file_atomic(world.project() / "bundle.pem",
                    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
                    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\n");
  write_file_atomic(world.project() / "test_pem.py",
                    "HEAD = '-----BEGIN RSA PRIVATE KEY-----'  # no key itself\n");
  write_file_atomic(world.project() / "named", "a key in a form that nobody knows\n");
  link("mykey", "alias");
  with_server_key("private_key: ./named");
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"rsync", "--server", "a"}, {"rsync", "--server", "a", "-n"}}) {
    const CommandResult result = world.run(how);
    EXPECT_EQ(result.code, 0) << result;
    for (const char* name : {"mykey", "bundle.pem", "named", "alias"}) {
      EXPECT_THAT(result.err, HasSubstr(std::string(name) + " is not sent: it is a private key"));
      EXPECT_FALSE(fs::exists(sent(name))) << name;
    }
  }
  EXPECT_TRUE(fs::exists(sent("test_pem.py")));
  for (const auto& entry : fs::directory_iterator(world.project() / ".remote/sent")) {
    EXPECT_THAT(read_file(entry.path()), Not(HasSubstr("mykey"))) << entry.path();
  }
}

TEST(HostileKnownHosts, OnlyAKnownHostsFileIsAddedTo) {
  TestClient client;
  const TestSshd sshd(client.public_key());
  const config::Server server = sshd.server(client.key());
  const auto connect = [&](const fs::path& file) {
    ssh::ConnectorOptions options = client.options();
    options.known_hosts = file;
    ssh::make_connector(client.config(), options)->connect(server, Cancel());
  };
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"bashrc", "alias ls='ls --color'\n"},
                                   {"keys", client.public_key()},
                                   {"authorized_keys", ""},
                                   {"options", "command=\"x\" " + client.public_key()}}) {
    const fs::path file = client.folder() / name;
    write_file_atomic(file, text);
    try {
      connect(file);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("cannot be saved")) << name;
    }
    EXPECT_EQ(read_file(file), text);
  }
  for (const std::string text :
       {"", "# mine\n\n@revoked other ssh-ed25519 AAAA\n|1|YQ==|YQ== ssh-rsa AAAA x y\n"}) {
    const fs::path file = client.folder() / "known";
    write_file_atomic(file, text);
    EXPECT_NO_THROW(connect(file));
    EXPECT_THAT(read_file(file), HasSubstr("[127.0.0.1]:"));
  }
}

TEST(HostileSandbox, KeysThatCameWithTheProjectAreNotBelieved) {
  const TempFolder folder;
  sandbox::Sandbox sandbox(folder.path());
  make_folders(sandbox.folder() / "node-1", 0700);
  make_key(sandbox.private_key());
  make_key(sandbox.folder() / "node-1/host_key");
  const std::string key = read_file(sandbox.private_key());
  const std::string host_key = read_file(sandbox.folder() / "node-1/host_key");
  struct Down {
    sandbox::Sandbox& one;
    ~Down() { one.purge(); }
  } down{sandbox};
  sandbox.up({.nodes = 1});
  const std::string made = read_file(sandbox.private_key());
  EXPECT_NE(made, key);
  EXPECT_NE(read_file(sandbox.folder() / "node-1/host_key"), host_key);
  sandbox.up({.nodes = 1});
  EXPECT_EQ(read_file(sandbox.private_key()), made) << "its own are kept";
}

TEST(HostileSandbox, AHomeThatCameWithTheProjectLetsNobodyIn) {
  const TempFolder folder;
  sandbox::Sandbox sandbox(folder.path());
  const fs::path home = sandbox.folder() / "node-1/home";
  const fs::path key = folder.path() / "stranger";
  make_key(key);
  make_folders(home / ".ssh", 0700);
  write_file_atomic(home / ".ssh/authorized_keys", read_file(key.string() + ".pub"));
  struct Down {
    sandbox::Sandbox& one;
    ~Down() { one.purge(); }
  } down{sandbox};
  const auto gets_in = [&](const fs::path& by, int port) {
    SubprocessSpec spec;
    spec.argv = {"ssh",
                 "-F",
                 "none",
                 "-i",
                 by.string(),
                 "-o",
                 "IdentitiesOnly=yes",
                 "-o",
                 "IdentityAgent=none",
                 "-o",
                 "BatchMode=yes",
                 "-o",
                 "StrictHostKeyChecking=no",
                 "-o",
                 "UserKnownHostsFile=/dev/null",
                 "-p",
                 std::to_string(port),
                 "127.0.0.1",
                 "true"};
    return run_subprocess(spec).status.success();
  };
  auto servers = sandbox.up({.nodes = 1});
  EXPECT_FALSE(gets_in(key, servers[0].port));
  EXPECT_TRUE(gets_in(sandbox.private_key(), servers[0].port));
  EXPECT_TRUE(fs::exists(servers[0].moved_aside / ".ssh/authorized_keys"));
  // Files that a later `git pull` puts there are not trusted either, and the home folder stays the same.
  fs::remove(home / ".ssh/authorized_keys");
  write_file_atomic(home / ".ssh/authorized_keys", read_file(key.string() + ".pub"));
  EXPECT_FALSE(gets_in(key, servers[0].port));
  sandbox.down();
  servers = sandbox.up({.nodes = 1});
  EXPECT_EQ(servers[0].moved_aside, fs::path());
  EXPECT_FALSE(gets_in(key, servers[0].port));
}

TEST(HostileSandbox, ALinkInItsPlaceIsRefused) {
  const TempFolder folder;
  const fs::path elsewhere = folder.path() / "keys";
  make_folders(elsewhere);
  make_key(elsewhere / "id_ed25519");
  make_folders(folder.path() / "proj/.remote");
  const std::string before = read_file(elsewhere / "id_ed25519");
  sandbox::Sandbox sandbox(folder.path() / "proj");
  fs::create_symlink(elsewhere, sandbox.folder());
  EXPECT_THROW(sandbox.up({.nodes = 1}), Error);
  EXPECT_EQ(read_file(elsewhere / "id_ed25519"), before);
}

}  // namespace
}  // namespace remote::test
