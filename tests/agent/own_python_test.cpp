#include "agent/job/own_python.hpp"

#include <gmock/gmock.h>

#include "agent/fake_host.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;

class OwnPythonTest : public ::testing::Test {
 protected:
  OwnPythonTest() {
    fs::create_symlink("/bin/sh", fake.programs() / "sh");
    fake.host.environment["PATH"] = fake.programs();
    fake.host.environment.erase("PYTHONHOME");
    put_python(environment / "python3", "3.11.2");
  }
  static void put_python(const fs::path& path, const std::string& version) {
    test::FakeHost::put_program(path, "echo 'Python " + version + "'");
  }
  // The program that was found; "" if there is none.
  std::string find(const std::string& activate = "") {
    const auto python = find_own_python(fake.host, activate);
    return python ? python->program.string() : "";
  }

  test::FakeHost fake;
  const fs::path environment = fake.folder() / "an environment/bin";
  const std::string enter = "PATH='" + environment.string() + "':$PATH";
};

TEST_F(OwnPythonTest, IsTheFirstOneOnThePathThatIsNewEnough) {
  EXPECT_EQ(find(), "");
  put_python(fake.programs() / "python", "2.7.18");
  EXPECT_EQ(find(), "");
  put_python(fake.programs() / "python3", "3.5.10");
  EXPECT_EQ(find(), "");
  put_python(fake.programs() / "python", "3.6.0");
  EXPECT_EQ(find(), fake.programs() / "python");
  put_python(fake.programs() / "python3", "3.10.1");
  EXPECT_EQ(find(), fake.programs() / "python3");
  EXPECT_EQ(find(enter), fake.programs() / "python3");
  put_python(fake.programs() / "python3", "4.0.0");
  EXPECT_EQ(find(), fake.programs() / "python3");
}

TEST_F(OwnPythonTest, IsElseThatOfTheEnvironment) {
  put_python(fake.programs() / "python3", "3.5.10");
  EXPECT_EQ(find(enter), environment / "python3");
  EXPECT_EQ(find("echo noise; set -u; " + enter), environment / "python3");
  EXPECT_EQ(find("exit 1"), "");
}

TEST_F(OwnPythonTest, UsesTheStandardLibraryAlone) {
  put_python(fake.programs() / "python3", "3.9.0");
  const std::string program = fake.programs() / "python3";
  EXPECT_THAT(find_own_python(fake.host, "")->command({"x.py", "a b"}),
              ElementsAre(program, "-B", "-S", "-I", "x.py", "a b"));
  fake.host.environment["PYTHONHOME"] = "/opt/python";
  EXPECT_THAT(find_own_python(fake.host, "")->command({"x.py"}), ElementsAre(program, "-B", "-S", "x.py"));
}

}  // namespace
}  // namespace remote::agent
