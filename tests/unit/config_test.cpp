#include "config/config.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>

#include "base/files.hpp"
#include "config/section.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote::config {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string file = "/p/demo/.remote/configs.yaml";

Config read(const std::string& text) {
  return parse(text, "/p/demo");
}

// The error for a text, as "FILE:LINE:COLUMN: reason" without the file's path.
std::string failure(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.message(), StartsWith(file + ":"));
    const std::string hint = error.hint().empty() ? "" : " | " + error.hint();
    return error.message().substr(std::min(file.size() + 1, error.message().size())) + hint;
  }
  return "no error";
}

std::string server_failure(const std::string& line) {
  return failure("servers:\n  a:\n    hostname: h\n    " + line + "\n");
}

TEST(Config, DefaultsOfAnEmptyFile) {
  for (const char* text :
       {"", "\n", "# only a comment\n", "---\n", "{}", "servers:\n", "servers: {}", "servers: []"}) {
    const Config config = read(text);
    EXPECT_EQ(config.name, "demo") << text;
    EXPECT_THAT(config.servers, IsEmpty());
    EXPECT_THAT(config.warnings, IsEmpty());
    EXPECT_EQ(config.project, "/p/demo");
    EXPECT_EQ(config.file, file);
    EXPECT_EQ(config.scripts_folder, ".remote/scripts");
    EXPECT_EQ(config.logs_folder, ".remote/logs");
    EXPECT_EQ(config.jobs_folder, ".remote/jobs");
    EXPECT_EQ(config.exclude_file, ".remote/exclude.txt");
    EXPECT_EQ(config.remote_scripts_folder_name, ".remote-scripts");
    EXPECT_EQ(config.remote_jobs_folder_name, ".jobs");
    EXPECT_EQ(config.python.manager, PythonManager::conda);
    EXPECT_FALSE(config.python.manager_given);
    EXPECT_EQ(config.host_keys, HostKeys::accept_new);
    EXPECT_EQ(config.connect_timeout_s, 0) << "not given: ssh_config's, or 10";
  }
}

TEST(Config, LabmlRemoteProjectLoadsUnchanged) {
  const Config config = read(
      "name: sample\n"
      "servers:\n"
      "  primary:\n"
      "    hostname: 3.19.32.53\n"
      "    private_key: ./.remote/private_key\n"
      "  secondary:\n"
      "    hostname: ec2-3-20-234-50.us-east-2.compute.amazonaws.com\n"
      "    private_key:\n"
      "    username: ec2-user\n"
      "    password: ''\n"
      "scripts_folder: .remote/scripts\n"
      "logs_folder: .remote/logs\n"
      "jobs_folder: .remote/jobs\n"
      "exclude_file: .remote/exclude.txt\n"
      "remote_scripts_folder_name: .remote-scripts\n"
      "remote_jobs_folder_name: .jobs\n"
      "python-version: 3.8\n"
      "use_conda: true\n");
  EXPECT_EQ(config.name, "sample");
  ASSERT_EQ(config.servers.size(), 2U);
  EXPECT_EQ(config.servers[0].name, "primary");
  EXPECT_EQ(config.servers[0].hostname, "3.19.32.53");
  EXPECT_EQ(config.servers[0].private_key, "/p/demo/.remote/private_key");
  EXPECT_EQ(config.servers[0].username, std::nullopt);
  EXPECT_EQ(config.servers[0].line, 3);
  EXPECT_EQ(config.servers[0].key_lines.at("private_key"), 5);
  EXPECT_EQ(config.servers[1].private_key, std::nullopt);
  EXPECT_EQ(config.servers[1].password, std::nullopt);
  EXPECT_EQ(config.servers[1].username, "ec2-user");
  EXPECT_THAT(config.warnings,
              ElementsAre("/p/demo/.remote/configs.yaml:17:1: unknown key 'python-version' is ignored; write "
                          "python: {version: …}",
                          HasSubstr("configs.yaml:18:1: unknown key 'use_conda'")));
}

