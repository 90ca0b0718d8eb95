// `remote check`: its output, and that an answer of one server does not affect the others.

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.hpp"
#include "server/agents.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

using ::testing::AnyOf;

class CommandCheck : public ::testing::Test {
 protected:
  CommandCheck() {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n");
  }
  static const nlohmann::json* find(const nlohmann::json& server, const std::string& name) {
    for (const auto& check : server.at("checks")) {
      if (check.at("name") == name) {
        return &check;
      }
    }
    return nullptr;
  }
  CommandWorld world;
};

TEST_F(CommandCheck, JsonHasChecksAndFactsOfEachServer) {
  const auto report = world.run({"check", "--json"}).json();
  ASSERT_EQ(report.size(), 2U);
  for (const auto& server : report) {
    for (const char* name :
         {"connect", "disk", "shm", "clock", "rsync", "project", "python", "same-python"}) {
      ASSERT_NE(find(server, name), nullptr) << name;
    }
    EXPECT_EQ(find(server, "clock")->at("status"), "ok");
    EXPECT_FALSE(server.at("facts").at("kernel").is_null());
    EXPECT_EQ(server.at("facts").at("disks").at("project").at("there"), true);
  }
}

TEST_F(CommandCheck, TheTableHasARowForEachServerAndWithVerboseOneForEachCheck) {
  const CommandResult brief = world.run({"check"});
  EXPECT_THAT(brief.lines().front(), MatchesRegex("SERVER +STATUS +SUMMARY"));
  EXPECT_THAT(brief.lines(), Contains(StartsWith("a ")));
  EXPECT_THAT(brief.lines(), Contains(StartsWith("b ")));
  const CommandResult all = world.run({"check", "-v"});
  EXPECT_THAT(all.lines(), Contains(MatchesRegex("a +rsync +ok +is installed")));
}

TEST_F(CommandCheck, AServerThatIsNotReachedFailsAlone) {
  world.cut_off({"b"});
  const CommandResult result = world.run({"check", "--json"});
  EXPECT_EQ(result.code, 1);
  const auto report = result.json();
  EXPECT_NE(find(report[0], "python"), nullptr);
  EXPECT_EQ(report[1].at("ok"), false);
  EXPECT_EQ(find(report[1], "connect")->at("status"), "fail");
  EXPECT_EQ(report[1]["cause"], "unreachable");
  EXPECT_FALSE(report[1].at("facts").contains("kernel"));
}

TEST_F(CommandCheck, WhatIsNotWellIsALineOnStderrAsItComes) {
  world.cut_off({"b"});
  fs::remove_all(world.there("a"));
  const CommandResult result = world.run({"check"});
  EXPECT_THAT(result.err, HasSubstr("a: warn: project: ~/proj is not there yet\n"));
  EXPECT_THAT(result.err, HasSubstr("b: fail: connect: "));
  EXPECT_THAT(world.run({"--quiet", "check"}).err, IsEmpty());
}

TEST_F(CommandCheck, AHostileAnswerHarmsThatServerAlone) {
  for (const server::Agent& agent : server::agents()) {
    const fs::path version = world.servers().home("b") / ".cache/remote" / agent.digest;
    fs::create_directories(version);
    for (const fs::path& folder : {version, version.parent_path()}) {
      fs::permissions(folder, fs::perms::owner_all);
    }
    write_file_atomic(version / "remote-agent",
                      "#!/bin/sh\n[ $1 = try ] && exit 42\n"
                      "printf '\\n@remote-agent here\\n\\033[2Jevil\\033[2Jevil\\033[2Jevil'\n",
                      0700);
  }
  const CommandResult result = world.run({"check", "--json"});
  EXPECT_EQ(result.code, 1);
  const auto report = result.json();
  EXPECT_EQ(find(report[0], "facts"), nullptr);
  EXPECT_NE(find(report[0], "python"), nullptr);
  EXPECT_EQ(find(report[1], "facts")->at("status"), "fail");
  EXPECT_THAT(find(report[1], "facts")->at("detail").get<std::string>(), HasSubstr("not understood"));
  EXPECT_THAT(world.run({"check"}).out, Not(HasSubstr("\033[2J")));
}

TEST_F(CommandCheck, AnInterruptSaysThatTheCheckIsIncomplete) {
  write_file_atomic(world.servers().bin() / "hang", "");
  const auto running = world.start({"check"});
  until([&] { return world.servers().commands() > 0; }, "a question to a server");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130) << result;
  EXPECT_THAT(result.err, ::testing::EndsWith(
                              "interrupted: the check is incomplete; its processes on the servers end\n"));
}

TEST_F(CommandCheck, FixAsksAndMakesTheFolder) {
  fs::remove_all(world.there("b"));
  EXPECT_THAT(world.run({"check", "--fix"}, piped("n\n")).err, HasSubstr("nothing was changed"));
  EXPECT_FALSE(fs::exists(world.there("b")));
  const CommandResult done = world.run({"check", "--fix"}, piped("y\n"));
  EXPECT_THAT(done.err, HasSubstr("b: mkdir -p \"$HOME\"/proj"));
  EXPECT_TRUE(fs::is_directory(world.there("b")));
}

TEST_F(CommandCheck, JsonNamesTheServerOfEachFix) {
  fs::remove_all(world.there("b"));
  const auto report = world.run({"check", "--json"}).json();
  const auto* project = find(report[1], "project");
  EXPECT_EQ(project->at("fix_where"), "server");
  EXPECT_EQ(project->at("fix_server"), "b");
  EXPECT_EQ(find(report[0], "project")->at("fix_server"), nullptr);
}

