#include "servers/container.hpp"

#include <gmock/gmock.h>

#include "support/processes.hpp"
#include "support/script_test.hpp"

// How a job gets into its container, and how an engine is looked for, under every sh that servers have, with
// programs that stand in for the engines. tests/e2e/test_containers.sh and its like have the real ones.

namespace remote::jobs {
namespace {

using servers::ContainerAnswer;
using State = ContainerAnswer::State;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ContainerScript : public test::ScriptTest {
 protected:
  ContainerScript() { fs::create_directories(bin()); }

  fs::path bin() { return servers.home("a") / "bin"; }
  // A program of this name; what it is called with stands in the file `words`, a word a line.
  void pretend(const std::string& name, const std::string& text) {
    write_file_atomic(bin() / name,
                      "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >>\"$HOME/words\"\n" + text);
    fs::permissions(bin() / name, fs::perms::owner_all);
  }
  // One that runs what stands behind the image, here.
  void pretend_engine(const std::string& name) {
    pretend(name, R"(case $1 in
  run | exec) ;;
  *) exit 0 ;;
esac
while [ "$1" != the-image ]; do
  case $1 in
    REMOTE_JOB_ID=*) export "$1" ;;
  esac
  shift
done
shift
exec "$@"
)");
  }
  std::string prologue() { return "PATH=" + bin().string() + ":$PATH\nexport PATH\n"; }
  std::vector<std::string> words() {
    return split(read_file_if_there(servers.home("a") / "words").value_or(""), '\n');
  }

  JobId start_in(const Container& container, const std::string& command, Env env = {}) {
    StartRequest request{JobId::random(), {command, "", std::move(env)}};
    request.process.container = servers::ContainerRun{container, false, prologue()};
    EXPECT_EQ(start_all({request}).at(0).outcome, StartReply::Outcome::started);
    return request.id;
  }

  ContainerAnswer look(const std::string& engine, const std::string& path, bool fetch = false,
                       bool on_login_node = false, const std::string& image = "the-image") {
    config::Config config;
    config.name = "my proj";
    config.prologue = "PATH=" + path + "\nexport PATH";
    config::Server server;
    if (on_login_node) {
      server.slurm.emplace();
    }
    return run(servers::container_action(config, server, {parse_container_engine(engine), image}, fetch));
  }
  // Only the tools that the script itself needs, and what is pretended.
  std::string only_ours() {
    const fs::path tools = servers.home("a") / "tools";
    fs::create_directories(tools);
    for (const char* name : {"sh", "bash", "sed", "cut", "id", "busybox"}) {
      for (const char* place : {"/bin/", "/usr/bin/"}) {
        if (fs::exists(std::string(place) + name) && !fs::exists(tools / name)) {
          fs::create_symlink(std::string(place) + name, tools / name);
        }
      }
    }
    return bin().string() + ":" + tools.string();
  }
};

TEST_P(ContainerScript, AJobGoesThroughTheEngineAndComesOutAsItself) {
  pretend_engine("docker");
  const JobId id =
      start_in({ContainerEngine::docker, "the-image", {"-v", "/data with blanks:/data", "--ipc=private"}},
               "echo \"out $NAME\"; echo err >&2; pwd; exit 3", {{"NAME", "s3cr3t $HOME"}});
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(3));
  EXPECT_EQ(file(id, "job.out"), "out s3cr3t $HOME\n" + place().string() + "\n");
  EXPECT_EQ(file(id, "job.err"), "err\n");
  EXPECT_THAT(file(id, "container"), testing::StartsWith("engine docker\nPATH "));
  const std::vector<std::string> all = words();
  const std::string mount = "type=bind,source=" + place().string() + ",target=" + place().string();
  for (const std::string& word :
       {std::string("--rm"), "remote-" + id.text(), std::string("never"), std::string("none"), mount,
        std::string("--user"), "REMOTE_JOB_ID=" + id.text(), std::string("/data with blanks:/data")}) {
    EXPECT_THAT(all, Contains(word));
  }
  EXPECT_THAT(testing::PrintToString(all), Not(HasSubstr("s3cr3t")));
  // The user's own words stand behind ours, so that they count.
  EXPECT_LT(std::ranges::find(all, "--ipc"), std::ranges::find(all, "--ipc=private"));
  expect_nothing_left();
}

TEST_P(ContainerScript, ASignalInsideIsTheJobsSignal) {
  pretend_engine("podman");
  const JobId id = start_in({ContainerEngine::podman, "the-image"}, "kill -TERM $$");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::signalled(15));
  const JobId code = start_in({ContainerEngine::podman, "the-image"}, "exit 143");
  EXPECT_EQ(wait_end(code).result(), ExitStatus::exited(143));
  // The engine's client is told of a container that was killed by this code alone.
  pretend("podman", "exit 137\n");
  EXPECT_EQ(wait_end(start_in({ContainerEngine::podman, "the-image"}, "true")).result(),
            ExitStatus::signalled(9));
  expect_nothing_left();
}