TEST(Config, EveryKeyOfTheContract) {
  const Config config = read(R"(
name: my_project
servers:
  first-server:
    hostname: 3.19.32.53
    username: ubuntu
    private_key: ./.remote/key
    port: "22"
    proxy_jump: user@bastion:2222,other
    internal_address: 10.0.0.4
    gpus: 8
    remote_path: /data/x y
    password_command: pass show a
  v6: {hostname: "[fe80::1%eth0]", password_env: PW}
  plain: {hostname: alias, password: 0123}
remote_path: ~/work/p
python:
  manager: venv
  version: 3.10
  system_site_packages: yes
  environment: .env-gpu
  miniconda_url: https://mirror/x-{arch}.sh
  miniconda_sha256:
    x86_64: ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789
  index_url: https://i/simple
  extra_index_urls: [https://a, https://b]
  extra_index_url: https://c
  find_links: wheels
  constraints:
  - c1.txt
  no_index: on
system_packages: [git, libgl1, "g++"]
host_keys: strict
connect_timeout: 30
)");
  EXPECT_THAT(config.warnings, IsEmpty());
  ASSERT_EQ(config.servers.size(), 3U);
  const Server& first = config.servers[0];
  EXPECT_EQ(first.port, 22);
  EXPECT_EQ(first.proxy_jump, "user@bastion:2222,other");
  EXPECT_EQ(first.internal_address, "10.0.0.4");
  EXPECT_EQ(first.gpus, 8);
  EXPECT_EQ(first.password_command, "pass show a");
  EXPECT_EQ(config.project_path_on(first), "/data/x y");
  EXPECT_EQ(config.servers[1].hostname, "fe80::1%eth0");
  EXPECT_EQ(config.servers[1].password_env, "PW");
  EXPECT_EQ(config.project_path_on(config.servers[1]), "~/work/p");
  EXPECT_EQ(config.servers[2].password, "0123") << "a password keeps its zeros";
  EXPECT_EQ(config.python.manager, PythonManager::venv);
  EXPECT_TRUE(config.python.manager_given);
  EXPECT_EQ(config.python.version, "3.10") << "not 3.1";
  EXPECT_TRUE(config.python.system_site_packages);
  EXPECT_EQ(config.python.environment, ".env-gpu");
  EXPECT_EQ(config.python.miniconda_url, "https://mirror/x-{arch}.sh");
  EXPECT_EQ(config.python.miniconda_sha256.at("x86_64").substr(0, 6), "abcdef");
  EXPECT_EQ(config.python.index_url, "https://i/simple");
  EXPECT_THAT(config.python.extra_index_urls, ElementsAre("https://a", "https://b", "https://c"));
  EXPECT_THAT(config.python.find_links, ElementsAre("wheels"));
  EXPECT_THAT(config.python.constraints, ElementsAre("c1.txt"));
  EXPECT_TRUE(config.python.no_index);
  EXPECT_THAT(config.system_packages, ElementsAre("git", "libgl1", "g++"));
  EXPECT_EQ(config.host_keys, HostKeys::strict);
  EXPECT_EQ(config.connect_timeout_s, 30);
}

TEST(Config, AServersVariablesAndItsGpus) {
  const Config config = read(
      "servers:\n  a: {hostname: a, gpus: [2, 3], env: {NCCL_DEBUG: WARN, EMPTY: }}\n"
      "  b: {hostname: b, gpus: 8}\n");
  const Server& a = config.servers[0];
  EXPECT_EQ(a.gpus, std::nullopt);
  EXPECT_THAT(a.variables(), ElementsAre(std::pair("CUDA_VISIBLE_DEVICES", "2,3"),
                                         std::pair("NCCL_DEBUG", "WARN"), std::pair("EMPTY", "")));
  EXPECT_THAT(config.servers[1].variables(), IsEmpty());
  EXPECT_THAT(config.warnings, IsEmpty());
  for (const char* wrong : {"gpus: [2, 2]", "gpus: [-1]", "gpus: [x]", "gpus: {a: 1}", "env: x", "env: [A]",
                            "env: {A B: 1}", "env: {A: [1]}"}) {
    EXPECT_THAT(failure("servers: {a: {hostname: a, " + std::string(wrong) + "}}"), StartsWith("1:"))
        << wrong;
  }
}

TEST(Config, PathOfTheProjectOnAServer) {
  EXPECT_EQ(read("name: n m").project_path_on({}), "~/n m");
  EXPECT_EQ(parse("", "/p/demo/").name, "demo");
  EXPECT_TRUE(parse("name: x", "relative").project.is_absolute());
  EXPECT_EQ(read("name: 2021").name, "2021");
}

TEST(Config, PrivateKeyPaths) {
  const auto key = [](const std::string& path) {
    return read("servers: {a: {hostname: h, private_key: " + path + "}}").servers[0].private_key->string();
  };
  EXPECT_EQ(key("/k"), "/k");
  EXPECT_EQ(key(".remote/../k"), "/p/demo/k");
  EXPECT_EQ(key("~/.ssh/k"), (home_folder() / ".ssh/k").string());
  EXPECT_THAT(server_failure("private_key: ~bob/k"), HasSubstr("only your own home"));
}

TEST(Config, UnknownKeysGetTheNearestKeyOfTheirLevel) {
  const Config config = read(R"(nmae: x
hostname: y
qqqqqq: 1
x-defaults: 1
servers:
  a:
    hostname: h
    private-key: k
    usrename: u
    manager: conda
)");
  EXPECT_THAT(
      config.warnings,
      ElementsAre(
          "/p/demo/.remote/configs.yaml:1:1: unknown key 'nmae' is ignored; did you mean 'name'?",
          "/p/demo/.remote/configs.yaml:2:1: unknown key 'hostname' is ignored; it belongs under a server's "
          "name",
          "/p/demo/.remote/configs.yaml:3:1: unknown key 'qqqqqq' is ignored",
          "/p/demo/.remote/configs.yaml:8:5: unknown key 'private-key' of server 'a' is ignored; did you "
          "mean "
          "'private_key'?",
          HasSubstr("did you mean 'username'?"), HasSubstr("it belongs under 'python'")));
  EXPECT_THAT(failure("python: {versoin: 3}"), StartsWith("1:10: unknown key 'versoin' of 'python'"));
}

TEST(Config, WrongTypesNameTheirPlace) {
  EXPECT_EQ(failure("name: [a]"), "1:7: 'name' must be a text, not a list");
  EXPECT_THAT(failure("- a\n- b\n"), StartsWith("1:1: the file takes keys with values"));
  EXPECT_THAT(failure("just text"), StartsWith("1:1: the file takes keys"));
  EXPECT_THAT(failure("servers:\n- a\n"), StartsWith("2:1: 'servers' must be a map"));
  EXPECT_THAT(failure("servers: {a: host}"), StartsWith("1:14: server 'a' takes keys"));
  EXPECT_THAT(failure("python: venv"), StartsWith("1:9: 'python' takes keys"));
  EXPECT_THAT(
      failure("python: {manager: cnoda}"),
      AllOf(StartsWith("1:19: 'manager' must be one of conda, venv, uv, system"), HasSubstr("'conda'?")));
  EXPECT_THAT(failure("python: {no_index: maybe}"), StartsWith("1:20: 'no_index' must be true or false"));
  EXPECT_THAT(failure("python: {version: '3.11; rm -rf ~'}"), StartsWith("1:19: 'version'"));
  EXPECT_THAT(failure("python: {index_url: --pre}"), HasSubstr("begins with '-'"));
  EXPECT_THAT(failure("python: {find_links: {a: b}}"), StartsWith("1:22: 'find_links' must be a list"));
  EXPECT_THAT(failure("python: {find_links: [a, [b]]}"), StartsWith("1:26: each item of 'find_links'"));
  EXPECT_THAT(failure("python: {miniconda_sha256: {x86_64: abc}}"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(failure("python: {miniconda_url: x.sh}"), HasSubstr("must be a URL"));
  EXPECT_THAT(failure("host_keys: no"), HasSubstr("accept-new or strict"));
  EXPECT_THAT(failure("connect_timeout: 0"), HasSubstr("from 1 to 3600"));
  EXPECT_THAT(failure("system_packages: [git, '-y']"), HasSubstr("'-y' is not the name of a package"));
  // apt reads the first three as "remove", and a pattern as every package that matches.
  for (const char* name :
       {"tmux-", "tmux-=1", "tmux-:amd64", "git curl", "*", "a/sid", "Git", "x=", "./x.deb", "x=1-"}) {
    EXPECT_THAT(failure("system_packages: ['" + std::string(name) + "']"),
                HasSubstr("not the name of a package"))
        << name;
  }
  EXPECT_EQ(read("system_packages: [tmux=3.3a-3+b1, 'libc6:i386', libstdc++6]\n").system_packages.size(), 3U);
}

TEST(Config, Ports) {
  EXPECT_EQ(server_failure("port: 0"), "4:11: 'port' must be a whole number from 1 to 65535, not '0'");
  for (const char* port :
       {"65536", "-1", "022", "22x", "22.0", "1e3", "99999999999999999999", "true", "' 22'"}) {
    EXPECT_THAT(server_failure(std::string("port: ") + port), StartsWith("4:11: 'port' must be")) << port;
  }
  EXPECT_THAT(server_failure("port: [22]"), StartsWith("4:11: 'port' must be a text"));
  EXPECT_EQ(read("servers: {a: {hostname: h, port: 65535}}").servers[0].port, 65535);
}

TEST(Config, ServersAreChecked) {
  for (const char* name : {"../x", "'.hidden'", "'-rf'", "a/b", "'a b'", "'*'", "ä", "\"a\\nb\""}) {
    EXPECT_THAT(failure("servers:\n  " + std::string(name) + ": {hostname: h}\n"),
                AllOf(StartsWith("2:3: "), HasSubstr("cannot be a server's name")))
        << name;
  }
  EXPECT_THAT(failure("servers: {a: }"), HasSubstr("server 'a' has no 'hostname'"));
  EXPECT_THAT(failure("servers: {a: {hostname: ''}}"), HasSubstr("has no 'hostname'"));
  for (const char* host : {"-oProxyCommand=x", "u@h", "'h o'", "ssh://h", "'h;x'", "h:22", "'$(x)'"}) {
    EXPECT_THAT(failure("servers:\n  a:\n    hostname: " + std::string(host)),
                StartsWith("3:15: 'hostname' cannot"))
        << host;
  }
  EXPECT_THAT(server_failure("username: -l"), HasSubstr("'username' cannot be"));
  EXPECT_THAT(server_failure("username: a b"), HasSubstr("'username' cannot be"));
  for (const char* host : {"10.77.0.11", "h"}) {  // an address, and the server's hostname
    EXPECT_THAT(server_failure(std::string("username: trainer@") + host),
                HasSubstr("cannot be 'trainer@" + std::string(host) +
                          "' | it has the address, too: write username: trainer"));
  }
  EXPECT_EQ(server_failure("username: ada@corp.example"), "no error") << "a domain";
  EXPECT_THAT(server_failure("internal_address: 'x y'"), HasSubstr("'internal_address' cannot be"));
  for (const char* jump : {"-x", "'a,,b'", "a:0", "a:x", "'[::1'", "u@"}) {
    EXPECT_THAT(server_failure(std::string("proxy_jump: ") + jump), HasSubstr("'proxy_jump' cannot be"))
        << jump;
  }
  for (const char* path :
       {"/", "'~'", "~/..", "a/../b", "~bob/x", "'~/'", "'.'", "\"a\\tb\"", "~/a:b", "$HOME/x"}) {
    EXPECT_THAT(server_failure(std::string("remote_path: ") + path), HasSubstr("'remote_path' cannot be"))
        << path;
  }
  for (const char* path :
       {"/", "'~'", "'~/'", "a/../b", "..", "~bob", "~bob/x", "\"it's\"", "$SCRATCH/remote", "'`x`'",
        "'a\\b'", "a!b", "'\"x\"'", "\"a\\tb\"", "\"a\\nb\"", "\"a\\x7fb\""}) {
    EXPECT_THAT(server_failure(std::string("agent: ") + path), HasSubstr("'agent' cannot be")) << path;
    EXPECT_THAT(failure(std::string("agent: ") + path), HasSubstr("'agent' cannot be")) << path;
  }
  for (const char* path : {"/scratch/me/remote", "~/x", "x", "x/y", "/a b/ü", "..x"}) {
    EXPECT_EQ(server_failure(std::string("agent: ") + path), "no error") << path;
  }
  EXPECT_EQ(read("agent: ~/my scratch/a:b").agent_folder, "~/my scratch/a:b");
}

TEST(Config, OnlyOneSourceOfThePassword) {
  EXPECT_THAT(server_failure("password: a\n    password_env: B"),
              StartsWith("5:19: both 'password' and 'password_env' are given"));
  EXPECT_THAT(server_failure("password_env: A\n    password_command: B"), HasSubstr("both 'password_env'"));
  EXPECT_THAT(server_failure("password_env: $A"), HasSubstr("name of a variable"));
  EXPECT_EQ(server_failure("password:\n    password_env: B"), "no error");
}

TEST(Config, FoldersStayInTheProject) {
  for (const char* key : {"scripts_folder", "logs_folder", "jobs_folder", "exclude_file"}) {
    for (const char* path : {"/tmp/x", "..", "../x", "a/../../x", "~/x", "."}) {
      EXPECT_THAT(failure(std::string(key) + ": " + path), HasSubstr("cannot be")) << key << path;
    }
  }
  EXPECT_EQ(read("logs_folder: ./a/../my logs").logs_folder, "my logs");
  // otherwise .git/index could be one of our files; a repository may be anywhere in the project
  for (const char* path :
       {".git", "./.git/hooks", "a/../.GIT/x", "sub/.git", "sub/.git/hooks", "a/b/.Git/x"}) {
    EXPECT_THAT(failure(std::string("jobs_folder: ") + path), HasSubstr("it is git's own")) << path;
    EXPECT_THAT(failure(std::string("logs_folder: ") + path), HasSubstr("it is git's own")) << path;
    EXPECT_THAT(failure(std::string("scripts_folder: ") + path), HasSubstr("it is git's own")) << path;
    EXPECT_THAT(failure(std::string("remote_path: ~/") + path),
                ::testing::AnyOf(HasSubstr("it is git's own"), HasSubstr("'..'")))
        << path;
    EXPECT_THAT(failure(std::string("outputs: [") + path + "]"), HasSubstr("it is git's own")) << path;
    EXPECT_THAT(failure(std::string("python: {manager: venv, environment: ") + path + "}"),
                HasSubstr("it is git's own"))
        << path;
  }
  EXPECT_EQ(read("exclude_file: .git/info/exclude").exclude_file, ".git/info/exclude");
  for (const char* key : {"remote_scripts_folder_name", "remote_jobs_folder_name", "name"}) {
    for (const char* path : {"/x", "..", "a/b", ".", ".git", "a:b"}) {
      EXPECT_THAT(failure(std::string(key) + ": " + path), HasSubstr("cannot be")) << key << path;
    }
  }
  EXPECT_THAT(failure("name: -x"), HasSubstr("begins with '-'"));
  for (const char* key : {"environment: /opt/a:b", "conda: /opt/a:b"}) {  // their bin folder is added to PATH
    EXPECT_THAT(failure(std::string("python: {manager: conda, ") + key + "}"), HasSubstr("it has a ':'"))
        << key;
  }
  try {
    parse("", "/");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("'name' is missing"));
  }
}

TEST(Config, Duplicates) {
  EXPECT_THAT(failure("name: a\nservers: {}\nname: b\n"),
              StartsWith("3:1: 'name' is given twice: first on line 1"));
  EXPECT_THAT(failure("servers:\n  a: {hostname: h}\n  a: {hostname: i}\n"),
              StartsWith("3:3: 'a' is given twice"));
  EXPECT_THAT(server_failure("hostname: again"), StartsWith("4:5: 'hostname' is given twice"));
}

TEST(Config, MergeKeysShareSettings) {
  const Config config = read(R"(x-defaults: &d
  username: ada
  port: 2200
servers:
  a:
    <<: *d
    hostname: h1
  b: {hostname: h2, port: 22, <<: [*d, {gpus: 4, username: bob}]}
  c: &c {hostname: h3}
  d: *c
)");
  EXPECT_THAT(config.warnings, IsEmpty());
  ASSERT_EQ(config.servers.size(), 4U);
  EXPECT_EQ(config.servers[0].username, "ada");
  EXPECT_EQ(config.servers[0].key_lines.at("username"), 2);
  EXPECT_EQ(config.servers[1].port, 22);
  EXPECT_EQ(config.servers[1].username, "ada");
  EXPECT_EQ(config.servers[1].gpus, 4);
  EXPECT_EQ(config.servers[3].hostname, "h3");
  EXPECT_THAT(failure("<<: a"), HasSubstr("takes a map"));
  EXPECT_THAT(failure("<<: [a]"), HasSubstr("takes a map"));
}

TEST(Config, SyntaxErrorsAreReadable) {
  EXPECT_THAT(failure("name: 'abc\nservers:\n"), HasSubstr("a quoted text is not closed"));
  EXPECT_THAT(failure("name: p\nservers:\n  a:\n    hostname: \"h\n    port: 1\n  b:\n    hostname: h2\n"),
              AllOf(StartsWith("4:15: "), HasSubstr("a quoted text is not closed")));
  EXPECT_THAT(failure("servers:\n  a:\n    hostname: 'h\n    port: 1\n# it's another\n"),
              AllOf(StartsWith("3:15: "), HasSubstr("a quoted text is not closed")));
  EXPECT_THAT(failure("prologue: echo 'a\nservers:\n  a:\n   port: 1\n  b: 2\n c: it's\n"),
              HasSubstr("the indentation does not fit"));
  EXPECT_THAT(failure("servers:\n  a:\n    hostname: h\n     username: u\n"),
              AllOf(StartsWith("4:6: "), HasSubstr("indented more than the one above")));
  EXPECT_THAT(failure("servers:\n  a:\n   hostname: h\n  username: u\n"),
              AllOf(StartsWith("4:13: "), HasSubstr("same column")));
  EXPECT_THAT(failure("pyhton: {manager: venv}\n"), HasSubstr("did you mean 'python'?"));
  EXPECT_THAT(failure("name: x\n\tservers: {}\n"),
              AllOf(StartsWith("2:1: "), HasSubstr("tab in the indentation")));
  EXPECT_THAT(failure("name: a: b\n"),
              AllOf(StartsWith("1:8: "), HasSubstr("a ':' where no key is allowed")));
  EXPECT_THAT(failure("servers: {a: {hostname: h}\n"), HasSubstr("is not closed"));
  EXPECT_THAT(failure("servers:\n  a:\n    hostname: h\n   port: 1\n"),
              HasSubstr("the indentation does not fit"));
  EXPECT_THAT(failure("name: *nobody\n"), HasSubstr("refers to nothing"));
  EXPECT_THAT(failure("name: @x\n"), HasSubstr("1:7: "));
  EXPECT_THAT(failure("a: &x [*x]\n"), HasSubstr("inside the node that it refers to"));
  // yaml-cpp's search for a missing ':' makes it find endless documents here.
  EXPECT_THAT(failure("  hos\n,servers:\nservers:\n    h <<:\n"), HasSubstr(":"));
  EXPECT_THAT(failure("a: 1\n---\nb: 2\n"), HasSubstr("second YAML document"));
  EXPECT_THAT(failure("? [a]\n: b\n"), HasSubstr("a key must be plain text"));
  EXPECT_THAT(failure(": b\n"), HasSubstr("the key before the ':' is missing"));
  EXPECT_THAT(failure("name: !ruby/object x\n"), HasSubstr("the tag"));
  EXPECT_THAT(failure("name: \"\\q\"\n"), HasSubstr("unknown escape"));
}

TEST(Config, WhatIsNoText) {
  EXPECT_THAT(failure("name: a\nb: \xFFx\n"), StartsWith("2:4: this is not UTF-8"));
  EXPECT_THAT(failure(std::string("name: a\0b\n", 10)), StartsWith("1:8: there is a NUL byte"));
  EXPECT_THAT(failure(std::string("\xFF\xFEn\0a\0", 6)), HasSubstr("UTF-16"));
  EXPECT_EQ(read("\xEF\xBB\xBFname: bom\n").name, "bom");
  EXPECT_EQ(read("name: crlf\r\nservers: {}\r\n").name, "crlf");
  EXPECT_EQ(read("name: Größe\n").name, "Größe");
}

TEST(Config, HostileFilesAreRefusedQuickly) {
  const auto begin = std::chrono::steady_clock::now();
  // "Billion laughs": each level refers ten times to the previous one.
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string one = "*a" + std::to_string(i - 1);
    std::string list = one;
    for (int j = 0; j < 9; ++j) {
      list += ", " + one;
    }
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + list + "]\n";
  }
  EXPECT_EQ(read(laughs).servers.size(), 0U) << "unknown keys, each shared, none expanded";
  EXPECT_THAT(read(laughs).warnings.back(), HasSubstr("and 10 more such warnings"));
  EXPECT_THAT(failure("a: " + std::string(10000, '[')), HasSubstr("too deeply nested"));
  EXPECT_THAT(failure("a: " + std::string(10000, '{')), HasSubstr("too deeply nested"));
  std::string many;
  for (int i = 0; i < 120000; ++i) {
    many += "- x\n";
  }
  EXPECT_THAT(failure("name:\n" + many), HasSubstr("too large"));
  EXPECT_THAT(failure("name: " + std::string(std::size_t{1} << 20U, 'x')), HasSubstr("more than 1 MiB"));
  std::string merges = "x-0: &a0 {";
  for (int i = 0; i < 3000; ++i) {
    merges += "k" + std::to_string(i) + ": 1, ";
  }
  merges += "}\n";
  for (int i = 1; i < 1000; ++i) {
    merges += "x-" + std::to_string(i) + ": {<<: *a0}\n";
  }
  EXPECT_THAT(failure(merges), HasSubstr("too large"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
}

TEST(Config, LoadReadsTheProjectsFile) {
  const TempFolder folder("remote config ");
  const fs::path project = folder.path() / "a project";
  make_folders(project / ".remote");
  try {
    load(project);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.remedy(), Remedy::make_project);
  }
  write_file_atomic(project / ".remote/configs.yaml", "servers: {a: {hostname: h}}\n");
  EXPECT_EQ(load(project).name, "a project");
  EXPECT_EQ(load(project).servers.size(), 1U);
  make_folders(project / "deep/er");
  EXPECT_EQ(find_project(project / "deep/er"), project);
  EXPECT_EQ(find_project(project), project);
  EXPECT_EQ(find_project(project / "deep/../deep/"), project);
  EXPECT_THROW(find_project(folder.path()), Error);
}

TEST(Config, LoadRefusesWhatIsNoSmallFile) {
  const TempFolder folder;
  const fs::path file_path = folder.path() / ".remote/configs.yaml";
  make_folders(folder.path() / ".remote");
  const auto reason = [&] {
    try {
      load(folder.path());
      return std::string("no error");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.message();
    }
  };
  fs::create_directory(file_path);
  EXPECT_THAT(reason(), HasSubstr("not a regular file"));
  fs::remove(file_path);
  ASSERT_EQ(::mkfifo(file_path.c_str(), 0600), 0);
  EXPECT_THAT(reason(), HasSubstr("not a regular file"));
  fs::remove(file_path);
  fs::create_symlink("/dev/zero", file_path);
  EXPECT_THAT(reason(), HasSubstr("not a regular file"));
  fs::remove(file_path);
  std::ofstream(file_path).put('#');
  fs::resize_file(file_path, 100U << 20U);  // sparse: 100 MB of NUL bytes
  EXPECT_THAT(reason(), HasSubstr("more than 1 MiB"));
}

TEST(Config, SelectServers) {
  const Config config = read("servers: {gpu-1: {hostname: a}, gpu-2: {hostname: b}, cpu: {hostname: c}}");
  const auto names = [&](const std::vector<std::string>& globs) {
    std::vector<std::string> found;
    for (const Server& server : select_servers(config, globs)) {
      found.push_back(server.name);
    }
    return found;
  };
  EXPECT_THAT(names({}), ElementsAre("gpu-1", "gpu-2", "cpu"));
  EXPECT_THAT(names({"cpu", "gpu-*", "gpu-1"}), ElementsAre("gpu-1", "gpu-2", "cpu"));
  EXPECT_THAT(names({"gpu-[2]"}), ElementsAre("gpu-2"));
  try {
    names({"cpu", "gpu1"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.message(), HasSubstr("there are gpu-1, gpu-2, cpu"));
    EXPECT_THAT(error.hint(), HasSubstr("gpu-1"));
  }
  try {
    select_servers(read(""), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.message(), HasSubstr("no servers"));
  }
}

TEST(Config, MistakesOfBeginnersGetTheRightLineAndASuggestion) {
  struct Case {
    const char* text;
    const char* place;
    const char* reason;
    const char* hint;
  };
  for (const Case& one : std::vector<Case>{
           {"servers:\n  n1:\n    user: u\n    host: 10.0.0.1\n", ":4:5", "'host' is not a key of a server",
            "write hostname: 10.0.0.1"},
           {"servers:\n  n1: 10.0.0.1\n", ":2:7", "has '10.0.0.1'", "write {hostname: 10.0.0.1}"},
           {"servers:\n  n1: root@10.0.0.1:40022\n", ":2:7", "has 'root@10.0.0.1:40022'",
            "write {hostname: 10.0.0.1, username: root, port: 40022}"},
           {"servers:\n  n1:\n    hostname 10.0.0.1\n", ":3:5", "has 'hostname 10.0.0.1'",
            "a ':' is missing after 'hostname'"},
           {"servers:\n  n1:\n    hostname:10.0.0.1\n", ":3:5", "has 'hostname:10.0.0.1'",
            "a blank is missing after 'hostname:'"},
           {"servers:\n  n1\n    hostname: 10.0.0.1\n", ":2:5", "a ':' is missing after 'n1'", "write n1:"},
           {"servers:\n  n1:\n    hostname 10.0.0.1\n    username: u\n", ":3:13",
            "a ':' is missing after 'hostname'", "write hostname: 10.0.0.1"},
           {"servers:\n  n1:\n    hostname: h\n    port:22\n    username: u\n", ":4:9",
            "a blank is missing after 'port:'", "write port: 22"},
           {"name my_project\nservers:\n  n1: {hostname: h}\n", ":1:5", "a ':' is missing after 'name'",
            "write name: my_project"},
           {"servers\n  n1:\n    hostname: h\n", ":1:8", "a ':' is missing after 'servers'",
            "write servers:"},
           {"python: venv\n", ":1:9", "has 'venv'", "write {manager: venv}"},
       }) {
    try {
      read(one.text);
      ADD_FAILURE() << one.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what_failed(), "/p/demo/.remote/configs.yaml" + std::string(one.place)) << one.text;
      EXPECT_THAT(error.reason(), HasSubstr(one.reason)) << one.text;
      EXPECT_THAT(error.hint(), HasSubstr(one.hint)) << one.text;
    }
  }
  EXPECT_THAT(
      read("servers:\n  n1:\n    hostname: h\n    user: u\n").warnings,
      ElementsAre("/p/demo/.remote/configs.yaml:4:5: unknown key 'user' of server 'n1' is ignored; did you "
                  "mean 'username'?"));
}

TEST(Config, StrictTakesAnUnknownKeyForAnError) {
  try {
    parse("servers:\n  n1:\n    hostname: h\n    user: u\n", "/p/demo", true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.message(), "/p/demo/.remote/configs.yaml:4:5: unknown key 'user' of server 'n1'");
    EXPECT_EQ(error.hint(), "did you mean 'username'?");
  }
  EXPECT_THAT(parse("x-a: 1\nservers: {n1: {hostname: h}}\n", "/p/demo", true).warnings, IsEmpty());
}

TEST(Config, ProloguesAndCondasInstallation) {
  const Config config = read(
      "prologue: |\n  module load cuda\n  ulimit -n 9\npython: {conda: /opt/conda/}\n"
      "servers:\n  a: {hostname: a}\n  b: {hostname: b, prologue: [x, y]}\n  c: {hostname: c, prologue: "
      "''}\n");
  EXPECT_EQ(config.prologue_on(config.servers[0]), "module load cuda\nulimit -n 9");
  EXPECT_EQ(config.prologue_on(config.servers[1]), "x\ny");
  EXPECT_EQ(config.prologue_on(config.servers[2]), "");
  EXPECT_EQ(config.python.conda, "/opt/conda");
  EXPECT_EQ(read("python: {conda: ~/anaconda3/bin/conda}").python.conda, "~/anaconda3");
  EXPECT_THAT(failure("python: {conda: anaconda3}"), HasSubstr("1:17: 'conda' cannot be 'anaconda3'"));
  EXPECT_THAT(failure("python: {manager: venv, conda: /opt/conda}"),
              HasSubstr("does not work with 'manager: venv'"));
}

// docs/configuration.md: each example loads without warnings, and each key has a row in a table.
TEST(Config, DocumentationIsComplete) {
  const std::string text = read_file(std::string(test::source_folder) + "/docs/configuration.md");
  int examples = 0;
  for (std::size_t at = text.find("```yaml\n"); at != std::string::npos; at = text.find("```yaml\n", at)) {
    at += 8;
    const std::size_t end = text.find("```", at);
    EXPECT_THAT(read(text.substr(at, end - at)).warnings, IsEmpty()) << text.substr(at, end - at);
    at = end + 3;
    ++examples;
  }
  EXPECT_GE(examples, 5);
  for (const Level level : {Level::top, Level::server, Level::python, Level::launch}) {
    for (const std::string& key : known_keys(level)) {
      EXPECT_TRUE(text.find("| `" + key + "` |") != std::string::npos || key == "extra_index_url") << key;
    }
  }
}

constexpr const char* two_launches = R"(x-slow: &slow
  max_restarts: 2
servers: {a: {hostname: h}}
launch:
  cmd: train.py
  nproc_per_node: 4
  env: {A: base, B: base}
  servers: a
launches:
  small: {nproc_per_node: 1, cmd: }
  full:
    <<: *slow
    env: {B: own, C: own}
    follow: yes
)";

TEST(Config, ALaunchByNameInheritsWhatItDoesNotSay) {
  const Config config = read(two_launches);
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_THAT(launch_names(config), ElementsAre("small", "full"));
  const LaunchDefaults small = launch_settings(config, "small");
  EXPECT_EQ(small.command, "train.py");
  EXPECT_EQ(small.nproc, RanksPerServer(1));
  const LaunchDefaults full = launch_settings(config, "full");
  EXPECT_EQ(full.nproc, RanksPerServer(4));
  EXPECT_EQ(full.torchrun.max_restarts, 2);
  EXPECT_EQ(full.follow, true);
  EXPECT_THAT(full.servers, ElementsAre("a"));
  using Pair = std::pair<std::string, std::string>;
  EXPECT_THAT(full.env, ElementsAre(Pair("B", "own"), Pair("C", "own"), Pair("A", "base")));
  std::vector<std::string> from;
  for (const auto& [key, setting] : full.settings) {
    from.push_back(key + "=" + setting.value + " " + setting.from.substr(13));
  }
  EXPECT_THAT(
      from, ElementsAre("cmd=train.py 5 launch", "env A=base 7 launch", "env B=own 13 launches.full",
                        "env C=own 13 launches.full", "follow=yes 14 launches.full",
                        "max_restarts=2 2 launches.full", "nproc_per_node=4 6 launch", "servers=a 8 launch"));
  EXPECT_EQ(launch_settings(config, "").nproc, RanksPerServer(4));
  EXPECT_EQ(launch_settings(config, "").settings.at("cmd").from, "configs.yaml:5 launch");
  EXPECT_EQ(launch_settings(read("launches: {one: }"), "one").command, std::nullopt);
}

TEST(Config, ALaunchByNameMayHaveEveryKeyOfLaunch) {
  for (const std::string& key : known_keys(Level::launch)) {
    EXPECT_EQ(failure("launches:\n  x:\n    " + key + ":\n"), "no error") << key;
  }
}

TEST(Config, WrongLaunchesNameTheirPlace) {
  EXPECT_THAT(
      failure("launches:\n  full:\n    cmd: x\n    nproc_per_nod: 2\n"),
      StartsWith("4:5: unknown key 'nproc_per_nod' of launch 'full' | did you mean 'nproc_per_node'?"));
  EXPECT_THAT(failure("launches:\n  full: {python: system}\n"),
              StartsWith("2:10: unknown key 'python' of launch 'full' | it belongs at the top level"));
  EXPECT_THAT(failure("launches:\n  full: {check: 3}\n"), StartsWith("2:17: 'check' must be true or false"));
  EXPECT_THAT(failure("launches:\n  full: train.py\n"),
              StartsWith("2:9: launch 'full' takes keys with values"));
  EXPECT_THAT(failure("launches: [full]\n"), StartsWith("1:11: 'launches' must be a map"));
  for (const std::string name : {"last", "7up", "-x", "a b", "a/b"}) {
    EXPECT_THAT(failure("launches:\n  " + name + ": {}\n"), StartsWith("2:3: a launch cannot have the name"))
        << name;
  }
  EXPECT_THAT(failure("launchs: {a: {}}\n"), HasSubstr("did you mean 'launch"));
  try {
    launch_settings(read(two_launches), "ful");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), file + " has no launch 'ful': there are small, full");
    EXPECT_EQ(error.hint(), "did you mean 'full'?");
  }
}