TEST_F(CommandCheck, FixWithoutATerminalNamesYes) {
  fs::remove_all(world.there("b"));
  EXPECT_THAT(world.run({"check", "--fix"}).err,
              HasSubstr("nothing was changed; --yes runs it without asking"));
  EXPECT_THAT(world.run({"check", "--fix"}, screen("n\n")).err, Not(HasSubstr("--yes")));
  EXPECT_THAT(world.run({"check", "--yes"}), Refused("--yes answers the question of --fix"));
  EXPECT_FALSE(fs::exists(world.there("b")));
}

TEST_F(CommandCheck, TheVariablesOfAServerCountAndAreNotLogged) {
  fs::create_directories(world.project() / "temporary");
  world.configure(
      fmt::format("name: proj\npython: {{manager: system}}\nservers:\n"
                  "  a: {{hostname: a, env: {{TMPDIR: '{}', TOKEN: s3cr3t}}}}\n",
                  (world.project() / "temporary").string()));
  const CommandResult result = world.run({"check", "--json", "-vv"});
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report[0]["facts"]["disks"]["tmp"]["path"], (world.project() / "temporary").string());
  EXPECT_THAT(result.err, HasSubstr("TOKEN"));
  EXPECT_THAT(result.err, Not(HasSubstr("s3cr3t")));
}

// A fake torch whose NCCL is a system library under another name.
TEST_F(CommandCheck, DeepComparesTheLibrariesThatAreReallyLoaded) {
  world.configure(
      fmt::format("name: proj\npython: {{manager: system}}\nservers:\n"
                  "  a: {{hostname: a, env: {{PYTHONPATH: '{0}/a', PYTHONDONTWRITEBYTECODE: '1'}}}}\n"
                  "  b: {{hostname: b, env: {{PYTHONPATH: '{0}/b', PYTHONDONTWRITEBYTECODE: '1'}}}}\n",
                  world.project().string()));
  for (const char* server : {"a", "b"}) {
    const fs::path folder = world.project() / server / "torch";
    const fs::path nccl = world.project() / server / "site-packages/nvidia/nccl/lib";
    fs::create_directories(folder);
    fs::create_directories(nccl);
    write_file_atomic(nccl / "libnccl.so.2", std::string("library of ") + server);
    write_file_atomic(folder / "__init__.py",
                      fmt::format("import mmap\n__version__ = '2.6.0'\n"
                                  "file = open('{}/libnccl.so.2', 'rb')\n"
                                  "held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
                                  "class cuda:\n  is_available = staticmethod(lambda: False)\n"
                                  "class version:\n  cuda = None\n  hip = None\n",
                                  nccl.string()));
  }
  auto report = world.run({"check", "--deep", "--json"}).json();
  EXPECT_EQ(find(report[0], "import")->at("status"), "ok") << report[0].dump(1);
  EXPECT_EQ(find(report[0], "same-libraries")->at("status"), "ok");
  EXPECT_EQ(find(report[1], "same-libraries")->at("status"), "fail");
  EXPECT_THAT(find(report[1], "same-libraries")->at("detail").get<std::string>(), HasSubstr("libnccl.so.2"));
  EXPECT_EQ(report[1].at("facts").at("import").at("libraries").size(), 1U);

  write_file_atomic(world.project() / "b/site-packages/nvidia/nccl/lib/libnccl.so.2", "library of a");
  report = world.run({"check", "--deep", "--json"}).json();
  EXPECT_EQ(find(report[1], "same-libraries")->at("status"), "ok");

  write_file_atomic(world.project() / "b/torch/__init__.py", "raise RuntimeError('\\x1b[31mno')\n");
  report = world.run({"check", "--deep", "--json"}).json();
  // Fails if the system has torch, otherwise skipped, because the facts then say that none is installed.
  EXPECT_THAT(find(report[1], "import")->at("status").get<std::string>(), AnyOf("fail", "skip"));
  EXPECT_THAT(find(report[1], "import")->at("detail").get<std::string>(), HasSubstr("RuntimeError"));
  EXPECT_EQ(find(report[0], "import")->at("status"), "ok");
}

TEST_F(CommandCheck, ALaunchIsWarnedOfHoldersOfItsOwnGpusAlone) {
  const auto have = [&](const char* second) {
    world.servers().add_program(
        "nvidia-smi",
        fmt::format("case $1 in\n"
                    "--query-gpu=*) for gpu in '0, GPU-0a, A' '1, GPU-1b, {}'; do echo "
                    "\"${{gpu%,*}}, 0:0, 80000, 4000, 0, 30, 50, 400, 1000, 1000, 0x0, Disabled, 0, "
                    "535.54.03,${{gpu##*,}}\"; "
                    "done ;;\n"
                    "--query-compute-apps=*) echo 'GPU-0a, {}, 4000, python3' ;;\n*) exit 2 ;;\nesac\n",
                    second, ::getpid()));
  };
  have("A");
  const auto warned = [&](int gpu) {
    world.configure(
        fmt::format("name: proj\npython: {{manager: system}}\nservers:\n"
                    "  a: {{hostname: a, gpus: [{}]}}\n",
                    gpu));
    const CommandResult result = world.run({"launch", "--nproc-per-node", "1", "--cmd", "true"});
    EXPECT_EQ(result.code, 0) << result;
    return result.err.find(fmt::format("gpu-busy: others hold memory of its GPUs: pid {} of ", ::getpid())) !=
           std::string::npos;
  };
  EXPECT_TRUE(warned(0));
  EXPECT_FALSE(warned(1));
  have("B");
  EXPECT_TRUE(warned(1)) << "CUDA may count unlike devices in another order";
}

}  // namespace
}  // namespace remote::test