TEST_P(ContainerScript, ApptainerHasNoNamesAndIsEndedLikeAnyProcess) {
  pretend_engine("singularity");  // the older name of the program
  fs::create_directories(place());
  write_file_atomic(place() / "the-image", "");
  const JobId id = start_in({ContainerEngine::apptainer, "the-image", {"--writable-tmpfs"}, "sub"},
                            "echo begun; pwd; sleep 60");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(127));
  EXPECT_THAT(file(id, "job.err"), HasSubstr("has no folder sub"));
  fs::create_directory(place() / "sub");
  const JobId second =
      start_in({ContainerEngine::apptainer, "the-image", {}, "sub"}, "pwd; echo begun; sleep 60");
  until_out(second, "begun");
  EXPECT_EQ(file(second, "job.out"), (place() / "sub").string() + "\nbegun\n");
  EXPECT_EQ(kill(second).outcome, KillReply::Outcome::killed);
  EXPECT_THAT(words(), Contains("--cleanenv"));
  EXPECT_THAT(words(), Contains("--writable-tmpfs"));
  EXPECT_THAT(words(), Not(Contains("ps")));
  // Both are looked for before the engine is called.
  const JobId gone = start_in({ContainerEngine::apptainer, "no-image"}, "true");
  EXPECT_EQ(wait_end(gone).result(), ExitStatus::exited(127));
  EXPECT_THAT(file(gone, "job.err"), HasSubstr("there is no image no-image on "));
  expect_nothing_left();
}

TEST_P(ContainerScript, AContainerThatStaysIsNamedAndTheJobIsNotCalledKilled) {
  pretend_engine("podman");
  const JobId id = start_in({ContainerEngine::podman, "the-image"}, "echo begun; sleep 60");
  until_out(id, "begun");
  pretend("podman", "case $1 in ps) echo \"remote-" + id.text() + " Up 2 seconds\" ;; esac\n");
  const KillReply reply = kill(id, SIGTERM, 0);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::survivors);
  EXPECT_THAT(reply.survivors, ElementsAre("container:remote-" + id.text()));
  EXPECT_EQ(status(id).phase, Phase::running);
  // Another job's container is nobody's business.
  pretend("podman", "case $1 in ps) echo \"remote-" + JobId::random().text() + " Up 2 seconds\" ;; esac\n");
  EXPECT_EQ(status(id).phase, Phase::ended);
  fs::remove(servers.home("a") / "words");
  kill(id, SIGTERM, 0);
  EXPECT_THAT(words(), Not(Contains("rm")));
  expect_nothing_left();
}

TEST_P(ContainerScript, TheEngineThatWorksIsFound) {
  const std::string path = only_ours();
  EXPECT_EQ(look("", path).state, State::failed);
  EXPECT_EQ(look("", path).reason,
            "podman is not installed; docker is not installed; apptainer is not installed");
  pretend("docker", "case $1 in info) echo 'Got permission denied at unix:///x' >&2; exit 1 ;; esac\n");
  EXPECT_EQ(look("docker", path).reason, "docker cannot be used: Got permission denied at unix:///x");
  pretend("docker",
          "case $1 in info) echo '[name=rootless]' ;; image) exit 1 ;; pull) echo no; exit 1 ;; esac\n");
  EXPECT_EQ(look("docker", path).state, State::missing);
  EXPECT_TRUE(look("docker", path).rootless);
  EXPECT_EQ(look("docker", path, true).reason, "cannot fetch the image the-image: no");
  // One that has the image comes before one that has not.
  pretend("apptainer", "");
  fs::create_directories(place());
  write_file_atomic(place() / "the-image", "");
  EXPECT_EQ(look("", path).engine, ContainerEngine::apptainer);
  EXPECT_EQ(look("", path).state, State::ready);
  pretend("podman", "case $2 in exists) echo \"$(printf 'odd\\033[2J')\" >&2; exit 125 ;; esac\n");
  EXPECT_EQ(look("podman", path).reason, "podman cannot be used: odd?[2J");
  pretend("podman", "");
  EXPECT_EQ(look("", path).engine, ContainerEngine::podman);
}

TEST_P(ContainerScript, ALoginNodeNeedNotHaveTheEngineButHasTheImagesFile) {
  const std::string path = only_ours();
  const auto look_there = [&](const std::string& image) {
    return look("apptainer", path, false, true, image).state;
  };
  EXPECT_EQ(look_there("the-image"), State::missing);
  EXPECT_EQ(look_there("docker://the-image"), State::ready) << "its nodes fetch it";
  fs::create_directories(place());
  write_file_atomic(place() / "the-image", "");
  EXPECT_EQ(look_there("the-image"), State::ready);
  pretend("apptainer", "");
  EXPECT_EQ(look_there("docker://the-image"), State::missing) << "it can be fetched here";
}

INSTANTIATE_TEST_SUITE_P(Shells, ContainerScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
