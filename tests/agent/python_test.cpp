// These tests also enter environments, so they cover activation.cpp and environment.cpp, too.

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/facts/activation.hpp"
#include "agent/facts/environment.hpp"
#include "agent/fake_host.hpp"
#include "wire/json.hpp"

namespace remote::agent {
namespace {

class AgentPython : public ::testing::Test {
 protected:
  AgentPython() { request.python = true; }
  // A virtual environment of Python 3.9. It must only be asked for its version.
  fs::path make_environment() {
    const fs::path env = fake.folder() / "my env";
    fake.put_program(env / "bin/python3", "[ \"$*\" = -V ] || exit 9\necho Python 3.9.7");
    fake.put(env / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
    request.activate = "PATH='" + (env / "bin").string() + "':$PATH";
    return env;
  }
  ServerFacts ask() {
    wire::FactsReply reply;
    read_environment(fake.host, request, reply);
    return reply.facts;
  }
  static void make_package(const fs::path& site, const std::string& name) {
    fs::create_directories(site / name);
  }

  test::FakeHost fake;
  wire::FactsRequest request;
};

// The parameter is the shell that is `sh` on a server.
class AgentPythonInShell : public AgentPython, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string shell = fake.host.find_program(GetParam());
    if (shell.empty()) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
    fs::create_symlink(shell, fake.programs() / "sh");
  }
};
INSTANTIATE_TEST_SUITE_P(Shells, AgentPythonInShell, ::testing::Values("dash", "bash", "busybox"),
                         [](const auto& shell) { return std::string(shell.param); });

TEST_P(AgentPythonInShell, OnlyANewPythonCountsAndTheEnvironmentsFirst) {
  const fs::path bin = fake.folder() / "bin";
  request.python = false;
  request.activate = "PATH='" + bin.string() + "'";
  fake.put_program(fake.programs() / "python3", "echo Python 3.8.1");
  const auto put = [&](const char* name, const std::string& version) {
    fake.put_program(bin / name, "echo Python " + version);
    return ask().python;
  };
  EXPECT_EQ(ask().python, "3.8.1") << "the server's own";
  EXPECT_EQ(put("python", "2.7.18"), "3.8.1");
  EXPECT_EQ(put("python3", "3.5.10"), "3.8.1");
  EXPECT_EQ(put("python", "3.7.0"), "3.7.0");
  EXPECT_EQ(put("python3", "3.6.1"), "3.6.1");
  EXPECT_EQ(put("python3", "3.13.0"), "3.13.0");
  EXPECT_EQ(put("python3", "4.0.0"), "4.0.0");
  EXPECT_EQ(put("python3", "3.14.0rc1+"), "3.14.0");
}

TEST_F(AgentPython, OfVersion2PrintsItsVersionOnStderr) {
  fake.put_program(fake.programs() / "python3", "echo Python 3.12.3 >&2");
  EXPECT_EQ(ask().python, "3.12.3");
  EXPECT_EQ(ask().python_program, fake.programs() / "python3");
}

TEST_F(AgentPython, OfADistributionTakesNoPackagesOutsideOfAnEnvironment) {
  const fs::path own = fake.folder() / "own";
  fake.put_program(own / "bin/python3", "echo Python 3.12.3");
  request.activate = "PATH='" + (own / "bin").string() + "':$PATH";
  EXPECT_FALSE(ask().python_managed);
  fake.put(own / "lib/python3.12/EXTERNALLY-MANAGED", "");
  EXPECT_TRUE(ask().python_managed);
  fake.put(own / "pyvenv.cfg", "home = /usr/bin\n");
  EXPECT_FALSE(ask().python_managed);
}

TEST_F(AgentPython, IsMissingIfNoneWorks) {
  fake.put_program(fake.programs() / "python3", "exit 127");
  fake.put_program(fake.programs() / "python", "exit 127");
  fake.host.environment["PATH"] = fake.programs().string();
  for (const char* name : {"sh", "id"}) {
    fs::create_symlink(Host::of_this_process().find_program(name).string(), fake.programs() / name);
  }
  const ServerFacts facts = ask();
  EXPECT_EQ(facts.python_refusal, (fake.programs() / "python3").string() + ": it fails and prints nothing");
  EXPECT_EQ(facts.python, "");
  EXPECT_EQ(facts.python_program, "");
  EXPECT_TRUE(facts.packages.empty());
}

TEST_P(AgentPythonInShell, ThePrologueDoesNotSpoilTheAnswer) {
  const std::string enter = "\nPATH='" + (make_environment() / "bin").string() + "':$PATH\n";
  const fs::path left = fake.folder() / "left";
  const std::string note_left = "echo $! >>'" + left.string() + "'";
  const std::vector<std::string> prologues{"echo noise; echo noise >&2",
                                           "printf '\\036python\\037/no/python\\036version\\0371.0'",
                                           "set -eu",
                                           "set -x",
                                           "set -v",
                                           "set -f",
                                           "set -C",
                                           "IFS=n",
                                           "trap 'echo bye' EXIT",
                                           "set -- a b c",
                                           "python3=x version=y",
                                           "cd /no/such/folder",
                                           "false",
                                           "(exit 3)",
                                           "exec 3>&1",
                                           "umask 777",
                                           "sleep 20 & " + note_left,
                                           "read -r line",
                                           "unset PYTHONHOME",
                                           "eval 'sleep 20 & echo $!'; " + note_left};
  for (const std::string& prologue : prologues) {
    request.activate = prologue + enter;
    EXPECT_EQ(ask().python, "3.9.7") << prologue;
  }
  std::ifstream pids(left);
  for (pid_t pid = 0; pids >> pid;) {
    ::kill(pid, SIGKILL);
  }
}

TEST_P(AgentPythonInShell, TheServersOwnCountsIfTheEnvironmentCannotBeEntered) {
  const std::string enter = "\nPATH='" + (make_environment() / "bin").string() + "':$PATH\n";
  fake.put_program(fake.programs() / "python3", "echo Python 3.8.1");
  for (const char* prologue : {"exit 0", "exit 3", "exec true", "if", "echo 'unclosed", "set -e; false",
                               "kill -9 $$", ". /no/such/file", "set -u; echo $no_such_variable"}) {
    request.activate = prologue + enter;
    const ServerFacts facts = ask();
    // bash continues after some of these errors.
    EXPECT_TRUE(facts.python == "3.8.1" || facts.python == "3.9.7") << prologue << ": " << facts.python;
    if (std::string_view(prologue).starts_with("ex")) {
      EXPECT_EQ(facts.python, "3.8.1") << prologue;
    }
  }
}

TEST_F(AgentPython, TheServersOwnCountsIfTheEnvironmentHangs) {
  make_environment();
  fake.put_program(fake.programs() / "python3", "echo Python 3.8.1");
  const std::string enter = request.activate;
  request.activate = "sleep 60\n" + enter;
  const Activation hangs = activate(fake.host, request, std::chrono::milliseconds(300));
  EXPECT_EQ(hangs.python_version, "3.8.1");
  EXPECT_EQ(hangs.text, "") << "it is not entered again";
  request.activate = enter;
  request.mpi = true;
  fake.put_program(fake.programs() / "mpirun", "sleep 60");
  EXPECT_EQ(activate(fake.host, request, std::chrono::milliseconds(1000)).python_version, "3.9.7");
}

TEST_F(AgentPython, ReadsPackagesWithoutStartingTheEnvironmentsPython) {
  const fs::path env = make_environment();
  const fs::path site = env / "lib/python3.9/site-packages";
  fake.put_program(env / "bin/python", "");
  fake.put(site / "torch/version.py",
           "from typing import Optional\n__all__ = ['__version__', 'cuda']\n__version__ = '2.1.0+cu121'\n"
           "debug = False\ncuda: Optional[str] = '12.1'\ngit_version = 'x'\nhip: Optional[str] = None\n");
  for (const char* name :
       {"numpy-1.26.4.dist-info", "nvidia_nccl_cu12-2.18.1.dist-info", "a b-1.dist-info"}) {
    make_package(site, name);
  }
  const ServerFacts facts = ask();
  EXPECT_EQ(facts.python, "3.9.7");
  EXPECT_EQ(facts.python_program, env / "bin/python3");
  EXPECT_EQ(facts.torch, "2.1.0+cu121");
  EXPECT_EQ(facts.cuda, "12.1");
  EXPECT_EQ(facts.hip, "");
  EXPECT_EQ(facts.nccl, "2.18.1");
  EXPECT_EQ(facts.packages.size(), 2U);
  EXPECT_EQ(facts.packages.at("numpy").version, "1.26.4");
  request.python = false;
  EXPECT_EQ(ask().torch, "2.1.0+cu121");
  EXPECT_TRUE(ask().packages.empty());
}

TEST_F(AgentPython, ReadsTheVersionsOfTorch) {
  const fs::path site = make_environment() / "lib/python3.9/site-packages";
  fake.put(site / "torch/version.py", "__version__ = \"2.3.1+rocm6.0\"\ncuda = None\nhip: str = '6.0.32830'");
  EXPECT_EQ(ask().torch, "2.3.1+rocm6.0");
  EXPECT_EQ(ask().cuda, "");
  EXPECT_EQ(ask().hip, "6.0.32830");
  fake.put(site / "torch/version.py",
           "__version__ = '$(reboot)'\ncuda = '12;1'\nhip = 'x'\n__version__\n=\n");
  EXPECT_EQ(ask().torch, "");
  EXPECT_EQ(ask().cuda, "");
  EXPECT_EQ(ask().hip, "");
}

TEST_F(AgentPython, NormalizesTheNamesOfPackages) {
  const fs::path env = make_environment();
  fake.put(env / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n");
  const fs::path site = env / "lib/python3.9/site-packages";
  for (const char* name :
       {"numpy-1.26.4.dist-info", "Foo_Bar.baz-1.0rc1.dist-info", "old_thing-2.0-py3.11.egg-info",
        "nvidia_nccl_cu12-2.18.1.dist-info", "*.egg-info", "~umpy-1.26.3.dist-info", "odd name-1.dist-info",
        "plain.egg-info", "no-version.dist-info", "-1.dist-info", ".hidden-1.dist-info", "numpy",
        ".egg-info"}) {
    make_package(site, name);
  }
  make_package(site, std::string(220, 'x') + "-1.dist-info");
  make_package(fake.home() / ".local/lib/python3.9/site-packages", "numpy-1.20.0.dist-info");
  fake.put(fake.root() / "usr/lib/python3/dist-packages/six-1.16.0.egg-info", "a file");
  fake.put(fake.root() / "usr/local/lib/python3.9/dist-packages/x-1.egg-info", "a file");
  const ServerFacts facts = ask();
  for (const auto& [name, expected] :
       std::map<std::string, PackageFacts>{{"numpy", {"1.26.4", false}},
                                           {"foo-bar-baz", {"1.0rc1", false}},
                                           {"old-thing", {"2.0", false}},
                                           {"nvidia-nccl-cu12", {"2.18.1", false}},
                                           {"x", {"1", false}},
                                           {"six", {"1.16.0", true}}}) {
    ASSERT_TRUE(facts.packages.contains(name)) << name;
    EXPECT_EQ(facts.packages.at(name), expected) << name;
  }
  EXPECT_EQ(facts.packages.size(), 6U);
  EXPECT_EQ(facts.nccl, "2.18.1");
}

TEST_F(AgentPython, ReadsThePackagesOfOtherLayouts) {
  const fs::path prefix = fake.folder() / "conda";
  fake.put_program(prefix / "bin/python3", "echo Python 3.11.2");
  request.activate = "PATH='" + (prefix / "bin").string() + "':$PATH";
  make_package(prefix / "lib64/python3.11/site-packages", "b-2.dist-info");
  EXPECT_EQ(ask().packages.size(), 1U);
  make_package(prefix / "lib/python3.11/site-packages", "b-1.dist-info");
  EXPECT_EQ(ask().packages.at("b").version, "1");
  make_package(fake.home() / ".local/lib/python3.11/site-packages", "b-3.dist-info");
  EXPECT_EQ(ask().packages.at("b").version, "3") << "the user's own come first";
  request.activate += "\nPYTHONNOUSERSITE=1";
  EXPECT_EQ(ask().packages.at("b").version, "1");
}

TEST_F(AgentPython, NamesTheExitStatusOfAPrologueThatFails) {
  EXPECT_EQ(ask().prologue_failure, std::nullopt);
  request.activate = "__failed=3";  // as lib/prologue.sh sets it
  EXPECT_EQ(ask().prologue_failure, 3);
}

TEST_F(AgentPython, AsksAShimForItsFolder) {
  const fs::path site = fake.folder() / "elsewhere";
  make_package(site, "b-1.dist-info");
  fake.put_program(fake.folder() / "shims/python3",
                   "case $1 in\n-V) echo Python 3.11.2 ;;\n-c) echo \"$PLACE\" ;;\nesac");
  request.activate =
      "PATH='" + (fake.folder() / "shims").string() + "':$PATH; export PLACE='" + site.string() + "'";
  EXPECT_EQ(ask().packages.size(), 1U);
  fs::remove_all(site);
  EXPECT_TRUE(ask().packages.empty());
}

TEST_F(AgentPython, VariablesOfTheLoginAreNamedIfJobsHaveThem) {
  make_environment();
  EXPECT_EQ(ask().python_path + ask().python_home, "");
  fake.host.environment["PYTHONPATH"] = "/opt/a:/opt/b";
  fake.host.environment["PYTHONHOME"] = "/opt/python";
  const std::string enter = request.activate;
  request.activate += "\nPYTHONPATH=/p:/p/src:$PYTHONPATH";
  EXPECT_EQ(ask().python_path, "/opt/a:/opt/b");
  EXPECT_EQ(ask().python_home, "/opt/python");
  request.variables = {{"PYTHONPATH", "/opt/a:/opt/b"}};
  EXPECT_EQ(ask().python_path, "") << "configs.yaml has set it";
  request.variables.clear();
  request.activate = enter + "\nunset PYTHONPATH PYTHONHOME";
  EXPECT_EQ(ask().python_path + ask().python_home, "");
}

TEST_F(AgentPython, TextFromAServerMovesNoCursor) {
  const fs::path bin = fake.folder() / "\x1b[2J";
  fake.put_program(bin / "python3", "echo Python 3.11.2");
  request.activate = "PATH='" + bin.string() + "'";
  EXPECT_EQ(ask().python_program, fake.folder().string() + "/\\x1b[2J/python3");
}

TEST_F(AgentPython, TheReplyCanBeSent) {
  make_environment();
  wire::FactsReply reply;
  request.mpi = true;
  request.program = "no-such";
  read_environment(fake.host, request, reply);
  EXPECT_NO_THROW(wire::from_json<wire::FactsReply>(wire::to_json(reply)));
}

}  // namespace
}  // namespace remote::agent