TEST(Config, WhatFollowsTheEndOfALaunch) {
  const Config config = read(
      "notify: {url: 'https://ntfy.sh/topic', shape: ntfy}\noutputs: [checkpoints/, ./a/../metrics.csv, "
      "'*.txt']\n"
      "checkpoint: {files: ckpt-*.pt, complete: ckpt-*.done}\nlaunch: {pull: true}\n");
  EXPECT_EQ(config.notify->url, "https://ntfy.sh/topic");
  EXPECT_EQ(config.notify->shape, "ntfy");
  EXPECT_THAT(config.outputs, ElementsAre("checkpoints", "metrics.csv", "*.txt"));
  EXPECT_EQ(config.checkpoint->complete, "ckpt-*.done");
  EXPECT_EQ(config.launch.pull, true);
  EXPECT_EQ(read("notify: {command: mail -s x y}").notify->command, "mail -s x y");
  EXPECT_THAT(failure("notify: {}"), HasSubstr("must have a url or a command"));
  EXPECT_THAT(failure("notify: {url: 'file:///etc/passwd'}"),
              AllOf(HasSubstr("must begin with https://"), Not(HasSubstr("passwd"))));
  EXPECT_THAT(failure("notify: {url: 'https://x/ secret'}"), Not(HasSubstr("secret")));
  EXPECT_THAT(failure("notify: {url: 'https://x', shape: teams}"), HasSubstr("json, ntfy or slack"));
  EXPECT_THAT(failure("outputs: [../x]"), HasSubstr("it leaves the project"));
  EXPECT_THAT(failure("outputs: [/x]"), HasSubstr("it must be a path in the project"));
  EXPECT_THAT(failure("checkpoint: {files: 'a/*.pt', complete: x}"), HasSubstr("a name with one '*'"));
  EXPECT_THAT(failure("checkpoint: {files: '*.pt'}"), HasSubstr("must have 'files' and 'complete'"));
  EXPECT_THAT(failure("launch: {pull: true}"), HasSubstr("needs 'outputs'"));
}

