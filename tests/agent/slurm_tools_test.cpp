#include "agent/slurm/tools.hpp"
#include "agent/slurm_host.hpp"

namespace remote::agent {
namespace {

// A host without Slurm on its PATH.
class SlurmPrograms : public ::testing::Test {
 protected:
  SlurmPrograms() {
    for (const char* program : {"sh", "env", "cat"}) {
      fs::create_symlink(fake.host.find_program(program).string(), fake.programs() / program);
    }
    fake.host.environment["PATH"] = fake.programs().string();
    set_login_path("/nowhere");
  }
  // Sets the PATH in the user's login shell.
  void set_login_path(const std::string& path) {
    test::FakeHost::put_program(fake.programs() / "login", "echo '@path " + path + "'");
    fake.host.environment["SHELL"] = (fake.programs() / "login").string();
  }
  void put_start_file(const std::string& name, const std::string& text) const {
    test::FakeHost::put(fake.root() / "etc/profile.d" / name, text);
  }
  fs::path site() const { return fake.folder() / "the site/bin"; }

  test::FakeHost fake;
};

TEST_F(SlurmPrograms, AreOnThePath) {
  test::FakeHost::put_program(fake.programs() / "squeue", "echo here");
  put_start_file("slurm.sh", "echo asked >>\"$HOME/asked\"\n");
  SlurmTools tools(fake.host);
  EXPECT_TRUE(tools.find());
  EXPECT_EQ(tools.call({"squeue"}, std::chrono::seconds(5)).out, "here\n");
  EXPECT_FALSE(fs::exists(fake.home() / "asked"));
}

TEST_F(SlurmPrograms, AreNotNamedToAClientIfThereAreNone) {
  EXPECT_TRUE(find_slurm_programs(fake.host).variables.empty());
}

TEST_F(SlurmPrograms, AreNamedToAClientThatRunsThemItself) {
  put_start_file("slurm.sh", "export SLURM_CONF='/etc/our slurm.conf' OTHER=x\n");
  test::FakeHost::put_program(site() / "squeue", "");
  set_login_path(site().string());
  fake.host.environment.erase("LD_LIBRARY_PATH");
  const std::vector<std::string> variables = find_slurm_programs(fake.host).variables;
  ASSERT_EQ(variables.size(), 2U);
  EXPECT_TRUE(variables[0].starts_with("PATH=" + fake.programs().string() + ":"));
  EXPECT_TRUE(variables[0].ends_with(":" + site().string()));
  EXPECT_EQ(variables[1], "SLURM_CONF=/etc/our slurm.conf");
}

TEST_F(SlurmPrograms, AreWhereTheStartFilesOfTheSiteSay) {
  test::FakeHost::put_program(site() / "squeue", "echo \"$SLURM_CONF, ${OTHER-none}\"");
  put_start_file("a-slurm.sh", "echo welcome; export SLURM_CONF='/etc/our slurm.conf' OTHER=x\n");
  put_start_file("b-slurm.sh", "if then\n");
  put_start_file("c-slurm.sh", "exit 3\n");
  put_start_file("d-slurm.sh", "PATH=$PATH:'" + site().string() + "'\ncat\n");
  put_start_file("modules.sh", "touch \"$HOME/asked\"\n");
  SlurmTools tools(fake.host);
  EXPECT_TRUE(tools.find());
  EXPECT_EQ(tools.call({"squeue"}, std::chrono::seconds(5)).out, "/etc/our slurm.conf, none\n");
  EXPECT_FALSE(fs::exists(fake.home() / "asked"));
}

TEST_F(SlurmPrograms, AreOnThePathOfTheLoginShell) {
  test::FakeHost::put_program(site() / "squeue", "echo here");
  test::FakeHost::put_program(site() / "sacct", "");
  EXPECT_FALSE(SlurmTools(fake.host).find());
  fake.host.environment["HOME"] = (fake.folder() / "another home").string();
  set_login_path(site().string());
  SlurmTools tools(fake.host);
  EXPECT_TRUE(tools.find());
  EXPECT_TRUE(tools.has("sacct"));
  EXPECT_EQ(tools.call({"squeue"}, std::chrono::seconds(5)).out, "here\n");
}

TEST_F(SlurmPrograms, GetNoSettingsOfTheUserThatChangeTheirAnswers) {
  test::FakeHost::put_program(fake.programs() / "squeue", "env");
  for (const char* name : {"SQUEUE_PARTITION", "SCANCEL_INTERACTIVE", "SLURM_TIME_FORMAT", "SLURM_CONF"}) {
    fake.host.environment[name] = "relative";
  }
  SlurmTools tools(fake.host);
  const std::string out = tools.call({"squeue"}, std::chrono::seconds(5)).out;
  EXPECT_NE(out.find("SLURM_CONF=relative\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("SQUEUE_"), std::string::npos) << out;
  EXPECT_EQ(out.find("SCANCEL_"), std::string::npos) << out;
  EXPECT_EQ(out.find("SLURM_TIME_FORMAT"), std::string::npos) << out;
}

TEST_F(SlurmPrograms, HaveTimeLimits) {
  test::FakeHost::put_program(fake.programs() / "squeue", "while :; do :; done");
  const RunResult result = SlurmTools(fake.host).call({"squeue"}, std::chrono::milliseconds(100));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(SlurmTools(fake.host).call({"none"}, std::chrono::seconds(1)).code, 127);
}

TEST(SlurmLastLine, SaysSomething) {
  EXPECT_EQ(find_last_line("sbatch: error: one\nsbatch: two\n\n"), "sbatch: two");
  EXPECT_EQ(
      find_last_line("sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information\n"),
      "sbatch: unrecognized option '--bogus'");
  EXPECT_EQ(find_last_line("a\x1b[31m\r\n"), "a\\x1b[31m\\x0d");
  EXPECT_EQ(find_last_line(""), "");
  EXPECT_EQ(find_last_line("\n\n"), "");
}

}  // namespace
}  // namespace remote::agent
