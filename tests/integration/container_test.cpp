#include "servers/container.hpp"

#include <gmock/gmock.h>

#include "support/processes.hpp"
#include "support/script_test.hpp"

// How a job enters its container, with every sh that servers have, and with fake container engines.
// tests/e2e/test_containers.sh and related tests use the real engines.

namespace remote::jobs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

class ContainerScript : public test::ScriptTest {
 protected:
  ContainerScript() { fs::create_directories(bin()); }

  fs::path bin() { return servers.home("a") / "bin"; }
  // Adds a fake program with this name. It writes its arguments to the file `words`, one per line.
  void pretend(const std::string& name, const std::string& text) {
    write_file_atomic(bin() / name,
                      "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >>\"$HOME/words\"\n" + text);
    fs::permissions(bin() / name, fs::perms::owner_all);
  }
  // Adds a fake engine that runs the arguments after the image on this machine.
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
    EXPECT_EQ(start_all({request}).at(0).outcome, StartOutcome::started);
    return request.id;
  }
};

TEST_P(ContainerScript, AJobGoesThroughTheEngineAndComesOutAsItself) {
  pretend_engine("docker");
  const JobId id =
      start_in({ContainerEngine::docker, "the-image", {"-v", "/data with blanks:/data", "--ipc=private"}},
               "echo \"out $NAME\"; echo err >&2; pwd; exit 3", {{"NAME", "s3cr3t $HOME"}});
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(3));
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
  // The user's own options come after ours, so that they take effect.
  EXPECT_LT(std::ranges::find(all, "--ipc"), std::ranges::find(all, "--ipc=private"));
  expect_nothing_left();
}

TEST_P(ContainerScript, ASignalInsideIsTheJobsSignal) {
  pretend_engine("podman");
  const JobId id = start_in({ContainerEngine::podman, "the-image"}, "kill -TERM $$");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::signalled(15));
  const JobId code = start_in({ContainerEngine::podman, "the-image"}, "exit 143");
  EXPECT_EQ(result_of(wait_end(code)), ExitStatus::exited(143));
  // This exit code is the only sign the engine's client has that the container was killed.
  pretend("podman", "exit 137\n");
  EXPECT_EQ(result_of(wait_end(start_in({ContainerEngine::podman, "the-image"}, "true"))),
            ExitStatus::signalled(9));
  expect_nothing_left();
}

TEST_P(ContainerScript, ApptainerHasNoNamesAndIsEndedLikeAnyProcess) {
  pretend_engine("singularity");  // the program's older name
  fs::create_directories(place());
  write_file_atomic(place() / "the-image", "");
  const JobId id = start_in({ContainerEngine::apptainer, "the-image", {"--writable-tmpfs"}, "sub"},
                            "echo begun; pwd; sleep 60");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(127));
  EXPECT_THAT(file(id, "job.err"), HasSubstr("has no folder sub"));
  fs::create_directory(place() / "sub");
  const JobId second =
      start_in({ContainerEngine::apptainer, "the-image", {}, "sub"}, "pwd; echo begun; sleep 60");
  until_out(second, "begun");
  EXPECT_EQ(file(second, "job.out"), (place() / "sub").string() + "\nbegun\n");
  EXPECT_EQ(kill(second).outcome, StopOutcome::killed);
  EXPECT_THAT(words(), Contains("--cleanenv"));
  EXPECT_THAT(words(), Contains("--writable-tmpfs"));
  EXPECT_THAT(words(), Not(Contains("ps")));
  // Checks for both before calling the engine.
  const JobId gone = start_in({ContainerEngine::apptainer, "no-image"}, "true");
  EXPECT_EQ(result_of(wait_end(gone)), ExitStatus::exited(127));
  EXPECT_THAT(file(gone, "job.err"), HasSubstr("there is no image no-image on "));
  expect_nothing_left();
}

TEST_P(ContainerScript, AContainerThatStaysIsNamedAndTheJobIsNotCalledKilled) {
  pretend_engine("podman");
  const JobId id = start_in({ContainerEngine::podman, "the-image"}, "echo begun; sleep 60");
  until_out(id, "begun");
  pretend("podman", "case $1 in ps) echo \"remote-" + id.text() + " Up 2 seconds\" ;; esac\n");
  const wire::StopResult reply = kill(id, SIGTERM, 0);
  EXPECT_EQ(reply.outcome, StopOutcome::survivors);
  EXPECT_THAT(reply.survivors, ElementsAre(Field(&wire::Survivor::name, "container remote-" + id.text())));
  EXPECT_EQ(status(id).phase, Phase::running);
  // Containers of other jobs are ignored.
  pretend("podman", "case $1 in ps) echo \"remote-" + JobId::random().text() + " Up 2 seconds\" ;; esac\n");
  EXPECT_EQ(status(id).phase, Phase::ended);
  fs::remove(servers.home("a") / "words");
  kill(id, SIGTERM, 0);
  EXPECT_THAT(words(), Not(Contains("rm")));
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Shells, ContainerScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