TEST(Config, SparesAreServersOfTheFile) {
  const std::string servers = "servers: {a: {hostname: h}, b: {hostname: i}}\n";
  EXPECT_THAT(parse(servers + "spares: [b]\n", "/p/demo").spares, ElementsAre("b"));
  EXPECT_THAT(parse(servers + "spares: b\n", "/p/demo").spares, ElementsAre("b"));
  EXPECT_THROW(parse(servers + "spares: [c]\n", "/p/demo"), Error);
  EXPECT_THROW(parse(servers + "spares: [a, b]\n", "/p/demo"), Error);
  const Config config = parse(servers + "launch: {no_restart_exit: [2, '3,4']}\n", "/p/demo");
  EXPECT_THAT(config.launch.no_restart_exit, ElementsAre(2, 3, 4));
  EXPECT_THROW(parse(servers + "launch: {no_restart_exit: 0}\n", "/p/demo"), Error);
}

TEST(Config, AnInstallerOverHttpWithoutADigestIsWarnedOf) {
  const std::string url = "python: {miniconda_url: 'http://mirror/x.sh'";
  EXPECT_THAT(parse(url + "}", "/p/demo").warnings, ElementsAre(HasSubstr("can be changed on their way")));
  const std::string sum = ", miniconda_sha256: {x86_64: " + std::string(64, '0') + "}}";
  EXPECT_THAT(parse(url + sum, "/p/demo").warnings, IsEmpty());
}

}  // namespace
}  // namespace remote::config
