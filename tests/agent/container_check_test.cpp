#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/container/check_container.hpp"
#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"

// Fake programs replace the engines. tests/e2e/test_containers.sh and related tests use real ones.

namespace remote::agent {
namespace {

using wire::ContainerOutcome;
using enum ContainerEngine;

class CheckContainer : public ::testing::Test {
 protected:
  CheckContainer() {
    // PATH without this machine's engines.
    const fs::path tools = fake.folder() / "tools";
    fs::create_directories(tools);
    for (const char* name : {"sh", "bash", "cat"}) {
      if (const Path found = fake.host.find_program(name); !found.empty()) {
        fs::create_symlink(found.string(), tools / name);
      }
    }
    fake.host.environment["PATH"] = fake.programs().string() + ":" + tools.string();
    request.image = "the-image";
    request.project = "~/my proj";
  }

  void pretend(const std::string& name, const std::string& text) {
    test::FakeHost::put_program(fake.programs() / name, "echo \"" + name + " $*\" >>~/calls\n" + text);
  }
  void put_image() { test::FakeHost::put(fake.home() / "my proj/the-image", ""); }
  wire::ContainerReply check(std::optional<ContainerEngine> engine = {}, bool fetch = false) {
    request.engine = engine;
    request.fetch = fetch;
    return check_container(fake.host, request);
  }

  test::FakeHost fake;
  wire::ContainerRequest request;
};

TEST_F(CheckContainer, TheEngineThatWorksIsFound) {
  EXPECT_EQ(check().outcome, ContainerOutcome::failed);
  EXPECT_EQ(check().reason, "podman is not installed; docker is not installed; apptainer is not installed");
  pretend("docker", "case $1 in info) echo 'Got permission denied at unix:///x' >&2; exit 1 ;; esac\n");
  EXPECT_EQ(check(docker).reason, "docker cannot be used: Got permission denied at unix:///x");
  for (const char* error : {"permission denied", "Cannot connect to the Docker daemon"}) {
    pretend("docker", std::string("echo '") + error + "'\n");  // exits with 0
    EXPECT_EQ(check(docker).reason, std::string("docker cannot be used: ") + error);
  }
  pretend("docker",
          "case $1 in info) echo '[name=rootless]' ;; image) exit 1 ;; pull) echo no; exit 1 ;; esac\n");
  EXPECT_EQ(check(docker).outcome, ContainerOutcome::missing);
  EXPECT_EQ(check(docker).engine, docker);
  EXPECT_TRUE(check(docker).rootless);
  EXPECT_EQ(check(docker, true).reason, "cannot fetch the image the-image: no");
  EXPECT_EQ(check(docker, true).outcome, ContainerOutcome::failed);
  EXPECT_EQ(check(docker, true).engine, std::nullopt);
  // An engine that has the image is preferred to one that does not.
  pretend("apptainer", "");
  put_image();
  EXPECT_EQ(check().engine, apptainer);
  EXPECT_EQ(check().outcome, ContainerOutcome::ready);
  EXPECT_FALSE(check().rootless);
  pretend("podman", "case $2 in exists) printf 'first\\nodd\\033[2J\\n \\n' >&2; exit 125 ;; esac\n");
  EXPECT_EQ(check(podman).reason, "podman cannot be used: odd\\x1b[2J");
  EXPECT_EQ(check().engine, apptainer);
  pretend("podman", "");
  EXPECT_EQ(check().engine, podman);
  EXPECT_EQ(check().rootless, ::geteuid() != 0);
}

TEST_F(CheckContainer, AnEngineThatFailsWithoutAWordIsNamedByItsExitStatus) {
  pretend("podman", "exit 125\n");
  EXPECT_EQ(check(podman).reason, "podman cannot be used: exit status 125");
}

TEST_F(CheckContainer, ALoginNodeNeedNotHaveTheEngineButHasTheImagesFile) {
  request.is_login_node = true;
  const auto check_image = [&](const std::string& image) {
    request.image = image;
    return check(apptainer).outcome;
  };
  EXPECT_EQ(check_image("the-image"), ContainerOutcome::missing);
  EXPECT_EQ(check_image("docker://the-image"), ContainerOutcome::ready) << "its nodes fetch it";
  put_image();
  EXPECT_EQ(check_image("the-image"), ContainerOutcome::ready);
  EXPECT_EQ(check_image((fake.home() / "my proj/the-image").string()), ContainerOutcome::ready);
  EXPECT_EQ(check_image((fake.home() / "the-image").string()), ContainerOutcome::missing);
  pretend("singularity", "");  // the program's older name
  EXPECT_EQ(check_image("docker://the-image"), ContainerOutcome::missing) << "it can be fetched here";
}

TEST_F(CheckContainer, FetchesTheImage) {
  pretend("podman", "");
  EXPECT_EQ(check(podman, true).outcome, ContainerOutcome::ready);
  pretend("singularity", "");
  request.image = "docker://the-image";
  EXPECT_EQ(check(apptainer, true).outcome, ContainerOutcome::ready);
  const std::string calls = read_file((fake.home() / "calls").string()).value_or("");
  EXPECT_THAT(calls, ::testing::HasSubstr("podman pull --quiet the-image\n"));
  EXPECT_THAT(calls, ::testing::HasSubstr("singularity exec docker://the-image true\n"));
}

TEST_F(CheckContainer, ThePrologueMayBringTheEngine) {
  const fs::path site = fake.folder() / "the site's";
  test::FakeHost::put_program(site / "docker", "echo \"$DOCKER_HOST$1\" >>~/hosts");
  request.prologue =
      "set -eu\necho said; echo complained >&2\nPATH=" + fs::path(fake.folder() / "none").string() + ":\"" +
      site.string() + "\"\nexport DOCKER_HOST='a\nb='\n";
  EXPECT_EQ(check(docker).outcome, ContainerOutcome::ready);
  EXPECT_EQ(read_file((fake.home() / "hosts").string()).value_or(""), "a\nb=info\na\nb=image\n");
  // A failing prologue changes nothing.
  request.prologue = "exit 3\n";
  EXPECT_EQ(check(docker).reason, "docker is not installed");
  pretend("docker", "");
  EXPECT_EQ(check(docker).outcome, ContainerOutcome::ready);
}

}  // namespace
}  // namespace remote::agent
