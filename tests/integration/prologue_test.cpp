// `prologue:`, the user's own commands before every command and job, and `python: {conda: PATH}`.

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandPrologue : public ::testing::TestWithParam<ServerShell> {
 protected:
  void configure(const std::string& more) {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n"
        "  b: {hostname: b, prologue: export WHO=b}\n" +
        more);
  }
  CommandWorld world{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Shells, CommandPrologue,
                         ::testing::Values(ServerShell::dash, ServerShell::bash, ServerShell::busybox),
                         [](const auto& shell) { return to_string(shell.param); });

TEST_P(CommandPrologue, RunsBeforeCommandsAndJobsAndPrintsNothingBetweenTheirs) {
  configure(R"(prologue: |
  echo noise; echo '@remote1 end'
  export WHO=all LINES_OF="one
  two"
  unset GONE
  ulimit -n 99
)");
  const char* command = "echo $WHO/$(ulimit -n)/${GONE-no}";
  const CommandResult result = world.run({"run", "--json", "-e", "GONE=1", "--cmd", command});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(result.json()[0]["stdout"], "all/99/no\n");
  EXPECT_THAT(result.json()[0]["stderr"].get<std::string>(), HasSubstr("noise\n"));
  EXPECT_THAT(result.json()[1]["stdout"].get<std::string>(), StartsWith("b/"));
  const Job job = world.ended_job("a", command);
  EXPECT_EQ(read_file(world.there("a") / ".jobs" / job.id.text() / "job.out"), "all/99/no\n");
}

TEST_P(CommandPrologue, ItsFailureIsNamedAndNothingRunsWithoutIt) {
  configure("prologue: ['echo not so', '(exit 3)']\n");
  const CommandResult result = world.run({"run", "--server", "a", "--cmd", "echo ran"});
  EXPECT_EQ(result.code, 127) << result;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("not so\n"), HasSubstr("the prologue in configs.yaml failed (exit code 3)\n")));
  const Job job = world.ended_job("a", "echo ran");
  EXPECT_EQ(read_file(world.there("a") / ".jobs" / job.id.text() / "job.out"), "");
  EXPECT_THAT(read_file(world.there("a") / ".jobs" / job.id.text() / "job.err"),
              HasSubstr("the prologue in configs.yaml failed (exit code 3)\n"));
  const CommandResult setup = world.run({"setup"});
  EXPECT_EQ(setup.code, 1);
  EXPECT_THAT(setup.err,
              AllOf(HasSubstr("a: failed status: the prologue in configs.yaml failed (exit code 3)"),
                    HasSubstr("not so"), HasSubstr("b: ok")));
  // The prologue may need files of the project.
  EXPECT_EQ(world.run({"rsync"}).code, 0);
}

// A file of the project, and a Python that it adds to PATH.
TEST_P(CommandPrologue, MayReadTheProjectAndBringAPython) {
  configure("prologue: . ./env.sh\n");
  const fs::path bin = world.home() / "tools";
  make_folders(bin);
  write_file_atomic(bin / "python", "#!/bin/sh\necho from the tools\n", 0755);
  write_file_atomic(world.project() / "env.sh", "PATH=" + bin.string() + ":$PATH\n");
  ASSERT_EQ(world.run({"rsync", "--server", "a"}).code, 0);
  ASSERT_EQ(world.run({"setup", "--server", "a"}).code, 0);
  EXPECT_EQ(world.run({"run", "--server", "a", "--cmd", "cd / && python"}).out, "from the tools\n");
}

class CommandConda : public ::testing::Test {
 protected:
  CommandConda() {
    make_folders(conda / "bin");
    // A conda that makes environments with a capable Python.
    write_file_atomic(conda / "bin/python", "#!/bin/sh\necho \"$0\"\n", 0755);
    write_file_atomic(conda / "bin/conda", R"(#!/bin/sh
[ "$1" = create ] || exit 0
for word; do
  [ "$last" = -p ] && mkdir -p "$word/bin" && cp "${0%/conda}/python" "$word/bin/python"
  last=$word
done
)",
                      0755);
  }
  void configure(const std::string& python) {
    world.configure("name: proj\nservers: {a: {hostname: a}}\npython: {" + python + "}\n");
  }
  CommandWorld world;
  const fs::path conda = world.home() / "opt/conda";
};

TEST_F(CommandConda, AnInstallationThatIsThereIsUsed) {
  configure("conda: " + conda.string());
  const CommandResult result = world.run({"setup"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_FALSE(fs::exists(world.servers().home("a") / "miniconda"));
  EXPECT_EQ(
      world.run({"run", "--cmd", "python; echo $CONDA_DEFAULT_ENV $CONDA_EXE"}).out,
      (conda / "envs/proj_env/bin/python").string() + "\nproj_env " + (conda / "bin/conda").string() + "\n");
  EXPECT_THAT(world.run({"setup"}).err, HasSubstr("setup already"));
}

TEST_F(CommandConda, ItsBaseEnvironmentIsTakenAsItIsAndNeverRemoved) {
  configure("conda: " + conda.string() + ", environment: base");
  for (const char* option : {"--server=a", "--force"}) {
    const CommandResult result = world.run({"setup", option});
    EXPECT_EQ(result.code, 0) << result;
    EXPECT_TRUE(fs::exists(conda / "bin/conda"));
  }
  EXPECT_EQ(world.run({"run", "--cmd", "python; echo $CONDA_DEFAULT_ENV"}).out,
            (conda / "bin/python").string() + "\nbase\n");
}

TEST_F(CommandConda, OneThatIsNotThereIsAnErrorAndNothingIsDownloaded) {
  configure("conda: /nowhere/conda");
  const CommandResult result = world.run({"setup"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("there is no working conda in /nowhere/conda"), HasSubstr("hint: ")));
}

}  // namespace
}  // namespace remote::test
