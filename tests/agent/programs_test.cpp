#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/facts/environment.hpp"
#include "agent/fake_host.hpp"

namespace remote::agent {
namespace {

class AgentPrograms : public ::testing::Test {
 protected:
  wire::FactsReply ask() {
    wire::FactsReply reply;
    read_environment(fake.host, request, reply);
    return reply;
  }
  void put_mpirun(const std::string& text) {
    fake.put(fake.folder() / "version", text);
    fake.put_program(bin / "mpirun", "cat '" + (fake.folder() / "version").string() + "'");
    request.activate = "PATH='" + bin.string() + "':$PATH";
  }

  test::FakeHost fake;
  fs::path bin = fake.folder() / "mpi/bin";
  wire::FactsRequest request;
};

TEST_F(AgentPrograms, NamesAProgramThatAJobWouldNotFind) {
  const fs::path env = fake.folder() / "my env";
  const std::string program = "no-such-python";
  request.program = program;
  EXPECT_EQ(ask().missing, program);
  fake.put_program(env / "bin" / program, "");
  request.environment = env;
  EXPECT_EQ(ask().missing, "");
  request.environment = "";
  request.activate = "PATH='" + (env / "bin").string() + "':$PATH";
  EXPECT_EQ(ask().missing, "");
  request.activate = "exit 1";
  EXPECT_EQ(ask().missing, program);
  fake.put_program(fake.programs() / program, "");
  EXPECT_EQ(ask().missing, "");
}

TEST_F(AgentPrograms, EntersTheEnvironmentOnlyIfNecessary) {
  const fs::path entered = fake.folder() / "entered";
  request.activate = "echo >'" + entered.string() + "'";
  ask();
  request.program = "sh";
  ask();
  EXPECT_FALSE(fs::exists(entered));
  request.program = "no-such";
  ask();
  EXPECT_TRUE(fs::exists(entered));
}

TEST_F(AgentPrograms, FindsBuiltinsAndPaths) {
  for (const char* name : {"cd", "export", "/bin/sh"}) {
    request.program = name;
    EXPECT_EQ(ask().missing, "") << name;
  }
  for (const char* name : {"/no/such", "'; echo x; '", "$(echo sh)", "a b", "-v"}) {
    request.program = name;
    EXPECT_EQ(ask().missing, name);
  }
}

TEST_F(AgentPrograms, ReadsWhatThereIsOfMpi) {
  request.mpi = true;
  put_mpirun("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n");
  auto mpi = ask().mpi;
  ASSERT_TRUE(mpi);
  EXPECT_FALSE(mpi->hydra);
  EXPECT_EQ(mpi->version, "4.1.4");
  EXPECT_EQ(mpi->root, ::geteuid() == 0);
  fake.put_program(bin / "orted", "");
  EXPECT_TRUE(ask().mpi->has_daemon);
  put_mpirun("mpirun (Open MPI) 5.0.0rc12 (x)\n");
  EXPECT_EQ(ask().mpi->version, "5.0.0rc12");
  put_mpirun(
      "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: x\n");
  mpi = ask().mpi;
  ASSERT_TRUE(mpi);
  EXPECT_TRUE(mpi->hydra);
  EXPECT_EQ(mpi->version, "4.0.2");
  put_mpirun("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230306 (id: d82b3071db)\n");
  mpi = ask().mpi;
  ASSERT_TRUE(mpi);
  EXPECT_TRUE(mpi->hydra);
  EXPECT_EQ(mpi->version, "2021.9");
  for (const char* unknown :
       {"", "LAM 7.1.4\n", "mpirun (Open MPI) \n", "mpirun (Open MPI) $(reboot)\n", "HYDRA\n",
        "HYDRA Version: x\n", "Intel(R) MPI Library\n", "x HYDRA Version: 4\n"}) {
    put_mpirun(unknown);
    EXPECT_FALSE(ask().mpi) << unknown;
  }
}

TEST_F(AgentPrograms, TheDaemonMayHaveAnyOfItsNames) {
  request.mpi = true;
  fake.put_program(bin / "mpirun", "echo 'mpirun (Open MPI) 4.1.4'");
  request.activate = "PATH='" + bin.string() + "'";
  EXPECT_FALSE(ask().mpi->has_daemon);
  for (const char* name : {"orted", "prted", "hydra_pmi_proxy"}) {
    fake.put_program(bin / name, "");
    EXPECT_TRUE(ask().mpi->has_daemon) << name;
    fs::remove(bin / name);
  }
}

TEST_F(AgentPrograms, MpirunIsMissingOrFails) {
  request.mpi = true;
  put_mpirun("mpirun (Open MPI) 4.1.4\n");
  const std::string enter = request.activate;
  request.activate = "exit 1";
  if (fake.host.find_program("mpirun").empty()) {
    EXPECT_FALSE(ask().mpi);
  }
  request.activate = "set -e\n" + enter;
  fake.put_program(bin / "mpirun", "echo 'mpirun (Open MPI) 4.1.4'; exit 1");
  EXPECT_EQ(ask().mpi.value_or(wire::MpiFacts()).version, "4.1.4");
  fake.put_program(bin / "mpirun", "exit 1");
  EXPECT_FALSE(ask().mpi);
}

TEST_F(AgentPrograms, AllOfItTakesOneShell) {
  const fs::path count = fake.folder() / "count";
  request.python = false;
  request.program = "no-such";
  request.mpi = true;
  put_mpirun("mpirun (Open MPI) 4.1.4\n");
  fake.put_program(bin / "python3", "echo Python 3.9.1");
  request.activate += "; echo >>'" + count.string() + "'";
  fs::create_directories(fake.folder() / "mpi/lib/python3.9/site-packages");
  const wire::FactsReply reply = ask();
  EXPECT_EQ(reply.facts.python, "3.9.1");
  EXPECT_EQ(reply.missing, "no-such");
  EXPECT_TRUE(reply.mpi);
  EXPECT_EQ(fs::file_size(count), 1U);
}

}  // namespace
}  // namespace remote::agent
